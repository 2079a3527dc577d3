/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * age.c - a job's place in the queue, which one that is made in its place keeps, and one that the gate refuses.
 *
 * Slurm's own requeue does not keep it: batch_requeue_fini() clears accrue_time (job_mgr.c).
 */
#include "lib/slurm/slurmctld.h"

/* priority/basic gives each job one less than the last one, and leaves it at that. */
static bool slurm_computes(const job_record_t *job_ptr)
{
	return xstrcmp(slurm_conf.priority_type, "priority/basic") && !job_ptr->direct_set_prio;
}

extern int64_t sk8_accrue_time(const job_record_t *job_ptr)
{
	const job_details_t *details = job_ptr->details;

	if (!details)
		return SK8_NO_TIME;
	/* as acct_policy_handle_accrue_time() does for a job that no pass has looked at yet */
	return details->accrue_time ? details->accrue_time : details->begin_time;
}

extern uint32_t sk8_given_priority(const job_record_t *job_ptr)
{
	return slurm_computes(job_ptr) ? 0 : job_ptr->priority;
}

static void give_priority(job_record_t *job_ptr, uint32_t priority)
{
	if (!priority) {
		set_job_prio(job_ptr);	/* it is older now */
		return;
	}
	if (slurm_computes(job_ptr))
		job_ptr->direct_set_prio = 1;
	job_ptr->priority = priority;
}

extern void sk8_give_age(job_record_t *job_ptr, int64_t accrue_time, uint32_t priority)
{
	job_details_t *details = job_ptr->details;

	if (accrue_time == SK8_NO_TIME)
		return;
	if (!IS_JOB_PENDING(job_ptr)) {
		/* it has started at once: who preempts it finds the age here; it counts in no limit */
		details->accrue_time = (time_t) accrue_time;
		job_ptr->bit_flags |= JOB_ACCRUE_OVER;
		return;
	}
	if (!job_ptr->priority)
		return;	/* held */
	/* limits may forbid that it gains age (GrpJobsAccrue); then it has no accrue_time */
	(void) acct_policy_handle_accrue_time(job_ptr, false);
	if (details->accrue_time > (time_t) accrue_time)
		details->accrue_time = (time_t) accrue_time;
	give_priority(job_ptr, priority);
}

static int note(void *x, void *arg)
{
	const job_record_t *job_ptr = x;
	struct sk8_ages *ages = arg;

	ages->of[ages->count++] = (struct sk8_age) {
		.job_id = job_ptr->job_id,
		.accrue_time = sk8_accrue_time(job_ptr),
		.priority = sk8_given_priority(job_ptr),
	};
	return 0;
}

extern void sk8_ages_note(struct sk8_ages *ages, job_record_t *whole)
{
	*ages = (struct sk8_ages) { .of = xcalloc(whole->het_job_list ? list_count(whole->het_job_list) : 1, sizeof(*ages->of)) };
	if (whole->het_job_list)
		list_for_each_ro(whole->het_job_list, note, ages);
	else
		(void) note(whole, ages);
}
