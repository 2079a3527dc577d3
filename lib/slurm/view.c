/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* view.c - Slurm's job_record_t as struct sk8_job */
#include <errno.h>
#include <string.h>
#include "lib/slurm/gres.h"

static enum sk8_job_state state_of(const job_record_t *job_ptr)
{
	switch (job_ptr->job_state & JOB_STATE_BASE) {
	case JOB_PENDING:	return SK8_JOB_PENDING;
	case JOB_RUNNING:	return SK8_JOB_RUNNING;
	case JOB_SUSPENDED:	return SK8_JOB_SUSPENDED;
	case JOB_COMPLETE:	return SK8_JOB_COMPLETED;
	case JOB_CANCELLED:	return SK8_JOB_CANCELLED;
	case JOB_FAILED:	return SK8_JOB_FAILED;
	case JOB_TIMEOUT:	return SK8_JOB_TIMEOUT;
	case JOB_NODE_FAIL:	return SK8_JOB_NODE_FAIL;
	case JOB_PREEMPTED:	return SK8_JOB_PREEMPTED;
	case JOB_OOM:		return SK8_JOB_OUT_OF_MEMORY;
	default:		return SK8_JOB_OTHER_END;
	}
}

extern const char *sk8_reason(const job_record_t *job_ptr)
{
	if (job_ptr->state_desc)
		return job_ptr->state_desc;
	if (job_ptr->state_reason == WAIT_NO_REASON)
		return "";
	return sk8_reason_string(job_ptr->state_reason);
}

/* The cores of the job's first node; a placeholder has one node. */
static void fill_cores(struct sk8_view *view, const job_resources_t *resrcs)
{
	uint32_t cores, n = 0;

	if (!resrcs->core_bitmap || !resrcs->nhosts)
		return;
	cores = resrcs->sockets_per_node[0] * resrcs->cores_per_socket[0];
	if (cores > (uint32_t) bit_size(resrcs->core_bitmap))
		cores = bit_size(resrcs->core_bitmap);
	if (cores > view->core_room) {
		xrecalloc(view->cores, cores, sizeof(*view->cores));
		view->core_room = cores;
	}
	for (uint32_t k = 0; k < cores; k++)
		if (bit_test(resrcs->core_bitmap, k))
			view->cores[n++] = k;
	view->job.core_count = n;
	view->job.cores = view->cores;
}

extern bool sk8_is_ours(const job_record_t *job_ptr)
{
	return sk8_is_mark(job_ptr->admin_comment);
}

extern void sk8_view_fill(struct sk8_view *view, job_record_t *job_ptr)
{
	const job_details_t *details = job_ptr->details;
	struct sk8_job *job = &view->job;

	*job = (struct sk8_job) {
		.job_id = job_ptr->job_id,
		.submit_time = details ? details->submit_time : SK8_NO_TIME,
		.mark = job_ptr->admin_comment ? job_ptr->admin_comment : "",
		.state = state_of(job_ptr),
		.reason = sk8_reason(job_ptr),
		.partition = job_ptr->partition ? job_ptr->partition : "",
		.excluded_nodes = (details && details->exc_nodes) ? details->exc_nodes : "",
		.priority = job_ptr->priority,
		.start_time = job_ptr->start_time,
		.end_time = job_ptr->end_time,
		.accrue_time = sk8_accrue_time(job_ptr),
		.given_priority = sk8_given_priority(job_ptr),
		.exit_code = job_ptr->exit_code,
		.ended_by = job_ptr->requid,
		.ended_by_us = xstrstr(job_ptr->system_comment, SK8_END_COMMENT),
		.node = "",
	};
	job->held = (job->state == SK8_JOB_PENDING) && !job_ptr->priority;
	/* a preemption is a job_signal() by uid 0, but nobody asked for this job's end */
	if (job->state == SK8_JOB_PREEMPTED)
		job->ended_by = SK8_NO_UID;
	if (job->state == SK8_JOB_PENDING)
		return;
	if (job_ptr->nodes)
		job->node = job_ptr->nodes;
	job->preempt_end = sk8_preempt_end(job_ptr);
	/* kept until the stock job_fini has given it back */
	if (job_ptr->job_resrcs) {
		fill_cores(view, job_ptr->job_resrcs);
		if (job_ptr->job_resrcs->memory_allocated)
			job->memory_mb = job_ptr->job_resrcs->memory_allocated[0];
		sk8_gres_prepare(&view->gres, job_ptr, 1);
		job->gres_count = sk8_gres_fill(&view->gres, job_ptr, 0, &job->gres);
	}
}

extern void sk8_view_free(struct sk8_view *view)
{
	xfree(view->cores);
	xfree(view->gres.gres);
	xfree(view->gres.devices);
}

extern void sk8_tell(job_record_t *job_ptr, void (*what)(const struct sk8_job *job))
{
	struct sk8_view view = { .cores = NULL };
	int saved_errno = errno;

	sk8_view_fill(&view, job_ptr);
	what(&view.job);
	sk8_view_free(&view);
	errno = saved_errno;
}

extern job_record_t *sk8_find_ours(uint32_t job_id, int64_t submit_time, const char *mark)
{
	job_record_t *job_ptr = find_job_record(job_id);

	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || !job_ptr->details ||
	    (job_ptr->details->submit_time != submit_time) ||
	    !mark || !mark[0] || xstrcmp(job_ptr->admin_comment, mark))
		return NULL;
	return job_ptr;
}
