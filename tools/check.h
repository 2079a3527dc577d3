// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s check: what would go wrong after the next start of slurmctld, found
// before. Slurm's side is slurm.conf itself (slurm_conf.h says why), and Slurm's own
// commands for what is not in it; Kubernetes is asked with the engine's credentials.
// All of this blocks on disk, processes and network, each with a limit.
#ifndef SK8_TOOLS_CHECK_H
#define SK8_TOOLS_CHECK_H

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/foreign_pod.h"
#include "lib/core/gres_identification.h"
#include "lib/core/node_features.h"
#include "lib/core/settings.h"
#include "tools/findings.h"
#include "tools/run.h"
#include "tools/slurm_conf.h"

namespace sk8::tools {

class Accounting;

// A node as Slurm has it.
struct CheckedNode {
	std::uint64_t cores = 0;      // 0: not known
	std::uint64_t threads_per_core = 1;
	std::uint64_t spec_cores = 0; // CoreSpecCount: of these, not for jobs
	std::uint64_t memory_mb = 0;  // 0: not known
	std::uint64_t spec_mb = 0;    // MemSpecLimit: of that, not for jobs
	core::GresList gres{};        // by name and type
};

// ... and as Kubernetes has it; 0: not known. own: what pods request that belong to the node
// (DaemonSets', static ones), of allocatable. 1000 = one hardware thread; memory in MiB.
struct NodeRoom {
	std::string node;
	CheckedNode slurm;
	std::int64_t allocatable_milli_cpu = 0, allocatable_mb = 0;
	std::int64_t own_milli_cpu = 0, own_mb = 0;
};

// A node's devices on both sides.
struct NodeDevices {
	std::string node;
	core::NodeGres kubernetes;
	core::GresList slurm;
	bool mixed = false; // a pod stands for each of Slurm's own jobs
};

// What Slurm says about itself.
struct SlurmSide {
	std::uint32_t slurm_uid = 0;
	std::map<std::string, CheckedNode> nodes; // by name
	bool nodes_known = false;
};

// Nodes of Slurm that Kubernetes shares.
struct SharedNames {
	std::set<std::string> nodes;
	std::size_t unknown = 0; // clusters that have not told theirs
};

// What former settings have left in Kubernetes.
struct Leftovers {
	std::vector<std::string> cordoned; // for Slurm, which has no such node
	std::map<std::string, std::vector<std::string>> pods; // for jobs, by namespace: others than that for such pods

	void see(const kube::Node &node, const SlurmSide &side);
	// reservations: their namespace
	void see(const core::ForeignPod &pod, const std::string &reservations, const SlurmSide &side);
};

// slurmctld's own files and plugins.
void check_slurm(const SlurmConf &conf, const Runner &run, SlurmSide &side, Findings &out);
// Part of it: PluginDir, the plugins, Slurm's version.
void check_plugins(const SlurmConf &conf, const Runner &run, Findings &out);
// Another host than the controller's, with the same slurm.conf: can Slurm use it there?
void check_compute_node(const SlurmConf &conf, const Runner &run, Findings &out);
// ... and what the agent in its slurmd needs there. path: slurm-k8s-node.yaml, which need not be there; cgroup_mount: /sys/fs/cgroup.
void check_agent(const SlurmConf &conf, const std::string &path, const std::string &cgroup_mount, Findings &out);
// slurm-k8s.yaml: may it be read, is it right? Nothing if it cannot be used.
std::optional<core::Settings> check_settings(const std::string &path, std::uint32_t slurm_uid, Findings &out);
// Do users, accounts, partitions and QOS of the mapping exist?
void check_mapping(const core::Settings &settings, const SlurmConf &conf, const Runner &run, Findings &out);
// What keeps Kubernetes from giving others what Slurm's jobs use?
void check_sharing(const core::Settings &settings, const SlurmConf &conf, Findings &out);
// The jobs of all pods of one entry of namespaces, where these choose nothing else: one of these each, none: not known, or of no
// account to Slurm. By name: what else is as good where a partition allows it (for an account, those above it).
struct PodsJob {
	std::map<std::string, std::set<std::string>> accounts{}, qos{}, groups{};
};
// Part of check_mapping(), pure: why this partition takes none of them, one sentence each; line: its own in slurm.conf.
std::vector<std::string> kept_out_of(const std::string &partition, const ConfLine &line, const PodsJob &job);
// ... by slurmdbd, too, and the user's groups on this host.
std::vector<std::string> kept_out(const core::NamespaceSettings &ns, const std::string &partition, const ConfLine &line,
				  const SlurmConf &conf, Accounting &db);
// Does Slurm see to it that jobs name accounts of their users only, where what jobs may have goes by {account}?
void check_accounts(const core::Settings &settings, const SlurmConf &conf, Findings &out);
// GresTypes, nodes and partitions that tokens.partitions needs.
void check_tokens(const core::Settings &settings, const SlurmConf &conf, Findings &out);
// ... and of the nodes of these partitions: shared has those that Kubernetes shares. Pure.
void check_token_nodes(const core::Settings &settings, const SlurmConf &conf, const std::set<std::string> &shared, Findings &out);
// Does gres.conf, beside slurm.conf, count devices that pods claim as their driver does? Reads the disk.
void check_gres_conf(const core::Settings &settings, const SlurmConf &conf, Findings &out);
// On a node: has each device of it that gres.conf names a file? host: as slurm.conf calls it, by NodeName or NodeHostname. Reads the disk.
void check_gres_files(const SlurmConf &conf, const std::string &host, Findings &out);
// Does slurm.conf name prep/k8s? slurmd loads it, too.
bool has_prep_plugin(const SlurmConf &conf);
// Kubernetes: connection, rights, version, clock, and its nodes beside Slurm's.
void check_cluster(const core::ClusterSettings &settings, const SlurmSide &side, SharedNames &shared, Findings &out);
// Part of it, pure: does slurm.conf set aside what nodes need for themselves?
void check_room(const std::vector<NodeRoom> &nodes, const std::string &about, Findings &out);
// Part of it, pure: does Slurm have the devices that Kubernetes has?
void check_gres(const std::vector<NodeDevices> &nodes, const core::ClusterSettings &settings, const std::string &about, Findings &out);
// Which labels that nodes.features names make no feature, and why.
using NodeLabels = std::pair<std::string, core::LabelFeatures>; // a node's name, and what its labels make
void check_labels(const std::vector<NodeLabels> &nodes, const std::string &about, Findings &out);
// Part of it, pure: is anything left that nobody takes away?
void check_leftovers(const Leftovers &left, const core::ClusterSettings &settings, Findings &out);
// "n1, n2 and 98 more"
std::string some(const std::vector<std::string> &names);
// Part of it, pure: date: the server's clock at some time between before and after.
void check_clock(std::int64_t date, std::int64_t before, std::int64_t after, const std::string &about, Findings &out);

} // namespace sk8::tools

#endif
