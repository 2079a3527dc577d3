// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The resources this server has, as one table. All else (routes, discovery,
// storage, RBAC, printing) reads it.
#ifndef KUBESIM_KINDS_H
#define KUBESIM_KINDS_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kubesim {

enum class NameRule { subdomain, label, path_segment };

struct Kind {
	const char *group, *version, *resource, *singular, *kind;
	bool namespaced;
	bool has_status;      // a status subresource, and status is not written with the object
	bool returns_deleted; // DELETE answers with the object, not with a Status
	bool has_generation;  // metadata.generation counts changes of spec
	NameRule name_rule;
	std::vector<const char *> short_names;
	std::vector<const char *> categories;
	// Rows that share a storage (core and events.k8s.io events) have the same number.
	std::size_t storage;

	std::string api_version() const; // "v1", "coordination.k8s.io/v1"
	std::string list_kind() const { return std::string(kind) + "List"; }
};

const std::vector<Kind> &kinds();
std::size_t storage_count();
// nullptr if there is none.
const Kind *find_kind(std::string_view group, std::string_view version, std::string_view resource);
const Kind *find_kind_by_name(std::string_view api_version, std::string_view kind);
// The first row of a storage: the form in which objects are stored.
const Kind &stored_kind(std::size_t storage);
const Kind &kind_of(std::string_view resource); // of those with a unique resource name

} // namespace kubesim

#endif
