// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// On which cores a node's kubelet keeps pods to themselves (its CPU manager's policy static). The agent there says it in
// an annotation of the node, and the engine masks exactly these cores for such a pod instead of as many as it requests.
//
//	slurm-k8s.io/pinned-cores: {"<uid of the pod>":{"cores":[2,3],"cpus":4}, ...}
#ifndef SK8_CORE_PINNED_CORES_H
#define SK8_CORE_PINNED_CORES_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/core/agent_word.h"
#include "lib/kube/objects.h"

namespace sk8::core {

struct PinnedPod {
	std::vector<std::uint16_t> cores; // those of which it has a CPU, by Slurm's abstract index; sorted, each once
	std::uint32_t cpus = 0;           // that are its own: hardware threads

	bool operator==(const PinnedPod &) const = default;
};
using PinnedPods = std::map<std::string, PinnedPod>; // by uid

// The annotation's text; empty: none is pinned. Pure.
std::string pinned_text(const PinnedPods &pods);
// Error: it is none of ours; whoever may write annotations of nodes may write anything. Pure.
Result<PinnedPods> parse_pinned(std::string_view text);

// What all nodes say. One thread.
class PinnedCores {
public:
	// What this node says is another thing now. Of a text that is no such list nothing counts, and it is told once.
	bool read(const kube::Node &node);
	// nullptr: it is not pinned, as far as is known. Until the next read().
	const PinnedPod *find(const std::string &node, const std::string &uid) const;

private:
	struct OfNode {
		AgentWord word;
		PinnedPods pods;
	};
	std::unordered_map<std::string, OfNode> nodes_; // those that say something
};

} // namespace sk8::core

#endif
