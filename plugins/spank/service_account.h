/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * service_account.h - Kubernetes for the tasks in a job's container (--k8s-service-account).
 *
 * The token is the kubelet's matter: it is in the container if the job has been given the account. Here tasks get a
 * kubeconfig that names the token's file, and the variables by which programs in pods find the API server.
 */
#ifndef SK8_SPANK_SERVICE_ACCOUNT_H
#define SK8_SPANK_SERVICE_ACCOUNT_H

#include <stdbool.h>
#include <slurm/spank.h>

enum { SK8_LONGEST_KUBECONFIG = 8192 };

struct sk8_kubeconfig {
	char text[SK8_LONGEST_KUBECONFIG];
	size_t size;
};

/* From a file that only root may write. On the node, as root. */
extern bool sk8_read_kubeconfig(const char *path, struct sk8_kubeconfig *kubeconfig);
/* Puts it into the container, and its name into the task's environment; false: an error has told why. In the container, as root. */
extern bool sk8_give_kubeconfig(spank_t spank, const struct sk8_kubeconfig *kubeconfig);

#endif
