/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * mounts.h - folders of the node in a container: /proc, and with --k8s-mount-home the user's.
 *
 * The user's are opened as the task's user (as_user.h).
 */
#ifndef SK8_SPANK_MOUNTS_H
#define SK8_SPANK_MOUNTS_H

#include <stdbool.h>
#include <slurm/spank.h>

/* A copy of the node's /proc, as a file descriptor; -1: Linux before 5.2. On the node, as root. */
extern int sk8_open_proc(void);
/*
 * Puts it over the container's, in which a task, that is no process of its, finds not even itself; closes it. In a mount namespace
 * that is this task's alone from then on, in the container, as root. false: errno says why.
 */
extern bool sk8_mount_proc(int proc);
/* A copy of the mount at this folder, as a file descriptor; -1: errno says why. On the node, as root. */
extern int sk8_open_folder(spank_t spank, const char *path);
/* Puts it where it was, in a mount namespace that is this task's alone from then on; closes it. In the container, as root. */
extern bool sk8_mount_folder(int folder, const char *path);
/* Makes the folder if it is not there, in the container's own file system only, not in volumes. In the container, as root. */
extern void sk8_make_folder(const char *path);

#endif
