/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* step_prologs.h - slurmstepd: the scripts that Slurm runs before a task begins */
#ifndef SK8_SLURM_STEP_PROLOGS_H
#define SK8_SLURM_STEP_PROLOGS_H

#include <stdint.h>

struct spank_handle;

struct sk8_step_prologs {
	const char *of_site;	/* TaskProlog of slurm.conf; NULL = none */
	const char *of_user;	/* srun --task-prolog; NULL = none */
};

/*
 * In the process of one task, which has a copy of all that slurmstepd knows: Slurm does not run those that are taken in this one, the
 * caller does. version, job_id: as SPANK tells them. None is taken where this is another Slurm than the one of our headers.
 */
extern void sk8_take_step_prologs(const struct spank_handle *spank, const char *version, uint32_t job_id,
				  struct sk8_step_prologs *taken);

#endif
