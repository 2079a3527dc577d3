// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Who a pod is: cluster/uid. Namespace and name are for people and for URLs; a
// name may come back with another uid and is then another pod.
#ifndef SK8_CORE_POD_KEY_H
#define SK8_CORE_POD_KEY_H

#include <optional>
#include <string>
#include <string_view>

namespace sk8::core {

struct PodKey {
	std::string cluster;
	std::string ns;
	std::string name;
	std::string uid;

	bool operator==(const PodKey &) const = default;

	// "k8s:<cluster>/<namespace>/<name>/<uid>", what admin_comment carries.
	std::string mark() const;
	// Anything that mark() cannot have written is nullopt.
	static std::optional<PodKey> from_mark(std::string_view mark);
	// "<cluster>/<uid>": what maps are keyed by.
	std::string id() const { return cluster + '/' + uid; }
};

} // namespace sk8::core

#endif
