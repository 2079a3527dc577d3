// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which nodes of a cluster Slurm shares: nodes.selector. Immutable, any thread.
#ifndef SK8_CORE_SHARED_NODES_H
#define SK8_CORE_SHARED_NODES_H

#include <optional>
#include <string>

#include "lib/core/placement.h"

namespace sk8::core {

class SharedNodes {
public:
	// A label selector; empty = all. A bad one shares no node.
	explicit SharedNodes(const std::string &selector)
	{
		if (auto parsed = parse_selector(selector))
			selector_ = std::move(*parsed);
	}
	bool has(const kube::Node &node) const
	{
		return selector_ && (selector_->empty() || matches(*selector_, node));
	}

private:
	std::optional<kube::NodeTerm> selector_;
};

} // namespace sk8::core

#endif
