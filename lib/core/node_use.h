// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What pods, ours and others', use of a node beside cores and memory: host ports and
// pod slots (allocatable.pods). Slurm knows neither, the kubelet would refuse the
// pod; so a node where they are taken is excluded, or masked. Engine thread only, no I/O.
#ifndef SK8_CORE_NODE_USE_H
#define SK8_CORE_NODE_USE_H

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "lib/kube/objects.h"

namespace sk8::core {

class NodeUse {
public:
	// The pod of that uid is on the node, with all that it uses there. true: for some
	// pod the answer of objection() may be another now.
	bool add(const std::string &uid, const std::string &node, const std::vector<kube::HostPort> &ports);
	// It is over. The same.
	bool remove(const std::string &uid);
	// Allocatable pods of a node; 0: not known, no limit. The same.
	bool set_slots(const std::string &node, std::int64_t slots);

	// Nodes that have all the pods that they can have.
	const std::set<std::string> &full() const { return full_; }
	// True once after that has become another set.
	bool full_changed() { return std::exchange(full_changed_, false); }

	// Empty: there is room for it on the node. Else why not, a few words. A pod is
	// never in its own way.
	std::string objection(const std::string &uid, const kube::Pod &pod, const std::string &node) const;
	// Nodes where its host ports are taken. Not the full ones: Slurm refuses a job for which there is no other node, and masks
	// keep it from these (mask_index.h).
	std::set<std::string> excluded(const std::string &uid, const kube::Pod &pod) const;

private:
	struct OfNode {
		std::set<std::string> pods;                               // uids
		std::multimap<std::int32_t, std::pair<kube::HostPort, std::string>> ports; // port -> who
		std::int64_t slots = 0;
		bool full() const { return slots > 0 && static_cast<std::int64_t>(pods.size()) >= slots; }
	};
	static std::string port_taken(const std::string &uid, const kube::Pod &pod, const OfNode &n);
	void note(const std::string &node, const OfNode &of);

	std::map<std::string, OfNode> nodes_;
	std::set<std::string> full_;
	bool full_changed_ = false;
	std::unordered_map<std::string, std::string> where_; // uid -> node
};

} // namespace sk8::core

#endif
