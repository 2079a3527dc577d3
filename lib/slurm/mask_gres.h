/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * mask_gres.h - what pods hold of GRES, as marks in Slurm's records of the nodes: as if a
 * job had it, for the time of one call of the stock plugin.
 *
 * A device that is not known (a foreign pod's) is one that no job has, the last ones first:
 * the same from call to call, as long as no job starts or ends there.
 *
 * All of it under the node write lock; what is shown since 26.05 under the read lock and a
 * lock of its own.
 */
#ifndef SK8_SLURM_MASK_GRES_H
#define SK8_SLURM_MASK_GRES_H

#include "lib/slurm/mask_table.h"

/* in one record of one node */
struct sk8_gres_mark {
	int node_inx;
	const char *name;	/* Slurm's */
	gres_node_state_t *ns;
	int device_count;	/* 0: it has none */
	uint64_t *devices;	/* 64 in each word: sk8_gres_is_marked() */
	uint64_t count, *topo, *type;
};
/* All zero: none. sk8_gres_unmark() frees all of it. */
struct sk8_gres_marks {
	uint32_t count, room;
	struct sk8_gres_mark *mark;
	struct sk8_gres_chunk *chunk;
	const char *looked_for;	/* of what the job asks for; it is a node's */
	bool found, looked_for_tokens, found_tokens;
};

/* Marks what this entry hides of what a job asks for, or (NULL) all of it: the same for all nodes of these marks. node_inx >= 0 */
extern void sk8_gres_mark(struct sk8_gres_marks *marks, struct sk8_masked *entry, sk8_list_t asked);
extern void sk8_gres_unmark(struct sk8_gres_marks *marks);
extern bool sk8_gres_is_marked(const struct sk8_gres_mark *mark, int device);	/* device < device_count */
/* Does it hide any GRES that this node has? Then nobody can have the whole node. node_inx >= 0 */
extern bool sk8_gres_hides_any(const struct sk8_masked *entry);

/* Devices without a topology are chosen when the job starts: around the stock nodeinfo_set */
extern void sk8_gres_before_start(job_record_t *job_ptr);
extern void sk8_gres_after_start(void);

/*
 * mask_gres_show.c: around the stock nodeinfo_set_all, for AllocTRES and GresUsed. Slurm makes
 * the text of GresUsed from the bits of devices, and since 24.11 that of shares from their numbers,
 * when it answers, after any call of ours: so these, and nothing else, stay set until sk8_gres_unshow(), which comes before any other
 * call of the stock plugin.
 */
extern void sk8_gres_before_show(void);
extern void sk8_gres_after_show(void);
extern void sk8_gres_unshow(void);

#endif
