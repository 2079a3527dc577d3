// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the engine needs to be allowed in Kubernetes, and for what. The one table:
// `slurm-k8s check` asks the API server for each row, and a test compares it with
// etc/kubernetes-rbac.yaml.
#ifndef SK8_CORE_RIGHTS_H
#define SK8_CORE_RIGHTS_H

#include <string_view>

namespace sk8::core {

struct Right {
	std::string_view group;    // API group; empty: the core group
	std::string_view resource; // "pods", or with a subresource "pods/status"
	std::string_view verb;
	const char *without; // what goes wrong without it, after "without it"
};

inline constexpr Right needed_rights[] = {
	{"", "pods", "list", "no pod is seen"},
	{"", "pods", "watch", "no pod is seen"},
	{"", "pods", "get", "a pod that is gone stays unknown, and its job goes on"},
	{"", "pods", "patch", "no pod is bound"},
	{"", "pods", "delete", "pods go on after their jobs have ended"},
	{"", "pods/status", "patch", "pods do not say why they wait"},
	{"", "pods/binding", "create", "no pod is bound"},
	{"", "nodes", "list", "nothing starts"},
	{"", "nodes", "watch", "nothing starts"},
	{"", "nodes", "patch", "nodes that Slurm drains are not cordoned"},
	{"", "nodes/status", "patch", "nodes do not say whether Slurm has drained them"},
	{"", "events", "create", "kubectl describe shows no events of slurm-k8s"},
	{"", "persistentvolumeclaims", "get", "pods with volumes wait for ever"},
	{"", "persistentvolumes", "get", "pods with volumes wait for ever"},
	{"storage.k8s.io", "storageclasses", "get", "pods with unbound volumes are not told why they wait"},
};

// Only with nodes.exclusive.
inline constexpr Right exclusive_rights[] = {
	{"", "pods/eviction", "create", "jobs with --constraint=k8s.exclusive wait for nodes.exclusive.timeout, and do not start where pods are"},
};

// Only with resources[].deviceClass, from etc/kubernetes-devices.yaml.
inline constexpr Right device_rights[] = {
	{"resource.k8s.io", "resourceslices", "list", "nothing starts"},
	{"resource.k8s.io", "resourceslices", "watch", "nothing starts"},
	{"resource.k8s.io", "deviceclasses", "list", "nothing starts"},
	{"resource.k8s.io", "deviceclasses", "watch", "nothing starts"},
	{"resource.k8s.io", "resourceclaims", "list", "nothing starts"},
	{"resource.k8s.io", "resourceclaims", "watch", "nothing starts"},
	{"resource.k8s.io", "resourceclaims", "patch", "no pod that claims devices is bound"},
	{"resource.k8s.io", "resourceclaims/status", "patch", "no pod that claims devices is bound"},
	{"resource.k8s.io", "resourceclaims/binding", "patch", "no pod that claims devices is bound, from Kubernetes 1.36 on"},
};

// In the namespace of the reservation pods, from etc/kubernetes-reservations.yaml; of this the last one
// only with reservations.shared.
inline constexpr Right reservation_rights[] = {
	{"", "pods", "create", "no job of Slurm's starts that is to hold a pod"},
	{"", "events", "list", "users are not told which volume of a template is missing"},
	{"", "pods/resize", "patch", "jobs that are to share a reservation pod wait for gateTimeout, and then do not start"},
};

} // namespace sk8::core

#endif
