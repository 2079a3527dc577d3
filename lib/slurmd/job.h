/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* job.h - what slurmd can ask about a job, and about itself. */
#ifndef SK8_SLURMD_JOB_H
#define SK8_SLURMD_JOB_H

#include "lib/sk8_abi.h"

/* sk8_agent_host.find_job: an RPC to slurmctld, by libslurm. */
extern const char *sk8_find_job(uint32_t id, void (*f)(void *arg, const struct sk8_agent_job *job),
				void *arg);
/* sk8_agent_host.steps_here */
extern void sk8_steps_here(void (*f)(void *arg, uint32_t job_id), void *arg);
/* The node that is asked about. */
extern void sk8_find_jobs_on(const char *node);

/* NAME of -N NAME or -NNAME in what /proc/PID/cmdline holds; NULL: not there. To be freed by xfree(). */
extern char *sk8_node_of_command_line(const char *path);

#endif
