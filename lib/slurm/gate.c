/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * gate.c - jobs of Slurm's own (no pod stands behind them), and the gate where they wait
 * until the kubelets of their nodes have admitted pods that hold what they do.
 *
 * A job in the gate is CONFIGURING. Slurm saves that, and calls the plugin again for it
 * after a restart. Whoever let it wait must answer, also if the job ends meanwhile: a
 * requeued job does not start again before.
 */
#include "lib/slurm/gres.h"
#include "lib/slurm/job_nodes.h"
#include "lib/sk8_container.h"
#include "lib/slurm/hooks.h"

static void (*prolog_done)(int rc, uint32_t job_id, bool timed_out);

struct native_view {
	struct sk8_native_job job;
	struct sk8_share *shares;
	uint16_t *cores;        /* of all shares */
	struct sk8_gres_room gres;
};

static void free_view(struct native_view *view)
{
	xfree(view->shares);
	xfree(view->cores);
	xfree(view->gres.gres);
	xfree(view->gres.devices);
}

/* Nodes that an ending job still uses; of any other all of its nodes. */
static bitstr_t *nodes_in_use(const job_record_t *job_ptr)
{
	return IS_JOB_COMPLETING(job_ptr) ? job_ptr->node_bitmap_cg : job_ptr->node_bitmap;
}

/* Its cores among count from the first one of a node on; to: where there is room for them. */
static void fill_cores(struct sk8_share *share, const job_resources_t *resrcs, uint32_t first, uint32_t count, uint16_t *to)
{
	share->cores = to;
	for (uint32_t k = 0; (k < count) && (first + k < (uint32_t) bit_size(resrcs->core_bitmap)); k++)
		if (bit_test(resrcs->core_bitmap, first + k))
			to[share->core_count++] = k;
}

static void fill_shares(struct native_view *view, const job_record_t *job_ptr)
{
	const job_resources_t *resrcs = job_ptr->job_resrcs;
	const bitstr_t *in_use = nodes_in_use(job_ptr);
	struct sk8_job_node at = { .begun = false };
	uint32_t filled = 0;

	if (!resrcs || !resrcs->node_bitmap || !resrcs->core_bitmap || !in_use)
		return;
	view->shares = xcalloc(resrcs->nhosts, sizeof(*view->shares));
	view->cores = xcalloc(bit_set_count(resrcs->core_bitmap) + 1, sizeof(*view->cores));
	sk8_gres_prepare(&view->gres, job_ptr, resrcs->nhosts);
	while (sk8_next_job_node(resrcs, &at)) {
		const node_record_t *node_ptr = node_record_table_ptr[at.node_inx];
		struct sk8_share *share;

		if (!node_ptr || !bit_test((bitstr_t *) in_use, at.node_inx))
			continue;
		share = &view->shares[view->job.share_count++];
		*share = (struct sk8_share) {
			.node = node_ptr->name,
			.memory_mb = resrcs->memory_allocated ? resrcs->memory_allocated[at.host] : 0,
		};
		fill_cores(share, resrcs, at.first_core, at.cores, view->cores + filled);
		filled += share->core_count;
		share->cpus = share->core_count * MAX(node_ptr->threads, 1); /* tpc is 1 where CPUs= is the number of cores */
		share->gres_count = sk8_gres_fill(&view->gres, job_ptr, at.host, &share->gres);
	}
	view->job.shares = view->shares;
}

static bool is_native(const job_record_t *job_ptr)
{
	return (IS_JOB_RUNNING(job_ptr) || IS_JOB_SUSPENDED(job_ptr) || IS_JOB_COMPLETING(job_ptr)) &&
		!sk8_is_ours(job_ptr);
}

static bool is_configured(void)
{
	const char *plugins = slurm_conf.prep_plugins, *found = plugins ? xstrstr(plugins, "k8s") : NULL;

	return found && ((found == plugins) || (found[-1] == ',') || (found[-1] == '/')) && (!found[3] || (found[3] == ','));
}

/*
 * Is there the gate for jobs that start? Without it nobody would hold those back that
 * are placed where pods are still to go. Only if it has been configured since slurmctld
 * started: a plugin that comes by a reconfigure is not told how to answer.
 */
static bool has_gate;

extern void sk8_gate_begins(void)
{
	has_gate = is_configured();
}

extern void sk8_gate_reconfigured(void)
{
	has_gate = has_gate && is_configured();
}

extern bool sk8_has_gate(void)
{
	return has_gate;
}

/*
 * Is k8s.exclusive among the features that its nodes must have? Only a plain list of
 * them counts: of what has alternatives, counts or brackets nobody can say yet which
 * of it this job will get.
 */
extern bool sk8_is_exclusive(const job_record_t *job_ptr)
{
	static const char wanted[] = "k8s.exclusive";
	const size_t length = sizeof(wanted) - 1;
	const char *features = job_ptr->details ? job_ptr->details->features : NULL;

	if (!features || sk8_is_ours(job_ptr) || strpbrk(features, "|[](){}*!"))
		return false;
	for (const char *at = features; (at = xstrstr(at, wanted)); at += length)
		if (((at == features) || strchr("&,", at[-1])) && (!at[length] || strchr("&,", at[length])))
			return true;
	return false;
}

