/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* options.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "plugins/spank/options.h"

struct sk8_wish sk8_wish;

/* Options with a text; val of their callback is the index. */
static const struct {
	const char *option, *env;
	char *value;
	size_t size;
	const char *begins;	/* with this; NULL = with anything */
	const char *only;	/* these characters; NULL = any */
	const char *use;
	bool of_job;		/* its pods are made once, for all of its steps */
} texts[] = {
	{ "--k8s-image", "SLURM_K8S_IMAGE", sk8_wish.image, sizeof(sk8_wish.image), NULL, NULL,
	  "name an image, for example --k8s-image=registry.example.com/team/app:1.2", true },
	{ "--k8s-template", "SLURM_K8S_TEMPLATE", sk8_wish.template, sizeof(sk8_wish.template), NULL, NULL,
	  "name a file, for example --k8s-template=pod.yaml", true },
	/* it becomes a part of a file's name */
	{ "--k8s-container", "SLURM_K8S_CONTAINER", sk8_wish.container, sizeof(sk8_wish.container), NULL,
	  "abcdefghijklmnopqrstuvwxyz0123456789-", "name a container of the job's template", false },
	{ "--k8s-workdir", "SLURM_K8S_WORKDIR", sk8_wish.workdir, sizeof(sk8_wish.workdir), "/", NULL,
	  "name a folder in the container by its whole path, for example --k8s-workdir=/data", false },
	{ "--k8s-service-account", "SLURM_K8S_SERVICE_ACCOUNT", sk8_wish.service_account, sizeof(sk8_wish.service_account), NULL,
	  "abcdefghijklmnopqrstuvwxyz0123456789-.", "name a ServiceAccount of Kubernetes", true },
};
enum { SERVICE_ACCOUNT = 4, TEXTS = sizeof(texts) / sizeof(texts[0]) };

/* Options that are said or not; val of their callback is the index. */
static const struct {
	const char *option, *env;
	bool *value;
} flags[] = {
	{ "--k8s-mount-home", "SLURM_K8S_MOUNT_HOME", &sk8_wish.mount_home },
	{ "--k8s-env", "SLURM_K8S_ENV", &sk8_wish.env },
	{ "--k8s-network", "SLURM_K8S_NETWORK", &sk8_wish.network },
	{ "--k8s-ipc", "SLURM_K8S_IPC", &sk8_wish.ipc },
};
enum { FLAGS = sizeof(flags) / sizeof(flags[0]) };

static bool is_good(int which, const char *text)
{
	return text && text[0] && (strlen(text) < texts[which].size) &&
	       (!texts[which].begins || !strncmp(text, texts[which].begins, strlen(texts[which].begins))) &&
	       (!texts[which].only || !text[strspn(text, texts[which].only)]);
}

static int set_text(int which, const char *text, int remote)
{
	(void) remote;
	if (is_good(which, text)) {
		memmove(texts[which].value, text, strlen(text) + 1);
		return 0;
	}
	slurm_error("%s (or %s): %s", texts[which].option, texts[which].env, texts[which].use);
	return -1;
}

static int set_flag(int which, const char *text, int remote)
{
	(void) text;
	(void) remote;
	*flags[which].value = true;
	return 0;
}

static struct spank_option options[] = {
	{ "k8s-image", "IMAGE", "run the tasks of steps in a container of this image, which Kubernetes makes for the job", 1, 0,
	  set_text },
	{ "k8s-template", "FILE", "the job's pod has volumes and containers of this template of a pod, too", 1, 1, set_text },
	{ "k8s-container", "NAME", "run the tasks of the step in this container of the job's template", 1, 2, set_text },
	{ "k8s-mount-home", NULL, "with --k8s-image: the container has $HOME and the folder in which tasks begin", 0, 0,
	  set_flag },
	{ "k8s-workdir", "DIR", "with --k8s-image: tasks begin in this folder of the container", 1, 3, set_text },
	{ "k8s-service-account", "NAME", "with --k8s-image: tasks are this ServiceAccount of Kubernetes, for kubectl and other clients",
	  1, SERVICE_ACCOUNT, set_text },
	{ "k8s-env", NULL, "with --k8s-image: tasks have the variables of the image, too, which win over those of the job", 0, 1,
	  set_flag },
	{ "k8s-network", NULL, "with --k8s-image: tasks are in the network of the job's pod, not in that of the node", 0, 2, set_flag },
	{ "k8s-ipc", NULL, "with --k8s-image: tasks share memory, queues and semaphores with the job's pod, not with the node", 0, 3,
	  set_flag },
	SPANK_OPTIONS_TABLE_END
};

extern int sk8_register_options(spank_t spank)
{
	for (struct spank_option *o = options; o->name; o++)
		if (spank_option_register(spank, o) != ESPANK_SUCCESS)
			return ESPANK_ERROR;
	return ESPANK_SUCCESS;
}

/* ---- srun, sbatch, salloc ----------------------------------------------------------- */

static void stop(const char *option, const char *what, const char *why)
{
	slurm_error("%s: %s%s%s", option, what, why ? ": " : "", why ? why : "");
	exit(1);
}

static void tell(spank_t spank, const char *name, const char *value)
{
	if (spank_job_control_setenv(spank, name, value, 1) != ESPANK_SUCCESS)
		stop("slurm-k8s", "slurmctld cannot be told which container is wanted", NULL);
}

