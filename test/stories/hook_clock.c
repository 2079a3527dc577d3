/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * hook_clock.c - preloaded into slurmctld: how long each call from a hook into
 * libsk8core took, and whether it waited.
 *
 * Our symbols come before those of libsk8core, which Slurm's plugins load later.
 * Wall time alone would blame a hook for other processes on a busy machine, so the
 * thread's CPU time and its voluntary context switches (a lock, a read, a sleep)
 * are taken, too. Results are in a mapped file per process in the folder that
 * SK8_HOOK_CLOCK names: they outlive SIGKILL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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
	uint64_t waited;	/* longest call that waited voluntarily, in ns */
	uint64_t slow;		/* calls of more than SLOW ns of CPU time */
	uint64_t late;		/* calls that waited voluntarily, of more than SLOW ns */
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

static void raise_to(uint64_t *at, uint64_t value)
{
	uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (seen < value &&
	       !__atomic_compare_exchange_n(at, &seen, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void note(int which, struct reading from)
{
	struct reading to = now();

	__atomic_add_fetch(&rows[which].count, 1, __ATOMIC_RELAXED);
	raise_to(&rows[which].wall, to.wall - from.wall);
	raise_to(&rows[which].cpu, to.cpu - from.cpu);
	if (to.cpu - from.cpu > SLOW)
		__atomic_add_fetch(&rows[which].slow, 1, __ATOMIC_RELAXED);
	if (to.waits == from.waits)
		return;
	raise_to(&rows[which].waited, to.wall - from.wall);
	if (to.wall - from.wall > SLOW)
		__atomic_add_fetch(&rows[which].late, 1, __ATOMIC_RELAXED);
}

void sk8_on_job_start(const struct sk8_job *job)
{
	void (*f)(const struct sk8_job *) = real(ON_JOB_START);
	struct reading from = now();

	f(job);
	note(ON_JOB_START, from);
}

void sk8_on_job_fini(const struct sk8_job *job)
{
	void (*f)(const struct sk8_job *) = real(ON_JOB_FINI);
	struct reading from = now();

	f(job);
	note(ON_JOB_FINI, from);
}

void sk8_on_reconfigure(void)
{
	void (*f)(void) = real(ON_RECONFIGURE);
	struct reading from = now();

	f();
	note(ON_RECONFIGURE, from);
}

const struct sk8_masks *sk8_masks_get(void)
{
	const struct sk8_masks *(*f)(void) = real(MASKS_GET);
	struct reading from = now();
	const struct sk8_masks *found = f();

	note(MASKS_GET, from);
	return found;
}

void sk8_masks_put(const struct sk8_masks *m)
{
	void (*f)(const struct sk8_masks *) = real(MASKS_PUT);
	struct reading from = now();

	f(m);
	note(MASKS_PUT, from);
}

bool sk8_is_mark(const char *admin_comment)
{
	bool (*f)(const char *) = real(IS_MARK);
	struct reading from = now();
	bool is = f(admin_comment);

	note(IS_MARK, from);
	return is;
}
