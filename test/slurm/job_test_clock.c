/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * job_test_clock.c - preloaded into slurmctld: the processor time of each call of
 * select_p_job_test, of our plugin's and of Slurm's own, which is called in it.
 *
 * Slurm finds plugins' functions by dlsym(), so that is what stands in the way here. A line
 * for each call goes to the file that SK8_JOB_TEST_CLOCK names: "ours|stock MODE NANOSECONDS".
 * For x86-64 and AArch64, where a function may be called with more parameters than it has.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PARAMS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j
#define ARGS a, b, c, d, e, f, g, h, i, j
typedef int (*job_test_t)(PARAMS);

static job_test_t ours, stock;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static int timed(const char *whose, job_test_t job_test, PARAMS)
{
	const uint64_t begin = now();
	const int rc = job_test(ARGS);
	const uint64_t took = now() - begin;
	const char *path = getenv("SK8_JOB_TEST_CLOCK");
	const int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd >= 0) {
		dprintf(fd, "%s %ld %llu\n", whose, f & 0xff, (unsigned long long) took);
		close(fd);
	}
	return rc;
}

static int timed_ours(PARAMS)
{
	return timed("ours", ours, ARGS);
}

static int timed_stock(PARAMS)
{
	return timed("stock", stock, ARGS);
}

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);
	Dl_info about;
	void *found;

	if (!real) {
#ifdef __x86_64__
		real = (void *(*)(void *, const char *)) dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#else
		real = (void *(*)(void *, const char *)) dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#endif
		if (!real)
			abort();
	}
	found = real(handle, name);
	/* 22.05 loads all of its select plugins */
	if (!found || strcmp(name, "select_p_job_test") || !dladdr(found, &about) ||
	    !strstr(about.dli_fname, "/select_cons_tres.so"))
		return found;
	/* Slurm's own is where Slurm is; ours is in the folder of a stand, see stands/slurm.py install() */
	if (strstr(about.dli_fname, "/inst/plugins/")) {
		ours = (job_test_t) found;
		return (void *) timed_ours;
	}
	stock = (job_test_t) found;
	return (void *) timed_stock;
}
