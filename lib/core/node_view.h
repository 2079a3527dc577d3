// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The nodes of both sides, and from them the nodes that Slurm must exclude for a
// pod. Engine thread only, no I/O.
#ifndef SK8_CORE_NODE_VIEW_H
#define SK8_CORE_NODE_VIEW_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/core/settings.h"
#include "lib/core/shared_nodes.h"
#include "lib/core/slurm_node.h"
#include "lib/kube/objects.h"

namespace sk8::core {

class NodeView {
public:
	explicit NodeView(const NodeSettings &settings); // see SharedNodes

	// All return true if anything changed that placing depends on.
	bool replace(const std::vector<kube::NodePtr> &nodes);
	bool change(const kube::NodePtr &node);
	bool remove(const std::string &name);
	bool set_slurm(const std::vector<SlurmNode> &nodes);

	bool synced() const { return kube_synced_ && slurm_synced_; }

	struct Choice {
		std::string excluded; // comma list, sorted
		std::string ours;     // the same, as our_excluded_nodes() writes it
		std::string none;     // no node fits: why, one sentence; else empty
	};
	// Cached by what the pod asks of nodes; cheap for many alike.
	const Choice &choose(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes);
	// Whether Kubernetes allows the pod on that node: choose() of this one alone, of whichever turn.
	bool fits(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes, const std::string &node) const;

	std::uint32_t threads_per_core(const std::string &node) const;
	// Is it a node of Slurm that the selector takes? unknown: Slurm has it, Kubernetes does not.
	enum class Shared { no, yes, unknown };
	Shared shared(const std::string &node) const;
	// The same, though Slurm may not have it (yet).
	Shared shared_in_kubernetes(const std::string &node) const;
	bool in_slurm(const std::string &node) const { return slurm_.contains(node); }
	std::size_t slurm_nodes() const { return slurm_.size(); }
	// Power saving of Slurm's: it is down, or on its way there or back. No news of it: nothing is placed by it.
	bool asleep(const std::string &node) const { return asleep_.contains(node); }
	// none if it is not shared, or one side does not have it. Of one that Kubernetes has deleted what it was then; of a node that was
	// deleted before this was made nobody knows.
	Sharing sharing(const std::string &node) const;
	bool mixed(const std::string &node) const { return sharing(node) == Sharing::mixed; }
	bool has_containers(const std::string &node) const { return sharing(node) != Sharing::none; } // of Slurm's own jobs
	bool is_or_was_shared(const std::string &node) const; // with any sharing
	bool exclusive(const std::string &node) const; // shared, and to be had without others' pods
	std::vector<std::string> names() const; // of Kubernetes' nodes
	// nullptr: Kubernetes has no such node. Until the next change.
	const kube::Node *find(const std::string &node) const;
	// ... or its last state, if Kubernetes has deleted it: its pods run on, and it may come back under its name.
	const kube::Node *last(const std::string &node) const;
	// When its kubelet last reported, by the kubelet's clock, seconds since 1970; 0: not known.
	std::int64_t heartbeat(const std::string &node) const;
	// Does Kubernetes hear of this node's kubelet?
	enum class Kubelet { ready, silent, no_node };
	Kubelet kubelet(const std::string &node) const;

private:
	std::string objection_of(const std::string &node, const kube::Pod &pod,
				 const std::vector<std::vector<kube::NodeTerm>> &volumes) const;
	Choice compute(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes) const;

	void forget(const std::string &node, kube::NodePtr last);

	SharedNodes shared_;
	std::unordered_map<std::string, kube::NodePtr> kube_; // by name
	std::unordered_map<std::string, kube::NodePtr> deleted_; // last states of Slurm's that Kubernetes has no more
	std::map<std::string, std::uint32_t> slurm_;          // name -> threads per core
	std::set<std::string> asleep_;                        // of these
	std::unordered_map<std::string, Choice> cache_;
	bool kube_synced_ = false, slurm_synced_ = false;
};

} // namespace sk8::core

#endif
