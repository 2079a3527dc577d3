/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * step_gres.h - slurmstepd: what its job holds of GRES on this node.
 *
 * SPANK has no item for it, and no variable of a step says it, in any release: Slurm's gres plugins alone are told, each of its
 * own GRES (gres_g_step_set_env()). But slurmstepd has it: the credential that slurmctld signed says what the job has on each
 * node, and stepd_step_rec_t keeps this node's part.
 */
#ifndef SK8_SLURM_STEP_GRES_H
#define SK8_SLURM_STEP_GRES_H

#include <stdint.h>

struct spank_handle;

/*
 * In slurmstepd; no I/O. f for each; type: "" if it has none. version, job_id: as SPANK tells them (S_SLURM_VERSION, S_JOB_ID).
 * Nothing if this is another Slurm than the one of our headers, which structs' sizes tell, too.
 */
extern void sk8_each_gres_of_job(const struct spank_handle *spank, const char *version, uint32_t job_id,
				 void (*f)(void *arg, const char *name, const char *type, uint64_t count), void *arg);

#endif
