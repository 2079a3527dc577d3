/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* x11.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugins/spank/as_user.h"
#include "plugins/spank/handover.h"
#include "plugins/spank/mounts.h"
#include "plugins/spank/x11.h"

enum { LONGEST = 65536 };	/* an entry has some 60 bytes */

static const char name[] = "Xauthority";
static const char given[] = SK8_HANDOVER_FOLDER "/Xauthority";

/* As slurmd sets it (req.c, _setup_x11_display()). Another one came with the user's environment, and leads to no display from
 * here: no cookie goes into an image for it. */
static bool is_forwarded(spank_t spank)
{
	static const char here[] = "localhost:";
	char display[64];

	return (spank_getenv(spank, "DISPLAY", display, sizeof(display)) == ESPANK_SUCCESS) &&
		!strncmp(display, here, sizeof(here) - 1);
}

/* Bytes; -1: errno says why. It may be any file of its user's. */
static ssize_t read_all(int fd, char *text)
{
	struct stat status;
	size_t size = 0;
	ssize_t got = 0;

	if (fstat(fd, &status))
		return -1;
	if (!S_ISREG(status.st_mode) || (status.st_size > LONGEST)) {
		errno = S_ISREG(status.st_mode) ? EFBIG : EINVAL;
		return -1;
	}
	while ((size < LONGEST) && ((got = read(fd, text + size, LONGEST - size)) > 0))
		size += (size_t) got;
	return got < 0 ? -1 : (ssize_t) size;
}

extern void sk8_read_xauthority(spank_t spank, struct sk8_xauthority *xauthority)
{
	char *text;
	ssize_t got = -1;
	int fd;

	xauthority->path[0] = '\0';
	xauthority->text = NULL;
	if (!is_forwarded(spank) ||
	    (spank_getenv(spank, "XAUTHORITY", xauthority->path, sizeof(xauthority->path)) != ESPANK_SUCCESS) ||
	    (xauthority->path[0] != '/') || !(text = malloc(LONGEST)))
		return;
	fd = sk8_open_as_user(spank, xauthority->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if ((fd >= 0) && ((got = read_all(fd, text)) >= 0)) {
		xauthority->text = text;
		xauthority->size = (size_t) got;
	} else if (errno != ENOENT) {	/* of another host, as the user's environment may name one */
		slurm_error("slurm-k8s: X11: %s: %s; programs in the container have no cookie for DISPLAY", xauthority->path,
			    strerror(errno));
	}
	if (!xauthority->text)
		free(text);
	if (fd >= 0)
		close(fd);
}

extern void sk8_give_xauthority(spank_t spank, const struct sk8_xauthority *xauthority)
{
	struct sk8_handover file = { .name = name, .text = xauthority->text, .size = xauthority->size, .mode = 0600 };

	if (!file.text || (spank_get_item(spank, S_JOB_UID, &file.uid) != ESPANK_SUCCESS) ||
	    (spank_get_item(spank, S_JOB_GID, &file.gid) != ESPANK_SUCCESS))
		return;
	sk8_make_folder(SK8_HANDOVER_FOLDER);	/* another container of the pod has none */
	if (sk8_hand_over(&file))
		(void) spank_setenv(spank, "XAUTHORITY", given, 1);
	else
		slurm_error("slurm-k8s: X11: %s cannot be written in the container: %s", given, strerror(errno));
}
