// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Has Slurm the devices that Kubernetes has? Pure.
#include <algorithm>
#include <map>

#include "lib/base/text.h"
#include "tools/check.h"

namespace sk8::tools {

static constexpr std::size_t most_sentences = 20;

// Of what everybody has, as hugepages, nothing is said where no node of Slurm's has it, and of what may come and go nothing while it
// is less than Slurm's.
static bool matters(const core::GresDifference &d, const std::vector<NodeDevices> &nodes, const core::ClusterSettings &settings)
{
	if (d.missing == core::ResourceSettings::Missing::all && d.wanted < d.has)
		return false;
	auto named = [&](const auto &g) { return g.name == d.name; };
	return d.name == "gpu" || std::ranges::any_of(settings.resources, [&](const auto &r) { return r.gres == d.name; }) ||
	       std::ranges::any_of(nodes, [&](const NodeDevices &n) { return std::ranges::any_of(n.slurm, named); });
}

static std::string sentence(const core::GresDifference &d, const std::string &nodes, const std::string &example)
{
	const std::string what = d.name + (d.type.empty() ? "" : ":" + d.type);
	const std::string begin = "Kubernetes has " + std::to_string(d.wanted) + " of " + what + " (" + one_line(d.kubernetes, 128) + ") on " + nodes +
				  " and Slurm " + std::to_string(d.has) + ": ";
	if (d.has < d.wanted)
		return begin + "give Slurm the others by Gres= in slurm.conf and gres.conf, slurm-k8s gres --node " + example +
		       " --format=slurm says how; then restart slurmd, and slurmctld after it";
	const std::string look = "look at the device plugin and the devices there, and take what is gone for good from slurm.conf and gres.conf, then "
				 "restart slurmctld, and slurmd after it";
	return begin + (d.missing == core::ResourceSettings::Missing::ignore ? "the others are Slurm's alone (missing: ignore in slurm-k8s.yaml); if that was not meant, " + look
				   : "the others are kept from jobs until the kubelet has them again; " + look);
}

static bool is_in_slurm(const core::IdentifiedGres &g, const NodeDevices &n)
{
	return std::ranges::any_of(n.slurm, [&](const core::Gres &s) { return s.name == g.name && s.count > 0; });
}

// Slurm's jobs get some of it, and so may any pod, and nobody takes the ones from the others.
static bool is_uncounted(const std::string &resource, const core::IdentifiedGres &g, const NodeDevices &n, const core::ClusterSettings &settings)
{
	return !g.by_driver && g.count > 0 && !core::find_resource(settings.resources, resource) && is_in_slurm(g, n);
}

// What pods have of it is kept from Slurm's jobs, and what jobs have from no pod: Reservations::requested_on() says why.
static bool is_unheld(const std::string &resource, const core::IdentifiedGres &g, const NodeDevices &n, const core::ClusterSettings &settings)
{
	const auto names = [&](const auto &resources) {
		return std::ranges::find(resources, resource, &core::ResourceSettings::kubernetes) != resources.end();
	};
	return !g.by_driver && g.count > 0 && core::find_resource(settings.resources, resource) && !names(settings.resources) &&
	       !(settings.reserves_unnamed_devices(n.mixed) && names(core::with_own(settings.resources))) && is_in_slurm(g, n);
}

using IsOdd = bool (*)(const std::string &resource, const core::IdentifiedGres &, const NodeDevices &, const core::ClusterSettings &);

static std::map<std::string, std::vector<std::string>> nodes_by_resource(const std::vector<NodeDevices> &nodes, const core::ClusterSettings &settings,
									 IsOdd is_odd)
{
	std::map<std::string, std::vector<std::string>> where;
	for (const NodeDevices &n : nodes)
		for (const auto &g : n.kubernetes.gres)
			for (const auto part : split(g.kubernetes, ',')) {
				const std::string resource(trim(part));
				if (is_odd(resource, g, n, settings) && (where.size() < most_sentences || where.contains(resource)))
					where[resource].push_back(n.node);
			}
	return where;
}

static void check_uncounted(const std::vector<NodeDevices> &nodes, const core::ClusterSettings &settings, const std::string &about, Findings &out)
{
	for (const auto &[resource, names] : nodes_by_resource(nodes, settings, is_unheld))
		out.warning(about, "what Slurm's own jobs have of " + one_line(resource, 128) + " on " + some(names) +
					   " no pod of theirs requests, and the kubelets may give it to others' pods: name it under resources in slurm-k8s.yaml");
	for (const auto &[resource, names] : nodes_by_resource(nodes, settings, is_uncounted))
		out.warning(about, "what pods have of " + one_line(resource, 128) + " on " + some(names) + " is not kept from Slurm's jobs, which get it as a GRES: " +
					   (resource.find('/') == resource.npos ? "it cannot be named under resources in slurm-k8s.yaml, so let one side have none of it there"
										 : "name it under resources in slurm-k8s.yaml"));
}

void check_gres(const std::vector<NodeDevices> &nodes, const core::ClusterSettings &settings, const std::string &about, Findings &out)
{
	struct Same {
		core::GresDifference what;
		std::vector<std::string> nodes;
	};
	std::vector<Same> all;
	std::size_t compared = 0, left_out = 0;
	for (const NodeDevices &n : nodes) {
		for (const auto &problem : n.kubernetes.problems)
			out.warning(about, n.node + ": " + problem);
		compared += !n.kubernetes.gres.empty();
		for (auto &d : core::gres_differences(n.kubernetes, n.slurm)) {
			if (!matters(d, nodes, settings))
				continue;
			auto same = std::ranges::find(all, d, &Same::what);
			if (same != all.end())
				same->nodes.push_back(n.node);
			else if (all.size() < most_sentences)
				all.push_back({std::move(d), {n.node}});
			else
				left_out++;
		}
	}
	check_uncounted(nodes, settings, about, out);
	for (const Same &s : all)
		out.warning(about, sentence(s.what, some(s.nodes), s.nodes.front()));
	if (left_out)
		out.warning(about, std::to_string(left_out) + " more differences; slurm-k8s gres lists all nodes");
	if (all.empty() && compared)
		out.ok(about, "Slurm has as many as Kubernetes on " + std::to_string(compared) + (compared == 1 ? " node" : " nodes"));
}

} // namespace sk8::tools
