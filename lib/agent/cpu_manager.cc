// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/cpu_manager.h"

#include <algorithm>

#include "lib/base/json.h"

namespace sk8::agent {

CpuManager parse_cpu_manager(std::string_view text)
{
	const auto state = Json::parse(text);
	CpuManager out;
	if (!state)
		return out;
	out.policy = (*state)["policyName"].str();
	(*state)["entries"].each_member([&](std::string_view uid, const Json &containers) {
		containers.each_member([&](std::string_view, const Json &cpus) {
			if (const auto list = parse_cpu_list(cpus.str()); list && !list->empty()) {
				CpuSet &own = out.own[std::string(uid)];
				own = united(own, *list);
			}
		});
	});
	return out;
}

core::PinnedPods pinned_pods(const CpuManager &manager, const CpuTopology &topology)
{
	core::PinnedPods out;
	if (!manager.pins())
		return out;
	for (const auto &[uid, cpus] : manager.own) {
		core::PinnedPod pod;
		pod.cpus = static_cast<std::uint32_t>(cpus.size());
		for (std::size_t core = 0; core < topology.cores.size() && core <= UINT16_MAX; core++)
			if (std::ranges::find_first_of(topology.cores[core], cpus) != topology.cores[core].end())
				pod.cores.push_back(static_cast<std::uint16_t>(core));
		if (!pod.cores.empty())
			out[uid] = std::move(pod);
	}
	return out;
}

} // namespace sk8::agent
