// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// KubePort over the model of the API server: what the engine asks for travels, and on
// the way it is late, refused, lost before or after it took effect.
#ifndef SK8_SIM_KUBE_REQUESTS_H
#define SK8_SIM_KUBE_REQUESTS_H

#include <functional>
#include <string>

#include "lib/core/hold.h"
#include "lib/core/kube_port.h"
#include "lib/core/node_kube_port.h"
#include "test/sim/dice.h"
#include "test/sim/model_api.h"
#include "test/sim/model_claims.h"

namespace sk8::sim {

// For those who look on: what the engine asked for, at the moment when it takes effect,
// and what it was told.
class RequestWatcher {
public:
	virtual ~RequestWatcher() = default;
	virtual void binding_by_us(const core::PodKey &key) = 0;
	// One of these was refused, or never left: it cannot arrive any more.
	virtual void binding_refused(const core::PodKey &key) = 0;
	virtual void delete_by_us(const core::PodKey &key, std::int64_t grace, Micros sent_at) = 0; // it takes effect
	// ... when it is sent.
	virtual void delete_sent_by_us(const core::PodKey &key, std::int64_t grace) = 0;
	// It may have taken effect, for all that the engine knows.
	virtual void delete_unanswered(const core::PodKey &key) = 0;
	// This pod takes the place of the one with the uid from, with the same program.
	virtual void made_again_by_us(const std::string &from, const kube::Pod &pod) = 0;
	virtual void condition_by_us(const core::PodKey &key) = 0;
	virtual void submit_by_us(const core::PodKey &key) = 0;
	// It has seen the last state of the removed object.
	virtual void removal_told(const std::string &uid) = 0;
	// It knows of this foreign pod, and where nodes stand on both sides.
	virtual void foreign_told(const kube::Pod &pod) = 0;
	// ... and what this pod for Slurm, which can be resized in place, requests in this version of it.
	virtual void request_told(const kube::Pod &pod) = 0;
	// ... and this version of a Node object.
	virtual void node_told(const kube::Node &node) = 0;
	// Another one: what its settings do not share it masks no more.
	virtual void engine_starts(const core::Ledger &known) = 0;
	// It has waited for Kubernetes for as long as it does, and Slurm's jobs start without its word.
	virtual void waited_enough() = 0;
	// slurmctld starts, and waits a moment for what others have placed since the saved ledger was written ...
	virtual void waits_a_moment() = 0;
	// ... which is over.
	virtual void moment_is_over() = 0;
	// It makes a reservation pod, whose program is this.
	virtual void reservation_by_us(const kube::Pod &pod) = 0;
	// It opens the gate for this job; Slurm hears of that when its locks can be had.
	virtual void gate_opened(core::JobRef job) = 0;
	// slurm-k8s.yaml cannot be read at the start: every job of Slurm's own is launched.
	virtual void gate_opens() = 0;
	// It wrote to this Node object.
	virtual void node_written(const std::string &name) = 0;
	// It sends this merge patch of the claim, as it knows that.
	virtual void claim_patch_by_us(const kube::ResourceClaim &claim, const Json &patch) = 0;
};

class KubeRequests final : public core::KubePort, public core::NodeKubePort {
public:
	KubeRequests(Schedule &time, Dice &dice, Story &story, ModelApi &api, RequestWatcher &watcher,
		     std::function<void(std::function<void()>)> turn)
		: time_(time), dice_(dice), story_(story), api_(api), watcher_(watcher), turn_(std::move(turn))
	{
	}
	// The process died: what is under way may arrive, the answers do not.
	void die() { alive_ = false; }
	// What is on its way never arrives.
	void lose() { lost_ = true; }

	int faults = 0;               // permille of the requests that go wrong
	bool strips_finalizers = false; // mutant: all of them, others' too
	ModelClaims *claims = nullptr;  // null: nothing is told of any

	void get_pod(const core::PodKey &key, KubePort::Done done) override;
	void set_finalizer(const core::PodKey &key, bool present, KubePort::Done done) override;
	void bind(const core::PodKey &key, const std::string &node,
		  const std::map<std::string, std::string> &annotations, KubePort::Done done) override;
	void annotate_pod(const core::PodKey &key, const core::AnnotationChanges &changes, KubePort::Done done) override;
	void delete_pod(const core::PodKey &key, const core::Deletion &how, KubePort::Done done) override;
	void get_manifest(const core::PodKey &key, Manifest done) override;
	void create_pod(const std::string &ns, const Json &object, KubePort::Done done) override;
	void set_condition(const core::PodKey &key, const std::string &resource_version,
			   const core::PodCondition &condition, KubePort::Done done) override;
	void create_event(const core::PodKey &key, const core::PodEvent &event, KubePort::Done done) override;
	// claim_requests.cc
	void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, KubePort::Done done) override;
	void get_volumes(const core::PodKey &key, const std::vector<std::string> &claims,
			 std::function<void(const Volumes &)> done) override;

	// done: as of core::ReservationPort; reservation_requests.cc
	void create_reservation(const std::string &ns, const Json &object,
				std::function<void(const core::KubeReply &, const std::string &uid)> done);
	void resize_reservation(const core::PodKey &key, const std::string &version, const Json &requests,
				std::function<void(const core::KubeReply &)> done); // with the pod

	void patch_node(const kube::Meta &node, const core::NodePatch &patch, NodeKubePort::Done done) override;
	void set_our_taint(const kube::Node &node, core::OurTaint which, bool on, NodeKubePort::Done done) override;
	void set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
				std::optional<std::int64_t> transition, NodeKubePort::Done done) override;

private:
	void send_node(const std::string &what, const kube::Meta &meta, std::function<void(kube::Node &)> edit,
		       NodeKubePort::Done done);
	using Effect = std::function<core::KubeReply()>;
	struct Request;
	void send(const std::string &what, const core::PodKey &key, bool write, Effect effect, KubePort::Done done);
	core::KubeReply make_again(const Json &object);
	core::KubeReply make_reservation(const std::string &ns, const Json &object);
	core::KubeReply change_pod(const core::PodKey &key, const std::string &version,
					   const std::function<void(kube::Pod &)> &edit);
	void arrive(const std::shared_ptr<Request> &r);
	bool goes_wrong(const std::shared_ptr<Request> &r);
	void give_up_later(const std::shared_ptr<Request> &r);
	void answer(const std::shared_ptr<Request> &r, core::KubeReply reply, Micros delay);

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	ModelApi &api_;
	RequestWatcher &watcher_;
	std::function<void(std::function<void()>)> turn_; // runs f on the engine's thread
	bool alive_ = true, lost_ = false;
};

} // namespace sk8::sim

#endif
