// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The state of shared nodes, both ways: joins a node's two sides by its name and does
// what the table in node_state.cc says. Whatever arrives changes one node's facts and
// leads to sync(); there is no other control flow.
//
// Engine thread only. All I/O goes through the ports. Nothing is done before the nodes of
// both sides have been listed completely once.
#ifndef SK8_CORE_NODES_CONTROLLER_H
#define SK8_CORE_NODES_CONTROLLER_H

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/json.h"
#include "lib/core/dra_inventory.h"
#include "lib/core/gres_identification.h"
#include "lib/core/node_features.h"
#include "lib/core/node_kube_port.h"
#include "lib/core/node_state.h"
#include "lib/core/node_taint.h"
#include "lib/core/overcommit.h"
#include "lib/core/pod_devices.h"
#include "lib/core/settings.h"
#include "lib/core/shared_nodes.h"
#include "lib/core/slurm_port.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct NodesPorts {
	SlurmNodePort &slurm;
	NodeKubePort &kube;
	TimerPort &timer;
	std::function<std::string(std::uint32_t uid)> user; // "alice (uid 1001)"; may ask NSS
	std::uint32_t slurm_uid;                            // SlurmUser: who we are in Slurm
	// What of a node's GRES its kubelet has not (any more), see HoldTable::set_missing(); nobody may listen.
	std::function<void(const std::string &node, const GresList &gres)> missing{};
	// Should it have the taint of nodes that a job has without others' pods? Nobody may say: then no.
	std::function<bool(const std::string &node)> exclusive{};
	// What its agent is to be asked (lost_pods.h); nullopt: that is not known yet. Nobody may ask.
	std::function<std::optional<std::string>(const std::string &node)> lost{};
	const DraInventory *dra = nullptr; // what drivers tell of devices; null: nobody does
	// Is no other cluster attached to this Slurm? Nobody may say: then it is not known.
	std::function<bool()> alone{};
	// Which features of ours a node is to have; nobody may listen.
	std::function<void(const std::string &node, const std::vector<std::string> &features)> features{};
};

class NodesController {
public:
	NodesController(const ClusterSettings &settings, NodesPorts ports);

	// ---- Kubernetes ----
	void nodes_replaced(const std::vector<kube::NodePtr> &nodes);
	void node_changed(const kube::NodePtr &node);
	void node_removed(const kube::NodePtr &last);
	void drivers_changed(const DraInventory::Changed &changed);
	// Pods hold something of this node, which Kubernetes does not have: it was deleted, perhaps before this slurmctld started.
	void deleted_before(const std::string &node);
	// Slurm has features of labels there that a former slurmctld knew of: they go if the node is shared no more. Before the lists.
	void had_features(const std::string &node) { entries_[node].had_features = true; }
	// There is no news of nodes, or there is again: time without news is no node's fault.
	void lost();
	void back();

	// ---- Slurm ----
	void slurm_nodes(const std::vector<SlurmNode> &nodes);
	void overcommits(const Overcommits &over); // nodes_overcommits.cc; of all nodes, as overcommits() finds them
	std::size_t overcommitted() const;         // shared nodes

	// What exclusive() says of it may be another now.
	void exclusive_changed(const std::string &node) { sync(node); }
	void lost_changed(const std::string &node) { sync(node); } // the same of lost()

	// For `slurm-k8s` (nodes_status.cc): sentences. Empty: there is no such node.
	Json status(const std::string &name);
	// For `slurm-k8s gres`: shared nodes, or (name not empty) this one.
	Json gres(const std::string &name) const;

private:
	// Of writes to one side: the other one hears of news meanwhile.
	struct Retry {
		int failures = 0;
		std::string trouble; // why the last write failed; empty: it did not
		Millis at{0};
	};
	struct Entry {
		kube::NodePtr kube;             // null: there is no such object
		std::optional<SlurmNode> slurm;
		std::optional<std::string> taken_over_for; // see node_state.h
		bool was_shared = false;        // by an object that is gone (so its pods say), or not shared any more, which has our drain
		std::optional<Millis> not_ready_since;
		bool not_ready = false;         // for long enough
		std::string drained_for;        // the cause's word of our drain that Slurm has, or had until
						// an administrator took it back
		std::set<std::string> resumed;  // see NodeFacts
		bool slurm_busy = false, kube_busy = false; // an answer is awaited
		GresList missing;               // devices, as masked
		std::vector<std::string> odd_indices; // NodeGres::odd_indices
		Overcommit over;
		bool had_features = false;      // labels of it were features in Slurm
		std::vector<std::string> features_set; // what they were to be when Slurm was last told
		TaintPace taint_pace, exclusive_pace, features_pace;
		Millis ask_at{0}; // its agent, not before
		Retry slurm_retry, kube_retry;
	};

	void tell_odd_indices(const std::string &name, Entry &e, std::vector<std::string> found);
	void set_kube(Entry &e, const kube::NodePtr &node);
	void watch_ready(const std::string &name, Entry &e, const NodeFacts &f);
	void sync(const std::string &name);
	void sync_all();
	bool drained_before(const Entry &e) const;
	NodeFacts facts(const std::string &name, Entry &e);
	const std::string &user(std::uint32_t uid);
	void remember_resumed(Entry &e, NodeFacts &f) const;
	void tell_slurm(const std::string &name, Entry &e, NodeChange change);
	void tell_kubernetes(const std::string &name, Entry &e, const NodePlan &plan);
	void ask_agent(const std::string &name, Entry &e);
	void taint(const std::string &name, Entry &e);
	void set_taint(const std::string &name, Entry &e, OurTaint which, bool wanted);
	NodeGres identified(const Entry &e) const;
	void devices(const std::string &name, Entry &e);
	LabelFeatures label_features(const Entry &e) const;
	void features(const std::string &name, Entry &e);
	void features_answered(const std::string &name, const SlurmReply &r);
	void slurm_answered(const std::string &name, const NodeChange &change, const SlurmReply &r);
	void kube_answered(const std::string &name, const std::string &what, const NodeKubeReply &r);
	Entry *slurm_told(const std::string &name, const SlurmReply &r);
	static void succeeded(Retry &retry);
	void failed(const std::string &name, Retry &retry, const std::string &what, const std::string &why);
	void later(const std::string &name, Millis delay);

	const ClusterSettings settings_;
	NodesPorts ports_;
	SharedNodes shared_;
	PodDevices devices_;
	std::unordered_map<std::string, Entry> entries_; // by name
	std::unordered_map<std::uint32_t, std::string> users_;
	bool kube_synced_ = false, slurm_synced_ = false, connected_ = false;
};

} // namespace sk8::core

#endif
