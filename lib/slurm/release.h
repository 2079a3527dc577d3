/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * release.h - what differs between Slurm's releases. No other file of ours looks
 * at SLURM_VERSION_NUMBER, but that of its errors, error_table.c; plugins/select/forward.h
 * has the list of each release's select symbols.
 *
 * 22.05, 24.11 and 26.05 are run, each in the micro release that configure knows.
 *
 * Include it first: it includes Slurm's headers in an order that works.
 */
#ifndef SK8_SLURM_RELEASE_H
#define SK8_SLURM_RELEASE_H

#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include "sk8_config.h"
#include "config.h"			/* the two-line one that configure made */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "src/common/slurm_xlator.h"	/* always the first Slurm header */
#include "slurm/slurm_version.h"
#include "src/common/assoc_mgr.h"
#include "src/common/bitstring.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/read_config.h"
#include "src/common/run_in_daemon.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"
#include "src/slurmctld/acct_policy.h"
#include "src/slurmctld/job_scheduler.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/node_scheduler.h"
#include "src/slurmctld/state_save.h"

/*
 * The one block of each release: its headers, and which form it has of what differs. What a
 * form means stands where it is used. A new release begins as a copy of the newest block; a
 * form that no release had before gets a name here, and its code below beside the others.
 */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22,5,0)
# error "Slurm before 22.05 is not supported"
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23,2,0)
# define SK8_SLURM_2205 1		/* for the symbols in plugins/select/forward.h */
# define SK8_WHOLE_NODE_IS_NUMBER 1	/* one of several, later a set of flags */
# include "src/common/gres.h"
# include "src/common/prep.h"
# include "src/common/select.h"
# include "src/slurmctld/gres_ctld.h"
# include "src/slurmctld/srun_comm.h"
# include "src/slurmctld/preempt.h"
# include "src/plugins/select/cons_common/cons_common.h"
# define SK8_CLIENTS_SELECT 1		/* clients load select plugins too, and call them for nodes */
# define SK8_FEATURE_LIST_OF_CTLD 1
# define SK8_GRES_HAS_ALT_STATE 1
# define SK8_GRES_IN_SLURMCTLD 1
# define SK8_JOB_REASON_STRING 1
# define SK8_LIST_TYPES 1
# define SK8_MODIFY_TELLS_NOBODY 1
# define SK8_NODEINFO_IS_PUBLIC 1
# define SK8_NO_NEW_JOB 1
# define SK8_ONE_CORE_MAP 1
# define SK8_REMOVE_SUBMIT_OF_ONE 1
# define SK8_RESERVATIONS_ARE_OPEN 1
# define SK8_ROWS_ARE_NEW 1
# define SK8_SELECT_NODES_OF_ARGUMENTS 1
# define SK8_SHARED_GRES_OF_ONE_DEVICE 1
# define SK8_TRES_BY_COLON 1
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24,11,0)
# error "Slurm 23.02 to 24.05: other symbols and parameters, not covered"
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25,5,0)
# define SK8_SLURM_2411 1
# include "src/interfaces/gres.h"
# include "src/interfaces/prep.h"
# include "src/interfaces/preempt.h"
# include "src/interfaces/select.h"
# include "src/plugins/select/cons_tres/node_data.h"
# include "src/plugins/select/cons_tres/part_data.h"
# include "src/stepmgr/gres_stepmgr.h"
# include "src/stepmgr/srun_comm.h"
# define SK8_CLIENTS_SELECT 1
# define SK8_NODEINFO_IS_PRIVATE 1
#else					/* 25.05 and later */
# define SK8_SLURM_2605 1
# include "src/interfaces/gres.h"
# include "src/interfaces/prep.h"
# include "src/interfaces/preempt.h"
# include "src/interfaces/select.h"
# include "src/plugins/select/cons_tres/node_data.h"
# include "src/plugins/select/cons_tres/part_data.h"
# include "src/stepmgr/gres_stepmgr.h"
# include "src/stepmgr/srun_comm.h"
# define SK8_GRACE_OF_PLUGINS 1
# define SK8_JOBS_BY_STEP_ID 1
# define SK8_MAX_JOB_COUNT_IS_TOLD 1
# define SK8_NODE_STATS 1
# define SK8_NO_STATE_SAVE 1		/* select plugins have no select_p_state_save() */
# define SK8_REQUEUE_INTERNAL 1
# define SK8_VALIDATE_WITH_TWO 1
#endif

