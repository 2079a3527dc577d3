// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/shared_nodes.h"

#include <algorithm>

namespace sk8::core {

SharedNodes::SharedNodes(const NodeSettings &settings) : sharing_(settings.sharing)
{
	if (auto parsed = parse_selector(settings.selector))
		selector_ = std::move(*parsed);
	for (const auto &group : settings.groups)
		if (auto parsed = parse_selector(group.selector))
			groups_.push_back({std::move(*parsed), group.sharing});
	if (auto parsed = parse_selector(settings.exclusive.selector); parsed && settings.exclusive.on())
		exclusive_ = std::move(*parsed);
}

bool SharedNodes::has(const kube::Node &node) const
{
	return selector_ && (selector_->empty() || matches(*selector_, node));
}

bool SharedNodes::exclusive(const kube::Node &node) const
{
	return exclusive_ && has(node) && matches(*exclusive_, node);
}

Sharing SharedNodes::sharing(const kube::Node &node) const
{
	if (!has(node))
		return Sharing::none;
	const auto group = std::ranges::find_if(groups_, [&](const Group &g) { return matches(g.selector, node); });
	return group == groups_.end() ? sharing_ : group->sharing;
}

} // namespace sk8::core
