// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Sees the truth (what really runs, what people did) and what the product does, and
// says which invariant is broken. Knows nothing of how the product works.
//
//   I1  no core and no byte of a node is used twice by what really runs there; of foreign
//       pods see judge_foreign.cc
//   I2  one job per pod; a job with the truth about its pod's end; nothing left over
//   I3  bound once, run once; nobody is killed but by somebody's wish; all comes to
//       its right end once faults have stopped, without waiting for Slurm's next cycle
//       of jobs of Slurm's own and the pods that stand for them see judge_mixed.cc
//       a bare pod whose node Slurm took is made again, once, with the age of its job:
//       judge_again.cc
//       pods whose jobs Slurm preempts: judge_preempt.cc
//       what a pod's annotations say of its job: judge_annotations.cc
//       devices that pods claim: judge_claims.h
//   I5  what others did stands: their exclusions, priorities, holds, finalizers
//
// A person's word that nothing of a pod runs any more is a proof like the kubelet's: it
// is spoken only where it is true. What only such a word can end (doc/reliability.md,
// "What the simulation takes as a limit") is excused until people say it, and no longer.
#ifndef SK8_SIM_JUDGE_H
#define SK8_SIM_JUDGE_H

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lib/core/hold_table.h"
#include "test/sim/claim_watch.h"
#include "test/sim/config.h"
#include "test/sim/judge_preempt.h"
#include "test/sim/kube_requests.h"
#include "test/sim/model_kubelet.h"
#include "test/sim/model_slurm.h"

namespace sk8::sim {

struct Sum {
	std::int64_t milli = 0, memory = 0; // mCPU, MB
	bool covers(const Sum &other) const { return milli >= other.milli && memory >= other.memory; }
	bool operator==(const Sum &) const = default;
};
inline Sum least(const Sum &a, const Sum &b)
{
	return {std::min(a.milli, b.milli), std::min(a.memory, b.memory)};
}
inline Sum most(const Sum &a, const Sum &b)
{
	return {std::max(a.milli, b.milli), std::max(a.memory, b.memory)};
}

class Judge final : public ApiListener, public ContainerListener, public SlurmWatcher, public RequestWatcher {
public:
	Judge(Schedule &time, ModelApi &api, const Config &config);
	~Judge() override;
	void look_at(const ModelKubelet &kubelet, const ModelSlurm &slurm) { kubelet_ = &kubelet, slurm_ = &slurm; }
	std::function<void()> on_slurm_changed = [] {};
	// The pod uid runs what the pod from did.
	std::function<void(const std::string &from, const std::string &uid)> same_program = [](auto &, auto &) {};
	// Our Slurm thread has been told to wake the scheduler and waits for slurmctld's locks.
	// These are plain pthread_rwlocks (src/slurmctld/locks.c), which serve no order, and
	// _slurmctld_background() (controller.c) goes to schedule() each sched_interval, which
	// takes them by itself (job_scheduler.c): its pass may come first, and no wake was lost.
	// The kubelet runs this when it admits that pod.
	std::function<void(const kube::Pod &, const Program &)> reservation_made = [](auto &, auto &) {};
	// What the engine tells of nodes where pods and jobs have more than there is; nullopt: nobody looks. And all masks.
	std::function<std::optional<std::size_t>()> overcommitted = [] { return std::nullopt; };
	std::function<std::shared_ptr<const core::MaskSnapshot>()> masks = [] { return nullptr; };
	std::function<bool()> wake_is_coming = [] { return false; };

	// slurmctld has lost all that it knew, and waited in vain for longer than it does: jobs may start beside what runs, and be in
	// its way from then on. The case ends here. What comes before, or if Kubernetes tells in time, is judged as ever.
	bool nothing_is_promised() const { return nothing_promised_; }

	// The first violation, or empty.
	const std::string &verdict() const { return verdict_; }
	void violation(const std::string &what);

