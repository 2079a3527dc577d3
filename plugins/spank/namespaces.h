/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * namespaces.h - those of a container that a task enters: its mounts always; by option the network of its pod, and its IPC
 * (POSIX and System V). Processes, users and cgroups stay the node's: Slurm counts, signals and waits for them.
 */
#ifndef SK8_SPANK_NAMESPACES_H
#define SK8_SPANK_NAMESPACES_H

#include <stdbool.h>

enum sk8_namespace { SK8_NETWORK, SK8_IPC, SK8_MOUNTS, SK8_NAMESPACES };

struct sk8_namespaces {
	int fd[SK8_NAMESPACES];	/* -1: not wanted */
};

/* One of the processes that cgroup.procs names, as this pid namespace numbers them; wanted: that one, if it is there
 * still. 0: none */
extern long sk8_process_of(const char *cgroup_procs, long wanted);
/* Those of a process. false: it has ended. sk8_close_namespaces() in either case */
extern bool sk8_open_namespaces(long pid, bool network, bool ipc, struct sk8_namespaces *which);
/* Its runtime made them all, and not one of its programs. */
extern bool sk8_are_the_runtimes(const struct sk8_namespaces *which);
/* The calling thread. false: an error has told why; it may be in some of them */
extern bool sk8_enter_namespaces(const struct sk8_namespaces *which);
/* The same of namespaces from which the caller came: no image is in them. false: errno says why */
extern bool sk8_join_namespaces(const struct sk8_namespaces *which);
extern void sk8_close_namespaces(struct sk8_namespaces *which);

#endif
