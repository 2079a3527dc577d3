// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The ledger in memory: what pods hold on nodes, and which of it Slurm does not
// already count because a running job covers it. The rest are the masks.
//
//   hold     a pod may have processes on a node (from just before its Binding
//            until its last process is proven gone)
//   covered  its job runs there, and is not suspended: Slurm itself counts the resources
//   mask     hold and not covered; covered or not, the devices that it shares (Hold::shared): whoever of those that share
//            them has a job with them, they stay hidden until the last of them is gone; and what it holds beyond what its job
//            has, by a resize in place
//
// So there is no gap: the job_fini hook turns "covered" off before Slurm frees
// anything, and nothing but proof ends a hold.
//
// A mask comes at once, from any thread. It goes only under slurmctld's locks, as what
// a job holds does: a pass of Slurm's schedulers has them, asks for the jobs in the order
// of their priority, and would give what comes free in its midst to the next one, past
// all the better ones that it has refused already.
//
// Any thread. One short mutex, never held during I/O; hooks may take it.
#ifndef SK8_CORE_HOLD_TABLE_H
#define SK8_CORE_HOLD_TABLE_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/core/cluster_numbers.h"
#include "lib/core/job.h"
#include "lib/core/mask_index.h"
#include "lib/core/native_job.h"
#include "lib/core/pod_key.h"

namespace sk8::core {

struct HeldBy {
	Hold hold;
	bool masked = false; // false: its running job covers it
};

class HoldTable {
public:
	// ---- hooks, under slurmctld's locks ----

	// A job of ours runs (also the replay at start), or is suspended: then Slurm gives its
	// cores to others, which its pod goes on using.
	void job_started(const PodKey &key, const Job &job);
	// It is about to give its resources back: what its pod holds is masked now.
	void job_ended(const PodKey &key, JobRef ref);
	// nullptr: no masks. One atomic load when there are none.
	std::shared_ptr<const MaskSnapshot> masks();

	// ---- engine ----

	// Holds what the running job has. nullopt if that job does not run (any more):
	// then nothing may be bound.
	std::optional<Hold> place(const PodKey &key, JobRef ref);
	// It holds something where that job runs: now just what the job has there. nullopt: as before.
	// keep_devices: those that the job has not, too, for it is not known now whether the pod has them.
	std::optional<Hold> settle(const PodKey &key, JobRef ref, bool keep_devices = false);
	// Its object has lost its node (Hold::lost_node). nullopt: it holds nothing.
	std::optional<Hold> lose_node(const PodKey &key);
	// Holds what a pod found running uses.
	void adopt(Hold hold);
	// What it requests where it is, be that more than its job has: a pod can be resized in place. Its cores and memory are that,
	// or what its job has if that is more; without a job there they are what it held, at least. nullopt: as before.
	std::optional<Hold> set_request(const PodKey &key, std::uint32_t cores, std::uint64_t memory_mb);
	// Hold::cpus. nullopt: it holds nothing, or that is known already.
	std::optional<Hold> set_cpus(const PodKey &key, std::uint32_t cpus);
	// It holds these devices as well, which its claims have got. nullopt: it holds nothing, or these already.
	std::optional<Hold> add_devices(const PodKey &key, const GresList &gres);
	// It holds these named devices too, together with others that hold them there already. nullopt: it holds nothing there, or
	// nobody else has one of these any more.
	std::optional<Hold> share(const PodKey &key, const GresList &devices);
	// ... whatever others hold: its claims say that it has them. nullopt: it holds nothing, or these already.
	std::optional<Hold> add_shared(const PodKey &key, const GresList &devices);
	// What it shares beside `still`, and nobody else holds there any more, is its own from now on: its job there may have it.
	// nullopt: there is no such device.
	std::optional<Hold> keep_alone(const PodKey &key, const GresList &still);
	// Does somebody but this one hold all of these devices there?
	bool held_by_others(const PodKey &key, const std::string &node, const GresList &devices) const;
	// Holds what a foreign pod uses; replaces what it held. True if that is anything new.
	bool hold_foreign(Hold hold);
	// What Kubernetes says that pods may have there. True if that changes a mask.
	bool set_allocatable(const std::string &node, const Allocatable &allocatable);
	// The nodes of a cluster that have all the pods that they can have. True if some node is less full than before.
	bool set_full(const std::string &cluster, const std::map<std::string, Full> &nodes);
	// What of a node's GRES no job may have, whoever has the rest: devices that its kubelet has lost. True if that is less
	// than before.
	bool set_missing(const std::string &cluster, const std::string &node, const GresList &gres);
	void forget_missing(const std::string &cluster); // of all nodes
	// The last process is proven gone. Its mask stays until let_masks_go(). What the hold
	// was: only this table knows for sure whether there is a mask to go.
	enum class Cover { none, covered, masked }; // none: it holds nothing
	Cover release(const PodKey &key);
	// release() was on a person's word.
	void remember_release(const Released &r);
	void forget_release(const PodKey &key);
	// What is to be made again, kept here because it is in the ledger, too.
	void remember_resubmit(const Resubmit &r);
	void forget_resubmit(const PodKey &key);
	bool held(const PodKey &key) const;
	std::string node_of(const PodKey &key) const; // where it holds something, or empty
	Ledger ledger(const std::string &cluster) const;
	Cover cover(const PodKey &key) const;
	MaskNumbers mask_numbers(const std::string &cluster);
	// Another pod whose mask has one of these cores or devices of the node.
	std::optional<PodKey> masked_by_other(const PodKey &key, const std::string &node,
					      const std::vector<std::uint16_t> &cores, const GresList &gres) const;
	// ... of a share of a job of Slurm's own. The table must outlive it.
	TakenBy taken_by() const;
	// A foreign pod on its node that does not belong to the node. As taken_by().
	TakenBy beside() const;

