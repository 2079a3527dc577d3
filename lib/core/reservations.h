// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// sharing: mixed. Each job of Slurm's own on a shared node has a reservation pod there, and
// is let out of the gate when the kubelets of all its nodes have admitted theirs: whoever
// comes second yields, and that is for the kubelet to say. On dedicated nodes those have one that
// want a container. On shared nodes that are not mixed others have one if they have devices of
// which a kubelet knows, and it requests only these.
//
//   in the gate   pods are made; admitted: the job is launched; refused: a job that can be
//                 requeued goes back into the queue, others try again until gateTimeout
//   launched      a pod that is gone is made again, and the job goes on; unless somebody has
//                 taken it, and the settings say that the job ends then. One that has got other
//                 devices than the job goes on using is exchanged (device_exchange.h)
//   ending        its processes may be left: the pod stays, and is masked as any foreign pod
//   gone          the pod is deleted, and stays masked until its kubelet has ended it
//
// With reservations.shared small jobs have parts of one pod for each node instead
// (shared_reservations.h).
//
// A pod counts as one of these only if its name is that of a job that runs and it holds no
// more than the job; whatever else its owner claims it is a foreign pod.
//
// Where a job has no pod any more, what there is of former settings goes, see reservations_former.cc.
//
// Engine thread only. All I/O goes through the ports.
#ifndef SK8_CORE_RESERVATIONS_H
#define SK8_CORE_RESERVATIONS_H

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/core/device_exchange.h"
#include "lib/core/dra.h"
#include "lib/core/exclusive_nodes.h"
#include "lib/core/node_view.h"
#include "lib/core/pod_devices.h"
#include "lib/core/reservation.h"
#include "lib/core/reservation_port.h"
#include "lib/core/shared_reservations.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct ReservationPorts {
	NativePort &slurm;
	ReservationPort &kube;
	TimerPort &timer;
	std::function<std::optional<std::string>(std::uint32_t uid)> user; // its name; nothing: not known now. May ask NSS
	std::function<void(const std::string &uid)> cover_changed; // covers() of that pod is another now
	// A pod whose mask has a core or device of that share. Null: none has.
	TakenBy taken_by = {};
	// Who empties nodes for jobs that want them without others' pods. Null: nobody.
	ExclusiveNodes *exclusive = nullptr;
	// Whoever looks at this pod is told that it has other devices than its job. Null: nobody.
	std::function<void(const PodKey &pod, const std::string &what)> tell_devices = {};
	// Those of a user besides this one. Null: nobody is in any. May ask NSS.
	std::function<std::vector<std::uint32_t>(const std::string &user, std::uint32_t gid)> groups = {};
	// For pods that claim devices. Null: there are none, or both are there, and outlive it.
	Dra *dra = nullptr;
	KubePort *pods = nullptr;
	// This pod is about to be bound, and counts as one that is there; or does not any more (over: nothing of it has run).
	std::function<void(const ForeignPodPtr &pod, bool there)> placed = {};
};

class Reservations {
public:
	// nodes: of the pods controller; outlives this.
	Reservations(const ClusterSettings &settings, ReservationPorts ports, const NodeView &nodes);

	// ---- Slurm ----
	void arrived(const NativeJobPtr &job);            // in the gate; again changes nothing
	void jobs_replaced(const std::vector<NativeJobPtr> &jobs); // all that run or end
	void ended(JobRef job);                           // its processes are being ended
	void left(JobRef job, const std::set<std::string> &still_on);
	void look(JobRef job); // what is said of its nodes elsewhere may be another now

	// ---- Kubernetes; before the foreign pods hear of it ----
	void replaced(const std::vector<ForeignPodPtr> &pods);
	void changed(const ForeignPodPtr &pod);
	void removed(const ForeignPodPtr &last);
	// The same of those that have no node yet, see reservations_claims.cc.
	void unbound_replaced(const std::vector<ForeignPodPtr> &pods);
	void unbound_changed(const ForeignPodPtr &pod);
	void unbound_removed(const ForeignPodPtr &last);
	void claims_changed(); // or devices, after Dra has heard of it
	void nodes_changed();
	void node_changed(const std::string &node); // of any

