// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods placed through Slurm: joins pods, jobs and holds by the pod's uid and does,
// one step at a time per pod, what the table in lifecycle.cc says. Whatever
// arrives (watch events, hooks, scans, answers) changes one pod's facts and leads
// to sync(); there is no other control flow.
//
// Engine thread only. All I/O goes through the ports. Nothing is done before
// pods, nodes and jobs have each been listed completely once.
#ifndef SK8_CORE_PODS_CONTROLLER_H
#define SK8_CORE_PODS_CONTROLLER_H

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/core/cluster_numbers.h"
#include "lib/core/dra.h"
#include "lib/core/dra_claims.h"
#include "lib/core/hold_journal.h"
#include "lib/core/hold_table.h"
#include "lib/core/kube_port.h"
#include "lib/core/lifecycle.h"
#include "lib/core/lost_pods.h"
#include "lib/core/metrics.h"
#include "lib/core/node_use.h"
#include "lib/core/node_view.h"
#include "lib/core/pod_devices.h"
#include "lib/core/pod_reports.h"
#include "lib/core/pods_status.h"
#include "lib/core/resubmits.h"
#include "lib/core/settings.h"
#include "lib/core/slurm_port.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct PodsPorts {
	SlurmPort &slurm;
	KubePort &kube;
	TimerPort &timer;
	HoldTable &holds;
	HoldJournal &journal;
	UserLookup lookup;
	Dra *dra = nullptr; // outlives it; null: no pod may claim devices
};

class PodsController {
public:
	PodsController(const ClusterSettings &settings, PodsPorts ports);

	// ---- Kubernetes ----
	// scheduler_name: which of the settings' names this list is of.
	void pods_replaced(const std::string &scheduler_name, const std::vector<kube::PodPtr> &pods);
	void pod_changed(const kube::PodPtr &pod);
	// Another watch has told that nothing of it runs any more: its scheduler is none of ours by now.
	void over_elsewhere(const PodKey &key);
	void pod_removed(const kube::PodPtr &last);
	void nodes_replaced(const std::vector<kube::NodePtr> &nodes);
	bool node_changed(const kube::NodePtr &node); // true: placing depends on what changed
	void node_removed(const kube::NodePtr &last);

	// After Dra has heard of it: of a claim; of anything else.
	void claim_changed(const std::string &ns, const std::string &claim);
	void dra_changed();

	// ---- Slurm ----
	bool slurm_nodes(const std::vector<SlurmNode> &nodes); // true: any is another than before
	// Every job of ours that Slurm knows, of any state.
	void jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs);
	// From a hook or a scan. seen_at: monotonic time of the hook, for latencies.
	void job_changed(const PodKey &key, const JobPtr &job, Millis seen_at);
	// Slurm has no record of it any more.
	void job_purged(const PodKey &key, JobRef ref);

	// The API server answers again after an outage: what waits because it did not is
	// tried within a second or two, unless it asked for more.
	void hurry();

	// After a bunch of the above: what needs the disk is done once for all of them.
	void end_of_turn();

	// ---- slurm-k8s (pods_status.cc, pods_release.cc) ----
	// What is known of the pods that the query names (all if it names none), at most
	// max; more gets the number of those left out.
	std::vector<PodReport> reports(const StatusQuery &query, std::size_t max, std::size_t &more) const;
	// A person says that no process of this pod is left: frees what it holds, ends its
	// job, lets the object go. Refused while others know better, unless force. The
	// sentence says what was done. by: who, for log and job; see Released.
	Result<std::string> release_by_hand(const std::string &uid, const std::string &by, bool force);

	// Nodes of Slurm that Kubernetes did not have when all was known, and of which the saved ledger says that pods hold something.
	std::set<std::string> take_deleted_nodes() { return std::exchange(deleted_nodes_, {}); }

	// For what else is on these nodes.
	const NodeView &nodes() const { return nodes_; }
	NodeUse &use() { return use_; }
	LostPods &lost() { return lost_; } // its own, and those of others
	void use_changed() { use_changed_ = true; } // host ports or pod slots, by others
	// An event of any pod, sent in turn with those of ours.
	void warn(const PodKey &pod, std::string_view reason, const std::string &what)
	{
		reports_.event(pod, {true, std::string(reason), what});
	}
	// Foreign pods have not been listed yet, or have been: before that no node whose state
	// is not known takes a job. Not called: there are none.
	void expect_foreign(bool listed);
	// Writes the ledger; an error is logged once.
	Result<void> save_journal();

	bool started() const { return started_; } // pods, nodes and jobs have each been listed once
	bool synced() const { return pods_synced() && nodes_.synced() && jobs_synced_ && (!ports_.dra || ports_.dra->synced()); }
	std::size_t size() const { return entries_.size(); }
	PodNumbers numbers() const; // looks at every pod

