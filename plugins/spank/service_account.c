/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* service_account.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/sk8_container.h"
#include "plugins/spank/container.h"
#include "plugins/spank/service_account.h"

/* The runtime makes this folder, for the program that keeps the container alive; the image could have one of its own there. */
static const char folder[] = "/.slurm-k8s";
static const char name[] = "kubeconfig";
static const char path[] = "/.slurm-k8s/kubeconfig";

extern bool sk8_read_kubeconfig(const char *from, struct sk8_kubeconfig *kubeconfig)
{
	const ssize_t got = sk8_read_of_root(from, kubeconfig->text, sizeof(kubeconfig->text));

	kubeconfig->size = got > 0 ? (size_t) got : 0;
	return kubeconfig->size && (kubeconfig->size < sizeof(kubeconfig->text));
}

/* Tasks come side by side, and each finds all of it: a file of its own first, which takes the place of what is there. */
static bool write_in(int at, const struct sk8_kubeconfig *kubeconfig)
{
	char own[64];
	bool good;
	int fd;

	snprintf(own, sizeof(own), "%s.%ld", name, (long) getpid());
	(void) unlinkat(at, own, 0);
	fd = openat(at, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	good = (write(fd, kubeconfig->text, kubeconfig->size) == (ssize_t) kubeconfig->size) && !fchmod(fd, 0644) &&
		!renameat(at, own, at, name);
	close(fd);
	return good;
}

/* In the container's own file system only, whatever the image has there. */
static bool write_kubeconfig(const struct sk8_kubeconfig *kubeconfig)
{
	const int at = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat top, here;
	bool good;

	if (at < 0)
		return false;
	good = !stat("/", &top) && !fstat(at, &here);
	if (good && (top.st_dev != here.st_dev)) {
		errno = EXDEV;
		good = false;
	}
	good = good && write_in(at, kubeconfig);
	close(at);
	return good;
}

extern bool sk8_give_kubeconfig(spank_t spank, const struct sk8_kubeconfig *kubeconfig)
{
	if (access(SK8_TOKEN_FOLDER "/token", F_OK)) {
		slurm_error("slurm-k8s: the job has no service account: give --k8s-service-account to the sbatch, salloc or srun that makes the job");
		return false;
	}
	if (!write_kubeconfig(kubeconfig)) {
		slurm_error("slurm-k8s: --k8s-service-account: %s cannot be written in the container: %s", path, strerror(errno));
		return false;
	}
	return spank_setenv(spank, "KUBECONFIG", path, 1) == ESPANK_SUCCESS;
}
