// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods on shared nodes that somebody else placed (DaemonSets, static pods, those of
// kube-scheduler): what they request there is held in the ledger, and so masked in
// Slurm's scheduling, from the moment the API server tells of them until their end is
// proved. Unlike our own pods they carry no finalizer of ours, so an object can vanish:
//
//   last seen over              nothing of it runs any more: free
//   vanished before our eyes    by force: nobody will report. Held until the agent of its node
//                               (lost_pods.h) or a person (slurm-k8s release) says so
//   vanished while we were not  most likely the kubelet removed it after its end. Free when
//   looking (or a mirror pod)   the kubelet has been heard of for the pod's grace and some
//                               more: it stops what is not in the API any more. Or when the agent
//                               says so
//
// Engine thread only, no I/O but through the ports.
#ifndef SK8_CORE_FOREIGN_PODS_H
#define SK8_CORE_FOREIGN_PODS_H

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/core/cluster_numbers.h"
#include "lib/core/dra.h"
#include "lib/core/foreign_pod.h"
#include "lib/core/hold_journal.h"
#include "lib/core/hold_table.h"
#include "lib/core/lost_pods.h"
#include "lib/core/node_use.h"
#include "lib/core/node_view.h"
#include "lib/core/pinned_cores.h"
#include "lib/core/pod_devices.h"
#include "lib/core/pods_status.h"
#include "lib/core/slurm_port.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct ForeignPorts {
	SlurmPort &slurm;
	TimerPort &timer;
	HoldTable &holds;
	HoldJournal &journal;
	// What running jobs of Slurm's own have already of what this pod takes (a reservation pod). Empty: nothing.
	std::function<Cover(const std::string &uid)> covered = {};
	// Pods of this namespace stand for jobs. Of jobs that want their nodes without others' pods: they are in nobody's way;
	// those without a controller are not evicted, but with bare_pods; and for some time none of a node.
	std::string own_namespace = {};
	bool bare_pods = false;
	std::function<bool(const std::string &node)> keeps_pods = {};
	LostPods *lost = nullptr; // nobody asks nodes' agents
	const Dra *dra = nullptr; // what claims have got; null: none has anything of Slurm's
	// Nothing runs any more of a pod that holds what it has as one for Slurm, since its scheduler was one of ours.
	std::function<void(const PodKey &key)> ours_is_over = {};
};

// What is in the way of a job that wants a node without others' pods.
struct Crowd {
	struct Pod {
		PodKey key;
		bool leaves = false; // it is deleted already
	};
	std::vector<Pod> evictable;
	std::optional<PodKey> stays; // one of those that nobody evicts

	bool none() const { return evictable.empty() && !stays; }
};

class ForeignPods {
public:
	// nodes, use: of the pods controller; outlive this. resources: ClusterSettings::resources.
	ForeignPods(const std::string &cluster, ForeignPorts ports, const NodeView &nodes, NodeUse &use,
		    std::vector<ResourceSettings> resources = {});

	// All there are with a node and of no scheduler of ours; then what becomes of them.
	void replaced(const std::vector<ForeignPodPtr> &pods);
	void changed(const ForeignPodPtr &pod);
	void removed(const ForeignPodPtr &last);
	// After the NodeView has heard of it. placing: what placing depends on is another now.
	void node_changed(const std::string &node, bool placing);
	void nodes_changed(); // of any
	void cover_changed(const std::string &uid);
	// After Dra has heard of it: this claim, or any.
	void claim_changed(const std::string &ns, const std::string &claim);
	void claims_changed();
	void keeps_changed(const std::string &node); // keeps_pods() of it is another now

	Crowd crowd(const std::string &node) const;
	bool synced() const { return synced_; }
	// True once after host ports or pod slots of nodes have become others.
	bool use_changed() { return std::exchange(use_changed_, false); }
	// Nodes of Slurm that Kubernetes does not have, and of which pods hold something; since the last call.
	std::set<std::string> take_deleted_nodes() { return std::exchange(deleted_nodes_, {}); }

	ForeignNumbers numbers() const;
	std::vector<ForeignReport> reports(const StatusQuery &query, std::size_t max, std::size_t &more) const;
	// As PodsController's. nullopt: it is no foreign pod that we know.
	std::optional<Result<std::string>> release_by_hand(const std::string &uid, const std::string &by, bool force);

private:
	struct Entry {
		PodKey key;
		std::string node;
		std::int64_t milli_cpu = 0;
		std::uint64_t memory_mb = 0;
		GresList gres;
		std::map<std::string, std::int64_t> extended; // of which gres is
		std::vector<kube::PodResourceClaim> claims;
		GresList claimed; // what they had when that was last known
		std::int64_t grace_seconds = 30;
		std::string phase;
		bool mirror = false, overhead = false, controlled = false, leaves = false;
		std::int64_t created = 0; // its object
		bool held = false; // it has been
		bool waits_for_nodes = false; // what it holds may be other than what the saved ledger says
		bool seen = false; // its object has been, not only what the saved ledger has of it
		bool agent_asked = false;
		// No object any more, and no proof of its end.
		enum class Gone { no, unseen, seen } gone = Gone::no;
		Millis counts_from{0};      // since when its node's kubelet has been heard of without a gap
		bool silent = false;        // it is not
		std::int64_t heartbeat = 0; // its last one that came too early
		std::string declared;       // Released::by; empty: nobody did
	};
	using Entries = std::unordered_map<std::string, Entry>; // by uid

	Entry &remember(const Hold &h);
	void stay_behind(const Entry &e);
	Hold hold_of(const Entry &e) const;
	Hold::InWay in_way(const Entry &e) const;
	bool uncovered(const Entry &e, Hold &hold) const;
	GresList served_by_claim(const Entry &e) const;
	void learn_claimed(Entry &e) const;
	void apply(const ForeignPodPtr &pod);
	static void learn_request(Entry &e, const ForeignPod &pod);
	void update(Entry &e);
	void update_all_on(const std::string &node);
	bool learn(const std::string &node);
	void vanish(Entry &e, bool seen);
	void ask_agent(Entry &e, bool wanted);
	void hear_agent(const std::string &node);
	bool drop_hold(const Entry &e);
	void free(Entry &e, const char *why);
	void forget(const std::string &uid);
	void count_anew(Entry &e);
	bool proved_by_kubelet(Entry &e);
	std::string why_held(const Entry &e) const;

	const std::string cluster_;
	ForeignPorts ports_;
	const NodeView &nodes_;
	NodeUse &use_;
	const std::vector<ResourceSettings> resources_;
	PinnedCores pinned_; // of nodes with pods
	PodDevices devices_; // the same
	Entries entries_;
	std::unordered_map<std::string, std::unordered_set<std::string>> by_node_; // uids
	std::set<std::string> deleted_nodes_;
	std::unordered_set<std::string> gone_; // uids of entries that are gone
	std::unordered_set<std::string> with_claims_; // uids
	bool synced_ = false, use_changed_ = false;
};

} // namespace sk8::core

#endif