	// ---- slurm-k8s (any thread) ----

	// What it holds, and whether that is a mask now.
	std::optional<HeldBy> held_by(const PodKey &key) const;
	// The holds that f wants. f must be quick: hooks wait meanwhile.
	std::vector<Hold> find(const std::function<bool(const Hold &)> &f) const;

	// ---- Slurm thread, under slurmctld's locks ----

	// Takes the masks away that stand for nothing any more. True if there were any.
	bool let_masks_go();
	// Takes one pod's mask away for a moment, so that its own job can start where
	// it is. Undone by job_started() of that job, or by false.
	void lift(const PodKey &key, bool lifted);
	// The truth about which jobs run: replaces what hooks have told.
	void jobs_running(const std::vector<std::pair<PodKey, JobPtr>> &running);

	// ---- start ----

	// What the saved ledger says, before any hook.
	void restore(Ledger saved);
	// Nodes of a cluster that are not known to be free of pods: masked as a whole
	// until its pods have been listed.
	void block_nodes(const std::string &cluster, const std::vector<std::string> &nodes, Wait wait = Wait::until_it_has);
	bool unblock_nodes(const std::string &cluster); // at let_masks_go(); true if they were, or had been until stop_waiting()
	bool stop_waiting(const std::string &cluster);  // MaskIndex::stop_waiting()
	std::map<std::string, Wait> closed() const;     // MaskIndex::closed()
	bool masks_can_go() const;                      // any thread: let_masks_go() has something to do

private:
	struct Running {
		JobRef ref;
		std::string node;
		std::vector<std::uint16_t> cores;
		std::uint64_t memory_mb = 0;
		bool suspended = false;
		GresList gres;
		std::uint32_t core_count() const { return static_cast<std::uint32_t>(cores.size()); }
	};
	static Running running_of(const Job &job);
	static void take_over(Hold &hold, const Running &job);
	void run(const std::string &id, Running job);
	std::optional<Running> take_second(const std::string &id, const std::string &node);
	bool runs_there(const std::string &id) const;
	std::optional<Hold> part_masked(const std::string &id) const;
	std::optional<Hold> add(const PodKey &key, GresList Hold::*to, const GresList &devices);
	bool others_hold(const std::string &id, const std::string &node, const GresList &devices) const;
	Cover cover_of(const std::string &id) const;
	void changed(const std::string &id);
	void all_changed();
	void publish();
	void leave(const Hold &hold);

	mutable std::mutex mutex_;
	std::unordered_map<std::string, Hold> holds_;       // by cluster/uid
	std::unordered_map<std::string, Released> released_; // by cluster/uid
	std::unordered_map<std::string, Resubmit> resubmits_; // by cluster/uid
	std::unordered_map<std::string, Running> running_;  // by cluster/uid
	// Only an administrator's hand, or another slurmctld, gives a pod a second job: those that run
	// beside that one, which is where the pod is if any is.
	std::unordered_map<std::string, std::vector<Running>> seconds_; // by cluster/uid
	std::unordered_set<std::string> lifted_;            // cluster/uid
	std::unordered_map<std::string, Hold> parts_;       // by cluster/uid: what masks_ has for these
	std::unordered_map<std::string, Hold> missing_;     // by cluster and node; masks_ refers to these
	MaskIndex masks_; // the holds that are not covered, and what else is masked
	std::atomic<bool> any_{false}; // masks_ is not empty
};

} // namespace sk8::core

#endif
