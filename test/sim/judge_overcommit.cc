// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of nodes of which jobs and pods have more than there is, since a pod came second: the engine counts
// them if, and only if, what Slurm's jobs have there and what is masked is more. Slurm tells what its jobs have when it has
// news of nodes, at each ping at the latest (ModelSlurm::plan_ping()): what is wrong for longer than that takes is a violation.
#include <algorithm>

#include "test/sim/judge_claims.h"

namespace sk8::sim {

// Each is counted once; a node of which nothing is known is masked as a whole, and is none of these.
bool Judge::is_overcommitted(const std::string &node, const core::NodeMask &mask) const
{
	const SelectNode &n = slurm_->select().nodes.at(node);
	const std::int64_t cores = slurm_->select().cores, memory = static_cast<std::int64_t>(slurm_->select().memory);
	const auto beyond = [](std::int64_t overhead, std::int64_t allocatable, std::int64_t offered) {
		return std::max<std::int64_t>(overhead - std::max<std::int64_t>(allocatable - offered, 0), 0);
	};
	const std::int64_t milli = 1000 * (std::ranges::count(n.used, true) + std::ssize(mask.cores) + std::int64_t{mask.more_cores}) +
				   mask.milli_cpu + beyond(mask.overhead_milli_cpu, mask.allocatable.milli_cpu, 1000 * cores);
	const std::int64_t used_memory = static_cast<std::int64_t>(n.memory + mask.memory_mb) +
					 beyond(static_cast<std::int64_t>(mask.overhead_mb),
						static_cast<std::int64_t>(mask.allocatable.memory_mb), memory);
	std::int64_t gpus = std::ranges::count(n.gpus, true) - (claims_ ? claims_->missing(node) : 0); // which is nobody's
	for (const auto &gres : mask.gres)
		gpus += static_cast<std::int64_t>(gres.count);
	const std::int64_t have_gpus = slurm_->select().gpus;
	return !mask.whole && (milli > 1000 * cores || used_memory > memory || (have_gpus > 0 && gpus > have_gpus));
}

void Judge::check_overcommit()
{
	static constexpr Micros within = 15 * second;
	if (time_.now() < overcommit_looked_at_ + second)
		return;
	overcommit_looked_at_ = time_.now();
	const auto told = slurm_->up() && !config_changed_ ? overcommitted() : std::nullopt;
	std::size_t truth = 0;
	if (const auto all = told ? masks() : nullptr)
		for (const auto &mask : all->masks)
			truth += api_.has_node(mask->node) && is_overcommitted(mask->node, *mask); // of others nobody knows what there is
	if (!told || *told == truth)
		overcommit_untrue_since_ = -1;
	else if (overcommit_untrue_since_ < 0)
		overcommit_untrue_since_ = time_.now();
	else if (time_.now() - std::max({overcommit_untrue_since_, bad_at_, away_at_}) > within)
		violation("I1: for a quarter of a minute the engine has told of " + std::to_string(*told) +
			  " nodes of which pods and jobs have more than there is, and it is so of " + std::to_string(truth));
}

} // namespace sk8::sim
