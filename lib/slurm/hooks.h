/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * hooks.h - between the thin select plugin and sk8_slurmctld.so.
 *
 * Clients, slurmd and slurmstepd load select plugins too (all but 26.05), so the
 * plugin must not refer to data that only slurmctld has. All code that does is in
 * sk8_slurmctld.so, which the plugin opens only inside slurmctld.
 *
 * All hooks run under slurmctld's locks, in the thread that calls the plugin;
 * none blocks, does I/O (node_init reads our saved ledger) or changes errno.
 */
#ifndef SK8_SLURM_HOOKS_H
#define SK8_SLURM_HOOKS_H

#include "lib/slurm/release.h"

struct sk8_select_hooks {
	uint32_t slurm_version;	/* SLURM_VERSION_NUMBER it was built for */

	/* stock: dlopen handle of the stock plugin. false, and an error says why: pass everything through */
	bool (*start)(void *stock);
	void (*stop)(void);

	/* instead of the stock call, which it makes itself */
	int (*job_test)(SK8_JOB_TEST_PARAMS);
	/* before any stock call that looks at what nodes have of GRES, or changes it; the stock
	 * job_test is called by ours */
	void (*before)(void);
	/* around the stock nodeinfo_set, after before() */
	void (*before_start)(job_record_t *job_ptr);
	void (*after_start)(void);
	/* before the stock call */
	void (*before_nodeinfo_set_all)(void);
	void (*job_fini)(job_record_t *job_ptr);
	/* after any stock call that gives jobs other cores or takes them away, on the nodes of
	 * this job; NULL: anywhere */
	void (*usage_changed)(job_record_t *job_ptr);
	/* after the stock call */
	void (*nodeinfo_set)(job_record_t *job_ptr);
	void (*nodeinfo_set_all)(bool renewed);	/* after the stock call */
	void (*node_init)(void);
	void (*reconfigure)(void);
	void (*state_save)(void);
	/* true: before the stock call for a job that is suspended; false: it runs again, or has never stopped */
	void (*job_suspend)(job_record_t *job_ptr, bool suspended);
	/* after the stock call: it has given a node back while it runs */
	void (*job_resized)(job_record_t *job_ptr);
};

#define SK8_SELECT_HOOKS "sk8_select_hooks"	/* for dlsym */
extern const struct sk8_select_hooks sk8_select_hooks;

/* For the prep plugin, which finds them in the module that the select plugin has loaded. */
struct sk8_prep_hooks {
	uint32_t slurm_version;

	/* Under job and node write locks. true: done() is called with the job's id, by
	 * another thread and without locks; its rc is a wait status. */
	bool (*prolog)(job_record_t *job_ptr, void (*done)(int rc, uint32_t job_id, bool timed_out));
};

#define SK8_PREP_HOOKS "sk8_prep_hooks"	/* for dlsym */
extern const struct sk8_prep_hooks sk8_prep_hooks;

#endif
