/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * preemptors.c - one victim too many is never taken.
 *
 * Slurm chooses a preemptor's victims, and if it cannot start KillWait + MessageTimeout
 * later it chooses again. Its own jobs are gone by then, but not what stands for them on
 * nodes with sharing: mixed. A pod has its grace, and after its job has ended a mask stands
 * for it, be it a job for a pod or one of Slurm's own with its reservation pod, until its
 * kubelet has reported it gone: Slurm would take another victim every few seconds. So a job
 * whose victims leave gets no candidates, as long as one of them is such a pod. It waits as
 * any other job for what comes free. While a job of Slurm's own runs in its grace, Slurm
 * chooses it again by itself.
 *
 * All of it under the job and node write locks, which job_test() runs with.
 */
#include "lib/slurm/slurmctld.h"

/*
 * Seconds after its job's end that a victim is waited for: of a node that is dead nobody
 * reports, and others may be preempted for the job.
 */
#define PATIENCE 300
/* More jobs than that have no victims at a time; what is forgotten costs a victim, no more. */
#define MAX_ROWS 1000

struct victim {
	uint32_t preemptor_id, job_id;
	int64_t preemptor_submit_time, submit_time;
	bool native;	/* one of Slurm's own */
	char *nodes;	/* n[1-3] of such a one, else its node */
	uint16_t *cores;
	uint32_t core_count;
	time_t until;	/* 0: its job has not ended */
};

static struct {
	struct victim *row;
	uint32_t count;
} victims;

static int64_t submit_time(const job_record_t *job_ptr)
{
	return job_ptr->details ? job_ptr->details->submit_time : SK8_NO_TIME;
}

static job_record_t *find(uint32_t job_id, int64_t submitted)
{
	job_record_t *job_ptr = find_job_record(job_id);

	return (job_ptr && (submit_time(job_ptr) == submitted)) ? job_ptr : NULL;
}

static bool any_core_is(const struct victim *v, const struct sk8_mask *mask)
{
	for (uint32_t i = 0; i < v->core_count; i++)
		for (uint32_t k = 0; k < mask->core_count; k++)
			if (v->cores[i] == mask->cores[k])
				return true;
	return mask->whole;
}

static bool was_on(const struct victim *v, const char *node)
{
	__auto_type list = hostlist_create(v->nodes);	/* of another type in each release */
	const bool found = list && (hostlist_find(list, node) >= 0);

	if (list)
		hostlist_destroy(list);
	return found;
}

static bool names_job(const struct victim *v, const struct sk8_mask *mask)
{
	for (uint32_t k = 0; k < mask->job_count; k++)
		if (mask->jobs[k] == v->job_id)
			return true;
	return (mask->whole || mask->some_jobs) && was_on(v, mask->node);
}

static bool hides(const struct sk8_mask *mask, const struct victim *v)
{
	return v->native ? names_job(v, mask) : !xstrcmp(mask->node, v->nodes) && any_core_is(v, mask);
}

/* Its job has ended: does a mask still hide what it had? */
static bool is_masked(const struct victim *v)
{
	const struct sk8_masks *masks = sk8_masks_get();
	bool masked = false;

	for (size_t k = 0; masks && !masked && (k < masks->count); k++)
		masked = hides(&masks->mask[k], v);
	if (masks)
		sk8_masks_put(masks);
	return masked;
}

enum state {
	GONE,
	RUNS,	/* in its grace, and Slurm chooses it again by itself */
	LEAVES,
};

static enum state state_of(struct victim *v)
{
	job_record_t *job_ptr = find(v->job_id, v->submit_time);

	if (job_ptr && (IS_JOB_RUNNING(job_ptr) || IS_JOB_SUSPENDED(job_ptr))) {
		if (sk8_preempt_end(job_ptr) == SK8_NO_TIME)
			return GONE;	/* Slurm thought better of it */
		return v->native ? RUNS : LEAVES;
	}
	if (!v->until)
		v->until = time(NULL) + PATIENCE;
	if (time(NULL) >= v->until)
		return GONE;
	if (v->native && job_ptr && IS_JOB_COMPLETING(job_ptr))
		return LEAVES;	/* perhaps it is not masked yet */
	return is_masked(v) ? LEAVES : GONE;
}

