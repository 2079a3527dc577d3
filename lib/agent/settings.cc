// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/settings.h"

#include "lib/base/text.h"

namespace sk8::agent {

static std::string not_absolute(const std::string &path)
{
	return path.starts_with('/') ? "" : "is no absolute path, use one that starts with \"/\"";
}

static const Schema<AgentSettings> &schema()
{
	static const auto *table = new Schema<AgentSettings>{
		field("kubeconfig", &AgentSettings::kubeconfig,
		      "Credentials for the API server: the kubelet's own, with which the agent may see the pods of its node "
		      "and no more. Read again when it changes.")
			.check(not_absolute),
		field("context", &AgentSettings::context, "Context of the kubeconfig.").default_text("the file's current-context"),
		field("pinning", &AgentSettings::pinning,
		      "Keep pods that Slurm has placed on the cores that it gave them. With false those that an agent has put "
		      "there get the CPUs of all pods back."),
		field("confineForeignPods", &AgentSettings::confine_foreign_pods,
		      "Keep pods that others have placed (kube-scheduler's, DaemonSets', static pods) off the cores of Slurm's jobs that "
		      "have the node to themselves (--exclusive), as long as these have steps there. Something must be left for the pods: "
		      "set CoreSpecCount on the node. With false those that an agent has confined get the CPUs of all pods back."),
		field("reservationsNamespace", &AgentSettings::reservations_ns,
		      "Namespace of the pods of Slurm's jobs: reservations.namespace of slurm-k8s.yaml(5) on the controller. Steps are let "
		      "into containers there (--k8s-image)."),
		field("cgroupRoot", &AgentSettings::cgroup_root,
		      "The folder below /sys/fs/cgroup (with version 1: below that of its cpuset controller) in which the kubelet's kubepods or "
		      "kubepods.slice is: its cgroupRoot.")
			.check(not_absolute),
		field("kubeletRootDir", &AgentSettings::kubelet_root_dir,
		      "The kubelet's --root-dir. Where its CPU manager has the policy static, which pins pods itself, the agent pins none, but "
		      "tells slurmctld which cores these pods have, in an annotation of the node.")
			.check(not_absolute),
		field("devicePluginDir", &AgentSettings::device_plugin_dir,
		      "Where device plugins find the kubelet; it is the same whatever --root-dir says. The kubelet keeps there which pods have "
		      "which devices, and the agent tells slurmctld, in an annotation of the node.")
			.check(not_absolute),
	};
	return *table;
}

Result<AgentSettings> load_agent_settings(const std::string &path, std::uint32_t uid)
{
	return load_config(path, uid, schema());
}

Result<AgentSettings> parse_agent_settings(const std::string &text, const std::string &file_name)
{
	return parse_config(text, file_name, schema());
}

std::vector<FieldDoc> describe_agent_settings()
{
	return describe(schema());
}

} // namespace sk8::agent
