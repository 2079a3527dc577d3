// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Kubelets and what really runs on the nodes: containers start, end by themselves,
// for lack of memory, or after SIGTERM or SIGKILL; what the API server hears of it
// comes late, or not while the node is cut off.
#ifndef SK8_SIM_MODEL_KUBELET_H
#define SK8_SIM_MODEL_KUBELET_H

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/sim/dice.h"
#include "test/sim/model_api.h"
#include "test/sim/model_claims.h"

namespace sk8::sim {

// What the pod's program will do, if nothing comes in between.
struct Program {
	Micros start_delay = second;  // pulling its image
	Micros life = -1;             // -1: until it is ended
	int exit_code = 0;
	bool out_of_memory = false;
	bool ignores_sigterm = false;
	bool refused = false;         // the kubelet does not admit it
	bool critical = false;        // the kubelet ends others to make room for it
	int cores = 1;
	std::int64_t memory = 0;      // MB
	int gpus = 0;
	std::int64_t milli_cpu = -1;  // of a foreign pod; -1: cores
	Micros orphan_grace = 5 * second; // from SIGTERM to SIGKILL if its object has vanished

	std::int64_t milli() const { return milli_cpu < 0 ? cores * 1000 : milli_cpu; }
};

// The truth about one pod on one node.
struct Container {
	std::string pod, uid, node;
	Program program;
	enum class State { seen, running, ended } state = State::seen;
	int exit_code = 0;
	std::string reason;
	bool evicted = false;     // by its kubelet, for this reason
	bool tells_late = false;  // its kubelet refuses it, and does not know yet what runs: it says only that it has seen the pod
	bool by_itself = false;   // ended by its own program
	bool told_to_end = false; // SIGTERM was sent
	bool started_ever = false;
	Micros ended_at = 0, kill_at = -1;
	std::int64_t seen_at = 0; // wall seconds: status.startTime
	bool reporting = false;   // a report is on its way
	// Resize in place: the spec that was looked at, and whether what it requests is put off.
	std::int64_t generation = 0;
	bool put_off = false;
	// Of its GPUs, sorted; where a device plugin is: since it was admitted; of its claims: since they were prepared.
	std::vector<std::uint16_t> devices;
	std::vector<ClaimName> claims; // of its pod
};

// A file on a node.
struct StaticPod {
	std::string name, node, uid; // uid: of what runs, not of its mirror
	Program program;
	std::int64_t grace = 30;     // seconds
	bool file = true;            // it is there
	std::string mirror;          // the uid of its mirror that was made last
};

class ContainerListener {
public:
	virtual ~ContainerListener() = default;
	virtual void container_started(const Container &c) = 0;
	virtual void container_ended(const Container &c) = 0;
	// From now on it counts there, until it has ended.
	virtual void container_admitted(const Container &) {}
	// The kubelet does not admit it: beside what is on its node it lacks these resources, in the kubelet's order: "pods", "cpu" ...
	virtual void container_refused(const Container &c, const std::vector<std::string> &lacks) = 0;
	// Its kubelet is about to end it, for a critical pod.
	virtual void container_preempted(const Container &) {}
	// Its program has more, or less, set aside from now on.
	virtual void container_resized(const Container &) {}
	// About to be shown: a mirror of the static pod with the uid shows.
	virtual void mirror_made(const kube::Pod & /*mirror*/, const std::string & /*shows*/) {}
};

class ModelKubelet final : public ApiListener {
public:
	ModelKubelet(Schedule &time, Dice &dice, Story &story, ModelApi &api, ContainerListener &listener)
		: time_(time), dice_(dice), story_(story), api_(api), listener_(listener)
	{
	}
	void set_program(const std::string &uid, const Program &program) { programs_[uid] = program; }
	const Program &program(const std::string &uid) const { return programs_.at(uid); }

	// ---- files of static pods (static_pods.cc) ----
	void write_file(StaticPod pod); // in the place of one of that name
	void remove_file(const std::string &node, const std::string &name); // node empty: any
	void remove_all_files();
	bool has_file(const std::string &uid) const;

