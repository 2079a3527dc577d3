// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/kinds.h"

#include <stdexcept>

namespace kubesim {

std::string Kind::api_version() const
{
	return *group ? std::string(group) + "/" + version : version;
}

const std::vector<Kind> &kinds()
{
	using enum NameRule;
	static const char coordination[] = "coordination.k8s.io", storage[] = "storage.k8s.io",
			  rbac[] = "rbac.authorization.k8s.io", resource[] = "resource.k8s.io", v1[] = "v1";
	// group, version, resource, singular, kind, namespaced, status, returns deleted, generation
	static const auto &table = *new std::vector<Kind>{
		{"", v1, "configmaps", "configmap", "ConfigMap", true, false, false, false, subdomain, {"cm"}, {}, 0},
		{"", v1, "events", "event", "Event", true, false, false, false, subdomain, {"ev"}, {}, 1},
		{"", v1, "namespaces", "namespace", "Namespace", false, true, false, false, label, {"ns"}, {}, 2},
		{"", v1, "nodes", "node", "Node", false, true, false, false, subdomain, {"no"}, {}, 3},
		{"", v1, "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", true,
		 true, true, false, subdomain, {"pvc"}, {}, 4},
		{"", v1, "persistentvolumes", "persistentvolume", "PersistentVolume", false, true, true, false,
		 subdomain, {"pv"}, {}, 5},
		{"", v1, "pods", "pod", "Pod", true, true, true, true, subdomain, {"po"}, {"all"}, 6},
		{"", v1, "secrets", "secret", "Secret", true, false, false, false, subdomain, {}, {}, 7},
		{"", v1, "serviceaccounts", "serviceaccount", "ServiceAccount", true, false, true, false,
		 subdomain, {"sa"}, {}, 8},
		{coordination, v1, "leases", "lease", "Lease", true, false, false, false, subdomain, {}, {}, 9},
		{"events.k8s.io", v1, "events", "event", "Event", true, false, false, false, subdomain, {"ev"}, {}, 1},
		{"policy", v1, "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", true, true, false,
		 true, subdomain, {"pdb"}, {}, 16},
		{rbac, v1, "clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding", false, false,
		 false, false, path_segment, {}, {}, 10},
		{rbac, v1, "clusterroles", "clusterrole", "ClusterRole", false, false, false, false,
		 path_segment, {}, {}, 11},
		{rbac, v1, "rolebindings", "rolebinding", "RoleBinding", true, false, false, false,
		 path_segment, {}, {}, 12},
		{rbac, v1, "roles", "role", "Role", true, false, false, false, path_segment, {}, {}, 13},
		{resource, v1, "deviceclasses", "deviceclass", "DeviceClass", false, false, true, true, subdomain, {}, {}, 17},
		{resource, v1, "resourceclaims", "resourceclaim", "ResourceClaim", true, true, true, false, subdomain, {}, {}, 18},
		{resource, v1, "resourceslices", "resourceslice", "ResourceSlice", false, false, true, true, subdomain, {}, {}, 19},
		{"scheduling.k8s.io", v1, "priorityclasses", "priorityclass", "PriorityClass", false, false,
		 false, true, subdomain, {"pc"}, {}, 14},
		{storage, v1, "storageclasses", "storageclass", "StorageClass", false, false, true, false,
		 subdomain, {"sc"}, {}, 15},
	};
	return table;
}

std::size_t storage_count()
{
	return 20;
}

const Kind *find_kind(std::string_view group, std::string_view version, std::string_view resource)
{
	for (const auto &k : kinds())
		if (k.resource == resource && k.group == group && k.version == version)
			return &k;
	return nullptr;
}

const Kind *find_kind_by_name(std::string_view api_version, std::string_view kind)
{
	for (const auto &k : kinds())
		if (k.kind == kind && k.api_version() == api_version)
			return &k;
	return nullptr;
}

const Kind &stored_kind(std::size_t storage)
{
	for (const auto &k : kinds())
		if (k.storage == storage)
			return k;
	throw std::logic_error("no such storage");
}

const Kind &kind_of(std::string_view resource)
{
	for (const auto &k : kinds())
		if (k.resource == resource)
			return k;
	throw std::logic_error("no such resource");
}

} // namespace kubesim
