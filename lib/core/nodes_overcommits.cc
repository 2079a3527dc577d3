// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The nodes controller's part for nodes that have more than there is: people are told when that begins.
#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/core/nodes_controller.h"

namespace sk8::core {

static constexpr std::size_t most_named = 5;

// A device that its kubelet has lost is masked, too, and nobody has it twice.
static Overcommit without_missing(Overcommit over, const GresList &missing)
{
	for (const Gres &g : missing)
		if (auto it = over.gres.find(g.name); it != over.gres.end())
			it->second -= std::min(it->second, g.count);
	std::erase_if(over.gres, [](const auto &named) { return named.second == 0; });
	return over;
}

void NodesController::overcommits(const Overcommits &all)
{
	std::vector<std::string> begun;
	for (auto &[name, e] : entries_) {
		const auto it = all.find(name);
		const bool ours = it != all.end() && e.kube && shared_.has(*e.kube);
		Overcommit now = ours ? without_missing(it->second, e.missing) : Overcommit();
		if (now.any() && !e.over.any())
			begun.push_back(name + " (" + overcommit_text(now) + ")");
		e.over = std::move(now);
	}
	if (begun.empty())
		return;
	std::ranges::sort(begun);
	const std::size_t more = begun.size() > most_named ? begun.size() - most_named : 0;
	begun.resize(begun.size() - more);
	log_warning("cluster %s: pods and Slurm's jobs together have more than there is of %s%s: a pod came second that asks no scheduler, "
		    "or that tolerates the taint of shared nodes; doc/sharing.md",
		    settings_.name.c_str(), join(begun, ", ").c_str(), more ? (" and " + std::to_string(more) + " more nodes").c_str() : "");
}

std::size_t NodesController::overcommitted() const
{
	return static_cast<std::size_t>(std::ranges::count_if(entries_, [](const auto &entry) { return entry.second.over.any(); }));
}

} // namespace sk8::core
