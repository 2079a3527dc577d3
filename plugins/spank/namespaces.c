/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* namespaces.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <slurm/spank.h>
#include "plugins/spank/namespaces.h"

/* In the order in which they are entered: with the mounts /proc is the container's. */
static const struct {
	const char *name;	/* in /proc/PID/ns */
	int type;
} namespaces[SK8_NAMESPACES] = {
	[SK8_NETWORK] = { "net", CLONE_NEWNET },
	[SK8_IPC] = { "ipc", CLONE_NEWIPC },
	[SK8_MOUNTS] = { "mnt", CLONE_NEWNS },
};

extern long sk8_process_of(const char *cgroup_procs, long wanted)
{
	FILE *file = fopen(cgroup_procs, "re");
	long pid, found = 0;

	if (!file)
		return 0;
	while (!found && (fscanf(file, "%ld", &pid) == 1))
		if ((pid > 0) && (!wanted || (pid == wanted)))
			found = pid;
	fclose(file);
	return found;
}

extern bool sk8_open_namespaces(long pid, bool network, bool ipc, struct sk8_namespaces *which)
{
	const bool wanted[SK8_NAMESPACES] = { [SK8_NETWORK] = network, [SK8_IPC] = ipc, [SK8_MOUNTS] = true };
	bool all = true;

	for (int i = 0; i < SK8_NAMESPACES; i++) {
		char path[64];

		which->fd[i] = -1;
		if (!wanted[i])
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/ns/%s", pid, namespaces[i].name);
		which->fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		all = all && (which->fd[i] >= 0);
	}
	return all;
}

/* A program of a sidecar is its user's: in a user namespace of its own it could have mounts of its own, in which root must
 * not walk about. */
static bool is_the_runtimes(int fd)
{
	const int owner = ioctl(fd, NS_GET_USERNS);
	struct stat theirs, ours;
	bool same;

	if (owner < 0)
		return false;
	same = !fstat(owner, &theirs) && !stat("/proc/self/ns/user", &ours) && (theirs.st_dev == ours.st_dev) &&
		(theirs.st_ino == ours.st_ino);
	close(owner);
	return same;
}

/* Or a task would run on the node and look as if it did not. */
static bool is_the_nodes(int fd)
{
	struct stat theirs, ours, nodes;

	return fstat(fd, &theirs) || stat("/proc/self/ns/mnt", &ours) || stat("/proc/1/ns/mnt", &nodes) ||
		(theirs.st_ino == ours.st_ino) || (theirs.st_ino == nodes.st_ino);
}

extern bool sk8_are_the_runtimes(const struct sk8_namespaces *which)
{
	if (is_the_nodes(which->fd[SK8_MOUNTS]))
		return false;
	for (int i = 0; i < SK8_NAMESPACES; i++)
		if ((which->fd[i] >= 0) && !is_the_runtimes(which->fd[i]))
			return false;
	return true;
}

extern bool sk8_join_namespaces(const struct sk8_namespaces *which)
{
	for (int i = 0; i < SK8_NAMESPACES; i++)
		if ((which->fd[i] >= 0) && setns(which->fd[i], namespaces[i].type))
			return false;
	return true;
}

extern bool sk8_enter_namespaces(const struct sk8_namespaces *which)
{
	/* The image is its user's choice: no setuid program in it may make him root of the node. Between here and the
	 * exec as the user nothing may load a library or look up a name, which would be the image's. */
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && sk8_join_namespaces(which) && !chdir("/"))
		return true;
	slurm_error("slurm-k8s: cannot enter the job's container: %s", strerror(errno));
	return false;
}

extern void sk8_close_namespaces(struct sk8_namespaces *which)
{
	for (int i = 0; i < SK8_NAMESPACES; i++)
		if (which->fd[i] >= 0)
			close(which->fd[i]);
}
