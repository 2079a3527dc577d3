/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * as_user.h - what the plugin opens on the node for a task is opened as the task's user: what he may not reach there he does
 * not reach in a container either, also where the way leads through folders that are closed to him, or to root (NFS with
 * root_squash).
 */
#ifndef SK8_SPANK_AS_USER_H
#define SK8_SPANK_AS_USER_H

#include <slurm/spank.h>

/* As open() with these flags, and through no link of /proc that leads to where a process is; -1: errno says why. In the
 * task's process, as root. */
extern int sk8_open_as_user(spank_t spank, const char *path, int flags);

#endif
