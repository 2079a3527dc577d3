/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * complete.h - a request gets the tokens (lib/slurm/tokens.h) that it does not name.
 *
 * Only in partitions that slurm-k8s.yaml names under tokens, and if GresTypes has the token.
 * Read locks of configuration, jobs, nodes and partitions, as slurmctld calls job_submit plugins;
 * no I/O. What is said to the user is one sentence.
 */
#ifndef SK8_JOB_SUBMIT_COMPLETE_H
#define SK8_JOB_SUBMIT_COMPLETE_H

#include "lib/slurm/release.h"

/* Both: false with *why (xfree() it) if the request names fewer tokens than it asks for. */
extern bool sk8_complete(job_desc_msg_t *desc, char **why);
/* A job that waits, and what becomes of it: tokens that it was given follow, others stay. */
extern bool sk8_complete_change(job_desc_msg_t *desc, const job_record_t *job_ptr, char **why);

#endif
