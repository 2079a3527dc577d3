// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Slurm thread: the only one of ours that takes slurmctld's locks. It runs the
// engines' commands in batches, and looks at our jobs and at the nodes when Slurm
// says that some have changed (what has no hook is found like this: pending jobs
// cancelled, held, re-prioritised). It looks each 250 ms at most, and rests ten times
// as long as it held the locks for that; commands go on meanwhile. Engines never wait
// for it: the main scheduler may hold the locks for seconds.
#ifndef SK8_CORE_SLURM_WORKER_H
#define SK8_CORE_SLURM_WORKER_H

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "lib/base/clock.h"
#include "lib/core/hold_table.h"
#include "lib/core/native_job.h"
#include "lib/core/node_view.h"
#include "lib/core/overcommit.h"
#include "lib/core/slurm_port.h"

namespace sk8::core {

class SlurmLock;

// One attached cluster's engine, as the Slurm thread sees it. Called on the Slurm
// thread, without slurmctld's locks; must return at once.
class SlurmListener {
public:
	virtual ~SlurmListener() = default;
	// Runs f on the engine's thread, or drops it with the listener: f is a part of
	// the listener then, so it must not own a share of it.
	virtual void post(std::function<void()> f) = 0;
	// These run on the engine's thread (through post()).
	virtual void slurm_nodes(std::vector<SlurmNode> nodes) = 0;
	virtual void overcommits(const Overcommits &) {} // of all nodes; after slurm_nodes()
	virtual void jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs) = 0;
	virtual void job_changed(const PodKey &key, const JobPtr &job) = 0;
	virtual void job_purged(const PodKey &key, JobRef ref) = 0;
	// Jobs of Slurm's own; only of interest to who makes reservation pods.
	virtual bool wants_natives() const { return false; } // any thread
	virtual void natives_replaced(const std::vector<NativeJobPtr> &) {}
	virtual void native_left(JobRef, const std::set<std::string> &) {} // still_on: these nodes
};

class SlurmWorker {
public:
	SlurmWorker(const sk8_slurm_ops &ops, HoldTable &holds, const Clock &clock);

	// Who asks: the engine of a cluster, from here until it is detached. Any thread.
	struct Seat {
		std::string cluster;
		std::uint64_t number = 0;
	};
	Seat seat(const std::string &cluster) const;
	// Any thread. A listener that is detached gets nothing more, answers included. What it asks for all the same is
	// dropped: its thread ends later, and its successor can do nothing with the answers.
	void attach(const Seat &who, std::shared_ptr<SlurmListener> listener);
	void detach(const std::string &cluster);
	// The engine's port; valid as long as the worker.
	std::unique_ptr<SlurmPort> port(const Seat &who);
	std::unique_ptr<SlurmNodePort> node_port(const Seat &who);
	// Any thread. How many clusters are configured, whether their engines run or not; 0: that is not known yet.
	void set_clusters(std::size_t count) { clusters_.store(count, std::memory_order_relaxed); }
	bool one_cluster() const { return clusters_.load(std::memory_order_relaxed) == 1; }

	// slurm_natives.cc. Any thread.
	// still: asked just before, false: not any more.
	// Jobs are let out when their nodes have registered, a while after slurmctld's start at the latest. An srun whose job is refused or
	// ended is told some seconds before that.
	void answer_gate(JobRef job, const GateAnswer &answer, std::function<bool()> still);
	void watch_end(JobRef job);
	void end_native(const Seat &who, JobRef job, bool requeue, std::string why, SlurmPort::Done done);
	void set_devices(const Seat &who, JobRef job, DeviceChange change, SlurmPort::Done done);

	// Any thread: runs f on the Slurm thread, without slurmctld's locks.
	void post(std::function<void()> f);
	// Any thread: the same, when delay has passed, and up to a quarter of a second later. Dropped with the thread.
	void after(Millis delay, std::function<void()> f);
	// Any thread: Slurm has read its configuration, jobs and nodes are other records.
	void reread();

	std::size_t waiting() const; // any thread: commands that have not run

	// The thread's body: returns after stop().
	void run();
	void stop();

	// One round without waiting; run() is a loop of these. For tests.
	void round();
	// Slurm thread: in how long a round will do the look that the last one had to leave; 0: it left none.
	Millis look_in() const;
	// Any thread: in how long the first of what after() was told is due; nothing: there is none. For tests.
	std::optional<Millis> later_in() const;

private:
	struct Submit {
		JobRequest request;
	};
	struct End {
		PodKey key;
		JobRef ref;
		JobEnd end;
	};
	using Turn = std::tuple<bool, std::int64_t, std::int64_t>;
	struct Exclude {
		PodKey key;
		JobRef ref;
		std::string nodes;
		Turn turn;
	};
	struct Spare { // see sk8_slurm_ops
		PodKey key;
		JobRef ref;
	};
	struct EndNative { // see sk8_slurm_ops
		JobRef ref;
		bool requeue = false;
		std::string why;
		bool told = false;
	};
	struct SetDevices { // see sk8_slurm_ops
		JobRef ref;
		DeviceChange change;
	};
	struct Command {
		Seat who;
		std::variant<Submit, End, Exclude, Spare, NodeChange, FeatureChange, EndNative, SetDevices> what;
		SlurmPort::Done done;
	};
	struct InGate {
		JobRef job;
		GateAnswer answer;
		std::function<bool()> still;
		bool told = false;
	};
	struct Known {
		PodKey key;
		JobPtr job;
	};
	class NodeNews;
	struct NodePost { // the last one
		std::uint64_t seat = 0;       // whose
		std::weak_ptr<NodeNews> news; // the post's own: null where that has run, was dropped, or there was none
		bool followed = false;        // by an answer, which may say of a node what it was before newer news
	};
	class Port;
	class NodePort;
	using Posts = std::unordered_map<std::string, std::vector<std::function<void(SlurmListener &)>>>;

