// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Tells slurmctld's engine which cores the kubelet keeps for pods alone (lib/core/pinned_cores.h), which devices it has given
// to which (lib/core/pod_devices.h), and which cores are of which NUMA node (lib/core/numa_cores.h), in annotations of this
// node: that is the kubelet's own to write, as which the agent speaks (admission plugin NodeRestriction). And answers there,
// when the engine asks in another annotation, of which lost pods nothing is left (gone_pods.h).
//
// Where there is nothing to tell, nothing is written, but a former agent's annotations removed. Thread of the client's loop
// only; reads files of the kubelet and of cgroups, which no network is behind.
#ifndef SK8_AGENT_NODE_REPORT_H
#define SK8_AGENT_NODE_REPORT_H

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lib/agent/cpus.h"
#include "lib/agent/gone_pods.h"
#include "lib/agent/kubelet_files.h"
#include "lib/agent/pod_cgroups.h"
#include "lib/core/numa_cores.h"
#include "lib/kube/client.h"
#include "lib/kube/objects.h"
#include "lib/kube/reflector.h"

namespace sk8::agent {

// Nothing: it makes no sense. Pure.
std::optional<KubeletLease> parse_lease(const Json &lease);

class NodeReport {
public:
	// client must outlive this. node: this one. topology, numa: of this machine.
	NodeReport(kube::Client &client, std::string node, KubeletFiles files, CpuTopology topology,
		   const core::NumaCores &numa, PodCgroups cgroups, kube::Random random);
	~NodeReport();

	// Some pod is another one now: the kubelet has written its files before it says so. Reads them. Not to be
	// called by a callback of this' own reflector.
	void look();
	// As of the last look.
	const DeviceManager &devices() const { return files_.devices(); }
	// The uids of all pods that the API server has on this node.
	void set_pods(std::set<std::string> uids) { pods_ = std::move(uids); }

private:
	using Notes = std::map<std::string, std::string>; // by name; empty: none
	void watch();
	void node_is(const kube::Node *node);
	void ask_for_lease();
	void look_for_lost(const kube::Reply &lease);
	Notes wanted();
	void write();

	kube::Client &client_;
	const std::string node_;
	KubeletFiles files_;
	DeviceOrder order_;
	const CpuTopology topology_;
	const std::string numa_; // as it is told
	const PodCgroups cgroups_;
	const kube::Random random_;
	SystemClock clock_;
	std::set<std::string> pods_;
	GonePods lost_;
	kube::HttpLoop::TimerId timer_ = 0, lost_timer_ = 0;
	kube::Client::CallId reading_lease_ = 0;
	std::unique_ptr<kube::Reflector<kube::Node>> reflector_;
	std::optional<Notes> known_; // what the node says; nullopt: nobody knows
	std::map<std::string, std::int64_t> capacity_; // with it
	kube::Client::CallId writing_ = 0;
};

} // namespace sk8::agent

#endif
