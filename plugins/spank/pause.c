/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * pause.c - keeps the container of a job alive (lib/core/job_container.h), whatever image that is: mounted into
 * it from the node, so it is linked statically. Ends at SIGTERM.
 */
#include <signal.h>
#include <unistd.h>

static void end(int signal)
{
	(void) signal;
	_exit(0);
}

int main(void)
{
	/* the first process of a pid namespace has no default actions */
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGCHLD, SIG_IGN);
	for (;;)
		pause();
}
