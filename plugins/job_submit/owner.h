/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * owner.h - what the owner of a pod's job may not change of it.
 *
 * Slurm lets users change their own jobs as long as these wait (_update_job() of job_mgr.c, 22.05 and 24.11): a job made
 * smaller would be the way to run a pod beyond what Slurm counts, and one without our list of excluded nodes the way to
 * nodes that its pod must not have. Administrators may: they know what they do.
 */
#ifndef SK8_JOB_SUBMIT_OWNER_H
#define SK8_JOB_SUBMIT_OWNER_H

#include "lib/slurm/release.h"

/* Does this change how large a job is, or which nodes it may have? No locks, no I/O. */
extern bool sk8_changes_request(const job_desc_msg_t *desc);

#endif
