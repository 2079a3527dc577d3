/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * module.c - sk8_slurmctld.so's entry: hosts the engine in slurmctld and tells it
 * what the select hooks see.
 */
#include <pthread.h>
#include <stdlib.h>
#include "lib/slurm/daemon.h"
#include "lib/slurm/hooks.h"
#include "lib/slurm/mask_gres.h"
#include "lib/slurm/slurmctld.h"

/* Without the libsk8core that it was built with, this file cannot be loaded. */
static const char *const border __attribute__((used)) = SK8_BORDER;
static const char stamp[] __attribute__((used)) = SK8_STAMP " " SK8_SLURM_VERSION;

/*
 * In charge or not: init() runs in standby controllers too, and a controller that
 * gives way to its primary ends with a shutdown_time, which it clears later.
 *
 * A standby that takes over reads its configuration while the shutdown_time that
 * ended its watch still stands, so select_p_reconfigure() alone does not tell. It
 * clears it afterwards and calls select_p_select_nodeinfo_set_all() at once.
 *
 * From 23.11 on a reconfigure is a shutdown and a new slurmctld. If that cannot start
 * the old one goes on as if nothing had been: it clears its shutdown_time, reads no
 * configuration, and calls select_p_select_nodeinfo_set_all(). A standby never does.
 */
static bool in_charge;
static bool may_resume;	/* a shutdown came while configured, and may be called off */
static bool configured;	/* select_p_reconfigure() has come since init() or a shutdown */

static void give_up_charge(void)
{
	__atomic_store_n(&configured, false, __ATOMIC_RELEASE);
	__atomic_store_n(&in_charge, false, __ATOMIC_RELEASE);
}

/*
 * Slurm's threads and shutdown.c's come here: the first ends what runs, the others wait
 * for it. Who is late, after a reconfigure was called off, finds no shutdown any more.
 */
static void end_if_shut_down(void)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&one_at_a_time);
	if (__atomic_load_n(&configured, __ATOMIC_ACQUIRE) && slurmctld_config.shutdown_time) {
		__atomic_store_n(&may_resume, true, __ATOMIC_RELEASE);
		give_up_charge();
		sk8_on_shutdown();
	}
	pthread_mutex_unlock(&one_at_a_time);
}

static void take_charge(void)
{
	if (!__atomic_load_n(&configured, __ATOMIC_ACQUIRE) || slurmctld_config.shutdown_time)
		return;
	__atomic_store_n(&in_charge, true, __ATOMIC_RELEASE);
	sk8_watch_shutdown(end_if_shut_down);
}

static bool is_active(void)
{
	if (slurmctld_config.shutdown_time)
		__atomic_store_n(&in_charge, false, __ATOMIC_RELEASE);
	return __atomic_load_n(&in_charge, __ATOMIC_ACQUIRE) && sk8_layout_fits();
}

static int64_t jobs_changed(void)
{
	return last_job_update;
}

static int64_t nodes_changed(void)
{
	return last_node_update;
}

static bool in_backfill(void)
{
	return __atomic_load_n(&slurmctld_diag_stats.bf_active, __ATOMIC_ACQUIRE);
}

static const struct sk8_slurm_ops ops = {
	.active = is_active,
	.last_job_update = jobs_changed,
	.last_node_update = nodes_changed,
	.lock = sk8_lock,
	.unlock = sk8_unlock,
	.in_backfill = in_backfill,
	.submit = sk8_submit_job,
	.start = sk8_start_job,
	.end = sk8_end_job,
	.exclude = sk8_exclude,
	.spare = sk8_spare,
	.find = sk8_find,
	.each_job = sk8_each_job,
	.each_node = sk8_each_node,
	.find_node = sk8_find_node,
	.saves_power = sk8_saves_power,
	.keep_masked_nodes_up = sk8_keep_masked_nodes_up,
	.change_node = sk8_change_node,
	.change_features = sk8_change_features,
	.each_native = sk8_each_native,
	.with_native = sk8_with_native,
	.nodes_registered = sk8_nodes_registered,
	.end_native = sk8_end_native,
	.set_devices = sk8_set_devices,
	.tell_refusal = sk8_tell_refusal,
	.answer_gate = sk8_answer_gate,
};

/* ---- hooks --------------------------------------------------------------------- */

