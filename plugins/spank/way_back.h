/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * way_back.h - from a container to the node, for a script that Slurm's administrator has there: what a task's process must know
 * before it begins is known when it is in the container, and its user's.
 *
 * Root's capabilities stay permitted, none of them effective, from where the process becomes its user's to sk8_close_way_back(). In
 * between it executes nothing, nobody traces it who has them not himself, and no_new_privs is set.
 */
#ifndef SK8_SPANK_WAY_BACK_H
#define SK8_SPANK_WAY_BACK_H

#include <stdbool.h>

/* In the task's process, as root, before it enters anything of a container. false: an error has told why */
extern bool sk8_keep_way_back(void);
/* In a child of the task's process: where that was, and no way to anywhere else from then on. */
extern bool sk8_go_back(void);
/* The task's process stays where it is, and has what any other task has. false: it has more */
extern bool sk8_close_way_back(void);

#endif
