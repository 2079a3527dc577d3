/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * mask_table.h - the masks in force, looked up in Slurm's nodes: which of them are
 * Slurm's, and which cores and how much memory each hides there.
 *
 * What an entry hides is kept until its mask or what jobs hold on its node changes:
 * a job_test costs no more for a thousand masked nodes of which none has changed.
 *
 * All of it under the node write lock only; since 26.05 what is shown is counted under
 * the read lock, and a lock of its own.
 */
#ifndef SK8_SLURM_MASK_TABLE_H
#define SK8_SLURM_MASK_TABLE_H

#include "lib/slurm/slurmctld.h"

/* one masked node */
struct sk8_masked {
	const struct sk8_mask *mask;
	int node_inx;		/* -1: Slurm has no such node */
	bitstr_t *cores;	/* what is hidden there; made when first needed */
	uint64_t cores_epoch;	/* of which usage it was chosen */
	struct sk8_masked *exclusive;	/* of mask->exclusive; NULL: there is none */
};

/* The entries, by node name; *count 0: nothing is masked. Valid until the lock is given back. */
extern struct sk8_masked *sk8_masks_table(size_t *count);

/* What this entry hides, as many bits as its node has cores. The table's. node_inx >= 0. */
extern bitstr_t *sk8_hidden_cores(struct sk8_masked *entry);
/* MB of it, no more than the node has */
extern uint64_t sk8_masked_memory(const struct sk8_masked *entry);
/* ... that there is still room for beside what is counted already */
extern uint64_t sk8_hidden_memory(const struct sk8_masked *entry, uint64_t counted);
/* Sets the cores of this node that running jobs hold, as the stock plugin has them. */
extern void sk8_add_used_cores(bitstr_t *cores, int node_inx);

/* False: the stock plugin lacks what this needs. */
extern bool sk8_mask_table_start(void *stock);
extern bool sk8_mask_table_fits(void);	/* what the stock plugin keeps is as our headers say */

#endif
