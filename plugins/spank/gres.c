/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gres.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/sk8_container.h"
#include "lib/slurm/step_gres.h"
#include "lib/slurm/tokens.h"
#include "plugins/spank/container.h"
#include "plugins/spank/environment.h"
#include "plugins/spank/gres.h"

enum { LONGEST_WAIT_MS = 10000 };


struct holds {
	uint64_t cpus, memory, devices;
};

static void add(void *arg, const char *name, const char *type, uint64_t count)
{
	struct holds *holds = arg;

	(void) type;
	if (!strcmp(name, SK8_TOKEN_CPU))
		holds->cpus += count;
	else if (!strcmp(name, SK8_TOKEN_MEMORY))
		holds->memory += count;
	else if (!strcmp(name, SK8_DEVICES))
		holds->devices += count;
}

/* What came with the job's environment is another job's, perhaps: sbatch in a job hands on all it has. */
static void tell_number(spank_t spank, const char *variable, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	if (number)
		(void) spank_setenv(spank, variable, text, 1);
	else
		(void) spank_unsetenv(spank, variable);
}

static bool device_file(spank_t spank, char *folder, char *file, size_t size)
{
	const char *node = getenv("SLURMD_NODENAME");	/* slurmstepd's own, not the job's */
	uint32_t job_id;

	if (!node || strchr(node, '/') || (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS))
		return false;
	return (snprintf(folder, size, SK8_DEVICE_FOLDER, node) < (int) size) &&
		(snprintf(file, size, SK8_DEVICE_FOLDER "/%u", node, job_id) < (int) size);
}

static void tell_devices(spank_t spank)
{
	char folder[PATH_MAX], file[PATH_MAX], *text;
	ssize_t got;

	/* no folder: no agent */
	if (!device_file(spank, folder, file, sizeof(file)) || access(folder, F_OK))
		return;
	sk8_await_file(folder, file, LONGEST_WAIT_MS);
	if (!(text = malloc(SK8_LONGEST_DEVICES)))
		return;
	if ((got = sk8_read_of_root(file, text, SK8_LONGEST_DEVICES)) >= 0)
		sk8_give_variables(spank, text, (size_t) got);
	else
		slurm_error("slurm-k8s: the agent of this node has not told which devices the job's pod has; its tasks get no variables of them");
	free(text);
}

extern void sk8_tell_gres(spank_t spank)
{
	struct holds holds = { 0 };
	char *version = NULL;
	uint32_t job_id;

	if ((spank_get_item(spank, S_SLURM_VERSION, &version) == ESPANK_SUCCESS) &&
	    (spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS))
		sk8_each_gres_of_job(spank, version, job_id, add, &holds);
	tell_number(spank, "SLURM_K8S_CPU", holds.cpus);
	tell_number(spank, "SLURM_K8S_MEMORY", holds.memory);
	sk8_take_variables_back(spank);
	if (holds.devices)
		tell_devices(spank);
}
