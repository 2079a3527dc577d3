/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * crash_trace.c - preloaded into a stand's slurmctld: where it crashed, to stderr, before it ends as it would have
 * without; and where each thread is that SIGRTMAX is sent to (Daemon.stacks() in process.py), of one that hangs.
 * Functions without a name are LIBRARY(+OFFSET), for addr2line.
 */
#define _GNU_SOURCE	/* gettid() */
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_FRAMES 64

static const int fatal_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

static void tell_place(const char *text, int length)
{
	void *frames[MOST_FRAMES];

	if (write(STDERR_FILENO, text, (size_t) length) == length)
		backtrace_symbols_fd(frames, backtrace(frames, MOST_FRAMES), STDERR_FILENO);
}

static void tell(int number, siginfo_t *info, void *context)
{
	char text[80];

	(void) context;
	tell_place(text, snprintf(text, sizeof(text), "crash of process %d: signal %d at address %p\n", (int) getpid(), number,
				  number == SIGABRT ? NULL : info->si_addr));
	(void) raise(number);	/* SA_RESETHAND: the end, with a core file where there would be one */
}

static void tell_thread(int number)
{
	char text[80];
	int saved_errno = errno;

	(void) number;
	tell_place(text, snprintf(text, sizeof(text), "stack of thread %d\n", (int) gettid()));
	errno = saved_errno;
}

__attribute__((constructor)) static void watch(void)
{
	struct sigaction action = { .sa_sigaction = tell, .sa_flags = (int) SA_RESETHAND | SA_SIGINFO };
	struct sigaction asked = { .sa_handler = tell_thread, .sa_flags = (int) SA_RESTART };
	void *first[1];

	(void) backtrace(first, 1);	/* loads what it needs now, not in a process that is broken */
	for (size_t i = 0; i < sizeof(fatal_signals) / sizeof(*fatal_signals); i++)
		(void) sigaction(fatal_signals[i], &action, NULL);
	(void) sigaction(SIGRTMAX, &asked, NULL);
}