	// ---- nodes ----
	void power(const std::string &node, bool on); // off: all of it dies
	void connect(const std::string &node, bool connected);
	// It is short of something (Evicted), makes room (Preempting), or starts again and has none (OutOfcpu).
	// False: there is nothing to end.
	bool evict(const std::string &node, const std::string &uid, const std::string &reason);
	// From now on this node's kubelet reports its state, again and again.
	void report_state(const std::string &node);
	void registered(const std::string &node); // as another Node object: what its agent has told is gone with the former one
	bool powered(const std::string &node) const { return !off_.contains(node); }
	Micros lateness = 0; // of reports, at most, beside the usual

	// ---- devices that a plugin hands out (kubelet_devices.cc) ----
	bool device_plugin = false;
	Micros agent_lateness = 0; // of what agents tell of them, at most, beside the usual
	const ModelClaims *claims = nullptr; // of pods (kubelet_claims.cc); null: there are none

	// Everything that was ever started, by node and uid.
	const std::map<std::pair<std::string, std::string>, Container> &containers() const { return containers_; }
	const Container *find(const std::string &node, const std::string &uid) const;
	bool runs_anywhere(const std::string &uid) const;

	void pod_event(const ApiEvent &event) override;
	void restored() override;

private:
	using Key = std::pair<std::string, std::string>;
	bool reachable(const std::string &node) const
	{
		return !off_.contains(node) && !cut_.contains(node) && !api_.down && !api_.hung;
	}
	void plan_readiness(const std::string &node);
	void plan_heartbeat(const std::string &node);
	using Lacks = std::vector<std::string>; // resources; of nothing: it fits
	Lacks lacks(const std::string &node, const Program &program, const Container *itself) const; // itself: of that program
	Lacks lacks_beside(const std::string &node, const Program &program, const std::function<bool(const Container &)> &counts) const;
	bool admits(Container &c);
	void refuse(Container &c, const std::string &reason);
	void make_room(const Container &c);
	void notice(const std::string &node, const std::string &name, const std::string &uid, Micros delay);
	void look(const std::string &node, const std::string &name, const std::string &uid);
	void first_seen(const std::string &node, const kube::Pod &pod);
	void resize(Container &c, const kube::Pod &pod);
	void retry_resizes(const std::string &node);
	void give_devices(Container &c);
	bool prepare_claims(Container &c);
	void plan_to_tell_devices(const std::string &node);
	void tell_devices(const std::string &node);
	void start(const Key &key);
	void terminate(Container &c, std::int64_t grace);
	void end(Container &c, int exit_code, const std::string &reason, bool by_itself);
	void plan_report(Container &c);
	void report(const Key &key);
	void last_delete(const Key &key);
	void write_status(kube::Pod &pod, const Container &c) const;
	StaticPod *static_pod(const std::string &uid);
	std::string shown_as(const Container &c) const;
	void sync_static_later(const std::string &uid, Micros delay);
	void sync_static(const std::string &uid);
	bool may_start(const StaticPod &pod) const;
	void start_static(const StaticPod &pod);
	void show(StaticPod &pod);
	bool look_at_mirror(const std::string &node, const std::string &name, const std::string &uid);
	void end_of_static(const StaticPod &pod);
	bool goes_unreported(const StaticPod &pod);
	void restart_statics(const std::string &node);

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	ModelApi &api_;
	ContainerListener &listener_;
	std::map<std::string, Program> programs_; // by uid
	std::map<Key, Container> containers_;
	std::map<std::string, StaticPod> statics_; // by uid
	std::set<std::string> mirrors_; // uids of all that there ever were
	std::set<std::string> off_, cut_, reporting_;
	std::map<std::string, std::map<std::string, std::vector<std::uint16_t>>> given_; // devices, by node and uid, as its kubelet has it on disk
	std::set<std::string> telling_; // nodes whose agent is about to
};

// An agent's word: these many GPUs, and which of them which pods have.
std::string told_devices(int gpus, const std::map<std::string, std::vector<std::uint16_t>> &given);

} // namespace sk8::sim

#endif
