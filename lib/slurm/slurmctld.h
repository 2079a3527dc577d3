/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * slurmctld.h - what the files of sk8_slurmctld.so offer each other.
 */
#ifndef SK8_SLURM_SLURMCTLD_H
#define SK8_SLURM_SLURMCTLD_H

#include "lib/slurm/release.h"
#include "lib/sk8_abi.h"

/* locks.c */
extern void sk8_lock(bool write);
extern void sk8_unlock(bool write, bool changed, bool masks);

/*
 * layout.c: do our headers describe this slurmctld? Asked before any struct is used.
 * Once no, it is no for ever to all questions, and the log says so once.
 */
extern bool sk8_layout_fits(void);	/* as far as was seen; without locks */
extern bool sk8_layout_fits_daemon(void);	/* before anything else; without locks */
/* nodes, partitions, reservations, what the stock plugin keeps. All locks, after its node_init or reconfigure */
extern bool sk8_layout_fits_tables(void);
extern bool sk8_layout_fits_reservations(void);	/* node write lock */
/* a job, also a made-up one that no table has. Job lock, as for the next */
extern bool sk8_layout_fits_record(job_record_t *job_ptr);
extern bool sk8_layout_fits_job(job_record_t *job_ptr);	/* not NULL */
/* records of GRES, and what they point to for a node and for a job. Node or job lock */
extern bool sk8_layout_fits_gres(const gres_state_t *state);
extern bool sk8_layout_fits_gres_node(const gres_node_state_t *ns);
extern bool sk8_layout_fits_gres_job(const gres_job_state_t *js);

/* gres.h: entries, and the indices of devices that they point to. Begins as zeros */
struct sk8_gres_room {
	struct sk8_gres *gres;	/* these grow */
	uint16_t *devices;
	uint32_t gres_size, device_size;
	uint32_t entries, indices;	/* that are used */
};

/* view.c: a job as sk8_abi.h describes it, with the memory it needs */
struct sk8_view {
	struct sk8_job job;
	uint16_t *cores;	/* these grow */
	uint32_t core_room;
	struct sk8_gres_room gres;
};
extern void sk8_view_free(struct sk8_view *view);	/* what it has, not itself */
/* what squeue shows in its column REASON, or "" */
extern const char *sk8_reason(const job_record_t *job_ptr);
extern bool sk8_is_ours(const job_record_t *job_ptr);
extern void sk8_view_fill(struct sk8_view *view, job_record_t *job_ptr);
/* calls what with it, from a hook: errno stays */
extern void sk8_tell(job_record_t *job_ptr, void (*what)(const struct sk8_job *job));
/* the job of this id if submit_time and mark are its too, else NULL */
extern job_record_t *sk8_find_ours(uint32_t job_id, int64_t submit_time, const char *mark);

/* age.c: what a job has of it; SK8_NO_TIME, 0 as in sk8_abi.h */
extern int64_t sk8_accrue_time(const job_record_t *job_ptr);
extern uint32_t sk8_given_priority(const job_record_t *job_ptr);
/* a new job gets it, as far as Slurm's limits allow */
extern void sk8_give_age(job_record_t *job_ptr, int64_t accrue_time, uint32_t priority);
struct sk8_age {
	uint32_t job_id;
	int64_t accrue_time;
	uint32_t priority;
};
/* of a job, or of each component of a heterogeneous one */
struct sk8_ages {
	uint32_t count;
	struct sk8_age *of;	/* the caller frees it with xfree() */
};
/* whole: as sk8_whole_of() says. Job read lock */
extern void sk8_ages_note(struct sk8_ages *ages, job_record_t *whole);

/* jobs.c */
extern bool sk8_find(uint32_t job_id, struct sk8_job *job);
extern void sk8_each_job(void (*f)(void *arg, const struct sk8_job *job), void *arg);
extern void sk8_exclude(uint32_t job_id, int64_t submit_time, const char *mark,
			const char *excluded_nodes, struct sk8_outcome *out);

/*
 * start.c: starts a pending job on this node now, although others wait, or says why
 * not (Slurm's error number; *err_msg, which the caller frees with xfree(), may
 * explain it). The job is bound to that node in any case. Job and node write locks.
 */
extern int sk8_start_there(job_record_t *job_ptr, const char *node, char **err_msg);
extern void sk8_start_job(uint32_t job_id, int64_t submit_time, const char *mark,
			  const char *node, struct sk8_outcome *out);

/* preemptees.c: by when the pod of this job must have ended because Slurm preempts the
 * job, or SK8_NO_TIME. Job lock */
extern int64_t sk8_preempt_end(job_record_t *job_ptr);
extern void sk8_spare(uint32_t job_id, int64_t submit_time, const char *mark,
		      struct sk8_outcome *out);

/* preemptors.c: sk8_masks_job_test(), with no further victims while those of before leave */
extern int sk8_preemptors_job_test(SK8_JOB_TEST_PARAMS);

/* node_state.c */
extern void sk8_change_node(const struct sk8_node_change *c, struct sk8_outcome *out);
/* under the node write lock: was a node changed since this was last asked? */
extern bool sk8_nodes_changed(void);
extern void sk8_save_nodes(void);	/* after that, without locks */

