/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * shutdown.c - notices that slurmctld shuts down, where no hook says so: since 26.05
 * a select plugin is not asked to save its state.
 *
 * A backup that gives way lives on: a thread looks at shutdown_time ten times a second.
 * A reconfigure as a service forks another slurmctld, which reads what we saved, while
 * this one still runs: nothing may be written once it has begun, so that is waited for
 * in the fork. (With -D it is an exec, which ends all threads.) A slurmctld that ends
 * is often faster than the thread: exit() waits for the end of ours as well.
 */
#include "lib/slurm/slurmctld.h"

#ifdef SK8_NO_STATE_SAVE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void (*tell)(void);	/* does nothing if there is nothing to end */
static bool watched;
static pid_t here;	/* forks of it have none of our threads, and some end by exit(), too */

static void before_fork_or_exit(void)
{
	if (slurmctld_config.shutdown_time && (getpid() == here))
		tell();
}

static void *watch(void *arg)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };

	(void) arg;
	while (!slurmctld_config.shutdown_time)
		(void) nanosleep(&pause, NULL);
	__atomic_store_n(&watched, false, __ATOMIC_RELEASE);
	tell();
	return NULL;
}

extern void sk8_watch_shutdown(void (*f)(void))
{
	sigset_t all, old;
	pthread_t thread;
	bool first;

	if (__atomic_exchange_n(&watched, true, __ATOMIC_ACQ_REL))
		return;
	first = !tell;
	here = getpid();
	tell = f;
	if (first) {
		(void) pthread_atfork(before_fork_or_exit, NULL, NULL);
		(void) atexit(before_fork_or_exit);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watch, NULL)) {
		error("slurm-k8s: cannot start a thread: it goes on until this slurmctld has ended");
		__atomic_store_n(&watched, false, __ATOMIC_RELEASE);
	} else {
		(void) pthread_setname_np(thread, "sk8-shutdown");
		(void) pthread_detach(thread);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
#else
extern void sk8_watch_shutdown(void (*f)(void))
{
	(void) f;	/* select_p_state_save() tells */
}
#endif