/* ---- features of nodes -------------------------------------------------------- */

#ifdef SK8_FEATURE_LIST_OF_CTLD
# include "src/slurmctld/read_config.h"
# define SK8_UPDATE_FEATURE_LIST update_feature_list
# define FEATURE_OP_MOR FEATURE_OP_XOR	/* "matching or", as it is called since */
#else
# include "src/common/job_features.h"
# include "src/common/node_features.h"
# define SK8_UPDATE_FEATURE_LIST node_features_update_list
#endif

/* ---- types ------------------------------------------------------------------ */

#ifdef SK8_LIST_TYPES
typedef List sk8_list_t;
typedef struct listIterator list_itr_t;
typedef struct job_details job_details_t;
#else
typedef list_t *sk8_list_t;
#endif

#ifdef SK8_ONE_CORE_MAP
typedef bitstr_t *sk8_excluded_t;	/* one bitmap over all cores of the cluster */
#else
typedef resv_exc_t sk8_excluded_t;	/* .exc_cores: one bitmap per node */
#endif

/* ---- select_p_job_test ------------------------------------------------------- */

#ifdef SK8_ONE_CORE_MAP
# define SK8_JOB_TEST_PARAMS \
	job_record_t *job_ptr, bitstr_t *node_bitmap, uint32_t min_nodes, \
	uint32_t max_nodes, uint32_t req_nodes, uint16_t mode, \
	List preemptee_candidates, List *preemptee_job_list, \
	bitstr_t *exc_core_bitmap
# define SK8_JOB_TEST_ARGS \
	job_ptr, node_bitmap, min_nodes, max_nodes, req_nodes, mode, \
	preemptee_candidates, preemptee_job_list, exc_core_bitmap
/* the caller's exclusion, and the call with another one and other candidates */
# define SK8_JOB_TEST_EXCLUDED exc_core_bitmap
# define SK8_JOB_TEST_WITH(candidates, preempted, excluded) \
	job_ptr, node_bitmap, min_nodes, max_nodes, req_nodes, mode, \
	candidates, preempted, *(excluded)
#else
# define SK8_JOB_TEST_PARAMS \
	job_record_t *job_ptr, bitstr_t *node_bitmap, uint32_t min_nodes, \
	uint32_t max_nodes, uint32_t req_nodes, uint16_t mode, \
	list_t *preemptee_candidates, list_t **preemptee_job_list, \
	resv_exc_t *resv_exc_ptr, will_run_data_t *will_run_ptr
# define SK8_JOB_TEST_ARGS \
	job_ptr, node_bitmap, min_nodes, max_nodes, req_nodes, mode, \
	preemptee_candidates, preemptee_job_list, resv_exc_ptr, will_run_ptr
# define SK8_JOB_TEST_EXCLUDED (*resv_exc_ptr)
# define SK8_JOB_TEST_WITH(candidates, preempted, excluded) \
	job_ptr, node_bitmap, min_nodes, max_nodes, req_nodes, mode, \
	candidates, preempted, excluded, will_run_ptr
#endif

/*
 * An exclusion argument of our own that begins as a copy of the caller's: the
 * stock plugin may write into what it gets.
 */
