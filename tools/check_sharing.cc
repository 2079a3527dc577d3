// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// clusters[].nodes.sharing, and what it needs of Slurm.
#include "tools/check.h"

#include <algorithm>
#include <cstring>

#include "lib/base/text.h"

namespace sk8::tools {

bool has_prep_plugin(const SlurmConf &conf)
{
	const std::string configured = conf.get("PrEpPlugins", "prep/script");
	const auto list = split(configured, ',');
	return std::any_of(list.begin(), list.end(), [](auto name) { return trim(name) == "k8s" || trim(name) == "prep/k8s"; });
}

// key: where slurm-k8s.yaml says it; nodes: those that it says it for.
static void check_way(const std::string &about, const std::string &key, const std::string &nodes, core::Sharing sharing,
		      const SlurmConf &conf, Findings &out)
{
	switch (sharing) {
	case core::Sharing::none:
		out.warning(about, key + " is none: nothing keeps kube-scheduler from placing pods on the cores and the "
					 "memory of Slurm's jobs" + nodes + "; sharing: dedicated keeps its pods off the shared nodes");
		break;
	case core::Sharing::dedicated:
		out.ok(about, "dedicated: kube-scheduler is kept off by a taint" + nodes +
				      (has_prep_plugin(conf) ? "; Slurm's own jobs hold pods there for their containers (--k8s-image)"
							     : "; Slurm's own jobs have no containers there (--k8s-image), which "
							       "PrEpPlugins=prep/script,prep/k8s in slurm.conf makes"));
		break;
	case core::Sharing::mixed:
		if (!has_prep_plugin(conf))
			out.problem(about, key + " is mixed, but no job waits for the kubelets of its nodes; add "
					       "PrEpPlugins=prep/script,prep/k8s to slurm.conf");
		else
			out.ok(about, "mixed: Slurm's own jobs hold pods" + nodes + ", and the kubelets decide");
		break;
	}
}

// A kubelet knows its devices by number, so pods hold what jobs have. Where every node is mixed that is said already.
static void check_devices(const std::string &about, const core::ClusterSettings &cluster, const SlurmConf &conf, Findings &out)
{
	if (std::ranges::all_of(cluster.resources, [](const auto &r) { return r.kubernetes.empty(); }) ||
	    !(cluster.nodes.any(core::Sharing::none) || cluster.nodes.any(core::Sharing::dedicated)))
		return;
	if (!cluster.reservations.devices)
		out.warning(about, "reservations.devices is false: a kubelet may give a pod a device that a job of Slurm's own has; use that "
				   "only where they never both have devices of one node");
	else if (!has_prep_plugin(conf))
		out.problem(about, "resources names devices, but none of Slurm's own jobs waits until the kubelets keep theirs for it; add "
				   "PrEpPlugins=prep/script,prep/k8s to slurm.conf, or set reservations.devices: false if pods and jobs "
				   "never both have devices of one node");
	else
		out.ok(about, "devices of Slurm's own jobs are held by pods");
}

// What a driver's class has is claimed, and no pod of a job claims it: Kubernetes hears nothing of what Slurm's own jobs have.
static void check_classes(const std::string &about, const core::ClusterSettings &cluster, Findings &out)
{
	for (const core::ResourceSettings &r : cluster.resources) {
		if (r.device_class.empty())
			continue;
		const std::string of_job = "a device of deviceClass " + one_line(r.device_class, 128) + " that a job of Slurm's own has";
		if (cluster.nodes.any(core::Sharing::none))
			out.warning(about, "sharing is none on some nodes, or all: kube-scheduler may give any pod's claim " + of_job + "; use "
					   "sharing: dedicated where drivers have devices");
		else
			out.ok(about, "the taint of dedicated nodes keeps " + of_job + " from claims of others' pods; let no pod with claims tolerate it");
	}
}

static void check_exclusive(const std::string &about, const std::string &selector, const SlurmConf &conf, Findings &out)
{
	const std::string nodes = "nodes with " + one_line(selector, 128);
	if (!has_prep_plugin(conf))
		out.problem(about, "nodes.exclusive is set, but no job with --constraint=k8s.exclusive can wait until pods have left; "
				       "add PrEpPlugins=prep/script,prep/k8s to slurm.conf");
	else
		out.ok(about, "jobs with --constraint=k8s.exclusive have " + nodes + " without others' pods");
}

static bool suspends(const ConfValue &mode)
{
	return strcasestr(mode.value.c_str(), "suspend") || strcasestr(mode.value.c_str(), "gang");
}

// Slurm would start another job on what a suspended one has, and its pod holds on to it: the kubelet refuses the other one's.
static void check_suspension(const std::string &about, const SlurmConf &conf, Findings &out)
{
	static const std::string why = " suspends jobs, and on mixed nodes the pod of a suspended job holds on to its room, so that no other "
				       "job is let in there; use PreemptMode=CANCEL or REQUEUE";
	const ConfValue *mode = conf.find("PreemptMode");
	if (mode && suspends(*mode))
		return out.warning(about, mode->place() + ": PreemptMode=" + one_line(mode->value, 64) + why);
	for (const ConfLine &line : conf.partitions())
		if (const auto at = line.find("preemptmode"); at != line.end() && suspends(at->second))
			out.warning(about, at->second.place() + ": PreemptMode=" + one_line(at->second.value, 64) + " of partition " +
						   one_line(line.at("partitionname").value, 64) + why);
}

// The job that is absorbed ends, and its pods with it; the other one has got pods when it was launched, and they cannot follow it.
static void check_expansion(const std::string &about, const SlurmConf &conf, Findings &out)
{
	const ConfValue *parameters = conf.find("SchedulerParameters");
	if (parameters && strcasestr(parameters->value.c_str(), "permit_job_expansion")) // as Slurm looks for it
		out.warning(about, parameters->place() + ": permit_job_expansion lets a job absorb another one (--dependency=expand), and on mixed nodes "
				   "its pods do not grow: a kubelet knows nothing of what it has got like that, and lets other pods have it; remove "
				   "permit_job_expansion");
}

// Preemption by kube-scheduler (Kubernetes, "Pod Priority and Preemption") goes by the priority of the pods alone.
static void check_priority(const std::string &about, const core::ReservationSettings &settings, Findings &out)
{
	if (settings.priority_class.empty())
		out.ok(about, std::string("kube-scheduler may take the room of a job on mixed nodes for a pod of a higher priority, and the job ") +
				      (settings.eviction == core::ReservationSettings::OnEviction::ignore ? "goes on beside that pod" : "ends") +
				      ": reservations.priorityClass keeps it from that");
	else
		out.ok(about, "kube-scheduler takes no room of a job on mixed nodes for pods whose priority is not above that of PriorityClass " +
				      one_line(settings.priority_class, 64));
}

void check_sharing(const core::Settings &settings, const SlurmConf &conf, Findings &out)
{
	for (const auto &cluster : settings.clusters) {
		const std::string about = "sharing of " + cluster.name;
		const auto &groups = cluster.nodes.groups;
		for (std::size_t i = 0; i < groups.size(); i++)
			check_way(about, "nodes.groups[" + std::to_string(i) + "].sharing", " on nodes with " + one_line(groups[i].selector, 128),
				  groups[i].sharing, conf, out);
		check_way(about, "nodes.sharing", groups.empty() ? "" : " on the others", cluster.nodes.sharing, conf, out);
		if (cluster.nodes.any(core::Sharing::mixed)) {
			check_suspension(about, conf, out);
			check_expansion(about, conf, out);
			check_priority(about, cluster.reservations, out);
		}
		check_devices(about, cluster, conf, out);
		check_classes(about, cluster, out);
		if (cluster.nodes.exclusive.on())
			check_exclusive(about, cluster.nodes.exclusive.selector, conf, out);
	}
}

} // namespace sk8::tools
