/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * suspension.c - a pod goes on when its job is suspended, so nobody gets its cores.
 *
 * "scontrol suspend" gives a job's cores to others: the core's side masks those of a pod
 * meanwhile. Gang scheduling (PreemptMode=SUSPEND,GANG) starts a job on the cores of
 * others first and suspends these then: here the cores of pods are hidden from it.
 */
#include "lib/slurm/slurmctld.h"

static void as_suspended(const struct sk8_job *job)
{
	struct sk8_job now = *job;

	now.state = SK8_JOB_SUSPENDED;
	sk8_on_job_start(&now);
}

static void as_running(const struct sk8_job *job)
{
	struct sk8_job now = *job;

	now.state = SK8_JOB_RUNNING;
	sk8_on_job_start(&now);
}

extern void sk8_on_suspension(job_record_t *job_ptr, bool suspended)
{
	if (sk8_layout_fits_job(job_ptr) && sk8_is_ours(job_ptr))
		sk8_tell(job_ptr, suspended ? as_suspended : as_running);
}

struct search {
	const bitstr_t *node_bitmap;
	sk8_excluded_t excluded;
	struct sk8_view view;
};

/* Those that are killed or requeued for others are no matter of suspension. */
static bool would_be_suspended(job_record_t *job_ptr)
{
	uint16_t mode;

	if (!IS_JOB_RUNNING(job_ptr) || !sk8_is_ours(job_ptr))
		return false;
	mode = slurm_job_preempt_mode(job_ptr);
	return (mode != PREEMPT_MODE_CANCEL) && (mode != PREEMPT_MODE_REQUEUE);
}

static int hide(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	struct search *search = arg;
	node_record_t *node_ptr;
	bitstr_t *cores;

	if (!sk8_layout_fits_job(job_ptr))
		return -1;	/* stop */
	if (!would_be_suspended(job_ptr))
		return 0;
	sk8_view_fill(&search->view, job_ptr);
	node_ptr = find_node_record((char *) search->view.job.node);
	if (!node_ptr || !bit_test((bitstr_t *) search->node_bitmap, node_ptr->index))
		return 0;
	cores = bit_alloc(node_ptr->tot_cores);
	for (uint32_t k = 0; k < search->view.job.core_count; k++)
		if (search->view.job.cores[k] < node_ptr->tot_cores)
			bit_set(cores, search->view.job.cores[k]);
	sk8_excluded_add(&search->excluded, node_ptr->index, cores);
	bit_free(cores);
	return 0;
}

/* Only what starts a job: when a pod will have ended others may have its cores. */
extern int sk8_suspension_job_test(SK8_JOB_TEST_PARAMS)
{
	struct search search = { .node_bitmap = node_bitmap };
	int rc;

	if (!(slurm_conf.preempt_mode & PREEMPT_MODE_GANG) || !job_list ||
	    ((mode & SELECT_MODE_BASE) != SELECT_MODE_RUN_NOW) ||
	    !sk8_layout_fits_record(job_ptr))
		return sk8_preemptors_job_test(SK8_JOB_TEST_ARGS);
	search.excluded = sk8_excluded_copy(SK8_JOB_TEST_EXCLUDED);
	list_for_each_ro(job_list, hide, &search);
	rc = sk8_preemptors_job_test(SK8_JOB_TEST_WITH(preemptee_candidates, preemptee_job_list,
						       &search.excluded));
	sk8_excluded_free(&search.excluded);
	sk8_view_free(&search.view);
	return rc;
}