/* What spank_k8s.so has put into the job's SPANK environment; whoever submits may put anything there. */
static const char *spank_env(const job_record_t *job_ptr, const char *name)
{
	const size_t length = strlen(name);

	for (uint32_t i = 0; i < job_ptr->spank_job_env_size; i++)
		if (!xstrncmp(job_ptr->spank_job_env[i], name, length) && (job_ptr->spank_job_env[i][length] == '='))
			return job_ptr->spank_job_env[i] + length + 1;
	return "";
}

static void fill(struct native_view *view, job_record_t *job_ptr)
{
	const job_details_t *details = job_ptr->details;

	*view = (struct native_view) { .job = {
		.job_id = job_ptr->job_id,
		.submit_time = details ? details->submit_time : SK8_NO_TIME,
		.user_id = job_ptr->user_id,
		.group_id = job_ptr->group_id,
		.account = job_ptr->account ? job_ptr->account : "",
		.image = spank_env(job_ptr, SK8_SPANK_IMAGE),
		.pod_template = spank_env(job_ptr, SK8_SPANK_TEMPLATE),
		.service_account = spank_env(job_ptr, SK8_SPANK_SERVICE_ACCOUNT),
		.exclusive = sk8_is_exclusive(job_ptr),
		.requeues = job_ptr->batch_flag && details && details->requeue,
		.ending = IS_JOB_COMPLETING(job_ptr),
	} };
	fill_shares(view, job_ptr);
}

/* What people read of a job in the gate: squeue's %r, scontrol's Reason. */
static const char *const reasons[] = {
	"Kubelets of its nodes are asked", "Kubernetes makes its containers", "Pods leave its nodes",
};

static const char *reason_of(const struct sk8_native_job *job)
{
	return reasons[job->exclusive ? 2 : (job->image[0] || job->pod_template[0])];
}

static void tell_reason(job_record_t *job_ptr, const char *reason)
{
	if (job_ptr->state_desc)
		return;	/* somebody else's word */
	job_ptr->state_desc = xstrdup(reason);
	last_job_update = time(NULL);
}

static void forget_reason(job_record_t *job_ptr)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (!xstrcmp(job_ptr->state_desc, reasons[i])) {
			xfree(job_ptr->state_desc);
			last_job_update = time(NULL);
		}
}

/* false: nobody wants to keep it */
static bool prolog(job_record_t *job_ptr, void (*done)(int rc, uint32_t job_id, bool timed_out))
{
	struct native_view view;
	int saved_errno = errno;
	bool waits;

	if (!sk8_layout_fits_job(job_ptr) || !is_native(job_ptr))
		return false;
	__atomic_store_n(&prolog_done, done, __ATOMIC_RELEASE);
	fill(&view, job_ptr);
	waits = sk8_on_gate(&view.job);
	if (waits)
		tell_reason(job_ptr, reason_of(&view.job));
	else
		sk8_comment_started(job_ptr);
	free_view(&view);
	errno = saved_errno;
	return waits;
}

extern void sk8_native_fini(job_record_t *job_ptr)
{
	int saved_errno = errno;

	if (job_ptr->details)
		sk8_on_native_fini(job_ptr->job_id, job_ptr->details->submit_time);
	errno = saved_errno;
}

extern void sk8_native_resized(job_record_t *job_ptr)
{
	int saved_errno = errno;

	if (job_ptr->details)
		sk8_on_native_resized(job_ptr->job_id, job_ptr->details->submit_time);
	errno = saved_errno;
}

/* ---- for our Slurm thread --------------------------------------------------------- */

struct walk {
	void (*f)(void *arg, const struct sk8_native_job *job);
	void *arg;
};

static int visit(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	struct walk *walk = arg;
	struct native_view view;

	if (!sk8_layout_fits_job(job_ptr))
		return -1;	/* stop */
	if (is_native(job_ptr)) {
		fill(&view, job_ptr);
		walk->f(walk->arg, &view.job);
		free_view(&view);
	}
	return 0;
}

extern void sk8_each_native(void (*f)(void *arg, const struct sk8_native_job *job), void *arg)
{
	struct walk walk = { .f = f, .arg = arg };

	if (job_list)
		list_for_each_ro(job_list, visit, &walk);
}

extern void sk8_with_native(uint32_t job_id, void (*f)(void *arg, const struct sk8_native_job *job), void *arg)
{
	job_record_t *job_ptr = find_job_record(job_id);
	struct walk walk = { .f = f, .arg = arg };

	if (job_ptr)
		visit(job_ptr, &walk);
}

/*
 * A step on a node that slurmctld has not heard of since its start is deferred, and srun asks again only after SlurmctldTimeout
 * (step_mgr.c, _pick_step_nodes(); launch.c, launch_common_create_job_step()). No job of stock Slurm is launched so early.
 */
