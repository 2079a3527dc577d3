// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Tells slurmctld's engine which cores the kubelet keeps for pods alone (lib/core/pinned_cores.h), and which devices it has
// given to which (lib/core/pod_devices.h), in annotations of this node: that is the kubelet's own to write, as which the agent
// speaks (admission plugin NodeRestriction).
//
// Where there is nothing to tell, nothing is watched and nothing written, but a former agent's annotations removed.
// Thread of the client's loop only.
#ifndef SK8_AGENT_NODE_REPORT_H
#define SK8_AGENT_NODE_REPORT_H

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lib/agent/cpus.h"
#include "lib/agent/kubelet_files.h"
#include "lib/kube/client.h"
#include "lib/kube/objects.h"
#include "lib/kube/reflector.h"

namespace sk8::agent {

class NodeReport {
public:
	// client must outlive this. node: this one. topology: of this machine.
	NodeReport(kube::Client &client, std::string node, KubeletFiles files, CpuTopology topology, kube::Random random);
	~NodeReport();

	// Some pod is another one now: the kubelet has written its files before it says so. Reads them. Not to be
	// called by a callback of this' own reflector.
	void look();
	// As of the last look.
	const DeviceManager &devices() const { return files_.devices(); }

private:
	using Notes = std::map<std::string, std::string>; // by name; empty: none
	void watch();
	void node_is(const kube::Node *node);
	Notes wanted();
	void write();

	kube::Client &client_;
	const std::string node_;
	KubeletFiles files_;
	DeviceOrder order_;
	const CpuTopology topology_;
	const kube::Random random_;
	kube::HttpLoop::TimerId timer_ = 0;
	std::unique_ptr<kube::Reflector<kube::Node>> reflector_; // null: there is nothing to watch for
	std::optional<Notes> known_; // what the node says; nullopt: nobody knows
	std::map<std::string, std::int64_t> capacity_; // with it
	kube::Client::CallId writing_ = 0;
};

} // namespace sk8::agent

#endif
