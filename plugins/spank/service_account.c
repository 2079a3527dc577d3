/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* service_account.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/sk8_container.h"
#include "plugins/spank/container.h"
#include "plugins/spank/handover.h"
#include "plugins/spank/service_account.h"

static const char name[] = "kubeconfig";
static const char path[] = SK8_HANDOVER_FOLDER "/kubeconfig";

extern bool sk8_read_kubeconfig(const char *from, struct sk8_kubeconfig *kubeconfig)
{
	const ssize_t got = sk8_read_of_root(from, kubeconfig->text, sizeof(kubeconfig->text));

	kubeconfig->size = got > 0 ? (size_t) got : 0;
	return kubeconfig->size && (kubeconfig->size < sizeof(kubeconfig->text));
}

extern bool sk8_give_kubeconfig(spank_t spank, const struct sk8_kubeconfig *kubeconfig)
{
	const struct sk8_handover file = { .name = name, .text = kubeconfig->text, .size = kubeconfig->size, .mode = 0644 };

	if (access(SK8_TOKEN_FOLDER "/token", F_OK)) {
		slurm_error("slurm-k8s: the job has no service account: give --k8s-service-account to the sbatch, salloc or srun that makes the job");
		return false;
	}
	if (!sk8_hand_over(&file)) {
		slurm_error("slurm-k8s: --k8s-service-account: %s cannot be written in the container: %s", path, strerror(errno));
		return false;
	}
	return spank_setenv(spank, "KUBECONFIG", path, 1) == ESPANK_SUCCESS;
}