	// After a bunch of the above: nodes that are others let all jobs be looked at once.
	void end_of_turn();

	// So many CPUs at most has a job that has a part of a pod that is there; 0: none has.
	std::uint32_t shares_pod_of(const std::string &node) const { return shared_.has_pod(node) ? settings_.reservations.shared.max_cpus : 0; }
	// Is what this pod takes what a running job of Slurm's own has already?
	bool covers(const std::string &uid) const { return covered_.contains(uid); }
	Cover covered(const std::string &uid) const; // or a part of it
	// Of each pod there that has other devices than its job, which runs: a sentence.
	std::vector<std::string> other_devices(const std::string &node) const;

private:
	struct Pod : ReservationState {
		NativeShare share;
		std::string name;
		std::string made_uid; // of the one that we have made, or that was there for its job before it had a node
		bool wanted = true;
		enum class Awaits { nothing, create, remove, place, look }; // an answer to which request
		Awaits awaits = Awaits::nothing;
		bool former = false; // it was there before us
		bool other_devices = false; // than the job: it is given back
		bool other_claims = false;  // its claims have others, or may have for its kubelet: it is given back, and stands for no job
		std::vector<kube::PodResourceClaim> claims; // of the object that is there
		bool devices_only = false; // of its job's share: its node is not mixed, and its job has no container there
		bool small = false;        // it was made so
		std::string elsewhere;     // the node that it has instead of its own: somebody has bound it there
		bool too_small() const { return small && !devices_only; } // its node is shared otherwise since
		bool too_large() const { return !uid.empty() && uid == made_uid && !fits && elsewhere.empty(); } // an admission webhook has made it so
		bool astray() const { return !uid.empty() && uid == made_uid && !elsewhere.empty(); }
		bool ours() const { return !uid.empty() && (fits || uid == made_uid); } // a stranger of that name is not ours to delete
		bool refused() const { return over || other_devices || other_claims || too_small() || too_large() || astray(); }
		bool to_go() const { return refused() || exchanges_now; } // and to be made anew, if it is wanted
		bool asks_devices = false; // Slurm, to give the job these
		bool awaits_agent = false; // it is looked at again when it needs wait no more for one
		bool shared = false; // it is a part of the one that small jobs share: all of its state is from there
		bool exchanges_now = false; // it has other devices than its job, which runs: it is given back
		int exchanges = 0;          // in a row
		Millis exchange_at{0};      // the next one, not before
		std::string other;          // which devices these are; empty: those of its job, as far as is known
		std::string other_told;     // uid of the pod of which that was told
		bool to_place = false; // it is there without a node, as far as is known
		bool doubtful = false; // ... or is bound, or gone
		bool unsure = false;   // a Binding may have had its effect, or may yet
		bool counted = false;  // ports_.placed() has been told that it is there, and nothing since
		bool lacks_claims() const // one has not been made from its template yet
		{
			return to_place && unbound && std::ranges::any_of(unbound->resource_claims, [](const auto &c) { return c.claim.empty(); });
		}
		ForeignPodPtr unbound; // as it will be on its node; null: nothing has told of it
		Millis misses_since{0};   // a claim
		std::string wrong_claims; // why it will never have them, as a part of a sentence
		int failures = 0;
		std::string mount_trouble; // its kubelet says of a volume; to_place: see ReservationPort::Lacks::claim
		Millis retry_at{0};
	};
	enum class Asked { no, waits, refused }; // Slurm, to end it
	using Id = std::pair<std::uint32_t, std::int64_t>;
	struct Entry {
		NativeJobPtr job;
		bool in_gate = false, ending = false;
		// It was in the gate before us: a slurmctld that was killed may have launched it, and forgotten that.
		bool perhaps_launched = false;
		bool waits_for_image = false; // longer than gateTimeout
		bool waited_for_nodes = false; // to be empty or up, since gateTimeout began
		std::optional<Result<PodTemplate>> more; // what its template says; nothing: it has none
		bool nameless = false;   // the name of its user is not known yet, nor what he may have: these two say nothing
		std::string bad_account; // why it does not get the ServiceAccount that its user wants; empty: it does, or wants none
		Asked asked = Asked::no;
		NativeJobPtr again; // it is in the gate once more, see arrived_again()
		std::map<std::string, Pod> pods; // by node
	};
	struct Place {
		Id job;
		std::string node;
	};

