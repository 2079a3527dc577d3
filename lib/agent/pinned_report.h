// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Tells slurmctld's engine which cores the kubelet keeps for pods alone (lib/core/pinned_cores.h), in an annotation of
// this node: that is the kubelet's own to write, as which the agent speaks (admission plugin NodeRestriction).
//
// Where the CPU manager does not pin, nothing is watched and nothing written, but a former agent's annotation removed.
// Thread of the client's loop only.
#ifndef SK8_AGENT_PINNED_REPORT_H
#define SK8_AGENT_PINNED_REPORT_H

#include <memory>
#include <optional>
#include <string>

#include "lib/agent/cpus.h"
#include "lib/kube/client.h"
#include "lib/kube/objects.h"
#include "lib/kube/reflector.h"

namespace sk8::agent {

class PinnedReport {
public:
	// client must outlive this. node: this one. topology: of this machine.
	PinnedReport(kube::Client &client, std::string node, std::string kubelet_root_dir, CpuTopology topology,
		     kube::Random random);
	~PinnedReport();

	// Some pod is another one now: the kubelet has written its file before it says so. Reads that file. Not to be
	// called by a callback of this' own reflector.
	void look();

private:
	void watch();
	void node_is(const kube::Node *node);
	void write();

	kube::Client &client_;
	const std::string node_, kubelet_root_dir_;
	const CpuTopology topology_;
	const kube::Random random_;
	kube::HttpLoop::TimerId timer_ = 0;
	std::unique_ptr<kube::Reflector<kube::Node>> reflector_; // null: there is nothing to watch for
	std::optional<std::string> known_; // what the node says; nullopt: nobody knows
	std::string wanted_;
	kube::Client::CallId writing_ = 0;
};

} // namespace sk8::agent

#endif
