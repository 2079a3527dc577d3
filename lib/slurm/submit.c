/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * submit.c - a placeholder job made inside slurmctld, without RPC and without
 * authentication: the caller says who it belongs to, by the administrator's mapping.
 *
 * A site's job_submit plugins see the job as if its user had sent it, and refuse
 * or change it as they do with everybody's. What only we may say (the mark, a nice
 * below zero) is added after them.
 */
#include <signal.h>
#include <string.h>
#include "lib/slurm/slurmctld.h"
#include "lib/slurm/error_table.h"
#include "lib/slurm/tres.h"

/* NULL for an empty string: Slurm's default */
static char *copy(const char *text)
{
	return (text && text[0]) ? xstrdup(text) : NULL;
}

static bool is_adoption(const struct sk8_submit *s)
{
	return s->required_node && s->required_node[0];
}

/*
 * A pod is made again at the very moment when the job that took its node could start on
 * it. job_allocate() of 22.05 would start its job there and then: it looks at priorities
 * only, not at the tiers of partitions (_top_priority(), job_mgr.c), and the other would
 * preempt it again. A job that may begin later is left to the scheduler.
 */
#define QUEUED_AGAIN_LATER 3600	/* seconds; taken back before anybody can see it */

static bool queues_again(const struct sk8_submit *s)
{
	return (s->accrue_time != SK8_NO_TIME) && (s->begin_time == SK8_NO_TIME) && !is_adoption(s);
}

/* false with *out set: it cannot be said to Slurm */
static bool fill(job_desc_msg_t *desc, const struct sk8_submit *s, struct sk8_outcome *out)
{
	if (!s->cpus || (s->cpus >= INFINITE16)) {
		sk8_outcome_error(out, ESLURM_INVALID_CPU_COUNT, NULL);
		return false;
	}
	if (s->tres_per_node && s->tres_per_node[0]) {
		char tres[2048];

		if (!sk8_tres_text(tres, sizeof(tres), SK8_TRES_PREFIX, s->tres_per_node)) {
			sk8_outcome_error(out, ESLURM_INVALID_GRES, NULL);
			return false;
		}
		desc->tres_per_node = xstrdup(tres);
	}
	desc->user_id = s->uid;
	desc->group_id = s->gid;
	desc->name = copy(s->job_name);
	desc->account = copy(s->account);
	desc->partition = copy(s->partition);
	desc->qos = copy(s->qos);
	desc->reservation = copy(s->reservation);
	desc->wckey = copy(s->wckey);
	desc->comment = copy(s->comment);
	desc->features = copy(s->features);
	desc->licenses = copy(s->licenses);
	desc->exc_nodes = copy(s->excluded_nodes);
	desc->req_nodes = copy(s->required_node);
	desc->min_nodes = desc->max_nodes = 1;
	desc->num_tasks = 1;
	desc->min_cpus = desc->cpus_per_task = s->cpus;
	if (s->memory_mb)
		desc->pn_min_memory = s->memory_mb;
	if (s->time_limit_minutes)
		desc->time_limit = s->time_limit_minutes;
	if (s->begin_time != SK8_NO_TIME)
		desc->begin_time = s->begin_time;
	if (queues_again(s))
		desc->begin_time = time(NULL) + QUEUED_AGAIN_LATER;
	if (s->held)
		desc->priority = 0;
	if (s->nice_set && ((int32_t) s->nice >= 0))
		desc->nice = NICE_OFFSET + s->nice;

	desc->kill_on_node_fail = 1;
	desc->work_dir = xstrdup("/");
	/* shown as AllocNode:Sid; a partition's AllocNodes may name it */
	desc->alloc_node = xstrdup("k8s");
	desc->alloc_sid = 0;
	/* nothing of slurmctld's environment, but one entry must be there */
	desc->env_size = 1;
	desc->environment = xcalloc(2, sizeof(char *));
	desc->environment[0] = xstrdup("SLURM_K8S=1");
	/* no client waits: nobody to tell, and InactiveLimit does not count */
	desc->alloc_resp_port = desc->other_port = 0;
	desc->het_job_offset = NO_VAL;
	desc->bitflags |= SK8_EXTERNAL_JOB;
	return true;
}

