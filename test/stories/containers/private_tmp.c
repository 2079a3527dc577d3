/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* private_tmp.c - a plugin as sites have them: tasks have mounts of their own, with an empty /tmp, and a variable that says so. */
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <slurm/spank.h>

SPANK_PLUGIN(private_tmp, 1);

extern int slurm_spank_task_init_privileged(spank_t spank, int ac, char *argv[])
{
	(void) ac;
	(void) argv;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("private", "/tmp", "tmpfs", 0, "mode=1777") || mkdir("/tmp/private", 0755)) {
		slurm_error("private_tmp: %m");
		return -1;
	}
	return spank_setenv(spank, "PRIVATE_TMP", "yes", 1) == ESPANK_SUCCESS ? 0 : -1;
}
