/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* as_user.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "plugins/spank/as_user.h"

#ifndef SYS_openat2	/* Linux 5.6; the number is the same on all architectures (asm-generic/unistd.h) */
# define SYS_openat2 437
#endif
enum { NO_MAGIC_LINKS = 2 };	/* RESOLVE_NO_MAGICLINKS */

extern int sk8_open_as_user(spank_t spank, const char *path, int flags)
{
	gid_t root_groups[NGROUPS_MAX], *groups = NULL, gid;
	const int root_count = getgroups(NGROUPS_MAX, root_groups);
	/* A link below /proc leads past all folders, for whoever may trace that process: root's capability is still there. */
	const struct { uint64_t flags, mode, resolve; } how = {
		.flags = (uint64_t) flags, .resolve = NO_MAGIC_LINKS,
	};
	int count = 0, fd = -1, failed;
	uid_t uid;

	if ((root_count < 0) || (spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS) ||
	    (spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS) ||
	    (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS)) {
		errno = EINVAL;
		return -1;
	}
	if (setgroups(count, groups))
		return -1;
	setfsgid(gid);
	setfsuid(uid);	/* of another than root: takes the capabilities of files away, too */
	if (((uid_t) setfsuid(-1) == uid) && ((gid_t) setfsgid(-1) == gid))
		fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	failed = errno;
	setfsuid(0);
	setfsgid(0);
	if (setgroups(root_count, root_groups))
		abort();	/* never root with a user's groups, or the other way round */
	errno = failed;
	return fd;
}