	// ---- what people did ----
	void created(const kube::Pod &pod, const Program &program);
	void deleted_by_people(const std::string &uid);
	void excluded_by_people(const SlurmJob &job) { exclusions_[ref(job)] = job.excluded; }
	void priority_by_people(const SlurmJob &job) { priorities_[ref(job)] = job.priority; }
	void finalizer_by_people(const std::string &uid, const std::string &finalizer, bool present);
	void second_job_by_people(const std::string &uid) { pods_.at(uid).two_jobs = true; }
	void resized_by_people(const std::string &uid); // judge_resize.cc
	bool is_resized(const std::string &uid) const { return pods_.at(uid).resized; }
	void phase_by_people(const std::string &uid) { pods_.at(uid).phase_set = true; }
	void node_cordoned_by_people(const std::string &name, bool on);
	void node_news(const std::string &name) { nodes_[name].news++; }
	void node_deleted_by_people(const std::string &name);
	void node_made_again(const std::string &name) { nodes_[name].made_at = time_.now(); }
	void node_drained_by_people(const std::string &name, const std::string &reason);
	void node_resumed_by_people(const std::string &name, bool for_cordon);
	bool node_state = false; // is carried from side to side
	bool device_plugin = false;
	void look_at_claims(const ModelClaims &claims, ClaimWatch &watch); // judge_claims.h
	void config_is_read();
	void config_changes() { config_changed_ = true, config_changed_at_ = time_.now(); }
	void unshare(); // what is not shared any more
	void people_are_gone() { exclusions_.clear(); priorities_.clear(); }
	// written_by: what foreign pods the engine knew at that time must be on disk; -1: none must
	void slurm_crashed(const core::Ledger &on_disk, Micros written_by);
	void slurm_is_back(); // with the jobs that it had saved
	void state_lost() // StateSaveLocation
	{
		state_lost_ = true;
		for (auto &[uid, t] : pods_) {
			t.devices_lost = true; // only how many GPUs it has is known then
			t.unknown |= t.gone && !t.foreign && kubelet_->runs_anywhere(uid); // only the ledger knew that it does
		}
		foreign_after_loss();
		claims_after_loss();
	}
	void foreign_created(const kube::Pod &pod, const std::string &node, const Program &program);
	void static_pod_written(const StaticPod &pod); // judge_static.cc
	void etcd_restored();
	void no_more_restores() { restores_ = false; }
	void node_is_gone(const std::string &node) { gone_.insert(node); } // for good
	bool is_gone(const std::string &node) const { return gone_.contains(node); }

	// ---- release by hand ----
	static bool remembered(const std::string &uid, const core::Ledger &known); // as released by hand
	static bool freed(const std::string &uid, const core::Ledger &known); // ... or holds nothing any more
	// Nothing of the pod runs, and nothing of it can come on what it holds there.
	bool nothing_left(const std::string &uid, const std::string &held_node) const;
	// Nobody and nothing but a person can tell that.
	bool needs_person(const std::string &uid, const std::string &held_node) const;
	// It could start only where its pod was kept until somebody released that, and Slurm,
	// killed after that, does not know that it was ended: only a person can.
	bool waits_for_gone_node(const SlurmJob &job);
	// The product took a person's word. known: what it has in memory then; unsaved: it says
	// that a restart undoes it.
	// former: what it held was a foreign pod's.
	void released_by_people(const std::string &uid, bool force, bool former, bool unsaved, const core::Ledger &known,
				const core::Ledger &on_disk);
	// What the product holds now.
	std::function<bool(const std::string &uid)> holds_something = [](const std::string &) { return false; };
	// From now on people say all that only they can say: nothing is excused any more.
	void people_tell_all() { excuses_ = false; }
	bool excuses() const { return excuses_; }
	// Something is in the engine's way now: it, or the API server, is away, or else.
	void in_its_way(bool away) { (away ? away_at_ : bad_at_) = time_.now(); }
	// The engine does not hear of nodes now; what it asks for is refused or not answered.
	void in_way_of_nodes(bool unheard, bool refused)
	{
		unheard_at_ = unheard ? time_.now() : unheard_at_;
		refused_at_ = refused ? time_.now() : refused_at_;
	}
	void trouble() { trouble_ = true; } // requests may fail, or nobody is there to make them