static inline sk8_excluded_t sk8_excluded_copy(sk8_excluded_t from)
{
#ifdef SK8_ONE_CORE_MAP
	const uint32_t cores = cr_get_coremap_offset(node_record_count);
	bitstr_t *copy;

	if (!from)
		return bit_alloc(cores);
	/* that of a reservation has as many bits as there were cores when it was made: before slurmd -Z, scontrol create */
	copy = bit_copy(from);
	return (bit_size(copy) < cores) ? bit_realloc(copy, cores) : copy;
#else
	bitstr_t **cores = xcalloc(node_record_count, sizeof(*cores));

	for (int i = 0; from.exc_cores && (i < node_record_count); i++)
		if (from.exc_cores[i])
			cores[i] = bit_copy(from.exc_cores[i]);
	from.exc_cores = cores;
	return from;
#endif
}

static inline void sk8_excluded_free(sk8_excluded_t *excluded)
{
#ifdef SK8_ONE_CORE_MAP
	FREE_NULL_BITMAP(*excluded);
#else
	for (int i = 0; i < node_record_count; i++)
		FREE_NULL_BITMAP(excluded->exc_cores[i]);
	xfree(excluded->exc_cores);
#endif
}

/* cores: as many bits as the node has cores; those set are excluded too */
static inline void sk8_excluded_add(sk8_excluded_t *excluded, int node_inx,
				    bitstr_t *cores)
{
	int last = bit_fls(cores);

	if (last < 0)
		return;
#ifdef SK8_ONE_CORE_MAP
	uint32_t base = cr_get_coremap_offset(node_inx);

	for (int k = bit_ffs(cores); k <= last; k++)
		if (bit_test(cores, k))
			bit_set(*excluded, base + k);
#else
	if (excluded->exc_cores[node_inx])
		bit_or(excluded->exc_cores[node_inx], cores);
	else
		excluded->exc_cores[node_inx] = bit_copy(cores);
#endif
}

/*
 * Since 24.11 the stock plugin builds its rows of used cores anew when it looks at
 * them, by this function; who looks at them himself must call it before.
 */
#ifdef SK8_ROWS_ARE_NEW
static inline void sk8_rows_are_new(part_res_record_t *parts)
{
	(void) parts;
}
# define SK8_REBUILD_ROWS(stock) sk8_rows_are_new
#else
# define SK8_REBUILD_ROWS(stock) dlsym(stock, "part_data_rebuild_rows")
#endif

/* ---- what sinfo and scontrol show as allocated -------------------------------- */

#ifdef SK8_NODEINFO_IS_PUBLIC
typedef select_nodeinfo_t sk8_nodeinfo_t;
#elif defined(SK8_NODEINFO_IS_PRIVATE)
/* cons_tres' struct select_nodeinfo, which it keeps to itself; what follows is not used */
typedef struct {
	uint16_t magic, alloc_cpus;
	uint64_t alloc_memory, *tres_alloc_cnt;
	char *tres_alloc_fmt_str;
} sk8_nodeinfo_t;
#endif

#ifdef SK8_NODE_STATS
/* "cpu=2,mem=1G,gres/gpu=1" with other numbers of CPUs and MB. To be freed by xfree(). */
static inline char *sk8_tres_with(const char *old, uint32_t cpus, uint64_t memory_mb)
{
	uint64_t *counts = xcalloc(slurmctld_tres_cnt, sizeof(*counts));
	char *text, *words = xstrdup(old), *word, *rest = NULL;

	counts[TRES_ARRAY_CPU] = cpus;
	counts[TRES_ARRAY_MEM] = memory_mb;
	text = assoc_mgr_make_tres_str_from_array(counts, TRES_STR_CONVERT_UNITS, false);
	xfree(counts);
	for (word = words ? strtok_r(words, ",", &rest) : NULL; word;
	     word = strtok_r(NULL, ",", &rest))
		if (xstrncmp(word, "cpu=", 4) && xstrncmp(word, "mem=", 4))
			xstrfmtcat(text, "%s%s", text ? "," : "", word);
	xfree(words);
	return text;
}
#endif

