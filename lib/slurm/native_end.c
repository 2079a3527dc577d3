/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * native_end.c - a job of Slurm's own is ended because of Kubernetes: as scontrol requeue or
 * scancel by SlurmUser would, with a comment that says why.
 */
#include <signal.h>
#include "lib/slurm/slurmctld.h"

extern job_record_t *sk8_whole_of(job_record_t *job_ptr)
{
	job_record_t *leader = job_ptr->het_job_id ? find_job_record(job_ptr->het_job_id) : NULL;

	return (leader && leader->het_job_list) ? leader : job_ptr;
}

static int cancel(job_record_t *job_ptr)
{
	const uint32_t uid = slurm_conf.slurm_user_id;

	if (job_ptr->het_job_list)
		return het_job_signal(job_ptr, SIGKILL, 0, uid, false);
	/* job_signal() would take its line out of its user's crontab */
	if (job_ptr->bit_flags & CRON_JOB)
		return sk8_job_complete(job_ptr, uid, false, NO_VAL);
	return job_signal(job_ptr, SIGKILL, 0, uid, false);
}

/*
 * Slurm sends each word to srun from a thread of its own (agent.c), that of the job's end too. An srun whose job is in the gate asks ten times
 * a second whether its nodes are ready (allocate.c, _wait_nodes_ready()); it ends when the job has, and waits for no word that is on its way.
 */
extern bool sk8_tell_srun(job_record_t *job_ptr, char *text)
{
	return !job_ptr->batch_flag && !srun_user_message(job_ptr, text) && IS_JOB_CONFIGURING(job_ptr);
}

static bool tell(job_record_t *job_ptr, const char *why)
{
	char *text = xstrdup_printf(SK8_END_COMMENT "the job is ended: %s", why);
	const bool told = sk8_tell_srun(job_ptr, text);

	xfree(text);
	return told;
}

extern void sk8_end_native(const struct sk8_native_end *e, struct sk8_outcome *out)
{
	job_record_t *job_ptr = sk8_layout_fits() ? find_job_record(e->job_id) : NULL;
	struct sk8_comment before;
	int rc = ESLURM_INVALID_JOB_ID;

	*out = (struct sk8_outcome) { .job_id = e->job_id, .submit_time = e->submit_time };
	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || sk8_is_ours(job_ptr) || !job_ptr->details ||
	    (job_ptr->details->submit_time != e->submit_time)) {
		sk8_outcome_error(out, rc, NULL);
		return;
	}
	if (!IS_JOB_RUNNING(job_ptr) && !IS_JOB_SUSPENDED(job_ptr)) {
		sk8_outcome_error(out, ESLURM_ALREADY_DONE, NULL);
		return;
	}
	if (!e->told && tell(job_ptr, e->comment)) {
		out->told = true;
		return;
	}
	/* before: the end is sent to accounting from in there */
	sk8_comment_begin(job_ptr, e->comment, &before);
	out->running = e->requeue && !sk8_job_requeue(sk8_whole_of(job_ptr), slurm_conf.slurm_user_id);
	rc = out->running ? SLURM_SUCCESS : cancel(sk8_whole_of(job_ptr));
	if (rc)
		sk8_comment_undo(job_ptr, &before);
	else
		sk8_comment_keep(job_ptr, &before, out->running);
	sk8_outcome_error(out, rc, NULL);
}
