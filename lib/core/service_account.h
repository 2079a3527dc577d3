// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Who a job of Slurm's own is in Kubernetes, if its user wants that (--k8s-service-account): its pod has the ServiceAccount, and
// the container in which its tasks run has the account's token. The kubelet fetches the token, renews it, and removes it
// with the pod; it is bound to the pod, so a copy of it is worth nothing afterwards. We never see it. Pure.
#ifndef SK8_CORE_SERVICE_ACCOUNT_H
#define SK8_CORE_SERVICE_ACCOUNT_H

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/core/pod_template.h"
#include "lib/sk8_container.h"

namespace sk8::core {

inline constexpr std::size_t longest_service_account = SK8_LONGEST_SERVICE_ACCOUNT;

// Of the volume that is ours in such a pod.
inline constexpr std::string_view account_volume = "slurm-k8s-token";

// Why a job of that user does not get this account, as a part of a sentence; empty: it does. allowed: see takes_name().
std::string bad_service_account(std::string_view name, const std::vector<std::string> &allowed, const TemplateUser &who);

// What a pod has of it: token, ca.crt and namespace, where every client of Kubernetes looks for them.
Json token_volume();
Json token_mount();

// Does the container job mount something at the same place, or in it; or a claim or host path above it, in which a
// runtime would make folders for it, as root?
bool takes_token_folder(const PodTemplate &more);

// Does the API server's answer to a pod say that there is no such account?
bool is_unknown_account(std::string_view error);

} // namespace sk8::core

#endif
