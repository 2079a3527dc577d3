// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How far a pod's resize in place has come (KEP-1287). Pure, any thread.
//
// A status is about the spec that its kubelet had seen then: with a pod that is made smaller and larger
// again it would otherwise look as if the kubelet had never given back what it has. So nothing is known
// of an allocation before status.observedGeneration (Kubernetes 1.34 and later) has come to the spec's.
#ifndef SK8_KUBE_RESIZE_H
#define SK8_KUBE_RESIZE_H

#include <optional>
#include <string>

#include "lib/base/json.h"
#include "lib/kube/objects.h"

namespace sk8::kube {

struct Resize {
	std::int64_t generation = 0; // of the spec, only grows; 0: an API server that does not count
	bool observed = false;       // its kubelet tells which one it has seen
	Resources asked;             // spec: the sum of the containers' requests
	// What its kubelet has set aside for it, knowing of that spec. Nothing: not known.
	std::optional<Resources> allocated;
	// What the kubelet says of what is asked now: not now (Deferred), or never (Infeasible).
	enum class Pending { no, deferred, infeasible } pending = Pending::no;
	std::string message; // of that
};

// object: a Pod. Its kubelet has not told what it has set aside since its spec is this one, and may have what was requested before:
// status.observedGeneration is not the spec's yet, or the resize is put off and of a container that does not run it tells nothing.
// A kubelet that counts no generations (Kubernetes before 1.34) is taken at its word.
bool is_resize_unheard(const Json &object);

// object: a Pod without init containers; theirs are not looked at.
Resize decode_resize(const Json &object);

} // namespace sk8::kube

#endif
