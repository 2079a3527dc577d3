// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a pod asks for in all, as the scheduler and the kubelet compute it.
// Source of the rules: k8s.io/component-helpers/resource PodRequests (KEP-753
// sidecars, KEP-2837 pod-level resources, KEP-1287 in-place resize, Pod Overhead).
#ifndef SK8_KUBE_REQUESTS_H
#define SK8_KUBE_REQUESTS_H

#include "lib/base/json.h"
#include "lib/kube/objects.h"

namespace sk8::kube {

struct PodRequest {
	Resources total;
	bool has_cpu = false, has_memory = false; // somebody named it, even as 0
	// One sentence if an amount is malformed, negative or absurd, else empty;
	// the amounts are then lower bounds.
	std::string problem;
};

// spec, status: those members of a Pod. A container that has a limit and no
// request asks for its limit. While a resize is under way the larger of the old
// and the new amount counts. Pure, any thread.
PodRequest effective_request(const Json &spec, const Json &status);

// Reads a resource list ({"cpu":"1","memory":"1Gi",...}) as it stands.
// problem: gets one sentence if it is empty so far and something is wrong.
Resources decode_resources(const Json &list, std::string &problem);

} // namespace sk8::kube

#endif