/* After the stock nodeinfo_set_all: count so much more on this node. */
static inline void sk8_show_allocated(node_record_t *node_ptr, uint32_t cpus,
				      uint64_t memory_mb)
{
#ifdef SK8_NODE_STATS
	node_select_stats_t *stats = node_select_stats_array[node_ptr->index];
	char *old;

	stats->alloc_cpus += cpus;
	stats->alloc_memory += memory_mb;
	old = stats->alloc_tres_fmt_str;
	stats->alloc_tres_fmt_str = sk8_tres_with(old, stats->alloc_cpus, stats->alloc_memory);
	xfree(old);
#else
	sk8_nodeinfo_t *info = node_ptr->select_nodeinfo->data;

	info->alloc_cpus += cpus;
	info->alloc_memory += memory_mb;
	if (!info->tres_alloc_cnt)
		return;
	info->tres_alloc_cnt[TRES_ARRAY_CPU] = info->alloc_cpus;
	info->tres_alloc_cnt[TRES_ARRAY_MEM] = info->alloc_memory;
	xfree(info->tres_alloc_fmt_str);
	info->tres_alloc_fmt_str = assoc_mgr_make_tres_str_from_array(
		info->tres_alloc_cnt, TRES_STR_CONVERT_UNITS, false);
#endif
}

/* Bytes of what is shown, as our headers have it, and where it is; NULL: nowhere yet */
static inline const void *sk8_shown(const node_record_t *node_ptr, size_t *size)
{
#ifdef SK8_NODE_STATS
	*size = sizeof(node_select_stats_t);
	return node_select_stats_array[node_ptr->index];
#else
	*size = sizeof(sk8_nodeinfo_t);
	return node_ptr->select_nodeinfo ? node_ptr->select_nodeinfo->data : NULL;
#endif
}

/* CPUs and MB that nodeinfo_set_all counts on this node now */
static inline void sk8_shown_allocated(node_record_t *node_ptr, uint32_t *cpus,
				       uint64_t *memory_mb)
{
#ifdef SK8_NODE_STATS
	*cpus = node_select_stats_array[node_ptr->index]->alloc_cpus;
	*memory_mb = node_select_stats_array[node_ptr->index]->alloc_memory;
#else
	const sk8_nodeinfo_t *info = node_ptr->select_nodeinfo->data;

	*cpus = info->alloc_cpus;
	*memory_mb = info->alloc_memory;
#endif
}

/* Does the job ask for whole nodes (--exclusive)? As a number --exclusive=mcs is 3. */
static inline bool sk8_asks_for_whole_nodes(const job_details_t *details)
{
#ifdef SK8_WHOLE_NODE_IS_NUMBER
	return details->whole_node == WHOLE_NODE_REQUIRED;
#else
	return details->whole_node & WHOLE_NODE_REQUIRED;
#endif
}

/* ---- GRES -------------------------------------------------------------------------- */

/* Of a GRES with devices of which jobs take parts (shard): the devices themselves (gpu), or the
 * other way round; NULL: there is none */
static inline gres_node_state_t *sk8_gres_alternate(const gres_node_state_t *ns)
{
#ifdef SK8_GRES_HAS_ALT_STATE
	return ns->alt_gres_ns;
#else
	return ns->alt_gres ? ns->alt_gres->gres_data : NULL;
#endif
}

/* Of a shared GRES, what the job has of this device on its node number n, where it has count in all.
 * In 22.05 that is one device. */
static inline uint64_t sk8_gres_on_device(const gres_job_state_t *js, uint32_t n, int device, uint64_t count)
{
#ifdef SK8_SHARED_GRES_OF_ONE_DEVICE
	(void) js;
	(void) n;
	(void) device;
	return count;
#else
	return (js->gres_per_bit_alloc && js->gres_per_bit_alloc[n]) ?
		js->gres_per_bit_alloc[n][device] : count;
#endif
}

