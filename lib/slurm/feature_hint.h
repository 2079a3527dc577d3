/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* feature_hint.h - for job_submit: which labels a job waits for in vain. */
#ifndef SK8_SLURM_FEATURE_HINT_H
#define SK8_SLURM_FEATURE_HINT_H

#include "lib/slurm/release.h"
#include <stdbool.h>

/*
 * A sentence about a --constraint that no node can meet (too few can, where it has numbers of
 * nodes), if one of its features stands for a label of Kubernetes' nodes, or is k8s.exclusive
 * or the like: Slurm refuses or holds the job, and does not say for which.
 *
 *	a, (gone|b)&lost	those that no node has, and without which it would be possible
 *	a&b, a&(b|c), a&b&c	those that nodes have, and none has together
 *	[a*3&b*1]		that there are too few with one
 *	[a|b], a		that there are fewer than min_nodes, all with the same of these
 *
 * NULL: there are nodes for it. xfree() it. Node read lock.
 */
extern char *sk8_feature_hint(const char *constraint, uint32_t min_nodes);
/* Into *hint. False: Slurm has never heard of one of the names. After a restart nodes get their features one after the other. */
extern bool sk8_lost_feature_hint(const char *constraint, uint32_t min_nodes, char **hint);

#endif