	// ---- jobs of Slurm's own on nodes shared as mixed, judge_mixed.cc ----
	bool is_reservation(const std::string &uid) const { return pods_.at(uid).reservation; }
	// Somebody takes the pod of a job, which is no deed of ours. evicts: the settings say what becomes of it.
	// plainly: by a DELETE that may be anybody's.
	void reservation_taken(const std::string &uid, bool evicts, bool plainly);
	void nodes_troubled() { nodes_troubled_ = true; } // nobody may hear of a kubelet for a while

	// After every step.
	void check();
	// What is still to come before all is at its right end, or empty. masked, entries,
	// ledger: what the product still has.
	std::string unfinished(bool masked, std::size_t entries, const std::string &ledger) const;
	// At the end, when nothing is unfinished.
	void final_check();

	// What happens.
	void pod_event(const ApiEvent &event) override;
	void bound(const kube::Pod &pod) override;
	void container_started(const Container &c) override;
	void container_ended(const Container &c) override;
	void container_refused(const Container &c, const std::vector<std::string> &lacks) override;
	void mirror_made(const kube::Pod &pod, const std::string &shows) override;
	void slurm_changed() override { on_slurm_changed(); }
	void job_started(const SlurmJob &job) override;
	void job_ended(const SlurmJob &job) override;
	void job_ended_by_us(const SlurmJob &before, const sk8_end &end) override;
	void submitted_by_us(const SlurmJob &job) override;
	void jobs_preempted(const SlurmJob *preemptor, const std::vector<const SlurmJob *> &victims) override;
	void pinned_by_us(const SlurmJob &job) override { exclusions_.erase(ref(job)); }
	void started_without_being_woken(const SlurmJob &job) override;
	void delete_by_us(const core::PodKey &key, std::int64_t grace, Micros sent_at) override;
	void delete_sent_by_us(const core::PodKey &key, std::int64_t grace) override;
	void delete_unanswered(const core::PodKey &key) override { pods_.at(key.uid).delete_unsure = true; }
	void made_again_by_us(const std::string &from, const kube::Pod &pod) override;
	void condition_by_us(const core::PodKey &) override {}
	void submit_by_us(const core::PodKey &key) override;
	void removal_told(const std::string &uid) override;
	void foreign_told(const kube::Pod &pod) override;
	void request_told(const kube::Pod &pod) override;
	void node_told(const kube::Node &node) override;
	void engine_starts(const core::Ledger &known) override;
	void waited_enough() override;
	void waits_a_moment() override;
	void moment_is_over() override;
	void node_written(const std::string &name) override { nodes_[name].writes++; }
	void node_changed_by_us(const std::string &name) override
	{
		NodeTruth &t = nodes_[name];
		t.writes++;
		t.drained_since |= t.told > t.before_cordon;
		t.our_word.clear(); // resumed, or a word that is read soon
	}
	void node_event(const NodeEvent &event) override;
	void devices_changed_by_us(const SlurmJob &job) override;
	void reservation_by_us(const kube::Pod &pod) override;
	void gate_opened(core::JobRef job) override;
	void gate_opens() override { mixed_since_.clear(), devices_since_.clear(); }
	void container_admitted(const Container &c) override;
	void container_preempted(const Container &c) override;
	void container_resized(const Container &c) override;
	void native_arrived(const SlurmJob &job) override;
	void native_launched(const SlurmJob &job) override;
	void native_ended(const SlurmJob &job, bool by_itself) override;
	void native_ended_by_us(const SlurmJob &job, const sk8_native_end &end) override;
	void binding_by_us(const core::PodKey &key) override;
	void claim_patch_by_us(const kube::ResourceClaim &claim, const Json &patch) override;
	void binding_refused(const core::PodKey &key) override { pods_.at(key.uid).may_arrive--; }

private:
	class Claims; // judge_claims.h
	using Ref = std::pair<std::uint32_t, std::int64_t>;
	struct PodTruth {
		std::string name;
		Program program;
		bool resized = false;      // by people, in place
		Sum told_request;          // ... as far as the engine knows,
		Micros told_since = 0;     // ... since then;
		Sum placed_request;        // ... when Slurm placed it
		bool innocent = true;      // nobody wanted it to end
		bool phase_set = false;    // a garbage collector wrote its phase
		std::vector<std::uint16_t> devices; // that its job got at last, ...
		std::string node_of_devices;        // ... and where
		std::vector<std::uint16_t> told_devices; // by its kubelet, as far as the engine knows
		Micros others_since = -1;  // its job has others in Slurm than those, and nothing is in the way
		Micros untrue_since = -1;  // its annotations, of its job
		bool devices_lost = false;          // nobody knows any more which those are
		bool restored = false;     // it was in another state in a backup
		Micros deleted = -1;       // when that was first asked for
		bool node_forgotten = false; // it had a node, and the backup did not know
		int bound = 0, started = 0;
		Micros bound_at = 0;
		int crashes_when_bound = 0;
		Micros placed_at = -1;     // by Slurm: when the last job that it has had was started
		bool ended_by_itself = false, job_told = false;
		bool protected_ = false;   // our finalizer has been on it
		int may_arrive = 0;        // Bindings that were sent and not refused
		bool may_be_bound = false; // that is all that a slurmctld after a crash knows
		bool gone = false;         // its object
		bool lost_before = false;  // foreign: the engine saw it go without a word, and has not heard of it since
		bool tells = false;        // ... whose last state says that nothing of it runs or will
		bool told = false;         // ... which the engine has seen
		bool unknown = false;      // ... while it ran, and nobody is left who knows that it does
		bool excused = false;      // ... which could go although we had not protected it
		bool released = false;     // by hand, ...
		bool forced = false;       // ... with --force
		bool said = false;         // ... and that is not forgotten
		bool end_forgotten = false; // of the job that it had then
		bool word = false;         // ... and its object is there, which may say otherwise
		bool foreign = false, overhead = false; // overhead: it belongs to its node
		std::string node;          // of a foreign pod
		bool from_file = false;    // a static pod, which has no object,
		std::string shows;         // ... and a mirror of it
		bool known = false;        // the engine was told, and it lasts
		bool known_to_come = false; // it is not yet, but nothing starts before it is
		Micros known_since = 0;
		std::set<std::string> finalizers; // of others
		bool bare = false;         // to be made again if Slurm takes its node
		bool taken_once = false;   // ... which it did, if a crash has not undone it, ...
		bool taken = false;        // ... and no other end came after it
		std::set<std::int64_t> accrue_times;   // ... since when that had gained age
		Micros deleted_by_people = -1, delete_sent = -1; // the first times; sent: by us
		bool deleted_by_us = false; // nobody had before
		bool delete_unsure = false; // one of ours had no answer
		bool sent_ahead = false, sent_behind = false; // one of ours was sent while slurmctld's clock was so
		bool two_jobs = false;      // either may have been the one that was taken
		bool kept = false;          // slurmctld died when the saved ledger had all that is needed
		int made_again = 0;
		bool age_given = false;     // to the first that took its place
		std::string from;           // it was made again from this one
		bool reservation = false;   // of the job below, ...
		bool shared = false;        // ... or of the small jobs of its node
		bool devices_alone = false; // made while its node was not mixed
		bool evicted = false;       // somebody has taken it, or its kubelet has ended it for a critical one
		Micros reserved_at = 0;
		Ref job;
	};
	// One run of a job of Slurm's own.
	struct NativeTruth {
		std::string node;
		bool small = false;         // it shares a pod, unless it has one of its own
		Micros arrived = -1;        // in the gate
		bool ended = false;         // ... and a later run of the same second may come, see ModelSlurm::queue_again()
		bool loose = false;         // nobody promises now that there is room for it
		bool evicted = false;       // somebody has taken its pod
		bool devices_loose = false; // ... or it has ended: another one may get other devices than the job has
		Micros must_end = -1;       // ... and by then it is ended
	};
	struct NodeTruth {
		bool cordoned = false;              // by people, and it stands
		std::string drained;                // by people, for this reason
		std::string uncordoned_despite;     // Slurm's reason, for which we had cordoned it
		bool drained_since = false;         // by us, for that cordon
		std::int64_t before_cordon = 0;     // version of the object that was cordoned last, by people
		std::int64_t told = 0;              // ... that the engine knows
		Micros deleted_at = -1;             // by people, who have not resumed it in Slurm since
		Micros kept_away_at = -second;      // drained, down or failing in Slurm, the last time
		Micros made_at = -second;           // its object, after the one before was deleted
		Micros first_told_at = -second;     // an engine of the object; before engine_began_: this one was not
		Micros devices_told_at = -second;   // an engine of what its agent says there, the last time
		Micros drained_at = -second;        // by people, the last time that it was not drained before, or for another reason
		bool resumed_despite_cordon = false;
		std::string our_word;               // the cause's, of our drain that Slurm has, or had until people took it back
		std::set<std::string> resumed_words; // ... which they did, despite those
		std::set<std::string> uncordoned_for; // Slurm's reasons, by people
		Micros resumed_at = -second;        // by people
		Micros not_ready_since = 0;
		Micros undrained_since = -1, uncordoned_since = -1, untold_since = -1; // one side is wrong about the other
		bool ready = true;
		int news = 0, writes = 0;           // of the node that others made; of ours
	};
	bool preemption_is_open(const std::string &uid, const Preemption &p) const;
	bool still_leaves(const NativePreemption &p) const;
	bool still_leaves(const std::string &uid, const Preemption &p) const;
	Micros time_to_act(const Preemption &p) const;
	void check_preemptions();
	void preempted_delete_arrives(const std::string &uid, Micros sent_at);
	void preempted_delete_sent(const std::string &uid, std::int64_t grace);
	void preempted_container_ended(const Container &c);
	void preempted_job_ended(const SlurmJob &job);
	void preempted_job_ended_by_us(const SlurmJob &job, const std::string &uid, const sk8_end &end);
	void read_mixed(); // by the engine
	bool promised(const std::string &node) const { return mixed_since_.contains(node); }
	// ... or that the GPUs of jobs are held there.
	bool devices_promised(const std::string &node) const { return promised(node) || devices_since_.contains(node); }
	std::optional<Micros> promised_since(const SlurmJob &job) const;
	void check_mixed(const std::string &node, const std::string &when);
	Sum reserved(const std::string &node, bool shared_only) const;
	bool shares(Ref job, const NativeTruth &n, const std::string &node) const;
	bool shared_covers(const std::string &node) const;
	Sum launched(const std::string &node, const std::function<bool(Ref, const NativeTruth &)> &counts) const;
	void check_reserved(const std::string &node, const std::string &when);
	void covered_again(const std::string &node);
	void shared_pods_restored();
	bool has_own_pod(Ref job, const std::string &node) const;
	std::vector<Ref> jobs_of(const PodTruth &t) const;
	void taken(Ref job, const PodTruth &t, bool evicts, bool known);
	void reservation_ended(const Container &c);
	void reservation_deleted_by_us(const core::PodKey &key, const PodTruth &t);
	bool runs_on(Ref job, const std::string &node) const;
	std::string unfinished_natives() const;
	void check_age(const SlurmJob &job);
	bool should_be_made_again(const std::string &uid, const PodTruth &t) const;
	void again_after_crash(const core::Ledger &on_disk);
	void check_nodes();
	void check_sides(const std::string &name, NodeTruth &t, const kube::Node &node, const SelectNode &n);
	void forget_resumed(NodeTruth &t, const kube::Node &node);
	std::string untold_cause(NodeTruth &t, const kube::Node &node) const;
	static std::string own_reason(const SelectNode &n);
	Micros heard_since(const NodeTruth &t) const;
	bool is_wrong_too_long(const NodeTruth &t, Micros &since, bool wrong, Micros within);
	void nodes_after_crash();
	std::string unfinished_nodes() const;
	static Ref ref(const SlurmJob &job) { return {job.id, job.submit_time}; }
	static std::string name_of(const std::string &what, const std::string &name, const std::string &uid);
	PodTruth *truth_of(const std::string &mark);
	bool may_stay(const SlurmJob &job) const; // a person must tell
	bool waits_to_bind(const SlurmJob &job, const std::set<std::string> &blocked) const; // nodes where a person must
	void check_devices(const SlurmJob &job, const std::string &own_pod);
	bool another_stands(const SlurmJob &job) const;
	void devices_told(const kube::Node &node);
	void devices_after_crash(const core::Ledger &on_disk);
	void gpus_after_crash(const core::Ledger &on_disk, Micros written_by);
	bool needs_slot(const SlurmJob &job) const;
	bool has_slot(const Container &c) const;
	void check_slots(const SlurmJob &job);
	bool is_overcommitted(const std::string &node, const core::NodeMask &mask) const;
	void check_overcommit();
	bool may_lack_slot(const Container &c) const;
	void check_told_devices(const SlurmJob &job);
	bool knows_agent(const std::string &node) { return nodes_[node].devices_told_at >= engine_began_; }
	std::int64_t gpus_in_use(const SlurmJob &job) const;
	void check_launched_devices(const SlurmJob &job);
	void check_given_devices(const Container &c);
	void check_corrected_devices();
	bool can_be_corrected(const Container &c, const SlurmJob &job) const;
	const SlurmJob *job_there(const Container &c) const;
	bool is_there(const kube::PodPtr &pod, const std::string &uid) const { return pod && pod->meta.uid == uid; }
	static bool may_have_node(const PodTruth &t) { return t.bound > 0 || t.may_arrive > 0 || t.may_be_bound; }
	static bool lost(const PodTruth &t); // its object vanished before anybody could tell how it ended
	void check_words();
	void check_annotations();
	void check_use(const std::string &node, const std::string &but_pod, const SlurmJob *more);
	void check_foreign(const SlurmJob &job);
	bool resized_since_placed(const Container &c, const PodTruth &t) const;
	Sum of_its_job(const Container &c) const;
	Sum known_use(const Container &c, const PodTruth &t) const;
	void requests_restored();
	void requests_after_crash(const core::Ledger &on_disk, Micros written_by);
	void foreign_event(const ApiEvent &event);
	bool foreign_uses(const std::string &uid, const PodTruth &t, const std::string &node) const;
	bool will_be_told(const std::string &uid, const PodTruth &t) const;
	void foreign_after_crash(const core::Ledger &on_disk, Micros written_by);
	void foreign_after_loss();
	void claims_after_loss();
	const std::string &behind(const std::string &uid) const;
	bool is_shown(const std::string &uid, const PodTruth &t) const;
	bool saves(const core::Ledger &ledger, const std::string &uid) const;
	void check_truth(PodTruth &t, const std::string &uid, const SlurmJob &job, const sk8_end &end, bool other);

