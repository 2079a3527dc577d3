/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * end.c - a placeholder job ends because its pod did, with the pod's truth.
 *
 * What _job_complete() makes of a wait status: SIG_OOM in the low byte is
 * OUT_OF_MEMORY; a non-zero exit or a signal is FAILED; 0 is TIMEOUT if end_time
 * and OverTimeLimit have passed, else COMPLETED. NO_VAL is CANCELLED.
 *
 * A job that never started is always CANCELLED, by job_signal(): job_complete()
 * would leave the expected start in the future as its start in accounting. Unless
 * its pod did run, which Slurm has forgotten in a crash: then it starts where the
 * pod was, and ends.
 */
#include <signal.h>
#include "lib/slurm/slurmctld.h"

/* Seconds that the job may run on after its end time; as _job_complete() has it */
static time_t over_time(const job_record_t *job_ptr)
{
	if (job_ptr->part_ptr && (job_ptr->part_ptr->over_time_limit != NO_VAL16))
		return (time_t) job_ptr->part_ptr->over_time_limit * 60;
	return (time_t) slurm_conf.over_time_limit * 60;
}

static int complete(job_record_t *job_ptr, const struct sk8_end *e)
{
	uint32_t uid = slurm_conf.slurm_user_id, status = e->exit_code;
	time_t now = time(NULL);
	int rc;

	switch (e->state) {
	case SK8_JOB_TIMEOUT:
		/* _job_complete() sets it to now afterwards */
		job_ptr->end_time = now - over_time(job_ptr) - 1;
		return sk8_job_complete(job_ptr, uid, false, 0);
	case SK8_JOB_OUT_OF_MEMORY:
		return sk8_job_complete(job_ptr, uid, false, SIG_OOM);
	case SK8_JOB_NODE_FAIL:
		return sk8_job_complete(job_ptr, uid, true, status);
	case SK8_JOB_FAILED:
		/* a pod may fail with no container's exit code (evicted) */
		rc = sk8_job_complete(job_ptr, uid, false, status ? status : 1 << 8);
		/* for a signal it says JobLaunchFailure, which it was not */
		if (!rc)
			job_ptr->state_reason = FAIL_EXIT_CODE;
		return rc;
	case SK8_JOB_PREEMPTED:
		/* as Slurm does it at the end of the grace */
		return job_signal(job_ptr, SIGKILL, 0, 0, true);
	case SK8_JOB_COMPLETED:
		/* it ended well, even if Slurm was about to end it: no TIMEOUT */
		if (job_ptr->end_time < now)
			job_ptr->end_time = now;
		return sk8_job_complete(job_ptr, uid, false, status);
	default:
		return job_signal(job_ptr, SIGKILL, 0, uid, false);
	}
}

extern void sk8_end_job(const struct sk8_end *e, struct sk8_outcome *out)
{
	job_record_t *job_ptr = sk8_find_ours(e->job_id, e->submit_time, e->mark);
	int rc;

	*out = (struct sk8_outcome) { .job_id = e->job_id, .submit_time = e->submit_time };
	if (!job_ptr)
		rc = ESLURM_INVALID_JOB_ID;
	else if (IS_JOB_FINISHED(job_ptr) || IS_JOB_COMPLETING(job_ptr))
		rc = ESLURM_ALREADY_DONE;	/* and its exit code stays as it is */
	else if (IS_JOB_PENDING(job_ptr) && e->node && e->node[0] &&
		 (rc = sk8_start_there(job_ptr, e->node, NULL))) {
		sk8_outcome_error(out, rc, NULL);
		out->fatal = false;	/* the job is there, and can be cancelled */
		return;
	} else {
		const char *comment = (e->comment && e->comment[0]) ? e->comment : "ended with its pod";
		struct sk8_comment before;

		/* Before: the end is sent to accounting from in there. In any case: it says for
		 * ever, also after a restart, that the job's end came from its pod. */
		sk8_comment_begin(job_ptr, comment, &before);
		if (IS_JOB_PENDING(job_ptr))
			rc = job_signal(job_ptr, SIGKILL, 0, slurm_conf.slurm_user_id, false);
		else
			rc = complete(job_ptr, e);
		if (rc)
			sk8_comment_undo(job_ptr, &before);
		else
			sk8_comment_keep(job_ptr, &before, false);
	}
	sk8_outcome_error(out, rc, NULL);
}
