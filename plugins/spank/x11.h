/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * x11.h - X11 that Slurm forwards (srun --x11), for tasks in a container.
 *
 * DISPLAY leads to a port of the node's localhost, where slurmstepd's extern step listens, and is right in a container, too,
 * unless its tasks are in the network of the pod. The cookie without which no X server talks to them is in a file that
 * XAUTHORITY names: of the node's /tmp, or the job's, or with X11Parameters=home_xauthority of the user's home.
 */
#ifndef SK8_SPANK_X11_H
#define SK8_SPANK_X11_H

#include <limits.h>
#include <stddef.h>
#include <slurm/spank.h>

struct sk8_xauthority {
	char path[PATH_MAX];	/* on the node */
	char *text;	/* NULL: X11 is not forwarded, or the file cannot be had, of which an error has told */
	size_t size;	/* bytes */
};

/* On the node, as root. */
extern void sk8_read_xauthority(spank_t spank, struct sk8_xauthority *xauthority);
/* Puts it into the container, for its user alone, and its name there into the task's environment; an error tells if that fails. In
 * the container, as root. */
extern void sk8_give_xauthority(spank_t spank, const struct sk8_xauthority *xauthority);

#endif
