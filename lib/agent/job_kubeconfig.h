// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A kubeconfig for tasks in the containers of jobs that have a ServiceAccount: the API server where this node's kubelet
// reaches it, for tasks have the node's network, and token and certificate authority by the files' names in the container
// (lib/sk8_container.h). Nothing of the kubelet's own credentials, and no secret at all. Pure.
#ifndef SK8_AGENT_JOB_KUBECONFIG_H
#define SK8_AGENT_JOB_KUBECONFIG_H

#include <string>

#include "lib/kube/kubeconfig.h"

namespace sk8::agent {

// ns: in which clients look if nobody says another.
std::string job_kubeconfig(const kube::ClusterAccess &kubelet, const std::string &ns);

} // namespace sk8::agent

#endif