	Schedule &time_;
	ModelApi &api_;
	const Config &config_;
	std::map<std::uint32_t, Micros> unmapped_since_; // users, by uid
	std::vector<std::string> schedulers_ = {"slurm"}; // of the engine that started last
	const ModelKubelet *kubelet_ = nullptr;
	const ModelSlurm *slurm_ = nullptr;
	std::unique_ptr<Claims> claims_;       // null: there are none
	std::map<std::string, PodTruth> pods_; // by uid
	std::map<Ref, std::string> exclusions_;
	std::map<Ref, std::uint32_t> priorities_;
	std::set<std::string> gone_; // nodes
	std::map<std::string, NodeTruth> nodes_;
	std::map<std::string, Preemption> preemptions_; // the last one, by uid
	std::set<std::string> devices_as_saved_; // uids, until Slurm is back
	std::vector<NativePreemption> native_preemptions_;
	Micros bad_at_ = -100 * second, away_at_ = -100 * second;
	std::map<Ref, NativeTruth> natives_;
	std::map<std::string, Micros> mixed_since_; // nodes that the engine shares as mixed, as far as it has read
	std::map<std::string, Micros> devices_since_; // ... and others, where the GPUs of Slurm's own jobs have pods
	std::map<std::string, Micros> held_devices_;  // ... by the last engine: pods stay over a start without one
	Micros engine_began_ = 0, restored_at_ = -1000 * second;
	int crashes_ = 0;
	bool config_changed_ = false;
	Micros config_changed_at_ = -1;
	Micros unheard_at_ = -1, refused_at_ = -1; // see in_way_of_nodes()
	bool nodes_troubled_ = false;
	Micros devices_looked_at_ = 0, overcommit_looked_at_ = 0;
	Micros overcommit_untrue_since_ = -1; // what the engine tells of it
	bool trouble_ = false, restores_ = true, excuses_ = true, state_lost_ = false, nothing_promised_ = false;
	std::string verdict_;
};

} // namespace sk8::sim

#endif
