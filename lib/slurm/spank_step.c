/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spank_step.c - see there */
#include "lib/slurm/spank_step.h"

/* Its beginning, which is the same in all releases (src/common/spank.c, 22.05: plugstack.c). */
struct spank_handle {
	int magic;
	void *plugin;
	int phase;
	stepd_step_rec_t *step;
};
enum { HANDLE_MAGIC = 0x00a5a500 };

extern stepd_step_rec_t *sk8_step_of_spank(const struct spank_handle *spank, const char *version, uint32_t job_id)
{
	stepd_step_rec_t *step;

	if (xstrcmp(version, SK8_SLURM_VERSION) || (spank->magic != HANDLE_MAGIC))
		return NULL;
	step = spank->step;
	return step && (xsize(step) == sizeof(*step)) && (step->step_id.job_id == job_id) ? step : NULL;
}