/* Its text; slurmctld alone reads what is in it. */
static void tell_template(spank_t spank)
{
	char *text = malloc(SK8_LONGEST_TEMPLATE + 2);
	const int fd = open(sk8_wish.template, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t size = 0;
	ssize_t got = -1;

	if ((fd >= 0) && text)
		do
			if ((got = read(fd, text + size, SK8_LONGEST_TEMPLATE + 1 - size)) > 0)
				size += (size_t) got;
		while ((got > 0) && (size <= SK8_LONGEST_TEMPLATE));
	if (got < 0)
		stop("--k8s-template", sk8_wish.template, strerror(errno));
	if (!size || (size > SK8_LONGEST_TEMPLATE) || memchr(text, '\0', size))
		stop("--k8s-template", sk8_wish.template, "it is empty, or no text, or longer than 16 KiB");
	text[size] = '\0';
	tell(spank, SK8_SPANK_TEMPLATE, text);
	free(text);
	close(fd);
}

/* srun in a job makes none: what it is told by its environment is the job's. */
static bool makes_job(void)
{
	return (spank_context() == S_CTX_ALLOCATOR) || !getenv("SLURM_JOB_ID");
}

/* A step has what its job has, whatever it was told: nobody would notice that it is another image. */
static void check_step(void)
{
	if (makes_job())
		return;
	for (int i = 0; i < TEXTS; i++) {
		const char *of_job = getenv(texts[i].env);

		if (texts[i].of_job && texts[i].value[0] && (!of_job || strcmp(of_job, texts[i].value)))
			stop(texts[i].option, "give it to the sbatch, salloc or srun that makes the job, for all of its steps", NULL);
	}
}

/*
 * Of a heterogeneous job this is called for each component, one after the other, and what was said for one stays said: Slurm has
 * one set of a plugin's options, and one environment, for all of them. An earlier component cannot be given it any more, and
 * its tasks would look for a container that it does not have.
 */
static void check_component(void)
{
	static bool had_container = true, had_account = true;	/* the one before */
	const bool has_container = sk8_wish.image[0] || sk8_wish.template[0], has_account = sk8_wish.service_account[0];

	if ((has_container && !had_container) || (has_account && !had_account))
		stop(had_container ? "--k8s-service-account" : "--k8s-image or --k8s-template",
		     "give it to the first component of the job: what one has all that follow have, too", NULL);
	had_container = has_container;
	had_account = has_account;
}

static void tell_service_account(spank_t spank)
{
	if (!sk8_wish.service_account[0] || !makes_job())
		return;
	if (!sk8_wish.image[0] && !sk8_wish.template[0])
		stop("--k8s-service-account", "its token is in the job's container: give --k8s-image, too", NULL);
	tell(spank, SK8_SPANK_SERVICE_ACCOUNT, sk8_wish.service_account);
}

static void tell_slurmctld(spank_t spank)
{
	check_step();
	for (int i = 0; i < TEXTS; i++) {
		const char *given = getenv(texts[i].env);

		if (!texts[i].value[0] && given && given[0] && set_text(i, given, 0))
			exit(1);
		if (texts[i].value[0] && setenv(texts[i].env, texts[i].value, 1))
			stop(texts[i].option, strerror(errno), NULL);
	}
	check_component();
	for (int i = 0; i < FLAGS; i++)
		if (*flags[i].value && setenv(flags[i].env, "1", 1))
			stop(flags[i].option, strerror(errno), NULL);
	if (sk8_wish.template[0] && makes_job())
		tell_template(spank);
	if (sk8_wish.image[0])
		tell(spank, SK8_SPANK_IMAGE, sk8_wish.image);
	tell_service_account(spank);
}

/* ---- slurmstepd ---------------------------------------------------------------------- */

/* As people write it: any other word is on, however long. */
static bool is_on(spank_t spank, const char *name)
{
	static const char *const off[] = { "", "0", "no", "off", "false" };
	char text[8];
	const int rc = spank_getenv(spank, name, text, sizeof(text));

	for (size_t i = 0; (rc == ESPANK_SUCCESS) && (i < sizeof(off) / sizeof(off[0])); i++)
		if (!strcasecmp(text, off[i]))
			return false;
	return (rc == ESPANK_SUCCESS) || (rc == ESPANK_NOSPACE);
}

static void read_environment(spank_t spank)
{
	for (int i = 0; i < TEXTS; i++) {
		const int rc = texts[i].value[0] ? ESPANK_SUCCESS :
			spank_getenv(spank, texts[i].env, texts[i].value, (int) texts[i].size);

		if (rc == ESPANK_NOSPACE)
			sk8_wish.unclear = true;
		else if (rc != ESPANK_SUCCESS)
			texts[i].value[0] = '\0';
		/* whatever else than srun has put there */
		else if (texts[i].value[0] && set_text(i, texts[i].value, 1))
			sk8_wish.unclear = true;
	}
	for (int i = 0; i < FLAGS; i++)
		*flags[i].value |= is_on(spank, flags[i].env);
}

extern void sk8_options_known(spank_t spank)
{
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
		tell_slurmctld(spank);
		break;
	case S_CTX_REMOTE:
		read_environment(spank);
		break;
	default:
		break;
	}
}
