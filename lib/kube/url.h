// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Paths and queries of the Kubernetes API. Everything that goes into them is
// percent-encoded here and nowhere else. Pure, any thread.
#ifndef SK8_KUBE_URL_H
#define SK8_KUBE_URL_H

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sk8::kube {

// Query parameters in order, not yet encoded.
using Query = std::vector<std::pair<std::string, std::string>>;

// A kind of resource: {"", "v1", "pods"}, {"coordination.k8s.io", "v1", "leases"}.
struct ResourceType {
	std::string_view group; // empty: the core group
	std::string_view version;
	std::string_view plural;
};

inline constexpr ResourceType pods_resource{"", "v1", "pods"};
inline constexpr ResourceType nodes_resource{"", "v1", "nodes"};
inline constexpr ResourceType events_resource{"", "v1", "events"};
inline constexpr ResourceType resource_slices_resource{"resource.k8s.io", "v1", "resourceslices"};
inline constexpr ResourceType resource_claims_resource{"resource.k8s.io", "v1", "resourceclaims"};
inline constexpr ResourceType device_classes_resource{"resource.k8s.io", "v1", "deviceclasses"};
inline constexpr ResourceType leases_resource{"coordination.k8s.io", "v1", "leases"};

// All but letters, digits and -._~ becomes %XX.
inline std::string percent_encode(std::string_view text)
{
	static constexpr char hex[] = "0123456789ABCDEF";
	std::string out;
	for (char c : text) {
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
		if (plain) {
			out += c;
			continue;
		}
		auto byte = static_cast<unsigned char>(c);
		out += '%';
		out += hex[byte >> 4];
		out += hex[byte & 15];
	}
	return out;
}

// "" or "?a=b&c=d".
inline std::string encode_query(const Query &query)
{
	std::string out;
	for (const auto &[key, value] : query) {
		out += out.empty() ? '?' : '&';
		out += percent_encode(key) + "=" + percent_encode(value);
	}
	return out;
}

// "/api/v1/namespaces/ns/pods/name/binding". ns, name and subresource may be
// empty: without ns the resource of all namespaces (or a cluster-wide one),
// without name the collection. A name of "." or ".." is encoded so that no
// client or proxy takes it for a folder.
inline std::string resource_path(const ResourceType &type, std::string_view ns = {},
				 std::string_view name = {}, std::string_view subresource = {})
{
	auto segment = [](std::string_view text) {
		if (text == "." || text == "..")
			return std::string(text.size() == 1 ? "%2E" : "%2E%2E");
		return percent_encode(text);
	};
	std::string out = type.group.empty() ? "/api" : "/apis/" + segment(type.group);
	out += "/" + segment(type.version);
	if (!ns.empty())
		out += "/namespaces/" + segment(ns);
	out += "/" + segment(type.plural);
	if (!name.empty())
		out += "/" + segment(name);
	if (!subresource.empty())
		out += "/" + segment(subresource);
	return out;
}

} // namespace sk8::kube

#endif
