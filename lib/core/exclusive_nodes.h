// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Nodes that a job of Slurm's own has without others' pods (--constraint=k8s.exclusive, nodes.exclusive):
//
//   placed     Slurm gives it a node whose foreign pods can all be evicted, as if they were not there (NodeMask::exclusive);
//              it waits in the gate
//   emptied    the node is tainted, so that no others come; then its pods are evicted through the Eviction API, which
//              PodDisruptionBudgets may refuse: then again, with pauses, until the time is over
//   launched   when the ledger says that no process of them is left
//   returned   when no such job has been there for nodes.exclusive.idle: the taint goes
//
// What belongs to the node (DaemonSets, static pods) stays; pods that go through Slurm are Slurm's jobs, and --exclusive
// says whether others may be beside this one. Nothing of this is on disk: which nodes are exclusive is told by their
// taint, for whom by Slurm.
//
// Engine thread only. All I/O goes through the ports.
#ifndef SK8_CORE_EXCLUSIVE_NODES_H
#define SK8_CORE_EXCLUSIVE_NODES_H

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/eviction_port.h"
#include "lib/core/exclusive_step.h"
#include "lib/core/foreign_pods.h"
#include "lib/core/native_job.h"
#include "lib/core/node_view.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct ExclusivePorts {
	NativePort &slurm;
	EvictionPort &kube;
	TimerPort &timer;
	std::function<bool()> known; // which pods there are
	std::function<Crowd(const std::string &node)> crowd;
	std::function<void(const std::string &node)> taint_changed; // wants_taint() of it may be another
	std::function<void(const std::string &node)> keeps_changed; // keeps_pods() of it is another
	std::function<void(JobRef)> word_changed;                   // word() of it may be another
};

// What becomes of a job in the gate, as far as pods on its nodes are concerned.
struct ExclusiveWord {
	enum class Is { open, waits, refused } is = Is::open;
	std::string why; // of the latter two: a part of a sentence
};

class ExclusiveNodes {
public:
	// nodes: outlives this.
	ExclusiveNodes(const ClusterSettings &settings, ExclusivePorts ports, const NodeView &nodes);

	// ---- Slurm; before the reservations hear of it. Jobs that do not ask for this are nothing to it ----
	void arrived(const NativeJobPtr &job); // in the gate; again changes nothing
	void jobs_replaced(const std::vector<NativeJobPtr> &jobs);
	void ended(JobRef job);
	void left(JobRef job, const std::set<std::string> &still_on);
	ExclusiveWord word(const NativeJob &job) const;
	void answered(JobRef job, bool launched); // it has left the gate

	// ---- Kubernetes; after the NodeView and the foreign pods have heard of it ----
	void node_changed(const std::string &node);
	void nodes_changed();
	void pods_changed(const std::string &node);
	void all_pods_changed();

	// ---- what others ask ----
	bool wants_taint(const std::string &node) const;
	bool keeps_pods(const std::string &node) const; // none of it is evicted, for some time
	std::vector<std::string> reports(const std::string &node) const; // sentences without their subject, the node

private:
	using Id = std::pair<std::uint32_t, std::int64_t>;
	struct Job {
		NativeJobPtr job;
		bool in_gate = false;
		Millis until{0}; // in the gate: so long it waits
	};
	struct Eviction {
		bool busy = false; // an answer is awaited
		int failures = 0;
		Millis retry_at{0};
		std::string trouble; // why it was refused
	};
	struct Node {
		std::set<Id> jobs;
		Millis free_since{0}; // no jobs: since when
		bool refused = false; // the last one could not have it ...
		Millis keeps_until{0}; // ... and no other tries, until then
		std::map<std::string, Eviction> evictions; // by uid
	};

	static Id id_of(const JobRef &ref) { return {ref.id, ref.submit_time}; }
	Job &enter(const NativeJobPtr &job);
	void leave(Id id, const std::string &node);
	void forget(Id id);
	bool tainted(const std::string &node) const;
	ExclusiveStep step_of(const Job &job, const std::string &node, const Crowd &crowd) const;
	std::string trouble(const std::string &node, const Crowd &crowd) const;
	std::string job_report(const Job &job, const std::string &node, const Crowd &crowd) const;
	void look(const std::string &node);
	void look_later(const std::string &node, Millis delay);
	void look_at(const NativeJob &job);
	void evict_all(const std::string &name, Node &node, const Crowd &crowd);
	void evict(const std::string &name, Node &node, const PodKey &pod);
	void evicted(const std::string &name, const PodKey &pod, const KubeReply &r);

	const ClusterSettings settings_;
	ExclusivePorts ports_;
	const NodeView &nodes_;
	std::map<Id, Job> jobs_;
	std::map<std::string, Node> of_; // nodes with such a job, with the taint, or that keep their pods
	bool jobs_listed_ = false;
};

} // namespace sk8::core

#endif
