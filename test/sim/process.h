// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What of ours lives in one slurmctld: the real PodsController, ForeignPods, HoldTable
// and SlurmWorker, glued as lib/core/runtime.cc and cluster_engine.cc do it, on virtual
// time instead of threads. It can die between any two effects on the outside.
#ifndef SK8_SIM_PROCESS_H
#define SK8_SIM_PROCESS_H

#include <memory>
#include <set>

#include "lib/core/dra.h"
#include "lib/core/foreign_pods.h"
#include "lib/core/gate.h"
#include "lib/core/nodes_controller.h"
#include "lib/core/pods_controller.h"
#include "lib/core/reservations.h"
#include "lib/core/slurm_worker.h"
#include "lib/core/untold_nodes.h"
#include "test/sim/claim_watch.h"
#include "test/sim/config.h"
#include "test/sim/journal.h"
#include "test/sim/kube_requests.h"
#include "test/sim/model_slurm.h"
#include "test/sim/mutants.h"
#include "test/sim/pod_watch.h"

namespace sk8::sim {

struct Outside { // of a process; outlives it
	Schedule &time;
	Dice &dice;
	Story &story;
	ModelApi &api;
	PodWatch &watch, &foreign_watch;
	ModelSlurm &slurm;
	Disk &disk;
	RequestWatcher &requests;
	Mutant mutant;
	bool node_state; // is carried from side to side
	const Config &config; // as it is now
	ModelClaims *claims;  // null: nothing is told of any
	ClaimWatch *claim_watch;
};

class Process final : public SlurmHooks, public core::TimerPort, public Clock, public core::SlurmListener,
		      public std::enable_shared_from_this<Process> {
public:
	explicit Process(const Outside &outside);
	~Process() override;

	// ---- how it dies ----
	// Dies at the n-th effect from now on; 0: at the next one.
	void die_after(int effects) { effects_left_ = effects; }
	// It has reached that effect: nothing it does from then on reaches the outside.
	bool dying() const { return dying_; }
	void die();
	void lose_requests();

	// ---- slurmctld's side ----
	void node_init() override;
	void job_start(const sk8_job &job) override;
	void job_fini(const sk8_job &job) override;
	void reconfigure() override;
	bool gate(const sk8_native_job &job) override;
	void native_fini(std::uint32_t id, std::int64_t submit_time) override;
	std::shared_ptr<const core::MaskSnapshot> masks() override;
	void slurm_changed(); // the Slurm thread will see it at its next scan

	Micros lock_delay = 0; // others hold slurmctld's locks so long, at most
	void set_faults(int permille); // of the requests to Kubernetes
	// The engine wants Slurm's scheduler to look; our Slurm thread waits for the locks.
	bool wake_is_coming() const { return wake_is_coming_; }

	// slurm-k8s release; nullopt: no engine answers.
	std::optional<Result<std::string>> release(const std::string &uid, bool force);

	// ---- what can be seen ----
	bool holds(const std::string &uid) const;
	core::Ledger ledger() const { return holds_.ledger(settings_.name); }
	const core::PodsController *controller() const { return controller_.get(); }
	Micros started_at() const { return started_at_; } // when all was listed; -1: not yet
	std::optional<std::size_t> overcommitted() const; // nodes; nullopt: nobody looks
	std::shared_ptr<const core::MaskSnapshot> true_masks() { return holds_.masks(); }
	std::string violation; // found here; empty: none

private:
	// Counts effects on the outside; false: dead by now, nothing happens.
	bool effect(const char *what);
	using Ledgers = std::map<std::string, bool>; // by cluster, is it whole?
	std::vector<core::UntoldNodes> untold_nodes(const Ledgers &ledgers) const;
	void block_unknown_nodes(const Ledgers &ledgers);
	void stop_waiting(core::Wait wait);
	void reload();
	void start_engine();
	void stop_engine();
	void start_nodes();
	std::function<void(const std::string &node, const core::GresList &gres)> missing();
	void start_reservations();
	void gate_changed();
	bool devices_only() const { return !settings_.nodes.any(core::Sharing::mixed); } // have pods of Slurm's own jobs
	core::Cover covered(const std::string &uid) const;
	void reservations_replaced(const std::vector<core::ForeignPodPtr> &pods);
	void reservation_seen(const core::ForeignPodPtr &pod, bool removed);
	void answer_gate(core::JobRef job, const core::GateAnswer &answer);
	void watch_pods();
	void watch_foreign_pods();
	void watch_claims();
	void claim_seen(const kube::ResourceClaimPtr &claim, bool removed);
	void holds_claims(const core::ForeignPod &pod);
	void claims_changed();
	void foreign_known();
	std::vector<core::ForeignPodPtr> unlisted_as_ended(const std::vector<kube::PodPtr> &listed) const;
	void told(const kube::PodPtr &pod);
	void request_told(const kube::PodPtr &pod);
	void tell_judge();
	void end_of_turn();
	void tell_full_nodes();
	// An event of the engine's thread.
	void turn(const std::function<void()> &f);
	void watching_masks(const std::function<void()> &f);
	void plan_round(Micros delay);
	void plan_later();
	void plan_walk();
	void tell_engine(const core::PodKey &key, const core::Job &job);
	void later(Micros delay, std::function<void()> f);

	// core::SlurmListener
	void post(std::function<void()> f) override;
	void slurm_nodes(std::vector<core::SlurmNode> nodes) override;
	void overcommits(const core::Overcommits &over) override;
	void jobs_replaced(const std::vector<std::pair<core::PodKey, core::JobPtr>> &jobs) override;
	void job_changed(const core::PodKey &key, const core::JobPtr &job) override;
	void job_purged(const core::PodKey &key, core::JobRef ref) override;
	bool wants_natives() const override { return settings_.wants_natives(); }
	void natives_replaced(const std::vector<core::NativeJobPtr> &jobs) override;
	void native_left(core::JobRef job, const std::set<std::string> &still_on) override;
	// core::TimerPort and Clock
	void after(Millis delay, std::function<void()> f) override;
	Millis now() const override { return Millis(out_.time.now() / ms); }
	Millis monotonic() const override { return now(); }
	std::int64_t monotonic_us() const override { return out_.time.now(); }
	std::int64_t wall_seconds() const override { return out_.slurm.wall(); }

	class SlurmGate;
	class KubeGate;
	class NodeGate;
	class NativeGate; // to and from the reservations

	Outside out_;
	core::HoldTable holds_;
	core::ClusterSettings settings_; // of the engine that is there, or was last
	std::unique_ptr<core::SlurmWorker> worker_;
	std::unique_ptr<KubeRequests> requests_;
	std::vector<std::unique_ptr<KubeRequests>> former_requests_; // may still arrive
	std::unique_ptr<core::KubePort> kube_gate_, kube_;
	std::unique_ptr<core::SlurmPort> slurm_port_, slurm_gate_, slurm_;
	std::unique_ptr<core::HoldJournal> journal_;
	std::unique_ptr<core::Dra> dra_; // of the engine that is there
	bool foreign_listed_ = false, claims_stale_ = false;
	std::unique_ptr<core::PodsController> controller_;
	std::unique_ptr<core::ForeignPods> foreign_;
	core::Gate gate_;
	std::shared_ptr<NativeGate> native_gate_;
	std::unique_ptr<core::Reservations> reservations_; // null: there is no engine
	std::map<std::string, core::ForeignPodPtr> last_seen_; // for a mutant
	std::unique_ptr<core::SlurmNodePort> node_port_;
	std::shared_ptr<NodeGate> node_gate_;
	std::unique_ptr<core::NodesController> nodes_; // null: node state is not played
	bool alive_ = true, dying_ = false, in_charge_ = false;
	int engine_ = 0; // which one: what was planned for a former one is dropped
	bool walk_planned_ = false;
	int walks_ = 0; // to come
	int effects_left_ = -1;
	int timers_ = 0, faults_ = 0, hooks_ = 0;
	Micros posted_until_ = 0;
	Micros round_at_ = -1;
	bool turn_ends_ = false, wake_is_coming_ = false, full_nodes_stale_ = false;
	std::map<std::string, kube::PodPtr> told_requests_; // ... and pods for Slurm that can be resized
	std::map<std::string, kube::PodPtr> told_; // foreign pods that the judge is to know of
	Micros started_at_ = -1;
};

} // namespace sk8::sim

#endif