static void drop(struct victim *v)
{
	xfree(v->nodes);
	xfree(v->cores);
	*v = victims.row[--victims.count];
}

static bool waits_for(const struct victim *v, const job_record_t *job_ptr)
{
	return (v->preemptor_id == job_ptr->job_id) &&
		(v->preemptor_submit_time == submit_time(job_ptr));
}

static bool victims_leave(const job_record_t *job_ptr)
{
	bool leave = false;

	for (uint32_t k = victims.count; k-- > 0;) {
		enum state state;

		if (!waits_for(&victims.row[k], job_ptr))
			continue;
		state = state_of(&victims.row[k]);
		if (state == GONE)
			drop(&victims.row[k]);
		else if (state == LEAVES)
			leave = true;
	}
	return leave;
}

/* Those of jobs that wait no more. */
static void forget_started(void)
{
	for (uint32_t k = victims.count; k-- > 0;) {
		struct victim *v = &victims.row[k];
		job_record_t *job_ptr = find(v->preemptor_id, v->preemptor_submit_time);

		if (!job_ptr || !IS_JOB_PENDING(job_ptr))
			drop(v);
	}
}

struct chosen {
	const job_record_t *preemptor;
	struct sk8_view view;
};

static struct victim *add(const struct chosen *chosen, const job_record_t *job_ptr)
{
	struct victim *v;

	xrecalloc(victims.row, victims.count + 1, sizeof(*victims.row));
	v = &victims.row[victims.count++];
	*v = (struct victim) {
		.preemptor_id = chosen->preemptor->job_id,
		.preemptor_submit_time = submit_time(chosen->preemptor),
		.job_id = job_ptr->job_id,
		.submit_time = submit_time(job_ptr),
	};
	return v;
}

static bool is_known(const job_record_t *preemptor, const job_record_t *job_ptr)
{
	for (uint32_t k = 0; k < victims.count; k++) {
		const struct victim *v = &victims.row[k];

		if (waits_for(v, preemptor) && (v->job_id == job_ptr->job_id) && (v->submit_time == submit_time(job_ptr)))
			return true;
	}
	return false;
}

static int remember(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	struct chosen *chosen = arg;
	struct victim *v;

	if (!sk8_layout_fits_job(job_ptr))
		return -1;	/* stop */
	if ((victims.count == MAX_ROWS) || is_known(chosen->preemptor, job_ptr))
		return 0;
	if (!sk8_is_ours(job_ptr)) {
		if (!sk8_has_gate())	/* none has a pod */
			return 0;
		v = add(chosen, job_ptr);
		v->native = true;
		v->nodes = xstrdup(job_ptr->nodes);
		return 0;
	}
	v = add(chosen, job_ptr);
	sk8_view_fill(&chosen->view, job_ptr);
	v->nodes = xstrdup(chosen->view.job.node);
	v->cores = xcalloc(chosen->view.job.core_count + 1, sizeof(*v->cores));
	v->core_count = chosen->view.job.core_count;
	for (uint32_t k = 0; k < v->core_count; k++)
		v->cores[k] = chosen->view.job.cores[k];
	return 0;
}

/*
 * Slurm ends them right after this, unless a limit keeps the job from starting: then they
 * are not leaving when this is asked again.
 */
static void remember_all(const job_record_t *job_ptr, sk8_list_t chosen_jobs)
{
	struct chosen chosen = { .preemptor = job_ptr };

	forget_started();
	list_for_each(chosen_jobs, remember, &chosen);
	sk8_view_free(&chosen.view);
}

extern int sk8_preemptors_job_test(SK8_JOB_TEST_PARAMS)
{
	int rc;

	if (!preemptee_candidates || !sk8_layout_fits_record(job_ptr) ||
	    (find_job_record(job_ptr->job_id) != job_ptr))
		return sk8_masks_job_test(SK8_JOB_TEST_ARGS);
	if (victims_leave(job_ptr))
		preemptee_candidates = NULL;
	rc = sk8_masks_job_test(SK8_JOB_TEST_ARGS);
	if (!rc && ((mode & SELECT_MODE_BASE) == SELECT_MODE_RUN_NOW) &&
	    preemptee_job_list && *preemptee_job_list)
		remember_all(job_ptr, *preemptee_job_list);
	return rc;
}