/* node_features.c */
extern void sk8_change_features(const struct sk8_feature_change *c, struct sk8_outcome *out);
/* under job and node write locks, after all of the above: jobs that had no node get another turn */
extern void sk8_features_done(void);
/* feature_waits.c: under the same locks, jobs that wait for what no node has any more say so, and others no more */
extern void sk8_tell_feature_waits(void);

/* suspension.c: sk8_preemptors_job_test(), without cores of pods whose jobs would be suspended */
extern int sk8_suspension_job_test(SK8_JOB_TEST_PARAMS);
/* matching_or.c: the same, on nodes that all have one of the features that the job leaves to choose from */
extern int sk8_matching_or_job_test(SK8_JOB_TEST_PARAMS);
extern void sk8_on_suspension(job_record_t *job_ptr, bool suspended);

/* submit.c, end.c, nodes.c */
extern void sk8_submit_job(const struct sk8_submit *s, struct sk8_outcome *out);
extern void sk8_end_job(const struct sk8_end *e, struct sk8_outcome *out);
/* power.c; as in sk8_slurm_ops */
extern bool sk8_saves_power(void);
extern void sk8_keep_masked_nodes_up(void);
/* from a hook: the job ends. With PowerDownOnIdle Slurm powers its nodes down within a second. Node write lock */
extern void sk8_keep_nodes_up_after(const job_record_t *job_ptr);
extern void sk8_each_node(void (*f)(void *arg, const struct sk8_node *node), void *arg);
extern bool sk8_find_node(const char *name, struct sk8_node *node);

/* comment.c: why a job ends, where its user and accounting find it. begin() before the end, which may
 * be refused: then undo() */
struct sk8_comment {
	char *system_comment, *comment;	/* as they were */
	bool silent;		/* its user had none */
};
/* what we said of an earlier run gives way to text */
extern void sk8_comment_begin(job_record_t *job_ptr, const char *text, struct sk8_comment *before);
extern void sk8_comment_undo(job_record_t *job_ptr, struct sk8_comment *before);
/* again: the job runs once more */
extern void sk8_comment_keep(job_record_t *job_ptr, struct sk8_comment *before, bool again);
/* It was not launched; until it is, or ends for another reason, this stands there. */
extern void sk8_comment_not_started(job_record_t *job_ptr, const char *why);
/* The same for srun's user: to be freed. */
extern char *sk8_not_started_text(const char *why);
/* No node fits it, by this hint (feature_hint.h; NULL: there are some): false: it says so already, or says nothing. */
extern bool sk8_comment_waits(job_record_t *job_ptr, const char *hint);
/* It is launched. What would be wrong from now on goes. */
extern void sk8_comment_started(job_record_t *job_ptr);

/* native_end.c: a job without our mark ends */
extern void sk8_end_native(const struct sk8_native_end *e, struct sk8_outcome *out);
/* One sentence for srun or salloc. true: it may find the job ended before that has come. Job read lock */
extern bool sk8_tell_srun(job_record_t *job_ptr, char *text);
/* Of a component of a heterogeneous job its leader: Slurm requeues and cancels all of them, or none. Job read lock. */
extern job_record_t *sk8_whole_of(job_record_t *job_ptr);

/* gate.c */
extern void sk8_native_fini(job_record_t *job_ptr);	/* from a hook: a job without our mark */
extern void sk8_native_resized(job_record_t *job_ptr);	/* from a hook, as it */
extern void sk8_each_native(void (*f)(void *arg, const struct sk8_native_job *job), void *arg);
extern void sk8_with_native(uint32_t job_id, void (*f)(void *arg, const struct sk8_native_job *job), void *arg);
extern bool sk8_nodes_registered(uint32_t job_id);
extern bool sk8_tell_refusal(const struct sk8_gate_answer *answer);
extern void sk8_answer_gate(const struct sk8_gate_answer *answer);
/* asks for the feature k8s.exclusive: job lock */
extern bool sk8_is_exclusive(const job_record_t *job_ptr);
extern bool sk8_has_gate(void);
extern void sk8_gate_begins(void);	/* slurmctld starts */
extern void sk8_gate_reconfigured(void);	/* and has read slurm.conf again */

/* gate_devices.c */
extern void sk8_set_devices(const struct sk8_device_change *c, struct sk8_outcome *out);

/* errors.c: rc and Slurm's message (may be NULL) as outcome */
extern void sk8_outcome_error(struct sk8_outcome *out, int rc, const char *message);

/* shutdown.c: f is called in a thread of its own when slurmctld shuts down, where no hook
 * tells of it; once, until this is called again; and by exit(). f may be called for nothing. */
extern void sk8_watch_shutdown(void (*f)(void));

/* masks.c, mask_table.c */
extern bool sk8_masks_start(void *stock);
extern bool sk8_masks_fit(void);	/* what the stock plugin keeps is as our headers say */
extern int sk8_masks_job_test(SK8_JOB_TEST_PARAMS);
extern void sk8_masks_show(void);
extern void sk8_masks_nodes_changed(void);	/* node indexes may mean other nodes */
/* jobs hold other cores, on the nodes of this job, or (NULL) anywhere */
extern void sk8_masks_usage_changed(job_record_t *job_ptr);

#endif
