// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which nodes of a cluster Slurm shares, and how: clusters[].nodes. Immutable, any thread.
#ifndef SK8_CORE_SHARED_NODES_H
#define SK8_CORE_SHARED_NODES_H

#include <optional>
#include <vector>

#include "lib/core/placement.h"
#include "lib/core/settings.h"

namespace sk8::core {

class SharedNodes {
public:
	// A selector that is none shares no node; a group with one has no node.
	explicit SharedNodes(const NodeSettings &settings);
	bool has(const kube::Node &node) const;
	Sharing sharing(const kube::Node &node) const; // none if it is not shared
	bool exclusive(const kube::Node &node) const; // a job may have it without others' pods

private:
	struct Group {
		kube::NodeTerm selector;
		Sharing sharing;
	};
	std::optional<kube::NodeTerm> selector_; // empty: all
	Sharing sharing_;
	std::vector<Group> groups_;
	std::optional<kube::NodeTerm> exclusive_; // nothing: none
};

} // namespace sk8::core

#endif
