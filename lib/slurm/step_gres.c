/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * step_gres.c - see there. Functions of Slurm only, and no data: spank_k8s.so is loaded by programs that have less of it than slurmstepd,
 * and calls none of these there.
 */
#include "lib/slurm/sizes.h"
#include "lib/slurm/spank_step.h"
#include "lib/slurm/step_gres.h"

struct teller {
	void (*f)(void *arg, const char *name, const char *type, uint64_t count);
	void *arg;
};

static int tell(void *x, void *arg)
{
	const gres_state_t *state = x;
	const struct teller *to = arg;
	const gres_job_state_t *js;

	if (!state || !sk8_is_sized(state, sizeof(*state)) || !(js = state->gres_data) || !sk8_is_sized(js, sizeof(*js)))
		return -1;	/* stop */
	/* of this node alone: gres_job_state_extract() */
	if (state->gres_name && (js->node_cnt == 1) && js->gres_cnt_node_alloc && js->gres_cnt_node_alloc[0] &&
	    (js->gres_cnt_node_alloc[0] != NO_CONSUME_VAL64))
		to->f(to->arg, state->gres_name, js->type_name ? js->type_name : "", js->gres_cnt_node_alloc[0]);
	return 0;
}

extern void sk8_each_gres_of_job(const struct spank_handle *spank, const char *version, uint32_t job_id,
				 void (*f)(void *arg, const char *name, const char *type, uint64_t count), void *arg)
{
	struct teller to = { .f = f, .arg = arg };
	const stepd_step_rec_t *step = sk8_step_of_spank(spank, version, job_id);

	if (step && step->job_gres_list)
		(void) list_for_each(step->job_gres_list, tell, &to);
}
