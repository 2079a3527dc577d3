// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What former settings have left in Kubernetes, and the engine of today leaves alone: it may be another Slurm's. Pure.
#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/placement.h"
#include "lib/core/reservation.h"
#include "lib/core/shared_reservation.h"
#include "tools/check.h"

namespace sk8::tools {

void Leftovers::see(const kube::Node &node, const SlurmSide &side)
{
	if (core::is_cordoned_for_slurm(node) && !side.nodes.contains(node.meta.name))
		cordoned.push_back(one_line(node.meta.name, 64));
}

void Leftovers::see(const core::ForeignPod &pod, const std::string &reservations, const SlurmSide &side)
{
	if (pod.meta.ns == reservations || pod.ended() || !side.nodes.contains(pod.node_name))
		return;
	if (core::job_of_reservation(pod.meta.name, pod.node_name) ||
	    core::node_of_shared_reservation(pod.meta.name) == pod.node_name)
		pods[pod.meta.ns].push_back(one_line(pod.meta.name, 64));
}

static void tell_cordoned(const std::vector<std::string> &nodes, const std::string &about, Findings &out)
{
	std::string notes;
	for (const auto name : {core::names::drain_owner, core::names::drain_reason, core::names::drain_by})
		notes += " " + std::string(name) + "-";
	out.warning(about, "cordoned for Slurm, which has no node of these names: " + some(nodes) +
				   "; if no other Slurm has them: kubectl uncordon NODE; kubectl annotate node NODE" + notes);
}

void check_leftovers(const Leftovers &left, const core::ClusterSettings &settings, Findings &out)
{
	if (!left.cordoned.empty())
		tell_cordoned(left.cordoned, "nodes of " + settings.name, out);
	for (const auto &[ns, names] : left.pods)
		out.warning("reservation pods of " + settings.name,
			    "namespace " + ns + " has some, and reservations.namespace is " + settings.reservations.ns + ": " +
				    some(names) + "; nobody deletes them, and what they hold is masked beside their jobs: kubectl -n " +
				    ns + " delete pods -l " + std::string(core::names::reservation_job) +
				    ", those in which tasks run when their jobs have ended");
}

} // namespace sk8::tools
