/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gres.h - Slurm's records of GRES: what a node has, what a job asks for and has. */
#ifndef SK8_SLURM_GRES_H
#define SK8_SLURM_GRES_H

#include "lib/slurm/slurmctld.h"

/* The record of this GRES in a list of a node's or of a job's; NULL: it has none. list may be NULL. */
extern gres_state_t *sk8_gres_find(sk8_list_t list, const char *name);
/* NULL if it is of another layout than our headers say (layout.c tells), or not consumed at all */
extern gres_node_state_t *sk8_gres_of_node(const gres_state_t *state);
extern gres_job_state_t *sk8_gres_of_job(const gres_state_t *state);
/* shard, mps: several jobs have a device together, and it is one of another GRES, too */
extern bool sk8_gres_is_shared(const gres_state_t *state);

/* -1: none, as of GRES whose gres.conf has nothing but files */
extern int sk8_gres_topology_of(const gres_node_state_t *ns, int device);
extern bool sk8_gres_is_of_type(const gres_node_state_t *ns, int device, const char *type);	/* "": of any */
/* A job gets this device (n = 1), or gives it back (-1): what the stock plugin counts of topologies and their types. */
extern void sk8_gres_count_topologies(gres_node_state_t *ns, int device, int n);

/* Is there any besides tokens (tokens.h)? list may be NULL. */
extern bool sk8_gres_any(sk8_list_t list);

/*
 * What a job has, as sk8_abi.h describes it, without tokens: those are its CPUs and memory once more. prepare() makes room for its first so many nodes;
 * fill() adds what it has on one of them, and returns how many entries that is. Job lock.
 */
extern void sk8_gres_prepare(struct sk8_gres_room *room, const job_record_t *job_ptr, uint32_t nodes);
extern uint32_t sk8_gres_fill(struct sk8_gres_room *room, const job_record_t *job_ptr, uint32_t node,
			      const struct sk8_gres **gres);

#endif