extern bool sk8_nodes_registered(uint32_t job_id)
{
	job_record_t *job_ptr = find_job_record(job_id);
	struct sk8_job_node at = { .begun = false };

	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || !IS_JOB_RUNNING(job_ptr))
		return true;
	while (sk8_next_job_node(job_ptr->job_resrcs, &at))
		if (node_record_table_ptr[at.node_inx] && !node_record_table_ptr[at.node_inx]->slurmd_start_time)
			return false;
	return true;
}

static const slurmctld_lock_t write_locks = {
	.conf = READ_LOCK, .job = WRITE_LOCK, .node = READ_LOCK, .part = READ_LOCK, .fed = READ_LOCK,
};

static void begin_by(const struct sk8_age *age, time_t begin)
{
	job_record_t *job_ptr = find_job_record(age->job_id);
	time_t slurms;

	if (!job_ptr || !IS_JOB_PENDING(job_ptr) || !job_ptr->details)
		return;
	slurms = job_ptr->details->begin_time;
	/* limits let only a job gain age that may start now (acct_policy_handle_accrue_time()) */
	job_ptr->details->begin_time = MIN(slurms, time(NULL));
	sk8_give_age(job_ptr, age->accrue_time, age->priority);
	job_ptr->details->begin_time = MIN(slurms, begin);
	last_job_update = time(NULL);
}

/*
 * Slurm lets a requeued job wait two minutes, for what its last run left on the nodes, and begin
 * anew to gain age. A job that was in the gate has never been on a node, and none of its components
 * has been launched (job_scheduler.c, launch_job()): nobody younger may overtake it for that.
 */
static void queue_as_before(const struct sk8_ages *ages, uint32_t delay)
{
	const time_t begin = time(NULL) + delay;

	lock_slurmctld(write_locks);
	for (uint32_t k = 0; k < ages->count; k++)
		begin_by(&ages->of[k], begin);
	unlock_slurmctld(write_locks);
	schedule_job_save();
	queue_job_scheduler();
}

/* A batch job goes back into the queue, and who waits for it reads its comment. */
extern bool sk8_tell_refusal(const struct sk8_gate_answer *answer)
{
	job_record_t *job_ptr = (answer->why[0] && sk8_layout_fits()) ? find_job_record(answer->job_id) : NULL;
	char *text;
	bool told;

	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || !IS_JOB_RUNNING(job_ptr))
		return false;
	text = sk8_not_started_text(answer->why);
	told = sk8_tell_srun(job_ptr, text);
	xfree(text);
	return told;
}

/*
 * Slurm queues again what it is told to be refused, also a job that its user has cancelled
 * meanwhile (prep_slurmctld.c, job_requeue()). That one is let out, to its end. Between this
 * look and Slurm's own are some microseconds without its locks. ages: of one that can be refused.
 */
static bool can_be_refused(const struct sk8_gate_answer *answer, struct sk8_ages *ages)
{
	job_record_t *job_ptr;
	bool runs;

	lock_slurmctld(write_locks);
	job_ptr = find_job_record(answer->job_id);
	if (job_ptr)
		forget_reason(job_ptr);
	runs = job_ptr && (IS_JOB_RUNNING(job_ptr) || IS_JOB_SUSPENDED(job_ptr));
	if (runs && answer->why[0])
		sk8_comment_not_started(job_ptr, answer->why);
	if (runs)
		sk8_ages_note(ages, sk8_whole_of(job_ptr));
	unlock_slurmctld(write_locks);
	return runs;
}

/* It has been let out: that is not held up by this. launched: and not to its end */
static void left_gate(uint32_t job_id, bool launched)
{
	job_record_t *job_ptr;

	lock_slurmctld(write_locks);
	if ((job_ptr = find_job_record(job_id)))
		forget_reason(job_ptr);
	if (job_ptr && launched && (IS_JOB_RUNNING(job_ptr) || IS_JOB_SUSPENDED(job_ptr)))
		sk8_comment_started(job_ptr);
	unlock_slurmctld(write_locks);
}

extern void sk8_answer_gate(const struct sk8_gate_answer *answer)
{
	void (*done)(int rc, uint32_t job_id, bool timed_out) = __atomic_load_n(&prolog_done, __ATOMIC_ACQUIRE);
	struct sk8_ages ages = { .count = 0 };
	bool refuse;

	if (!done || !sk8_layout_fits())
		return;
	refuse = !answer->open && can_be_refused(answer, &ages);
	done(refuse ? 1 << 8 : 0, answer->job_id, false);
	if (refuse)
		queue_as_before(&ages, answer->delay);
	else
		left_gate(answer->job_id, answer->open);
	xfree(ages.of);
}

__attribute__((visibility("default"))) const struct sk8_prep_hooks sk8_prep_hooks = {
	.slurm_version = SLURM_VERSION_NUMBER,
	.prolog = prolog,
};