static bool start(void *stock)
{
	/* never freed: the engine may look at it at any time */
	static struct sk8_host host;

	if (!sk8_layout_fits_daemon())
		return false;
	if (!sk8_masks_start(stock)) {
		error("slurm-k8s: the stock select plugin lacks select_node_usage, select_part_record or another symbol that masks need: this is not the select/cons_tres of Slurm %s; jobs are scheduled as if slurm-k8s were not there",
		      SK8_SLURM_VERSION);
		return false;
	}
	if (!host.ops) {
		sk8_gate_begins();
		host = (struct sk8_host) {
			.log = sk8_write_log,
			.log_level = sk8_log_level_now,
			.config_path = sk8_config_path("SLURM_K8S_CONF", "slurm-k8s.yaml"),
			.state_dir = xstrdup(slurm_conf.state_save_location),
			.slurm_cluster = xstrdup(slurm_conf.cluster_name),
			.slurm_version = SK8_SLURM_VERSION,
			.slurm_uid = slurm_conf.slurm_user_id,
			.ops = &ops,
		};
	}
	if (!sk8_runtime_acquire(&host))
		return true;
	error("slurm-k8s: out of memory; jobs are scheduled as if slurm-k8s were not there");
	return false;
}

static void stop(void)
{
	give_up_charge();
	sk8_runtime_release();
}

static int on_job_test(SK8_JOB_TEST_PARAMS)
{
	sk8_gres_unshow();
	return sk8_matching_or_job_test(SK8_JOB_TEST_ARGS);
}

static void on_job_fini(job_record_t *job_ptr)
{
	if (!sk8_layout_fits_job(job_ptr))
		return;
	if (sk8_is_ours(job_ptr))
		sk8_tell(job_ptr, sk8_on_job_fini);
	else
		sk8_native_fini(job_ptr);
	sk8_keep_nodes_up_after(job_ptr);	/* with the mask of what it leaves */
}

static void on_job_resized(job_record_t *job_ptr)
{
	if (sk8_layout_fits_job(job_ptr) && !sk8_is_ours(job_ptr)) /* those have one node */
		sk8_native_resized(job_ptr);
}

static void before_start(job_record_t *job_ptr)
{
	if (sk8_layout_fits_job(job_ptr))
		sk8_gres_before_start(job_ptr);
}

static void before_nodeinfo_set_all(void)
{
	if (sk8_layout_fits())
		sk8_gres_before_show();
}

/*
 * srun --jobid= would run on what the pod has: its memory is limited there, and that of a step here, so that both together may
 * use twice as much. Slurm has no other word for a job without steps (step_create() in step_mgr.c).
 */
static void allow_no_steps(job_record_t *job_ptr)
{
	job_ptr->next_step_id = MAX(job_ptr->next_step_id, slurm_conf.max_step_cnt);
}

/* At start and takeover this is also called for each running job: a replay. */
static void on_nodeinfo_set(job_record_t *job_ptr)
{
	if (!sk8_layout_fits_job(job_ptr))
		return;
	if (IS_JOB_RUNNING(job_ptr))
		(void) sk8_comment_waits(job_ptr, NULL);
	if (!IS_JOB_RUNNING(job_ptr) || !sk8_is_ours(job_ptr))
		return;
	allow_no_steps(job_ptr);
	sk8_tell(job_ptr, sk8_on_job_start);
}

static void init_nodes(bool goes_on)
{
	sk8_masks_nodes_changed();
	if (sk8_layout_fits_tables())
		sk8_on_node_init(goes_on);
}

static void on_node_init(void)
{
	init_nodes(false);
}

static void on_reconfigure(void)
{
	sk8_masks_nodes_changed();
	if (!sk8_layout_fits_tables())
		return;
	__atomic_store_n(&may_resume, false, __ATOMIC_RELEASE);
	__atomic_store_n(&configured, true, __ATOMIC_RELEASE);
	take_charge();
	sk8_gate_reconfigured();
	sk8_on_reconfigure();
}

static void on_nodeinfo_set_all(bool renewed)
{
	if (__atomic_load_n(&may_resume, __ATOMIC_ACQUIRE) && !slurmctld_config.shutdown_time) {
		info("slurm-k8s: slurmctld goes on after a reconfigure that failed, and slurm-k8s with it");
		init_nodes(true);
		on_reconfigure();
	}
	take_charge();
	sk8_gres_after_show();
	if (renewed && sk8_layout_fits())
		sk8_masks_show();
}

__attribute__((visibility("default"))) const struct sk8_select_hooks sk8_select_hooks = {
	.slurm_version = SLURM_VERSION_NUMBER,
	.start = start,
	.stop = stop,
	.job_test = on_job_test,
	.before = sk8_gres_unshow,
	.before_start = before_start,
	.after_start = sk8_gres_after_start,
	.before_nodeinfo_set_all = before_nodeinfo_set_all,
	.job_fini = on_job_fini,
	.usage_changed = sk8_masks_usage_changed,
	.nodeinfo_set = on_nodeinfo_set,
	.nodeinfo_set_all = on_nodeinfo_set_all,
	.node_init = on_node_init,
	.reconfigure = on_reconfigure,
	.state_save = end_if_shut_down,
	.job_suspend = sk8_on_suspension,
	.job_resized = on_job_resized,
};