static void add_privileged(job_desc_msg_t *desc, const struct sk8_submit *s)
{
	xfree(desc->admin_comment);
	desc->admin_comment = xstrdup(s->mark);
	if (s->nice_set && ((int32_t) s->nice < 0))
		desc->nice = NICE_OFFSET + (int32_t) s->nice;
	/*
	 * job_allocate() would hold against an adopted pod's job that others wait:
	 * it makes it held, and sk8_start_there() starts it.
	 */
	if (is_adoption(s))
		desc->priority = 0;
}

/* As if it had never been. Accounting hears of a held job only when it starts. */
static void forget(job_record_t *job_ptr)
{
	sk8_remove_job_submit(job_ptr);
	(void) purge_job_record(job_ptr->job_id);
}

static int allocate(job_desc_msg_t *desc, const struct sk8_submit *s,
		    job_record_t **job_ptr, char **err_msg)
{
	int rc = validate_job_create_req(desc, s->uid, err_msg);

	if (rc)
		return rc;
	add_privileged(desc, s);
	return job_allocate(desc, false, false, NULL, true, s->uid, false, job_ptr, err_msg,
			    SLURM_PROTOCOL_VERSION);
}

/*
 * Slurm rewrites the list of a submission, n1,n2,n1 as n[1-2], but not that of an update:
 * without this the engine takes it for an administrator's, and never takes a node off it.
 */
static void keep_excluded(job_record_t *job_ptr, const job_desc_msg_t *desc)
{
	job_details_t *details = job_ptr->details;

	if (!details->exc_nodes)
		return;		/* it has been pinned to its node */
	xfree(details->exc_nodes);
	details->exc_nodes = copy(desc->exc_nodes);
}

/* Slurm sets its time, tells accounting, and has no reason any more why it waits. */
static void begin_now(job_record_t *job_ptr)
{
	job_ptr->details->begin_time = 0;
	if (job_independent(job_ptr) && (job_ptr->state_reason == WAIT_NO_REASON))
		job_ptr->state_reason = WAIT_PRIORITY;
}

extern void sk8_submit_job(const struct sk8_submit *s, struct sk8_outcome *out)
{
	job_desc_msg_t *desc = xmalloc(sizeof(*desc));
	job_record_t *job_ptr = NULL;
	char *err_msg = NULL;
	int rc;

	*out = (struct sk8_outcome) { .rc = SLURM_SUCCESS };
	if (!sk8_layout_fits()) {
		xfree(desc);
		sk8_outcome_error(out, ESLURM_NOT_SUPPORTED, NULL);
		return;
	}
	slurm_init_job_desc_msg(desc);
	if (!fill(desc, s, out)) {
		slurm_free_job_desc_msg(desc);
		return;
	}
	rc = allocate(desc, s, &job_ptr, &err_msg);
	if (job_ptr && !sk8_layout_fits_job(job_ptr)) {
		/* the first job of all, and nothing in it can be read: Slurm itself takes it back */
		(void) job_signal(job_ptr, SIGKILL, 0, slurm_conf.slurm_user_id, false);
		job_ptr = NULL;
		rc = ESLURM_NOT_SUPPORTED;
	}
	if (job_ptr && IS_JOB_PENDING(job_ptr) && is_adoption(s)) {
		xfree(err_msg);
		rc = sk8_start_there(job_ptr, s->required_node, &err_msg);
		if (rc) {
			forget(job_ptr);
			job_ptr = NULL;
		}
	}
	sk8_outcome_error(out, rc, err_msg);
	if (job_ptr && IS_JOB_FINISHED(job_ptr)) {
		/*
		 * Refused, yet Slurm keeps a record for MinJobAge, as of any
		 * refused sbatch. It never was the pod's job: take the mark off,
		 * so that no scan finds it.
		 */
		xfree(job_ptr->admin_comment);
	} else if (job_ptr) {
		keep_excluded(job_ptr, desc);
		if (queues_again(s))
			begin_now(job_ptr);
		sk8_give_age(job_ptr, s->accrue_time, s->given_priority);
		/* rc may say why it waits, in a way; its reason says it better */
		out->fatal = false;
		sk8_one_line(out->text, sizeof(out->text), sk8_reason(job_ptr));
		out->job_id = job_ptr->job_id;
		out->submit_time = job_ptr->details->submit_time;
		out->running = IS_JOB_RUNNING(job_ptr);
	}
	xfree(err_msg);
	slurm_free_job_desc_msg(desc);
}
