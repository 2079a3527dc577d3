/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mounts.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "plugins/spank/as_user.h"
#include "plugins/spank/mounts.h"

/* Linux 5.2; glibc has had them since 2.36. Numbers are the same on all architectures (asm-generic/unistd.h). */
#ifndef SYS_open_tree
# define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
# define SYS_move_mount 429
#endif
/* OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH */
enum { CLONE_OF_TREE = 1, MOVE_FROM_FD = 4 };

/* What is mounted in it (binfmt_misc) is none of a container's. */
extern int sk8_open_proc(void)
{
	return (int) syscall(SYS_open_tree, AT_FDCWD, "/proc", CLONE_OF_TREE | O_CLOEXEC);
}

extern int sk8_open_folder(spank_t spank, const char *path)
{
	const int folder = sk8_open_as_user(spank, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int copy, failed;

	if (folder < 0)
		return -1;
	copy = (int) syscall(SYS_open_tree, folder, "",
			     CLONE_OF_TREE | AT_EMPTY_PATH | AT_RECURSIVE | O_CLOEXEC);
	failed = errno;
	close(folder);
	errno = failed;
	return copy;
}

/* Others of the container do not see what is mounted from now on. */
static bool alone(void)
{
	static bool done;	/* a task's process has one thread */

	return done || (done = !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

/*
 * The copy of a folder is a peer of the node's mount that it was made of: what is mounted in it next, as the image's links
 * and its user's names will have it, would be mounted on the node, too. What the node mounts later still comes through.
 */
static bool keep_from_node(void)
{
	return !mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
}

extern bool sk8_mount_folder(int folder, const char *path)
{
	bool good = alone();

	if (good) {
		sk8_make_folder(path);
		good = !syscall(SYS_move_mount, folder, "", AT_FDCWD, path, MOVE_FROM_FD) && keep_from_node();
	}
	if (good)
		close(folder);
	return good;
}

extern bool sk8_mount_proc(int proc)
{
	if (proc >= 0)
		return sk8_mount_folder(proc, "/proc");
	/* Linux before 5.8 has one /proc for all of a PID namespace: this is the node's, hidepid included */
	return alone() && !mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

extern void sk8_make_folder(const char *path)
{
	char name[PATH_MAX];
	struct stat top, here;
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if ((at < 0) || fstat(at, &top)) {
		if (at >= 0)
			close(at);
		return;
	}
	while (*(path += strspn(path, "/"))) {
		const size_t length = strcspn(path, "/");
		int next;

		if (length >= sizeof(name))
			break;
		memcpy(name, path, length);
		name[length] = '\0';
		path += length;
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if ((next < 0) && (errno == ENOENT) && !fstat(at, &here) && (here.st_dev == top.st_dev) &&
		    (!mkdirat(at, name, 0755) || (errno == EEXIST)))
			next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			break;
		close(at);
		at = next;
	}
	close(at);
}
