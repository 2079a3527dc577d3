/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * hook_clock.c - preloaded into slurmctld: how long each call from a hook into
 * libsk8core took, and whether it waited.
 *
 * Our symbols come before those of libsk8core, which Slurm's plugins load later.
 * Wall time alone would blame a hook for other processes on a busy machine, so the
 * thread's CPU time and its voluntary context switches (a read, a sleep) are taken,
 * too, and what it waits in pthread_mutex_lock() is counted apart: there a hook waits
 * for whom the kernel took the processor from while he held the lock. Results are in
 * a mapped file per process in the folder that SK8_HOOK_CLOCK names: they outlive
 * SIGKILL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "lib/sk8_abi.h"

struct row {
	char name[32];
	uint64_t count;
	uint64_t wall, cpu;	/* longest call, in ns */
	uint64_t waited;	/* longest call that waited voluntarily, in ns, without what it waited for mutexes */
	uint64_t locked;	/* longest wait of one call for mutexes, in ns */
	uint64_t slow;		/* calls of more than SLOW ns of CPU time */
	uint64_t late;		/* calls that waited voluntarily, of more than SLOW ns without mutexes */
	uint64_t contended;	/* calls that waited for mutexes more than SLOW ns */
};

#define SLOW 1000000

enum { ON_JOB_START, ON_JOB_FINI, ON_RECONFIGURE, MASKS_GET, MASKS_PUT, IS_MARK, ROWS };
static const char *const names[ROWS] = {
	"sk8_on_job_start", "sk8_on_job_fini", "sk8_on_reconfigure",
	"sk8_masks_get", "sk8_masks_put", "sk8_is_mark",
};

static struct row fallback[ROWS];
static struct row *rows = fallback;

__attribute__((constructor)) static void map_file(void)
{
	const char *folder = getenv("SK8_HOOK_CLOCK");
	char path[4096];
	int fd;
	void *at;

	if (!folder || strcmp(program_invocation_short_name, "slurmctld"))
		return;
	snprintf(path, sizeof(path), "%s/%d", folder, (int) getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (!ftruncate(fd, sizeof(fallback))) {
		at = mmap(NULL, sizeof(fallback), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED)
			rows = at;
	}
	close(fd);
	for (int i = 0; i < ROWS; i++)
		snprintf(rows[i].name, sizeof(rows[i].name), "%s", names[i]);
}

static void *real(int which)
{
	static void *found[ROWS];
	void *core;

	if (!found[which]) {
		core = dlopen("libsk8core.so.0", RTLD_LAZY | RTLD_NOLOAD);
		found[which] = core ? dlsym(core, names[which]) : NULL;
		if (!found[which]) {
			fprintf(stderr, "hook_clock: no %s in libsk8core\n", names[which]);
			abort();
		}
	}
	return found[which];
}

struct reading {
	uint64_t wall, cpu;
	long waits;
};

/* What the hook that this thread is in has waited for mutexes so far. */
static __thread struct {
	bool inside;
	uint64_t wall;
	long waits;
} locks;

static uint64_t ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static struct reading now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (struct reading) { ns(CLOCK_MONOTONIC), ns(CLOCK_THREAD_CPUTIME_ID), usage.ru_nvcsw };
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*lock)(pthread_mutex_t *);
	struct reading from, to;
	int rc;

	if (!lock)
		*(void **) &lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (!locks.inside)
		return lock(mutex);
	if (!pthread_mutex_trylock(mutex))
		return 0;
	from = now();
	rc = lock(mutex);
	to = now();
	locks.wall += to.wall - from.wall;
	locks.waits += to.waits - from.waits;
	return rc;
}

static struct reading enter(void)
{
	locks.wall = 0;
	locks.waits = 0;
	locks.inside = true;
	return now();
}

static void raise_to(uint64_t *at, uint64_t value)
{
	uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (seen < value &&
	       !__atomic_compare_exchange_n(at, &seen, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void count_if(uint64_t *at, bool is)
{
	__atomic_add_fetch(at, is, __ATOMIC_RELAXED);
}

static void note(int which, struct reading from)
{
	const struct reading to = now();
	const uint64_t wall = to.wall - from.wall, cpu = to.cpu - from.cpu;
	const bool waited = to.waits - from.waits > locks.waits;
	struct row *row = &rows[which];

	locks.inside = false;
	count_if(&row->count, true);
	raise_to(&row->wall, wall);
	raise_to(&row->cpu, cpu);
	raise_to(&row->locked, locks.wall);
	count_if(&row->slow, cpu > SLOW);
	count_if(&row->contended, locks.wall > SLOW);
	if (!waited)
		return;
	raise_to(&row->waited, wall - locks.wall);
	count_if(&row->late, wall - locks.wall > SLOW);
}

void sk8_on_job_start(const struct sk8_job *job)
{
	void (*f)(const struct sk8_job *) = real(ON_JOB_START);
	struct reading from = enter();

	f(job);
	note(ON_JOB_START, from);
}

void sk8_on_job_fini(const struct sk8_job *job)
{
	void (*f)(const struct sk8_job *) = real(ON_JOB_FINI);
	struct reading from = enter();

	f(job);
	note(ON_JOB_FINI, from);
}

void sk8_on_reconfigure(void)
{
	void (*f)(void) = real(ON_RECONFIGURE);
	struct reading from = enter();

	f();
	note(ON_RECONFIGURE, from);
}

const struct sk8_masks *sk8_masks_get(void)
{
	const struct sk8_masks *(*f)(void) = real(MASKS_GET);
	struct reading from = enter();
	const struct sk8_masks *found = f();

	note(MASKS_GET, from);
	return found;
}

void sk8_masks_put(const struct sk8_masks *m)
{
	void (*f)(const struct sk8_masks *) = real(MASKS_PUT);
	struct reading from = enter();

	f(m);
	note(MASKS_PUT, from);
}

bool sk8_is_mark(const char *admin_comment)
{
	bool (*f)(const char *) = real(IS_MARK);
	struct reading from = enter();
	bool is = f(admin_comment);

	note(IS_MARK, from);
	return is;
}
