/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * sk8_abi.h - the only border between Slurm's side (C: lib/slurm, plugins) and
 * ours (C++: libsk8core). No Slurm type, no C++ type crosses it.
 *
 * Downwards (Slurm calls us): the sk8_*() functions. They are called from hooks,
 * under slurmctld's locks: none does I/O (sk8_on_node_init() reads our saved
 * ledger, that is the exception), waits, throws, or frees what Slurm allocated.
 * Upwards (we call Slurm): struct sk8_slurm_ops, functions of sk8_slurmctld.so,
 * called only from our Slurm thread.
 *
 * Strings and arrays in a struct that is passed in are borrowed for the call.
 * Memory is in MiB (as Slurm's pn_min_memory), times in seconds since 1970.
 */
#ifndef SK8_ABI_H
#define SK8_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SK8_API __attribute__((visibility("default")))

/*
 * Which form this border has: a new one with each change below (test/abi/check-border
 * notices one that was forgotten). libsk8core has this symbol and sk8_slurmctld.so refers
 * to it, so that the loader refuses two that would read a struct differently. Both, and
 * all of our plugins, have SK8_STAMP in their bytes, for slurm-k8s check.
 */
#define SK8_BORDER sk8_border_32
SK8_API extern const char SK8_BORDER[];

#define SK8_TEXT_OF(word) #word
#define SK8_TEXT(macro) SK8_TEXT_OF(macro)
/* then, of what is built for one Slurm, a space and that Slurm's version */
#define SK8_STAMP_BEGIN "slurm-k8s-build:"
#define SK8_STAMP SK8_STAMP_BEGIN SK8_TEXT(SK8_BORDER)

/* What admin_comment of a placeholder job begins with: "k8s:<cluster>/<namespace>/<name>/<uid>" */
#define SK8_MARK_PREFIX "k8s:"
/* What end() writes into system_comment, so that ended_by_us is known for ever */
#define SK8_END_COMMENT "slurm-k8s: "
#define SK8_NO_UID ((uint32_t) 0xffffffff)
#define SK8_NO_TIME ((int64_t) 0)

enum sk8_log_level { SK8_LOG_ERROR, SK8_LOG_WARNING, SK8_LOG_INFO, SK8_LOG_VERBOSE, SK8_LOG_DEBUG };

/* A job's state as we distinguish it. COMPLETING jobs have their final state. */
enum sk8_job_state {
	SK8_JOB_PENDING,
	SK8_JOB_RUNNING,   /* CONFIGURING included */
	SK8_JOB_SUSPENDED,
	SK8_JOB_COMPLETED, /* this and all below are ends */
	SK8_JOB_CANCELLED,
	SK8_JOB_FAILED,
	SK8_JOB_TIMEOUT,
	SK8_JOB_NODE_FAIL,
	SK8_JOB_PREEMPTED,
	SK8_JOB_OUT_OF_MEMORY,
	SK8_JOB_OTHER_END  /* DEADLINE, BOOT_FAIL, REVOKED ... */
};

/*
 * So much of one GRES on one node. Of what has devices (File= in gres.conf) these are their
 * indices there, each once; if there are fewer than count, the others are not known. Of a
 * shared one (shard, mps) an entry is of one device at most, and count is what is taken of it.
 */
struct sk8_gres {
	const char *name;         /* "gpu" */
	const char *type;         /* "a100"; "" = it has none, or any */
	uint64_t count;
	uint32_t device_count;
	const uint16_t *devices;
};

/* One of our jobs, as a hook or a scan saw it. */
struct sk8_job {
	uint32_t job_id;
	int64_t submit_time;      /* with job_id it names the job for ever: ids are reused after a crash */
	const char *mark;         /* admin_comment */
	enum sk8_job_state state;
	bool held;                /* pending with priority 0 */
	const char *reason;       /* Slurm's reason word ("Priority", "Resources", ...) or "" */
	const char *partition;
	const char *excluded_nodes; /* ExcNodeList as it is now: an administrator may have set it; "" = none */
	uint32_t priority;
	int64_t start_time;       /* expected if pending, else real; SK8_NO_TIME if unknown */
	int64_t end_time;
	int64_t preempt_end;      /* running, and Slurm preempts it: when its grace is over; else SK8_NO_TIME */
	int64_t accrue_time;      /* since when it gains priority by age; SK8_NO_TIME: it does not */
	uint32_t given_priority;  /* that Slurm does not compute anew (by age, for example); 0: it does */
	uint32_t exit_code;       /* wait status */
	uint32_t ended_by;        /* uid that cancelled it, or SK8_NO_UID */
	bool ended_by_us;         /* by sk8_slurm_ops.end: its comment is in system_comment */
	const char *node;         /* running or ended: its one node, else "" */
	uint32_t core_count;      /* running: the cores it holds there, ... */
	const uint16_t *cores;    /* ... as Slurm's abstract core index on that node */
	uint64_t memory_mb;       /* running: what Slurm counts for it on that node */
	uint32_t gres_count;      /* running: what it has of these there */
	const struct sk8_gres *gres;
};

/* A node, as far as placing pods needs it. */
struct sk8_node {
	const char *name;
	uint32_t cpus, cores, threads_per_core;
	uint32_t sockets, cores_per_socket; /* of all its cores, whichever jobs can have; 0 = not known */
	uint64_t memory_mb;
	bool usable;              /* not DOWN, DRAIN, FAIL, FUTURE, not answering */
	bool drain, down, fail;   /* why Slurm gives it no job: any of these, ... */
	bool maint;               /* ... or a reservation for maintenance */
	bool asleep;              /* power saving: down, or on its way there or back */
	const char *reason;       /* Slurm's, "" = none */
	uint32_t reason_uid;      /* who gave it, or SK8_NO_UID */
	uint32_t job_count;       /* jobs that run or end there, of everybody */
	const char *features, *active_features; /* comma lists, "" = none */
	uint32_t gres_count;      /* what jobs there can have, by name and type; no devices */
	const struct sk8_gres *gres;
	/* What jobs that run or are suspended have there, of everybody; each_node() only, but for GRES. */
	uint32_t used_cores;
	uint64_t used_memory_mb;
	uint32_t used_gres_count; /* by name; no types, no devices */
	const struct sk8_gres *used_gres;
};

enum sk8_node_action {
	SK8_NODE_DRAIN,           /* no new jobs; those that run go on */
	SK8_NODE_DOWN,            /* drain, and they are ended or requeued as on any node that is DOWN */
	SK8_NODE_RESUME           /* takes back one of the above */
};

/* What becomes of a node; nothing unless it is as the caller believes. */
struct sk8_node_change {
	const char *node;
	enum sk8_node_action action;
	const char *reason;       /* drain, down: why, for people */
	const char *expected;     /* the reason that SlurmUser gave it, and that it has now; "" = nobody
				   * keeps jobs away from it (resume always expects one) */
};

/* Features of a node; nothing unless they are as the caller believes. Comma lists, "" = none. */
struct sk8_feature_change {
	const char *node;
	const char *expected, *expected_active;
	const char *features, *active; /* active: part of features, and what --constraint finds */
};

/* What to make a placeholder job from. Empty string or 0: leave to Slurm's default. */
struct sk8_submit {
	const char *mark;
	const char *job_name;
	uint32_t uid, gid;
	const char *account, *partition, *qos, *reservation, *wckey, *comment;
	const char *features, *licenses;
	const char *tres_per_node;    /* "gpu:2,foo:1": names and counts; written as this release wants it */
	uint32_t cpus;                /* hardware threads, >= 1 */
	uint64_t memory_mb;           /* per node; 0: the partition's default */
	uint32_t time_limit_minutes;  /* 0: the partition's default */
	const char *excluded_nodes;   /* as ExcNodeList, n[1-3],n7; or "" */
	const char *required_node;    /* adoption: there and now, whoever waits, or nothing is made; else "" */
	bool held;
	int32_t nice_set, nice;      /* nice_set: 0 or 1; nice with Slurm's NICE_OFFSET not added */
	int64_t begin_time;           /* or SK8_NO_TIME */
	int64_t accrue_time;          /* of the job in whose place it is made, or SK8_NO_TIME */
	uint32_t given_priority;      /* of that job, or 0 */
};

/* text: why it failed, in one sentence without a full stop; of a pending job Slurm's
 * reason ("Priority"). Owned by the struct. */
struct sk8_outcome {
	int rc;                       /* 0, or Slurm's error number */
	bool fatal;                   /* no point in trying the same again; false if a job was made */
	uint32_t job_id;              /* submit: 0 = no job was made */
	int64_t submit_time;
	bool running;                 /* submit: started at once */
	bool told;                    /* end_native: only that, so far; ask again, told, when its word has come */
	char text[256];
};

/* How to end a job. */
struct sk8_end {
	uint32_t job_id;
	int64_t submit_time;
	const char *mark;             /* job_id, submit_time and mark must all fit, else nothing is done */
	enum sk8_job_state state;     /* COMPLETED, FAILED: by exit_code; TIMEOUT; OUT_OF_MEMORY; CANCELLED; NODE_FAIL; PREEMPTED */
	uint32_t exit_code;           /* wait status: 7 << 8 is exit 7, 9 is signal 9 */
	const char *comment;          /* added to the job's system comment after SK8_END_COMMENT ("" = none) */
	const char *node;             /* where the pod ran, "" = do not ask: a job that Slurm has as pending is
				       * started there first; if that fails nothing is done (fatal is false) */
};

/* What a job has on one node. */
struct sk8_share {
	const char *node;
	uint32_t cpus;            /* hardware threads of its cores */
	uint64_t memory_mb;       /* 0: Slurm does not count memory */
	uint32_t gres_count;
	const struct sk8_gres *gres;
	uint32_t core_count;
	const uint16_t *cores;    /* of the node, as in sk8_mask */
};

/* A job of Slurm's own: no pod stands behind it, its processes run on nodes. */
struct sk8_native_job {
	uint32_t job_id;
	int64_t submit_time;
	uint32_t user_id, group_id;
	const char *account;
	const char *image;        /* of the container that its user wants (--k8s-image), any text; "" = none */
	const char *pod_template; /* --k8s-template: the same */
	const char *service_account; /* --k8s-service-account: the same */
	bool exclusive;           /* it asks for the feature k8s.exclusive: its nodes without others' pods */
	bool requeues;            /* a batch job that may be requeued */
	bool ending;              /* processes may be left on the nodes below, and on no other */
	uint32_t share_count;
	const struct sk8_share *shares;
};

/* How a job of Slurm's own that runs is ended. */
struct sk8_native_end {
	uint32_t job_id;
	int64_t submit_time;      /* both must fit, else nothing is done */
	bool requeue;             /* it is queued again, or cancelled if it cannot be; else it is cancelled */
	bool told;                /* who waits for it has been told: now it ends */
	const char *comment;      /* why: one sentence for its user, put into its system comment */
};

/* A job in the gate, or one of ours that runs, gets these devices of a GRES on a node, instead of those that it has of it there. */
struct sk8_device_change {
	uint32_t job_id;
	int64_t submit_time;      /* both must fit, else nothing is done */
	const char *node, *gres;
	uint32_t device_count;
	const uint16_t *devices;  /* as in struct sk8_gres; as many as it has */
	uint32_t from_job;        /* 0: none. Else a job of ours that runs there and gets as many in exchange for those it has */
	int64_t from_submit_time;
};

/* A job in the gate is launched, or goes back to where it came from. */
struct sk8_gate_answer {
	uint32_t job_id;
	bool open;
	uint32_t delay;           /* not open: a batch job does not start again before so many seconds */
	const char *why;          /* not open: one sentence for srun and salloc; "" = none */
};

/*
 * Implemented by sk8_slurmctld.so. Only our Slurm thread calls these; all but
 * active(), *_update(), lock() and answer_gate() only between lock() and unlock().
 */
struct sk8_slurm_ops {
	/* this controller is in charge: reconfigure was seen, no shutdown has begun. Takes no lock. */
	bool (*active)(void);
	int64_t (*last_job_update)(void);
	int64_t (*last_node_update)(void);

	/* write: conf R, job W, node W, part R, fed R; else job R, node R, part R. May wait for seconds. */
	void (*lock)(bool write);
	/* changed: jobs were made, ended or updated, or masks went: save state and wake the scheduler after unlocking.
	 * masks: they are others than when this was said last: who asks for nodes gets new numbers, backfill looks again. */
	void (*unlock)(bool write, bool changed, bool masks);
	/* A turn of backfill has begun and not ended. It lets others have the locks meanwhile, and may not hear of what
	 * they change: it looks for stamps as late as the second in which it ended. Takes no lock. */
	bool (*in_backfill)(void);

	/* A site's job_submit plugins see the job as sent by its user. The caller sets what
	 * sk8_submitting() returns around it. A job that Slurm refuses keeps no mark. */
	void (*submit)(const struct sk8_submit *s, struct sk8_outcome *out);       /* write */
	/* A pending job of ours whose pod runs on that node already: it starts there now, whoever
	 * waits. It is bound to the node even if it cannot start (rc). */
	void (*start)(uint32_t job_id, int64_t submit_time, const char *mark, const char *node,
		      struct sk8_outcome *out);                                    /* write */
	/* A job that never ran becomes CANCELLED, whatever state says. Also for RUNNING
	 * and SUSPENDED ones; ESLURM_ALREADY_DONE if it has ended or is ending. */
	void (*end)(const struct sk8_end *e, struct sk8_outcome *out);             /* write */
	/* change the excluded nodes of a pending job of ours; never anything an administrator may have set */
	void (*exclude)(uint32_t job_id, int64_t submit_time, const char *mark,
			const char *excluded_nodes, struct sk8_outcome *out);      /* write */
	/* Slurm ends a job that it preempts when its grace is over: not before what a kubelet
	 * needs to end the pod, which has all of that grace. Again changes nothing. */
	void (*spare)(uint32_t job_id, int64_t submit_time, const char *mark,
		      struct sk8_outcome *out);                                    /* write */
	/* false: no such job (any more). Pointers in *job are valid until unlock(). */
	bool (*find)(uint32_t job_id, struct sk8_job *job);                        /* read */
	/* every job that carries our mark, any state */
	void (*each_job)(void (*f)(void *arg, const struct sk8_job *job), void *arg); /* read */
	void (*each_node)(void (*f)(void *arg, const struct sk8_node *node), void *arg); /* read */
	/* false: no such node. Pointers in *node are valid until unlock(), gres only
	 * until another node is looked at. */
	bool (*find_node)(const char *name, struct sk8_node *node);                /* read */
	/* Does Slurm power nodes down that have no jobs (SuspendProgram)? No lock. */
	bool (*saves_power)(void);
	/* No node counts as idle that pods hold something of, but for pods that belong to the node: SuspendTime begins anew, and
	 * POWER_DOWN waits for the pods' end, of which this must be told by one more call. */
	void (*keep_masked_nodes_up)(void);                                        /* write */
	/* ESLURM_INVALID_NODE_STATE: it is not as expected, somebody was faster. By SlurmUser. */
	void (*change_node)(const struct sk8_node_change *c, struct sk8_outcome *out); /* write */
	/* ESLURM_INVALID_NODE_STATE: as change_node. Pending jobs for which there was no node get another turn. */
	void (*change_features)(const struct sk8_feature_change *c, struct sk8_outcome *out); /* write */
	/* jobs of Slurm's own that run, are suspended, or end. Pointers are valid during f */
	void (*each_native)(void (*f)(void *arg, const struct sk8_native_job *job), void *arg); /* read */
	/* f is not called: there is no such job, or no process of it is left */
	void (*with_native)(uint32_t job_id, void (*f)(void *arg, const struct sk8_native_job *job),
			    void *arg);                                            /* read */
	/* Have all nodes of that job registered since slurmctld started? A step on one that has not waits for as long as srun does
	 * (SlurmctldTimeout). true: also of a job that does not run (any more). */
	bool (*nodes_registered)(uint32_t job_id);                                 /* read */
	/* running: it was queued again. told: it has not ended, its srun or salloc is told first. ESLURM_ALREADY_DONE if it has ended
	 * or is ending. */
	void (*end_native)(const struct sk8_native_end *e, struct sk8_outcome *out); /* write */
	/* refused: another job than that of the exchange has one of them, or they are of another type */
	void (*set_devices)(const struct sk8_device_change *c, struct sk8_outcome *out); /* write */
	/* Of one that is to be refused, before that: srun or salloc is told, and may be gone before the word has come if the
	 * answer follows at once. false: nobody is told. */
	bool (*tell_refusal)(const struct sk8_gate_answer *answer);                /* read */
	/* without lock(); takes slurmctld's locks itself */
	void (*answer_gate)(const struct sk8_gate_answer *answer);
};

/* What the process that hosts us gives. Pointers must stay valid for ever. */
struct sk8_host {
	void (*log)(enum sk8_log_level level, const char *text);
	/* the most that it logs now; asked for each line, so it only reads a variable */
	enum sk8_log_level (*log_level)(void);
	const char *config_path;      /* slurm-k8s.yaml */
	const char *state_dir;        /* StateSaveLocation */
	const char *slurm_cluster;    /* ClusterName */
	const char *slurm_version;
	uint32_t slurm_uid;           /* SlurmUser: who may own the files we read */
	const struct sk8_slurm_ops *ops;
};

/* ---- lifetime (any plugin's init/fini; slurmctld only) ---- */

/* Counts users; the first one creates the runtime, parked, without threads. Never
 * fails because of Kubernetes or the configuration. 0, or -1 when out of memory. */
SK8_API int sk8_runtime_acquire(const struct sk8_host *host);
SK8_API void sk8_runtime_release(void);

/* ---- events, from the select hooks ---- */

/* Loads the saved ledger (the one read from disk in a hook). goes_on: after a shutdown that was called off; the jobs are the same. */
SK8_API void sk8_on_node_init(bool goes_on);
SK8_API void sk8_on_reconfigure(void); /* this controller is active: reads the configuration, (re)starts the threads */
SK8_API void sk8_on_shutdown(void);    /* state_save with shutdown under way: stop writing, wait <= 1 s */
/* nodeinfo_set of a job with our mark, after the stock call; also the replay for running jobs at start.
 * And before a running one is suspended, after one is resumed: its state says which. */
SK8_API void sk8_on_job_start(const struct sk8_job *job);
/* job_fini of a job with our mark, BEFORE the stock call: what the pod holds is masked when this returns */
SK8_API void sk8_on_job_fini(const struct sk8_job *job);

/* ---- jobs of Slurm's own, that have pods ---- */

/* prolog_slurmctld of a job without our mark. true: it waits until sk8_slurm_ops.answer_gate(). */
SK8_API bool sk8_on_gate(const struct sk8_native_job *job);
/* job_fini of such a job: its processes end. If it is in the gate it is answered. */
SK8_API void sk8_on_native_fini(uint32_t job_id, int64_t submit_time);
/* Such a job has given a node back while it runs: with_native() is asked which ones it still has. */
SK8_API void sk8_on_native_resized(uint32_t job_id, int64_t submit_time);

/* ---- masks, for job_test ---- */

/* What pods without a running job of their own hold on one node. */
struct sk8_mask {
	const char *node;
	uint32_t core_count;
	const uint16_t *cores;   /* these very cores, */
	uint32_t more_cores;     /* and so many others, chosen by the hook, */
	uint64_t milli_cpu;      /* and those of foreign pods: 1000 = one hardware thread */
	uint64_t memory_mb;
	bool whole;              /* the whole node: its state is not known yet */
	/* Of foreign pods that belong to the node (DaemonSets, static pods), not counted above:
	 * to be hidden as far as it does not fit into what pods may have there (allocatable)
	 * and Slurm does not offer to jobs (specialised cores, MemSpecLimit). */
	uint64_t overhead_milli_cpu, overhead_mb;
	uint64_t allocatable_milli_cpu, allocatable_mb; /* 0: not known */
	/* All the pods that the node can have are there: nothing that needs one more may start, be it a job for
	 * a pod or one of Slurm's own that gets one there (sharing: mixed); but for those with at most so many
	 * CPUs and no GRES, which share a pod that is there. */
	bool full_for_pods, full_for_jobs;
	uint32_t full_but_cpus;
	uint64_t version;        /* another number = another content; never used twice */
	/* Several entries may be of one GRES. Devices that are not known are chosen by the hook, from
	 * those that no job has. */
	uint32_t gres_count;
	const struct sk8_gres *gres;
	/* Of a job that asks for k8s.exclusive, and waits in the gate until pods are gone: the mask without those.
	 * NULL: this one. Of this one the node, and no further such mask. */
	const struct sk8_mask *exclusive;
	/* Jobs of Slurm's own whose pods there hold some of it, sorted: all of what one had that has ended. some_jobs: and
	 * such of which it is not known whose part is meant, since they share a pod. */
	uint32_t job_count;
	const uint32_t *jobs;
	bool some_jobs;
};
struct sk8_masks {
	uint64_t generation;     /* another number = another content */
	size_t count;
	const struct sk8_mask *mask; /* sorted by node name, at most one per node */
};
/* NULL when there is none (one atomic load). Else immutable until put. */
SK8_API const struct sk8_masks *sk8_masks_get(void);
SK8_API void sk8_masks_put(const struct sk8_masks *m);

/* ---- job_submit ---- */

/* Is this thread inside our own sk8_slurm_ops.submit? Only then may a job carry our mark. */
SK8_API bool sk8_submitting(void);
/* Does this admin_comment (NULL allowed) claim to be one of ours? */
SK8_API bool sk8_is_mark(const char *admin_comment);
/* Do jobs of this partition get tokens for their CPUs and memory? By slurm-k8s.yaml. */
SK8_API bool sk8_completes_tokens(const char *partition);

/* ---- the agent on compute nodes (slurmd only) ---- */

/* A job as slurmctld knows it. Strings are valid during the call. */
struct sk8_agent_job {
	const char *mark;  /* its admin_comment; may be NULL */
	int64_t submit_time; /* as in sk8_native_job */
	bool running;      /* and not completing */
	const char *cores; /* of this node, "0-3,8"; empty: it has none here */
	bool exclusive;    /* nobody else gets its nodes (--exclusive, OverSubscribe=EXCLUSIVE) */
};
/* What slurmd gives. Pointers must stay valid for ever. */
struct sk8_agent_host {
	void (*log)(enum sk8_log_level level, const char *text);
	enum sk8_log_level (*log_level)(void);
	const char *config_path; /* slurm-k8s-node.yaml */
	const char *node;        /* its name in Slurm */
	uint32_t uid;            /* who besides root may own the files we read */
	/* Asks slurmctld, and waits for it. f is called if there is such a job. NULL, or why it did not
	 * answer: a sentence that is valid for ever. */
	const char *(*find_job)(uint32_t id, void (*f)(void *arg, const struct sk8_agent_job *job), void *arg);
	/* Calls f for each step on this node with the id of its job. Reads slurmd's spool folder, asks nobody. */
	void (*steps_here)(void (*f)(void *arg, uint32_t job_id), void *arg);
};
/* Reads the configuration, starts threads. Without a configuration nothing: no error. */
SK8_API void sk8_agent_start(const struct sk8_agent_host *host);
/* Its threads end, at once unless slurmctld does not answer: within 16 seconds. True: it ran. */
SK8_API bool sk8_agent_stop(void);

#ifdef __cplusplus
}
#endif

#endif