/* What Slurm shows of a job's devices is a text, made when it gets them. */
static inline void sk8_gres_details(job_record_t *job_ptr)
{
#ifdef SK8_GRES_IN_SLURMCTLD
	gres_ctld_job_build_details(job_ptr->gres_list_alloc, &job_ptr->gres_detail_cnt, &job_ptr->gres_detail_str,
				    &job_ptr->gres_used);
#else
	gres_stepmgr_job_build_details(job_ptr->gres_list_alloc, job_ptr->nodes, &job_ptr->gres_detail_cnt,
				       &job_ptr->gres_detail_str, &job_ptr->gres_used);
#endif
}

/* ---- jobs ------------------------------------------------------------------------ */

static inline int sk8_job_complete(job_record_t *job_ptr, uint32_t uid,
				   bool node_fail, uint32_t wait_status)
{
#ifdef SK8_JOBS_BY_STEP_ID
	slurm_step_id_t step_id = STEP_ID_FROM_JOB_RECORD(job_ptr);

	return job_complete(&step_id, uid, false, node_fail, wait_status);
#else
	return job_complete(job_ptr->job_id, uid, false, node_fail, wait_status);
#endif
}

/* As scontrol requeue. Not of a job that is no batch job, or may not be requeued. */
static inline int sk8_job_requeue(job_record_t *job_ptr, uint32_t uid)
{
#ifdef SK8_REQUEUE_INTERNAL
	return job_requeue_internal(uid, job_ptr, false, 0);
#else
	return job_requeue(uid, job_ptr->job_id, NULL, false, 0);
#endif
}

/* Shows f a job as slurmctld makes one, which no table has; true where it cannot. */
static inline bool sk8_with_new_job(bool (*f)(job_record_t *job_ptr))
{
#ifdef SK8_NO_NEW_JOB
	(void) f;	/* it is made where nobody else can call */
	return true;
#else
	job_record_t *job_ptr = job_record_create();
	const bool rc = f(job_ptr);

	job_record_delete(job_ptr);
	return rc;
#endif
}

/* Starts this pending job in its part_ptr now, if it can. *err_msg as select_nodes() has it. */
static inline int sk8_select_nodes(job_record_t *job_ptr, char **err_msg)
{
#ifdef SK8_SELECT_NODES_OF_ARGUMENTS
	return select_nodes(job_ptr, false, NULL, err_msg, false, SLURMDB_JOB_FLAG_SCHED);
#else
	job_node_select_t select = { .job_ptr = job_ptr, .err_msg = err_msg };

	return select_nodes(&select, false, false, SLURMDB_JOB_FLAG_SCHED);
#endif
}

/* Seconds from preempt_time to the end of a job that is preempted. */
static inline uint32_t sk8_grace_time(job_record_t *job_ptr)
{
#ifdef SK8_GRACE_OF_PLUGINS
	/* only Slurm's preempt plugins are asked: this is what they answer */
	if (!xstrcmp(slurm_conf.preempt_type, "preempt/qos"))
		return job_ptr->qos_ptr ? job_ptr->qos_ptr->grace_time : 0;
	return job_ptr->part_ptr ? job_ptr->part_ptr->grace_time : 0;
#else
	return slurm_job_get_grace_time(job_ptr);
#endif
}

/* job_allocate(): there are as many jobs as MaxJobCount allows */
#ifdef SK8_MAX_JOB_COUNT_IS_TOLD
# define SK8_TOO_MANY_JOBS ESLURM_MAX_JOB_COUNT
#else
# define SK8_TOO_MANY_JOBS EAGAIN
#endif

static inline const char *sk8_reason_string(uint32_t reason)
{
#ifdef SK8_JOB_REASON_STRING
	return job_reason_string(reason);
#else
	return job_state_reason_string(reason);
#endif
}