	void enqueue(Command c);
	void put(Command c, bool first);
	bool is_seated(const Seat &who) const;
	bool commands_wait() const;
	void wake_scheduler();
	bool due() const;
	std::vector<std::function<void()>> take_posted();
	std::vector<Command> take_batch();
	void run_commands();
	void run(const Command &c, SlurmReply &reply);
	void run(const Submit &s, SlurmReply &reply);
	void start(const JobRequest &r, JobRef ref, SlurmReply &reply);
	void started(const PodKey &key, std::uint32_t id, SlurmReply &reply);
	void give_devices(const JobRequest &r, SlurmReply &reply);
	void run(const End &e, SlurmReply &reply);
	void run(const Exclude &e, SlurmReply &reply);
	void run(const Spare &s, SlurmReply &reply);
	void run(const NodeChange &c, SlurmReply &reply);
	void run(const FeatureChange &c, SlurmReply &reply);
	void look_again(const std::string &node, SlurmReply &reply);
	void run(const EndNative &e, SlurmReply &reply);
	void learn_devices(JobRef ref, SlurmReply &reply);
	void run(const SetDevices &s, SlurmReply &reply);
	bool masks_are_news() const;
	void tell_of_masks(SlurmLock &lock);
	void read_all();
	void scan(bool at_once);
	void scan_jobs();
	void scan_nodes(Posts &posts);
	void answer_gate(const InGate &who);
	bool nodes_registered(JobRef job);
	bool tell_refusal(const sk8_gate_answer &answer);
	void read_natives();
	void scan_natives(Posts &posts);
	void look_at(std::uint32_t id, Posts &posts);
	void look_for_others(Posts &posts);
	void keep_nodes_up();
	void plan_look_for_others(Millis took);
	void remember(const PodKey &key, const JobPtr &job);
	void forget(std::uint32_t id);
	void send(Posts &&posts);
	std::shared_ptr<SlurmListener> listener(const std::string &cluster);

	const sk8_slurm_ops &ops_;
	HoldTable &holds_;
	const Clock &clock_;

	mutable std::mutex mutex_; // never held while slurmctld's locks are taken or I/O is done
	std::condition_variable wake_;
	std::vector<std::function<void()>> posted_;
	std::multimap<Millis, std::function<void()>> later_; // by monotonic time
	std::deque<Command> ends_, submits_; // ends first: they free resources, or must not come too early; node states too
	std::multimap<Turn, Command> excludes_;
	std::unordered_map<std::string, std::shared_ptr<SlurmListener>> listeners_;
	std::unordered_map<std::string, std::uint64_t> seats_; // by cluster: the number that counts; another after each detach()
	bool stop_ = false, reread_ = false, round_wanted_ = false;
	std::atomic<std::size_t> clusters_{0};

	// Slurm thread only.
	std::unordered_map<std::uint32_t, Known> live_;      // our jobs that have not ended, by id
	// Native jobs whose end is awaited, by id and submit time, and on which nodes.
	std::map<std::pair<std::uint32_t, std::int64_t>, std::set<std::string>> leaving_;
	std::unordered_multimap<std::string, std::uint32_t> ids_; // cluster/uid -> id of a live job: one, if nobody interferes
	Millis full_until_{0};                               // MaxJobCount: Slurm is not asked before
	std::string full_text_;
	std::unordered_map<std::string, NodePost> node_posts_; // by cluster
	std::int64_t jobs_seen_ = 0, nodes_seen_ = 0;        // wall seconds of the last scans
	Millis scan_at_{0};                                  // not before, but for a reread
	bool scan_left_ = false;                             // by the last round, for that reason
	std::optional<Millis> in_charge_since_;              // clock_.monotonic(); Slurm thread
	std::int64_t scan_held_us_ = 0;                      // slurmctld's locks, by the last scan
	std::uint64_t masks_told_ = 0;                       // generation of those that Slurm was last told of
	bool backfill_missed_ = false;                       // what it was told of during a turn of backfill, since over or not
	std::int64_t others_seen_ = 0;                       // of look_for_others()
	Millis keep_up_at_{0};                               // not before
	bool kept_up_ = false;                               // then, or before
	Millis others_at_{0};                                // not before
};

// What Slurm said to a command, but for its job or node.
void copy_outcome(const sk8_outcome &out, SlurmReply &reply);
// By ops.change_features(), whose locks are held.
void change_features(const sk8_slurm_ops &ops, const FeatureChange &c, sk8_outcome &out);

// True while this thread is inside sk8_slurm_ops.submit.
bool submitting_now();

} // namespace sk8::core

#endif
