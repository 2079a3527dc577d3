/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* step_prologs.c - see there. slurm_conf is libslurmfull's, which all programs have that load spank_k8s.so. */
#include "lib/slurm/sizes.h"
#include "lib/slurm/spank_step.h"
#include "lib/slurm/step_prologs.h"

static const char *take(char **script)
{
	const char *taken = *script && **script ? *script : NULL;

	*script = NULL;
	return taken;
}

extern void sk8_take_step_prologs(const struct spank_handle *spank, const char *version, uint32_t job_id,
				  struct sk8_step_prologs *taken)
{
	stepd_step_rec_t *step = sk8_step_of_spank(spank, version, job_id);

	*taken = (struct sk8_step_prologs) { 0 };
	if (!step || !sk8_conf_fits())
		return;
	taken->of_site = take(&slurm_conf.task_prolog);
	taken->of_user = take(&step->task_prolog);
}
