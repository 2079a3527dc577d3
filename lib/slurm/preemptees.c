/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * preemptees.c - our jobs that Slurm preempts.
 *
 * At the start of GraceTime Slurm sets preempt_time and end_time and signals the job's
 * steps, of which a placeholder has none: its pod must be told instead. When end_time has
 * come it kills the job, or would requeue it if it had a script.
 */
#include "lib/slurm/slurmctld.h"

/*
 * Seconds beyond the grace in which a kubelet kills what has used all of it and says so.
 * Slurm looks every 30 s whether end_time has come.
 */
#define KUBELET_NEEDS 15

/* A job that is suspended instead stays: gang scheduling sets preempt_time, too. */
static bool is_to_end(job_record_t *job_ptr)
{
	uint16_t mode;

	if (!IS_JOB_RUNNING(job_ptr) || !job_ptr->preempt_time)
		return false;
	mode = slurm_job_preempt_mode(job_ptr);
	return (mode == PREEMPT_MODE_CANCEL) || (mode == PREEMPT_MODE_REQUEUE);
}

static time_t grace_end(job_record_t *job_ptr)
{
	return job_ptr->preempt_time + (time_t) sk8_grace_time(job_ptr);
}

extern int64_t sk8_preempt_end(job_record_t *job_ptr)
{
	if (!is_to_end(job_ptr))
		return SK8_NO_TIME;
	return MIN(job_ptr->end_time, grace_end(job_ptr));
}

extern void sk8_spare(uint32_t job_id, int64_t submit_time, const char *mark,
		      struct sk8_outcome *out)
{
	job_record_t *job_ptr = sk8_find_ours(job_id, submit_time, mark);

	*out = (struct sk8_outcome) { .job_id = job_id, .submit_time = submit_time };
	if (!job_ptr) {
		sk8_outcome_error(out, ESLURM_INVALID_JOB_ID, NULL);
		return;
	}
	/* else its time limit comes first, or this was done before */
	if (is_to_end(job_ptr) && (job_ptr->end_time == grace_end(job_ptr))) {
		job_ptr->end_time += KUBELET_NEEDS;
		last_job_update = time(NULL);
	}
}