private:
	enum class Op { none, looking, volumes, claims, submitting, binding, ending, deleting, reading, releasing };

	struct ClaimNodes {
		std::set<std::string> excluded;
		std::string none; // all are: why, one sentence
	};
	struct PodClaims {
		Claims own;       // this pod alone is to have what they get
		Claims shared;    // other pods have what they have, and this one may have it, too
		std::string node; // where that is; empty: nothing is shared
		GresList devices; // ... each named
	};
	enum class Whose { own, shared };

	struct Entry {
		PodKey key;
		kube::PodPtr pod;
		bool absent = false;
		bool doubted = false;     // an answer said that pod is not as we knew it: look, whatever else
		bool outdated = false;    // removed, says the watch, while a GET of it is under way
		bool watched = false;     // the watch has told of it, and not yet that it is removed
		std::int64_t deleted_alive_at = 0; // see end_of_pod()
		std::string bound_node;
		JobPtr job; // its live or last one; null: none is known
		JobRef ending; // Op::ending: which one; by the answer another may stand for the pod, or none
		std::vector<JobPtr> others; // live jobs with its mark, which are to end
		std::vector<JobRef> others_ending; // ... and those that Slurm was asked to end: they do not stand for it again
		Millis seen_at{0};
		Millis job_seen_at{0};

		Op op = Op::none;
		Millis retry_at{0};
		int failures = 0;
		bool waits_for_server = false; // hurry() ends the back-off: Kubernetes refused, and did not say how long
		Millis retry_planned{0};       // for when; 0: it is not
		bool recheck_planned = false;

		std::string refusal;      // why it is refused; empty: it is not
		bool refusal_by_nodes = false, refusal_by_room = false;
		std::string told;         // the last Warning: a refusal, or that its job never runs
		std::string trouble;      // why the last try failed, for the condition
		struct Denial {
			Millis since{0}; // its first refusal
			bool told = false;
		};
		std::map<std::string, Denial> denied; // rights that were refused

		bool volumes_known = false;
		std::vector<std::vector<kube::NodeTerm>> volumes;
		std::set<std::string> excluded_by_claims; // as last known
		std::optional<std::string> asked_for_claims; // of its job; not known after a restart
		std::set<std::string> taken; // nodes of Slurm without room for it, as it was last seen: see NodeUse::excluded()
		std::string excluded;     // what the job was made or updated with
		bool exclusion_refused = false; // the last update: it may go where it must not
		struct { // ... and made with
			std::uint32_t cpus = 0; // 0: not known after a restart
			std::uint64_t memory_mb = 0;
		} asked;
		Age age;                  // of a job that ended before it had a node
		std::string made_from;    // see resubmitted_from()
		bool adopting = false;    // its job was to start where it runs, or may have been
		bool protecting = false;  // our finalizer is on its way, or waits for its next try
		bool protect_hurries = false; // ... which hurry() may bring forward
		int protect_failures = 0;
		Millis protect_at{0};     // the end of that wait
		struct {
			bool under_way = false; // or waits before it may be written again
			int times = 0;
		} annotating;
		struct { // for this job
			Millis since{0};      // of the first try; 0: there was none
			bool overdue = false; // refused after bindTimeout; a look must tell before the job ends
		} binding;
		bool binding_unsure = false; // one was sent for what it holds and may still take effect
		Millis ending_since{0};   // of the first try of end_where_it_ran()
		bool delete_sent = false;
		bool delete_arrived = false; // surely, or perhaps: ours may be why it is being deleted
		bool delete_latency_told = false;
		bool loss_told = false;
		bool mirror = false;      // a static pod's image in the API: on its node that has another uid
		bool agent_asked = false; // it is one of lost_
		bool seen_gone = false;   // see PodFacts
		bool lost_node = false;   // see PodFacts
		bool proved_over = false; // see PodFacts
		struct { // Slurm's record of its job's devices follows the kubelet's
			Millis again_at{0};
			int failures = 0;
			std::string told; // which ones its job cannot have
		} devices;
		std::string declared;     // that nothing of it runs, and by whom (Released); empty: nobody did
	};

	PodReport report(const Entry &e) const;
	std::string objection(const Entry &e) const;

	Entry &entry(const PodKey &key);
	bool pods_synced() const { return lists_.size() >= settings_.scheduler_names.size(); }
	void set_pod(Entry &e, const kube::PodPtr &pod);
	static bool older_than_known(const Entry &e, const kube::Pod &news);
	void set_job(Entry &e, const JobPtr &job, Millis seen_at);
	bool stands_before(const Entry &e, const Job &job, const Job &other) const;
	void end_others(Entry &e);
	void nodes_changed();
	void look_at_nodes_again();
	void set_limits(const kube::Node &node);
	void count_use();
	void take_use(const Entry &e, const std::string &node);
	void look_for_room();
	void sync_all();
	void sync_unbound();
	static std::string taken_text(const Entry &e, const char *before);
	std::set<std::string> nodes_taken(const Entry &e);
	std::set<std::string> nodes_without_room(Entry &e);
	struct Excluded {
		std::string list; // our_excluded_nodes()
		bool everywhere; // some for want of room, the others as Kubernetes forbids them
	};
	Excluded nodes_excluded(Entry &e);
	void maybe_start();
	void unblock_nodes();

	// The one place where something is decided.
	void sync(const std::string &uid);
	PodFacts facts(const Entry &e) const;
	const Job *relevant_job(const Entry &e) const;
	static std::uint32_t job_id(const Entry &e) { return e.job ? e.job->ref.id : 0; } // for log lines
	void perform(Effect effect, PodState state, Entry &e);

	// Effects (pods_effects.cc, pods_binding.cc, pods_adoption.cc, pods_ends.cc, pods_resubmit.cc).
	void look(Entry &e);
	void lose_node(Entry &e);
	void doubt(Entry &e);
	void refuse(Entry &e);
	void refuse_because(Entry &e, std::string why, bool by_nodes);
	void submit(Entry &e);
	static bool lacks_volumes(const Entry &e);
	void read_volumes(Entry &e);
	void send_submit(Entry &e, JobRequest request);
	void mirror(Entry &e);
	void warn_of_waiting_for_ever(Entry &e);
	void adopt(Entry &e);
	void hold_what_runs(Entry &e);
	void hold_what_it_asks_for(Entry &e);
	void hold_what_it_claims(Entry &e);
	void hold_what_it_requests(Entry &e);
	std::optional<Hold> set_request(const Entry &e);
	std::optional<Hold> set_cpus(const Entry &e);
	bool outgrows_its_job(const Entry &e) const;
	static const char *const outgrown_text;
	void save_what_its_job_got(const Entry &e);
	std::string node_of(const Entry &e) const;
	Hold hold_of_running(const Entry &e, const Result<JobRequest> &request) const;
	JobEnd end_because_of(Entry &e, PodState state);
	JobEnd end_where_it_ran(Entry &e, JobEnd end);
	void end_job(Entry &e, JobEnd end);
	std::int64_t grace_of(const Entry &e) const;
	void delete_pod(Entry &e);
	void tell_preemption(Entry &e, std::int64_t grace);
	void again(Entry &e);
	Age age_of(const Entry &e) const;
	bool want_again(const Entry &e);
	void send_delete(Entry &e, std::int64_t grace, bool again);
	void forget_refused_wish(Entry &e);
	void see_deletion(Entry &e);
	bool ended_by_itself(const Entry &e) const;
	bool reads_manifest(Entry &e);
	bool is_to_go(const Entry &e) const;
	bool comes_back(const kube::Pod &pod) const;
	void see_back(Entry &e);
	void made_again(const kube::PodPtr &pod);
	void manifest_read(Entry &e, const KubeReply &r, const Json &object);
	void release(Entry &e);
	void let_go(const Result<void> &saved);
	void free_hold(Entry &e);
	void keep_only_if_unsure(Entry &e);
	void remember_release(Entry &e, const std::string &by);
	void forget_release(Entry &e);
	void tell_loss(Entry &e);
	void ask_agent(Entry &e, PodState state);
	void hear_agent(const kube::Node &node);
	void forget(const std::string &uid);
	void drop_job(Entry &e);
	void plan_recheck(Entry &e);

	static bool may_arrive(const Entry &e);
	static bool is_preempted_unbound(const Entry &e);
	static bool can_be_bound(const Entry &e);
	std::string cores_held_by_others(const Entry &e) const; // why not to bind, or empty
	bool forbids(Entry &e, const std::string &node);
	std::string node_not_allowed(Entry &e);
	std::string not_to_be_bound(Entry &e);
	void refuse_start(Entry &e, const std::string &why);
	void queue_anew(Entry &e, const std::string &why);
	void bind(Entry &e);
	void place_and_bind();
	void protect(Entry &e);
	void protect_later(Entry &e, Millis delay);
	void finalizer_set(const std::string &uid, const KubeReply &r);
	void assume_finalizer(Entry &e, bool present);
	void tell_jobless(Entry &e, const std::string &why);
	void annotate(Entry &e);
	void annotated(const std::string &uid, const AnnotationChanges &changes, const KubeReply &r);
	void send_binding(Entry &e, const Hold &hold);
	void binding_answered(Entry &e, const std::string &node, const KubeReply &reply);
	void bind_later(Entry &e);
	// Ends the job of a pod that could not be bound within bindTimeout. back_off() has told why.
	void end_if_overdue(Entry &e);
	void end_unbound(Entry &e);

	// pods_claims.cc
	Result<PodClaims> claims_of(const Entry &e) const;
	Result<void> add_shared_claim(const Entry &e, const kube::ResourceClaimPtr &claim, bool has_part, PodClaims &out) const;
	bool wants_other_devices(const Entry &e) const;
	std::string claims_not_met(const Entry &e) const; // why its job will not do for its claims, or empty
	std::optional<Hold> share_devices(const Entry &e);
	void tell_kept(const Entry &e, const std::string &why);
	void keep_no_longer(Entry &e);
	void hold_alone(const Entry &e);
	void wake_if_masks_can_go();
	Result<GresList> gres_with_claims(const Claims &claims, const GresList &requested) const;
	bool add_claims(Entry &e, JobRequest &request);
	void free_claim(Entry &e, const kube::ResourceClaim &claim, const char *why);
	bool free_allocated(Entry &e, const PodClaims &claims); // true: it is under way
	bool is_unused(const kube::ResourceClaim &claim) const;
	bool free_unused(Entry &e);      // the same
	bool free_late_claims(Entry &e); // the same
	void claim_freed(Entry &e, const KubeReply &r);
	const ClaimNodes &claim_nodes(const PodClaims &claims);
	ClaimNodes compute_claim_nodes(const PodClaims &claims) const;
	void allocate_claims(Entry &e, const Hold &hold);
	bool goes_on_claiming(const std::string &uid, const std::string &node);
	void claims_failed(Entry &e, const std::string &why, const KubeReply &r);
	bool cannot_have_been_bound(const Entry &e) const;
	GresList claimed_there(const Entry &e, Whose whose) const;
	bool all_devices_known(const Entry &e) const;
	bool knows_what_it_claims(const Entry &e) const;
	Result<GresList> adopted_gres(const Entry &e, const GresList &requested) const;

	// Wraps an answer: finds the entry again, ends its op, calls f, then sync().
	template <class Reply>
	std::function<void(const Reply &)> then(Entry &e, Op op, void (PodsController::*f)(Entry &, const Reply &));
	void looked(Entry &e, const KubeReply &r);
	void volumes_read(Entry &e, const KubePort::Volumes &v);
	void submitted(Entry &e, const SlurmReply &r);
	void exclusion_answered(Entry &e, const SlurmReply &r);
	void ended(Entry &e, const SlurmReply &r);
	void deleted(Entry &e, const KubeReply &r);
	void finalizer_removed(Entry &e, const KubeReply &r);

	// pods_devices.cc
	std::map<std::string, std::vector<std::uint16_t>> devices_given(const Entry &e) const;
	bool has_its_job_there(const Entry &e) const;
	std::string node_of_devices(const Entry &e) const;
	bool has_its_job_at_devices(const Entry &e) const;
	bool gets_its_devices(const Entry &e) const;
	const Entry *find_exchange(const Entry &e, const std::string &gres, const std::vector<std::uint16_t> &wanted) const;
	std::optional<DeviceChange> next_device_change(const Entry &e) const;
	bool held_by_another(const Entry &e, const DeviceChange &change) const;
	void correct_devices_later(Entry &e);
	void correct_devices(Entry &e);
	void devices_corrected(Entry &e, const DeviceChange &change, const SlurmReply &r);
	void sync_node(const std::string &node);

	std::uint64_t elapsed_ms(Millis since) const;
	static Millis retry_delay(int failures);
	// at_least: what the API server asked for, if it did.
	void back_off(Entry &e, const std::string &why, std::optional<Millis> at_least = {});
	// back_off() until the API server answers again, if that is sooner and it did not say how long.
	void back_off_from_server(Entry &e, const std::string &why, std::optional<Millis> retry_after);
	// The API server refused or did not answer: back_off_from_server(), tell_denied().
	void refused(Entry &e, const std::string &what, const KubeReply &r);
	void tell_denied(Entry &e, const KubeReply &r);
	static void forget_passing_denials(Entry &e);
	void succeeded(Entry &e);
	void plan_retry(Entry &e);

	const ClusterSettings settings_;
	PodsPorts ports_;
	PodReports reports_;
	Resubmits resubmits_;
	NodeView nodes_;
	NodeUse use_;
	LostPods lost_;
	PodDevices devices_;
	std::unordered_map<std::string, ClaimNodes> claim_nodes_; // by what is claimed; until nodes or devices change
	std::uint64_t claim_nodes_of_ = 0; // DraInventory::version()
	std::set<std::string> devices_asked_; // nodes for which Slurm is to answer: one change at a time
	std::unordered_map<std::string, Entry> entries_; // by uid
	std::set<std::string> lists_;                    // scheduler names listed once
	// Not there by a GET; the watch is behind, and tells of their last days yet.
	std::unordered_set<std::string> vanished_;
	bool jobs_synced_ = false, started_ = false, foreign_listed_ = true;
	bool unblock_due_ = false; // see unblock_nodes()
	std::set<std::string> deleted_nodes_;
	bool use_changed_ = false;          // end_of_turn() looks at the waiting pods again
	bool nodes_are_news_ = false;       // ... and first at what nodes refused
	bool room_planned_ = false;         // look_for_room() comes by itself ...
	Millis room_at_{0};                 // ... and not before
	std::string unsaved_; // why the ledger could not be saved; empty: it could
	Millis save_at_{0};   // not tried again before
	std::vector<std::string> to_let_go_; // uids whose finalizer goes as soon as the ledger is on disk
	std::vector<std::string> to_place_; // uids whose job runs: hold, then Binding
};

} // namespace sk8::core

#endif
