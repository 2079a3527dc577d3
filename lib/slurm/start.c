/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * start.c - a pending job is started now, on the node where its pod is already.
 *
 * The pod holds its cores there whether Slurm starts the job or not; only the books
 * would be wrong. So what keeps new work away does not count: the queue (priorities,
 * a hold, a begin time, SchedulerParameters=defer, jobs that are completing), a
 * partition that is down, reservations, licences, and a node that drains: it is
 * DRAINING then, and DRAINED only when the pod is gone, which is what an
 * administrator waits for.
 *
 * What does count: a node that is down, does not answer or changes its power state
 * (Slurm would take a job for proof that it is up), its size, and the limits of the
 * user's association and QOS.
 */
#include "lib/slurm/slurmctld.h"

/* The job goes nowhere else any more, whether it starts now or not. */
static void pin(job_record_t *job_ptr, const node_record_t *node_ptr)
{
	job_details_t *details = job_ptr->details;

	xfree(details->exc_nodes);
	FREE_NULL_BITMAP(details->exc_node_bitmap);
	xfree(details->req_nodes);
	FREE_NULL_BITMAP(details->req_node_bitmap);
	details->req_nodes = xstrdup(node_ptr->name);
	details->req_node_bitmap = bit_alloc(node_record_count);
	bit_set(details->req_node_bitmap, node_ptr->index);
}

static bool is_up(const node_record_t *node_ptr)
{
	return (IS_NODE_IDLE(node_ptr) || IS_NODE_ALLOCATED(node_ptr) ||
		IS_NODE_MIXED(node_ptr)) &&
		!IS_NODE_NO_RESPOND(node_ptr) && !IS_NODE_POWERED_DOWN(node_ptr) &&
		!IS_NODE_POWERING_DOWN(node_ptr) && !IS_NODE_POWERING_UP(node_ptr) &&
		!IS_NODE_REBOOT_ISSUED(node_ptr);
}

/* In the first of the job's partitions that can. */
static int select_in_partitions(job_record_t *job_ptr, char **err_msg)
{
	list_itr_t *iter;
	part_record_t *part_ptr, *first = job_ptr->part_ptr;
	int rc = ESLURM_REQUESTED_NODES_NOT_IN_PARTITION;

	if (!job_ptr->part_ptr_list)
		return sk8_select_nodes(job_ptr, err_msg);
	iter = list_iterator_create(job_ptr->part_ptr_list);
	while (rc && (part_ptr = list_next(iter))) {
		if (!part_ptr->node_bitmap ||
		    !bit_super_set(job_ptr->details->req_node_bitmap, part_ptr->node_bitmap))
			continue;
		job_ptr->part_ptr = part_ptr;
		rc = sk8_select_nodes(job_ptr, err_msg);
	}
	list_iterator_destroy(iter);
	if (rc)
		job_ptr->part_ptr = first;
	return rc;
}

/*
 * What select_nodes() would look at, set aside for the call. KILL_JOB_RESV is
 * Slurm's own way ("sbatch --signal=R:") to let a job run into reservations, and
 * BACKFILL_TEST backfill's to look at nodes with completing jobs.
 */
static int select_whatever_waits(job_record_t *job_ptr, char **err_msg)
{
	job_details_t *details = job_ptr->details;
	const uint32_t priority = job_ptr->priority, reason = job_ptr->state_reason;
	const bool direct = job_ptr->direct_set_prio;
	const uint16_t warn_flags = job_ptr->warn_flags, warn_time = job_ptr->warn_time;
	const time_t begin_time = details->begin_time, now = time(NULL);
	int rc;

	if (!priority) {
		job_ptr->direct_set_prio = 0;
		set_job_prio(job_ptr);
		if (!job_ptr->priority)
			job_ptr->priority = 1;
	}
	if (!begin_time || (begin_time > now))
		details->begin_time = now;
	job_ptr->warn_flags |= KILL_JOB_RESV;
	job_ptr->warn_time = 0;
	job_ptr->bit_flags |= BACKFILL_TEST;
	set_job_features_use(details);
	sk8_open_reservations();
	rc = select_in_partitions(job_ptr, err_msg);
	sk8_close_reservations();
	job_ptr->bit_flags &= ~BACKFILL_TEST;
	job_ptr->warn_flags = warn_flags;
	job_ptr->warn_time = warn_time;
	if (!rc)
		return SLURM_SUCCESS;
	details->begin_time = begin_time;
	/* as job_allocate() leaves them: they point into what may be changed */
	details->features_use = NULL;
	details->feature_list_use = NULL;
	if (!priority) {
		job_ptr->priority = 0;
		job_ptr->direct_set_prio = direct;
		job_ptr->state_reason = reason;
		xfree(job_ptr->state_desc);
	}
	return rc;
}

extern int sk8_start_there(job_record_t *job_ptr, const char *node, char **err_msg)
{
	node_record_t *node_ptr = find_node_record((char *) node);
	const bool taken = node_ptr && bit_test(avail_node_bitmap, node_ptr->index);
	char *drain_reason;
	uint32_t drain_uid;
	time_t drain_time;
	int rc;

	if (!node_ptr)
		return ESLURM_INVALID_NODE_NAME;
	pin(job_ptr, node_ptr);
	last_job_update = time(NULL);
	if (!is_up(node_ptr))
		return ESLURM_NODE_NOT_AVAIL;
	if (!sk8_layout_fits_reservations())
		return ESLURM_NOT_SUPPORTED;
	/* make_node_alloc() forgets why a node drains */
	drain_reason = xstrdup(node_ptr->reason);
	drain_uid = node_ptr->reason_uid;
	drain_time = node_ptr->reason_time;
	bit_set(avail_node_bitmap, node_ptr->index);
	rc = select_whatever_waits(job_ptr, err_msg);
	if (!taken)
		bit_clear(avail_node_bitmap, node_ptr->index);
	if (drain_reason && !node_ptr->reason) {
		node_ptr->reason = drain_reason;
		node_ptr->reason_uid = drain_uid;
		node_ptr->reason_time = drain_time;
	} else
		xfree(drain_reason);
	return rc;
}

extern void sk8_start_job(uint32_t job_id, int64_t submit_time, const char *mark,
			  const char *node, struct sk8_outcome *out)
{
	job_record_t *job_ptr = sk8_find_ours(job_id, submit_time, mark);
	char *err_msg = NULL;
	int rc;

	*out = (struct sk8_outcome) { .job_id = job_id, .submit_time = submit_time };
	if (!job_ptr)
		rc = ESLURM_INVALID_JOB_ID;
	else if (!IS_JOB_PENDING(job_ptr) || IS_JOB_COMPLETING(job_ptr))
		rc = ESLURM_JOB_NOT_PENDING;
	else
		rc = sk8_start_there(job_ptr, node, &err_msg);
	sk8_outcome_error(out, rc, err_msg);
	out->running = !rc;
	xfree(err_msg);
}
