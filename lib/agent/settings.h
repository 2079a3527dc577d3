// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s-node.yaml as a value. The table of keys is in settings.cc; the man page
// slurm-k8s-node.yaml(5) is printed from it.
#ifndef SK8_AGENT_SETTINGS_H
#define SK8_AGENT_SETTINGS_H

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/config.h"

namespace sk8::agent {

struct AgentSettings {
	std::string kubeconfig = "/etc/kubernetes/kubelet.conf"; // the kubelet's own, as kubeadm names it
	std::string context;                                     // empty: the file's current one
	bool pinning = true;
	bool confine_foreign_pods = false;
	std::string reservations_ns = "slurm-k8s-jobs";
	std::string cgroup_root = "/";
	std::string kubelet_root_dir = "/var/lib/kubelet";
	std::string device_plugin_dir = "/var/lib/kubelet/device-plugins"; // the kubelet's DevicePluginPath: no setting of it
};

// uid: who besides root may own the file. Reads it.
Result<AgentSettings> load_agent_settings(const std::string &path, std::uint32_t uid);
Result<AgentSettings> parse_agent_settings(const std::string &text, const std::string &file_name);
std::vector<FieldDoc> describe_agent_settings();

} // namespace sk8::agent

#endif
