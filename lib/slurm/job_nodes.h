/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * job_nodes.h - the nodes of a job, and which part of its core_bitmap is of which: nodes that are alike
 * stand there together (job_resources_t in Slurm's src/common/job_resources.h).
 *
 * Under the job and node read locks.
 */
#ifndef SK8_SLURM_JOB_NODES_H
#define SK8_SLURM_JOB_NODES_H

#include "lib/slurm/slurmctld.h"

struct sk8_job_node {
	int node_inx;
	uint32_t host;			/* among the job's nodes, from 0 */
	uint32_t first_core, cores;	/* how many cores the node has, whoever has them */
	/* ours */
	bool begun;
	int last;
	uint32_t kind, of_kind;
};

/* The first node with {} in *at, then the next one; false: there is none. */
extern bool sk8_next_job_node(const job_resources_t *resrcs, struct sk8_job_node *at);

/* What jobs that run have of each node, by its index; of suspended ones only memory is theirs. As many as there
 * are nodes; xfree() it. */
struct sk8_node_use {
	uint32_t cores;
	uint64_t memory_mb;
};
extern struct sk8_node_use *sk8_node_use(void);

#endif
