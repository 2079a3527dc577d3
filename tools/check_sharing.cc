// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// clusters[].nodes.sharing, and what it needs of Slurm.
#include "tools/check.h"

#include <algorithm>

#include "lib/base/text.h"

namespace sk8::tools {

bool has_prep_plugin(const SlurmConf &conf)
{
	const std::string configured = conf.get("PrEpPlugins", "prep/script");
	const auto list = split(configured, ',');
	return std::any_of(list.begin(), list.end(), [](auto name) { return trim(name) == "k8s" || trim(name) == "prep/k8s"; });
}

static void check_mixed(const std::string &about, const SlurmConf &conf, Findings &out)
{
	if (!has_prep_plugin(conf))
		out.problem(about, "nodes.sharing is mixed, but no job waits for the kubelets of its nodes; add "
				   "PrEpPlugins=prep/script,prep/k8s to slurm.conf");
	else
		out.ok(about, "mixed: Slurm's own jobs hold pods, and the kubelets decide");
}

void check_sharing(const core::Settings &settings, const SlurmConf &conf, Findings &out)
{
	using Sharing = core::NodeSettings::Sharing;
	for (const auto &cluster : settings.clusters) {
		const std::string about = "sharing of " + cluster.name;
		switch (cluster.nodes.sharing) {
		case Sharing::none:
			out.warning(about, "nodes.sharing is none: nothing keeps kube-scheduler from placing pods on the cores and the "
					   "memory of Slurm's jobs; sharing: dedicated keeps its pods off the shared nodes");
			break;
		case Sharing::dedicated:
			out.ok(about, "dedicated: kube-scheduler is kept off by a taint");
			break;
		case Sharing::mixed:
			check_mixed(about, conf, out);
			break;
		}
	}
}

} // namespace sk8::tools
