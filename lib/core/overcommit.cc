// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/overcommit.h"

#include <algorithm>
#include <unordered_map>

#include "lib/base/text.h"

namespace sk8::core {

// What of the node's own pods does not fit beside what Slurm offers to jobs, as lib/slurm/mask_table.c has it.
template <class T>
static T beyond(T overhead, T allocatable, T offered)
{
	return above(overhead, above(allocatable, offered));
}

// What several jobs have of one device is not counted here: a device of a pod hides all of its shares.
static std::map<std::string, std::uint64_t> by_name(const GresList &gres)
{
	std::map<std::string, std::uint64_t> out;
	for (const Gres &g : gres)
		if (!is_shared_gres(g.name))
			out[g.name] += g.count;
	return out;
}

static std::map<std::string, std::uint64_t> too_many(const JobsOnNode &use, const NodeMask &mask)
{
	auto all = by_name(use.gres), used = by_name(use.used_gres), out = std::map<std::string, std::uint64_t>();
	for (const auto &[name, masked] : by_name(mask.gres))
		if (all.contains(name))
			if (const std::uint64_t more = above(used[name] + masked, all[name]))
				out[name] = more;
	return out;
}

Overcommit overcommit(const JobsOnNode &use, const NodeMask &mask)
{
	if (mask.whole) // nothing is known of what pods have there
		return {};
	const std::int64_t milli_per_core = std::int64_t{1000} * std::max(use.threads_per_core, 1u), offered = use.cores * milli_per_core;
	const auto masked_cores = static_cast<std::int64_t>(mask.cores.size() + mask.more_cores);
	const std::int64_t masked = masked_cores * milli_per_core + mask.milli_cpu +
				    beyond(mask.overhead_milli_cpu, mask.allocatable.milli_cpu, offered);
	const std::uint64_t masked_mb = mask.memory_mb + beyond(mask.overhead_mb, mask.allocatable.memory_mb, use.memory_mb);
	// What Slurm itself has given twice (OverSubscribe=FORCE) is none of ours.
	const std::int64_t used = std::min(use.used_cores, use.cores) * milli_per_core;
	const std::uint64_t used_mb = std::min(use.used_memory_mb, use.memory_mb);
	return {above(used + masked, offered), above(used_mb + masked_mb, use.memory_mb), too_many(use, mask)};
}

Overcommits overcommits(const std::vector<JobsOnNode> &nodes, const MaskSnapshot &masks)
{
	std::unordered_map<std::string, const JobsOnNode *> by_node;
	for (const JobsOnNode &use : nodes)
		by_node[use.node] = &use;
	Overcommits out;
	for (const auto &mask : masks.masks)
		if (auto it = by_node.find(mask->node); it != by_node.end())
			if (Overcommit over = overcommit(*it->second, *mask); over.any())
				out[mask->node] = std::move(over);
	return out;
}

std::string overcommit_text(const Overcommit &over)
{
	std::vector<std::string> parts;
	if (over.milli_cpu)
		parts.push_back(strprintf("%.4g CPUs", static_cast<double>(over.milli_cpu) / 1000));
	if (over.memory_mb)
		parts.push_back(std::to_string(over.memory_mb) + " MiB");
	for (const auto &[name, count] : over.gres)
		parts.push_back(name + ":" + std::to_string(count));
	return join(parts, ", ");
}

} // namespace sk8::core
