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

/*
 * Does it take memory from a job that has it? From 26.05 on Slurm does that where the job has an extern step
 * (_update_job_mem_running() of job_mgr.c), and gives it to others. A pod's job has none, as an external job; one that waited
 * through an upgrade from a Slurm without these gets one. Older releases refuse it themselves.
 */
extern bool sk8_takes_memory(const job_desc_msg_t *desc, const job_record_t *job_ptr);

#endif