/* Limits no longer count this pending job. Without the locks of accounting. */
static inline void sk8_remove_job_submit(job_record_t *job_ptr)
{
#ifdef SK8_REMOVE_SUBMIT_OF_ONE
	acct_policy_remove_job_submit(job_ptr);
#else
	acct_policy_remove_job_submit(job_ptr, false);
#endif
}

/*
 * KILL_JOB_RESV in a job's warn_flags lets it into reservations. Since 23.02 only into
 * those with a MaxStartDelay: between open and close every one has. Node write lock.
 */
#ifdef SK8_RESERVATIONS_ARE_OPEN
static inline void sk8_open_reservations(void) { }
static inline void sk8_close_reservations(void) { }
#else
# define SK8_OPENED (INFINITE - 1)	/* a delay that nobody asks for */

static inline int sk8_open_reservation(void *x, void *arg)
{
	slurmctld_resv_t *resv_ptr = x;

	(void) arg;
	if (!resv_ptr->max_start_delay)
		resv_ptr->max_start_delay = SK8_OPENED;
	return 0;
}

static inline int sk8_close_reservation(void *x, void *arg)
{
	slurmctld_resv_t *resv_ptr = x;

	(void) arg;
	if (resv_ptr->max_start_delay == SK8_OPENED)
		resv_ptr->max_start_delay = 0;
	return 0;
}

static inline void sk8_open_reservations(void)
{
	if (resv_list)
		list_for_each(resv_list, sk8_open_reservation, NULL);
}

static inline void sk8_close_reservations(void)
{
	if (resv_list)
		list_for_each(resv_list, sk8_close_reservation, NULL);
}
#endif

/* What stands before a name in tres_per_node: "gres:gpu:2" or "gres/gpu:2" */
#ifdef SK8_TRES_BY_COLON
# define SK8_TRES_PREFIX "gres:"
#else
# define SK8_TRES_PREFIX "gres/"
#endif

/* 25.05+: a job that no slurmd hears of */
#ifdef EXTERNAL_JOB
# define SK8_EXTERNAL_JOB EXTERNAL_JOB
#else
# define SK8_EXTERNAL_JOB 0
#endif

static inline void sk8_desc_set_job_id(job_desc_msg_t *desc, job_record_t *job_ptr)
{
#ifdef SK8_JOBS_BY_STEP_ID
	desc->step_id = STEP_ID_FROM_JOB_RECORD(job_ptr);
#else
	desc->job_id = job_ptr->job_id;
#endif
}

/* After a node was drained or resumed; takes slurmctld's locks */
#ifdef SK8_VALIDATE_WITH_TWO
# define SK8_VALIDATE_ALL_RESERVATIONS() validate_all_reservations(false, false)
#else
# define SK8_VALIDATE_ALL_RESERVATIONS() validate_all_reservations(false)
#endif

/* RPC, of one job */
static inline int sk8_load_job(job_info_msg_t **to, uint32_t id)
{
#ifdef SK8_JOBS_BY_STEP_ID
	slurm_step_id_t which = SLURM_STEP_ID_INITIALIZER;

	which.job_id = id;
	return slurm_load_job(to, which, SHOW_ALL | SHOW_DETAIL);
#else
	return slurm_load_job(to, id, SHOW_ALL | SHOW_DETAIL);
#endif
}

/* ---- job_submit -------------------------------------------------------------------- */

#ifdef SK8_MODIFY_TELLS_NOBODY
# define SK8_JOB_MODIFY_PARAMS \
	job_desc_msg_t *job_desc, job_record_t *job_ptr, uint32_t submit_uid
/* 22.05 has no way to tell the caller why; the log says it */
# define SK8_JOB_MODIFY_ERR_MSG NULL
#else
# define SK8_JOB_MODIFY_PARAMS \
	job_desc_msg_t *job_desc, job_record_t *job_ptr, uint32_t submit_uid, \
	char **err_msg
# define SK8_JOB_MODIFY_ERR_MSG err_msg
#endif

#endif
