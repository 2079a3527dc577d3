/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spank_step.h - slurmstepd: its step, of which SPANK tells plugins a part only */
#ifndef SK8_SLURM_SPANK_STEP_H
#define SK8_SLURM_SPANK_STEP_H

#include "lib/slurm/release.h"
#include "src/slurmd/slurmstepd/slurmstepd_job.h"

struct spank_handle;

/* version, job_id: as SPANK tells them (S_SLURM_VERSION, S_JOB_ID). NULL if this is another Slurm than the one of our headers, which
 * structs' sizes tell, too. No I/O. */
extern stepd_step_rec_t *sk8_step_of_spank(const struct spank_handle *spank, const char *version, uint32_t job_id);

#endif
