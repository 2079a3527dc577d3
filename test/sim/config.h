// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What stands in slurm-k8s.yaml. People change it, and put it right in the end; it counts
// from the next reconfigure or start on.
#ifndef SK8_SIM_CONFIG_H
#define SK8_SIM_CONFIG_H

#include <algorithm>
#include <string>
#include <vector>

#include "lib/core/settings.h"
#include "test/sim/case.h"
#include "test/sim/model_claims.h"

namespace sk8::sim {

inline constexpr const char *gpu_resource = "nvidia.com/gpu";
inline constexpr const char *chosen_condition = "KernelDeadlock"; // for which Slurm drains a node

struct Config {
	core::ClusterSettings settings;
	bool broken = false; // it cannot be read

	// The label "name" of each node is its name.
	bool shares(const std::string &node) const
	{
		return settings.nodes.selector.empty() || settings.nodes.selector == "name=" + node;
	}
	bool mixes(const std::string &node) const
	{
		return shares(node) && std::ranges::any_of(settings.nodes.groups, [&](const auto &g) {
			return g.selector == "name=" + node && g.sharing == core::Sharing::mixed;
		});
	}
	// Has a job of Slurm's own a pod there for its GPUs, and for nothing else?
	bool holds_devices(const std::string &node) const { return shares(node) && !mixes(node) && settings.reserves_devices(); }
	bool maps(const std::string &user) const
	{
		for (const auto &ns : settings.namespaces)
			if (ns.user == user)
				return true;
		return false;
	}
};

inline Config usual_config(const std::vector<std::string> &nodes)
{
	Config out;
	out.settings.name = "c";
	core::NamespaceSettings ns;
	ns.match = "team-*";
	ns.user = "alice";
	ns.allow.partition = {"high", "top"};
	ns.allow.qos = {"patient"};
	ns.bare_pods = core::NamespaceSettings::BarePods::resubmit;
	out.settings.namespaces.push_back(ns);
	out.settings.nodes.names = nodes; // see let_be_unnamed()
	out.settings.state.conditions = {chosen_condition};
	out.settings.resources = {{gpu_resource, "gpu", ""}};
	return out;
}

// See Case::unnamed.
inline void let_be_unnamed(core::ClusterSettings &settings, const Case &c)
{
	if (c.unnamed)
		settings.nodes.names.clear();
}

// Which jobs of Slurm's own have pods, see Case::mixed and Case::device_pods.
inline void let_reserve(core::ClusterSettings &settings, const Case &c)
{
	using OnEviction = core::ReservationSettings::OnEviction;
	for (int n = 1; n <= c.mixed; n++)
		settings.nodes.groups.push_back({"name=n" + std::to_string(n), core::Sharing::mixed});
	settings.nodes.gate_timeout = Millis(c.gate_timeout * 1000);
	settings.reservations.devices = c.mixed > 0 || c.device_pods;
	settings.reservations.shared.max_cpus = static_cast<std::uint32_t>(c.shared);
	settings.reservations.eviction = c.eviction == "requeue"  ? OnEviction::requeue
					 : c.eviction == "cancel" ? OnEviction::cancel
								  : OnEviction::ignore;
}

// Devices that drivers tell of, see Case::claims: then there are no others.
inline void let_claim(core::ClusterSettings &settings, const Case &c)
{
	if (!c.claims)
		return;
	settings.resources = {{"", "gpu", ""}};
	settings.resources[0].device_class = claim_class;
}

inline constexpr struct {
	const char *name;
	std::uint32_t uid;
} config_users[] = {{"alice", 1000}, {"bob", 1001}};

} // namespace sk8::sim

#endif
