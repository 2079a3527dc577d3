// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/untold_nodes.h"

#include <algorithm>

namespace sk8::core {

std::vector<UntoldNodes> untold_nodes(const std::map<std::string, bool> &ledgers, const std::vector<ClusterSettings> &clusters,
				      const std::vector<std::string> &nodes_of_slurm)
{
	std::vector<UntoldNodes> out;
	for (const auto &[cluster, whole] : ledgers)
		if (!whole && std::ranges::find(clusters, cluster, &ClusterSettings::name) == clusters.end())
			out.push_back({cluster, nodes_of_slurm, Wait::until_it_has});
	for (const auto &c : clusters) {
		const auto ledger = ledgers.find(c.name);
		const bool is_whole = ledger != ledgers.end() && ledger->second;
		if (is_whole && !c.nodes.any(Sharing::mixed))
			continue;
		const bool is_known = ledger != ledgers.end() || !c.nodes.names.empty();
		out.push_back({c.name, c.nodes.names.empty() ? nodes_of_slurm : c.nodes.names,
			       is_whole ? Wait::a_moment : is_known ? Wait::until_it_has : Wait::a_while});
	}
	return out;
}

std::optional<Millis> at_most(Wait wait, Millis most)
{
	if (wait == Wait::until_it_has)
		return std::nullopt;
	return wait == Wait::a_while ? most : std::min(most, moment_wait);
}

} // namespace sk8::core
