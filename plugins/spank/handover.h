/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * handover.h - files that the plugin puts into a container for its tasks, in the folder that the runtime makes for the program
 * that keeps the container alive. They go with it.
 */
#ifndef SK8_SPANK_HANDOVER_H
#define SK8_SPANK_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

#define SK8_HANDOVER_FOLDER "/.slurm-k8s"

struct sk8_handover {
	const char *name;	/* in that folder */
	const char *text;
	size_t size;	/* bytes */
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/* All of it or none, in place of what has that name; false: errno says why. In the container, as root. */
extern bool sk8_hand_over(const struct sk8_handover *file);

#endif