	enum class Holds { nothing, devices, all };
	Holds holds_on(const NativeJob &job, const NativeShare &share, bool has_pod) const;
	bool may_have_pods(const NativeJob &job) const;
	bool ready() const { return nodes_.synced() && all_listed_; }
	Entry &enter(const NativeJobPtr &job);
	void read_wish(Entry &e, bool again);
	void arrived_again(Entry &former, const NativeJobPtr &job);
	Pod *find(const std::string &ns, const std::string &name, Entry **entry);
	bool stands_for(const Entry &e, const Pod &p, const ForeignPod &seen) const;
	void see(Entry &e, Pod &p, const ForeignPod &seen);
	std::string too_large_text(const Pod &p) const;
	static std::string astray_text(const Pod &p);
	std::string eviction(const Entry &e, const Pod &p, Gone gone) const;
	void lose(Entry &e, Pod &p, Gone gone);
	void give_up(Entry &e, const Pod &p, Gone gone);
	void cover(Entry &e, Pod &p);
	void uncover(const std::string &uid);
	void sync(Id id);
	void sync_all();
	bool is_shared(const Entry &e, const NativeShare &share) const;
	bool has_former_pod(const Entry &e, const NativeShare &share) const;
	void choose_nodes(Entry &e);
	void choose_all();
	void tell_all_shared();
	void heed_nodes();
	void step(Entry &e, Pod &p);
	void create(Entry &e, Pod &p);
	static const PodTemplate *more(const Entry &e) { return e.more && *e.more ? &**e.more : nullptr; }
	void remove(const PodKey &key, std::function<void(const KubeReply &)> done);
	void judge(Entry &e);
	std::string taken(const Entry &e) const;
	std::string claimed_taken(const Entry &e, const Pod &p) const;
	ExclusiveWord word(const Entry &e) const;
	bool sleeps(const Entry &e) const;
	std::string bad_wish(const Entry &e) const;
	static std::string bad_claims(const Entry &e, bool known);
	bool is_hopeless(const Entry &e) const;
	// By then a kubelet has said that a volume of a pod is not there, and who makes the volume just now has made it.
	static constexpr Millis time_to_mount{10'000};
	static NativeJob as_allowed(const Entry &e);
	static std::string mount_text(const std::string &node, const Pod &p);
	void look_at_volumes(Id id);
	std::string container_trouble(const Entry &e) const;
	void open(Entry &e);
	void refuse(Entry &e, const std::string &why);
	void keep_to_the_end(Entry &e);
	void send_back(const NativeJob &job, const std::string &why, Millis delay);
	void end(Entry &e, const std::string &why);
	static bool has_container(const Entry &e, const Pod &p) { return e.job->wants_container() && !p.devices_only; }
	// Its containers claim the devices that its job has there.
	static bool has_claims(const Entry &e, const Pod &p) { return has_container(e, p) && more(e) && claims_devices(*more(e)); }
	bool is_claimed(const std::string &gres) const;
	const std::vector<ResourceSettings> &requested_on(const std::string &node) const;
	std::map<std::string, std::int64_t> extended_there(const Entry &e, const Pod &p, const kube::Node &node) const;
	bool may_start(const Entry &e, const Pod &p);
	enum class Devices { same, other, unknown }; // unknown: not yet
	struct Given {
		GresList gres;
		bool complete = true; // false: which ones is not known yet
		std::int64_t awaits_agent = 0; // ... for so many seconds: its node is so new that an agent there, if any, has not told yet
	};
	void read_devices();
	Given given_devices(const Entry &e, const Pod &p);
	static Devices compare(const Pod &p, const Given &given);
	Devices compare_devices(const Entry &e, const Pod &p) { return compare(p, given_devices(e, p)); }
	void look_at_devices(Entry &e, Pod &p);
	Devices compare_claims(const Entry &e, const Pod &p) const;
	void look_at_claims(Entry &e, Pod &p);
	void give_claims_back(Entry &e, Pod &p);
	void give_devices_back(const Entry &e, Pod &p, const std::string &why);
	void ask_for_devices(Entry &e, Pod &p, DeviceChange change);
	void has_devices(Entry &e, Pod &p, const DeviceChange &change);
	GresList devices_of_others(const Entry &e, const std::string &node) const;
	std::string holder_of(const Pod &p, const GresList &missing) const;
	void mask_beyond(const Pod &p, GresList beyond);
	void look_at_exchange(Entry &e, Pod &p);
	void tell_exchange(const Entry &e, Pod &p, ExchangeStep what, const std::string &given, const std::string &holder);
	void look_at_neighbours();
	void see_unbound(Entry &e, Pod &p, const ForeignPodPtr &there);
	void is_to_be_placed(const Entry &e, Pod &p);
	void place(Entry &e, Pod &p);
	bool goes_on_placing(Id id, const std::string &node, const std::string &uid);
	void claims_written(Id id, const std::string &node, const std::string &uid, const std::string &why);
	void bind(const Entry &e, Pod &p, const std::string &uid);
	void is_bound(const Entry &e, Pod &p);
	void has_node(Entry &e, Pod &p, const std::string &node);
	void touch_later(Id id, const std::string &node, const std::string &uid, int times);
	void not_bound(const Entry &e, Pod &p, const KubeReply &r);
	void uncount(Pod &p);
	void count_formers();
	void look_at_counted(const std::string &uid);
	void look_where_it_is(const Entry &e, Pod &p);
	void timeout(Id id);
	void not_wanted(Entry &e);
	void failed(const Entry &e, Pod &p, const std::string &why);
	void later(const Entry &e, Pod &p);
	void look_at_orphans();
	bool may_go(const ForeignPod &orphan);
	void former_changed(const ForeignPodPtr &pod);
	void former_left(JobRef job, const std::set<std::string> &still_on);
	bool former_may_go(const ForeignPod &pod);
	void tell_shared(Entry &e, Pod &p);
	void share(Entry &e, Pod &p);
	void shared_news(const std::string &node, Gone gone);
	void orphan_deleted(const std::string &name, const std::string &uid, const KubeReply &r);

	const ClusterSettings settings_;
	ReservationPorts ports_;
	const NodeView &nodes_;
	const bool mixed_, only_former_; // a node may be mixed; no job has a pod
	std::map<Id, std::optional<std::set<std::string>>> formers_used_; // jobs that run in such a pod: the nodes that they use, once told
	const std::vector<ResourceSettings> with_own_; // resources that pods of jobs may request, see requested_on()
	PodDevices devices_; // of nodes on which jobs may have pods
	std::map<Id, Entry> entries_;
	std::unordered_map<std::string, Place> by_name_;
	// By name: in our namespace, of no job known, or of one that has a part of a shared pod.
	std::unordered_map<std::string, ForeignPodPtr> orphans_;
	std::unordered_map<std::string, ForeignPodPtr> unbound_; // by name: of any job, those that have no node yet
	std::set<Id> placing_;                                   // jobs with such a pod, perhaps
	std::set<std::string> asked_;                            // uids of orphans whose DELETE is under way
	std::unordered_map<std::uint32_t, int> refusals_;      // by job id, since it last was launched
	std::set<std::string> covered_;                        // uids
	std::unordered_map<std::string, GresList> beyond_;     // by uid, of these: devices that the pod has, and no job
	std::set<Id> other_devices_;                           // of whose pods one may have others than the job
	bool pods_listed_ = false, jobs_listed_ = false;
	bool unbound_listed_ = false;
	bool all_listed_ = false;      // pods and what they claim, and foreign pods have heard of it
	bool pods_are_news_ = false;   // they were listed in this turn
	std::map<std::string, ForeignPodPtr> counted_; // by uid: unbound pods of an engine before this one, which may have been bound
	bool nodes_are_news_ = false; // end_of_turn() looks at all jobs
	bool choice_is_old_ = false;  // see heed_nodes()
	Millis begun_{0}; // when pods were listed first
	SharedReservations shared_;
};

} // namespace sk8::core

#endif
