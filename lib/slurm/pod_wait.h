/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * pod_wait.h - when may a job start that only pods hold up?
 *
 * Nobody knows when pods go. Backfill keeps nodes free for a job from that time on: with a time that is near for ever a single
 * pod that stays would have it keep them from everybody else for ever. So it is said to last as long again as it has lasted.
 *
 * Under the node write lock only.
 */
#ifndef SK8_SLURM_POD_WAIT_H
#define SK8_SLURM_POD_WAIT_H

#include <stdint.h>
#include <time.h>

/* Long enough that backfill reserves the job's nodes instead of starving it, seconds. */
#define SK8_SHORTEST_POD_WAIT 120

/* It has just been found that nothing but pods holds up this job: when it may start. */
extern time_t sk8_held_up_by_pods(uint32_t job_id, time_t now);
/* ... that it does not need pods to go. */
extern void sk8_not_held_up_by_pods(uint32_t job_id);

#endif
