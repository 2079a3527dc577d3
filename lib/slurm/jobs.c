/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* jobs.c - our jobs: look one up, walk them all, change which nodes one avoids */
#include "lib/slurm/slurmctld.h"

/* Only our Slurm thread comes here: one view serves all. */
static struct sk8_view view;

extern bool sk8_find(uint32_t job_id, struct sk8_job *job)
{
	job_record_t *job_ptr = find_job_record(job_id);

	if (!job_ptr || !sk8_layout_fits_job(job_ptr))
		return false;
	sk8_view_fill(&view, job_ptr);
	*job = view.job;
	return true;
}

struct walk {
	void (*f)(void *arg, const struct sk8_job *job);
	void *arg;
};

static int visit(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	struct walk *walk = arg;

	if (!sk8_layout_fits_job(job_ptr))
		return -1;	/* stop */
	if (sk8_is_ours(job_ptr)) {
		sk8_view_fill(&view, job_ptr);
		walk->f(walk->arg, &view.job);
	}
	return 0;
}

extern void sk8_each_job(void (*f)(void *arg, const struct sk8_job *job), void *arg)
{
	struct walk walk = { .f = f, .arg = arg };

	if (job_list)
		list_for_each_ro(job_list, visit, &walk);
}

/* The known ones of a list, or NULL if there is none, or all are: *all tells */
static char *known_nodes(const char *nodes, bool *all)
{
	__auto_type list = hostlist_create(nodes);	/* of another type in each release */
	char *known = NULL, *end = NULL, *name;

	*all = true;
	while (list && (name = hostlist_shift(list))) {
		if (find_node_record(name))
			xstrfmtcatat(known, &end, "%s%s", known ? "," : "", name);
		else
			*all = false;
		free(name);
	}
	if (list)
		hostlist_destroy(list);
	if (*all)
		xfree(known);
	return known;
}

/*
 * Before it looks at the new list update_job() of 24.11 reads the former one anew. If the last node of that is none any
 * more it refuses all, and the job is left without any list in force, though it shows it.
 */
static void drop_unknown_nodes(job_details_t *details)
{
	char *known;
	bool all;

	if (!details->exc_nodes)
		return;
	known = known_nodes(details->exc_nodes, &all);
	if (all)
		return;
	xfree(details->exc_nodes);
	details->exc_nodes = known;
}

/*
 * By update_job(), as "scontrol update JobId= ExcNodeList=" does: hold, begin
 * time, partition and a priority that an administrator set stay; a priority that
 * Slurm computed is computed again, as it is all the time.
 */
extern void sk8_exclude(uint32_t job_id, int64_t submit_time, const char *mark,
			const char *excluded_nodes, struct sk8_outcome *out)
{
	job_record_t *job_ptr = sk8_find_ours(job_id, submit_time, mark);
	job_desc_msg_t *desc;
	slurm_msg_t msg;

	*out = (struct sk8_outcome) { .job_id = job_id, .submit_time = submit_time };
	if (!job_ptr) {
		sk8_outcome_error(out, ESLURM_INVALID_JOB_ID, NULL);
		return;
	}
	if (!IS_JOB_PENDING(job_ptr)) {
		sk8_outcome_error(out, ESLURM_JOB_NOT_PENDING, NULL);
		return;
	}
	if (job_ptr->details)
		drop_unknown_nodes(job_ptr->details);
	desc = xmalloc(sizeof(*desc));
	slurm_init_job_desc_msg(desc);
	sk8_desc_set_job_id(desc, job_ptr);
	desc->exc_nodes = xstrdup(excluded_nodes);
	slurm_msg_t_init(&msg);
	msg.data = desc;
	sk8_outcome_error(out, update_job(&msg, slurm_conf.slurm_user_id, false), NULL);
	slurm_free_job_desc_msg(desc);
}
