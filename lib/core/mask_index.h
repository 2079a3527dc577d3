// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which holds are masks, node by node, and the immutable snapshot of them that hooks
// read. A change costs what is on its node, not what there is on all: the masks of the
// other nodes are shared with the snapshot before.
//
// Not thread safe: HoldTable's mutex.
#ifndef SK8_CORE_MASK_INDEX_H
#define SK8_CORE_MASK_INDEX_H

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/core/hold.h"

namespace sk8::core {

// status.allocatable of a node; 0: not known.
struct Allocatable {
	std::int64_t milli_cpu = 0;
	std::uint64_t memory_mb = 0;

	bool operator==(const Allocatable &) const = default;
};

// A node has all the pods that it can have, so that a job which needs one more there is not to start.
struct Full {
	bool for_pods = false; // those that are placed through Slurm
	bool for_jobs = false; // those of Slurm's own jobs (sharing: mixed) ...
	std::uint32_t shared_cpus = 0; // ... but of these that have a part of a pod that is there: at most so many CPUs, no GRES

	bool any() const { return for_pods || for_jobs; }
	bool operator==(const Full &) const = default;
};

// How long nodes take no job whose cluster has not told yet what runs there (untold_nodes.h has the times).
enum class Wait { until_it_has, a_while, a_moment };

// What Slurm's jobs are kept away from on one node.
struct NodeMask {
	std::string node;
	std::vector<std::uint16_t> cores; // sorted, each once
	std::uint32_t more_cores = 0;
	std::int64_t milli_cpu = 0;       // of foreign pods, together; 1000 = one hardware thread
	std::uint64_t memory_mb = 0;
	// Of foreign pods that belong to the node (Hold::overhead), not counted above: hidden as far
	// as it does not fit into what Kubernetes may allocate and Slurm does not offer.
	std::int64_t overhead_milli_cpu = 0;
	std::uint64_t overhead_mb = 0;
	Allocatable allocatable;
	bool whole = false;
	bool for_a_while = false;         // whole, by clusters that are waited for no longer than Wait::a_while ...
	bool for_a_moment = false;        // ... or Wait::a_moment
	Full full;
	std::set<std::string> clusters;   // whose pods these are; normally one
	GresList gres;                    // merged()
	std::vector<sk8_gres> gres_abi;   // borrows of it
	std::vector<std::uint32_t> jobs;  // Hold::job_id of these; sorted, each once
	bool some_jobs = false;
	std::shared_ptr<const NodeMask> exclusive; // for jobs without others' pods (Hold::in_way); null: the same
	std::uint64_t version = 0;        // another number = another content; never used twice
};

// Immutable; what sk8_masks_get() hands out.
struct MaskSnapshot {
	std::uint64_t generation = 0;
	std::vector<std::shared_ptr<const NodeMask>> masks; // by node name
};

class MaskIndex {
public:
	// This hold is a mask, or has changed. It must stay where it is until drop().
	void put(const std::string &id, const Hold &hold);
	void drop(const std::string &id);
	bool contains(const std::string &id) const { return where_.contains(id); }

	// True if that changes a mask.
	bool set_allocatable(const std::string &node, const Allocatable &allocatable);
	// These nodes are full, and no other ones of this cluster: at once, or if that is less than before at let_go().
	void set_full(const std::string &cluster, const std::map<std::string, Full> &nodes);
	// A mask of a hold that is over: until let_go().
	void put_free(const Hold &hold);
	// Masks as a whole; replaces what this cluster had.
	void block(const std::string &cluster, const std::vector<std::string> &nodes, Wait wait = Wait::until_it_has);
	// It has told; at let_go(). True if block() was the last word on it.
	bool unblock(const std::string &cluster);
	// If that is not Wait::until_it_has its nodes take jobs, though it has not told; at let_go(). False: that changes nothing.
	bool stop_waiting(const std::string &cluster);
	// Clusters whose nodes take no job, and how long.
	std::map<std::string, Wait> closed() const;
	// Since block(), without unblock(); whether its nodes take jobs by now or not.
	std::optional<Wait> waits_for(const std::string &cluster) const;
	bool can_go() const { return !with_free_.empty() || !known_.empty() || !less_full_.empty() || other_; }
	bool let_go(); // true if there were any

	bool empty() const { return nodes_.empty(); }
	// All masks of a node that f wants; f(id, hold) returns false to go on.
	template <class F>
	const Hold *find(const std::string &node, F f) const
	{
		auto n = nodes_.find(node);
		if (n != nodes_.end())
			for (const auto &[id, hold] : n->second.holds)
				if (f(*hold))
					return hold;
		return nullptr;
	}
	std::shared_ptr<const MaskSnapshot> snapshot(); // null if empty
	void forget_holds(); // all but block()

private:
	struct OfNode {
		std::unordered_map<std::string, const Hold *> holds; // by cluster/uid
		std::vector<Hold> free;
		std::set<std::string> blocked_by; // clusters
		Full full;
		std::shared_ptr<const NodeMask> built; // null: to be built
		bool none() const { return holds.empty() && free.empty() && blocked_by.empty() && !full.any(); }
	};
	void open(const std::string &cluster);
	OfNode &touch(const std::string &node);
	void left(const std::string &node);
	std::shared_ptr<NodeMask> build(const std::string &node, const OfNode &of, bool for_exclusive);

	std::map<std::string, OfNode> nodes_; // those with a mask
	std::unordered_map<std::string, std::string> where_; // cluster/uid -> node
	std::unordered_map<std::string, Allocatable> allocatable_; // by node
	std::set<std::string> with_free_;                     // nodes
	std::map<std::string, std::map<std::string, Full>> full_; // by cluster and node
	std::map<std::string, Full> less_full_;               // nodes: what they are at let_go()
	std::map<std::string, std::vector<std::string>> blocked_; // by cluster
	std::map<std::string, Wait> untold_; // clusters, see waits_for()
	std::set<std::string> known_; // clusters to be unblocked at let_go()
	bool other_ = false; // some mask is another one by set_allocatable(): perhaps less, until let_go() tells Slurm
	std::uint64_t version_ = 0, generation_ = 0;
	std::shared_ptr<const MaskSnapshot> snapshot_; // null: to be built
};

} // namespace sk8::core

#endif
