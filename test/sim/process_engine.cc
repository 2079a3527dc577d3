// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's part of a process, as lib/core/cluster_engine.cc has it.
#include "test/sim/process.h"
#include "test/sim/resizing.h"

#include <algorithm>

namespace sk8::sim {

using core::PodKey;

// ---- the borders: each effect on the outside may be the last one ----

class Process::KubeGate final : public core::KubePort {
public:
	KubeGate(Process &p, core::KubePort &inner) : p_(p), inner_(inner) {}

	void get_pod(const PodKey &key, Done done) override
	{
		if (p_.effect("get"))
			inner_.get_pod(key, std::move(done));
	}
	void set_finalizer(const PodKey &key, bool present, Done done) override
	{
		if (p_.effect("finalizer"))
			inner_.set_finalizer(key, present, std::move(done));
	}
	void bind(const PodKey &key, const std::string &node, const std::map<std::string, std::string> &annotations,
		  Done done) override
	{
		if (!p_.effect("bind"))
			return;
		if (!p_.out_.disk.holds(key.uid, node))
			p_.violation = "I3: the Binding of " + key.name + " is sent before its hold is on disk";
		inner_.bind(key, node, annotations, std::move(done));
	}
	void annotate_pod(const PodKey &key, const core::AnnotationChanges &changes, Done done) override
	{
		if (p_.effect("annotate"))
			inner_.annotate_pod(key, changes, std::move(done));
	}
	void delete_pod(const PodKey &key, const core::Deletion &how, Done done) override
	{
		if (p_.effect("delete"))
			inner_.delete_pod(key, how, std::move(done));
	}
	void set_condition(const PodKey &key, const std::string &version, const core::PodCondition &c, Done done) override
	{
		if (p_.effect("condition"))
			inner_.set_condition(key, version, c, std::move(done));
	}
	void get_manifest(const PodKey &key, Manifest done) override
	{
		if (p_.effect("manifest"))
			inner_.get_manifest(key, std::move(done));
	}
	void create_pod(const std::string &ns, const Json &object, Done done) override
	{
		if (p_.effect("create"))
			inner_.create_pod(ns, object, std::move(done));
	}
	void create_event(const PodKey &key, const core::PodEvent &event, Done done) override
	{
		if (p_.effect("event"))
			inner_.create_event(key, event, std::move(done));
	}
	void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, Done done) override
	{
		if (p_.effect("claim"))
			inner_.patch_claim(claim, status, patch, std::move(done));
	}
	void get_volumes(const PodKey &key, const std::vector<std::string> &claims,
			 std::function<void(const Volumes &)> done) override
	{
		if (p_.effect("volumes"))
			inner_.get_volumes(key, claims, std::move(done));
	}

private:
	Process &p_;
	core::KubePort &inner_;
};

class Process::SlurmGate final : public core::SlurmPort {
public:
	SlurmGate(Process &p, core::SlurmPort &inner) : p_(p), inner_(inner) {}

	void submit(core::JobRequest request, Done done) override
	{
		p_.out_.requests.submit_by_us(request.key);
		if (command("submit"))
			inner_.submit(std::move(request), std::move(done));
	}
	void end(const PodKey &key, core::JobRef ref, core::JobEnd end, Done done) override
	{
		if (command("end"))
			inner_.end(key, ref, std::move(end), std::move(done));
	}
	void exclude(const PodKey &key, const core::Job &job, std::string nodes, Done done) override
	{
		if (command("exclude"))
			inner_.exclude(key, job, std::move(nodes), std::move(done));
	}
	void set_devices(core::JobRef job, core::DeviceChange change, Done done) override
	{
		if (command("set devices"))
			inner_.set_devices(job, std::move(change), std::move(done));
	}
	void wake_scheduler() override
	{
		if (!command("wake"))
			return;
		p_.wake_is_coming_ = true;
		inner_.wake_scheduler();
	}

private:
	bool command(const char *what)
	{
		if (!p_.effect(what))
			return false;
		p_.plan_round(p_.out_.dice.between("round", 0, 10 * ms));
		return true;
	}
	Process &p_;
	core::SlurmPort &inner_;
};

// To nodes: only these writes; the same effects.
class Process::NodeGate final : public core::NodeKubePort, public core::SlurmNodePort {
public:
	NodeGate(Process &p, core::NodeKubePort &kube, core::SlurmNodePort &slurm) : p_(p), kube_(kube), slurm_(slurm) {}

	void patch_node(const kube::Meta &node, const core::NodePatch &patch, core::NodeKubePort::Done done) override
	{
		if (!p_.effect("patch node"))
			return;
		if (p_.out_.mutant == Mutant::drain_not_told && patch.unschedulable == true)
			p_.after(Millis(1000), [done = std::move(done)] { done(believed()); });
		else
			kube_.patch_node(node, patch, std::move(done));
	}
	void set_our_taint(const kube::Node &node, core::OurTaint which, bool on, core::NodeKubePort::Done done) override
	{
		if (p_.effect("taint"))
			kube_.set_our_taint(node, which, on, std::move(done));
	}
	void set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
				std::optional<std::int64_t> transition, core::NodeKubePort::Done done) override
	{
		if (!p_.effect("node's condition"))
			return;
		if (p_.out_.mutant == Mutant::drained_condition_untold)
			p_.after(Millis(1000), [done = std::move(done)] { done(believed()); });
		else
			kube_.set_node_condition(node, condition, transition, std::move(done));
	}
	void change_node(core::NodeChange change, core::SlurmNodePort::Done done) override
	{
		if (!p_.effect("change node"))
			return;
		if (p_.out_.mutant == Mutant::node_not_resumed && change.action == SK8_NODE_RESUME)
			return;
		slurm_.change_node(std::move(change), std::move(done));
		p_.plan_round(p_.out_.dice.between("round", 0, 10 * ms));
	}

	void change_features(core::FeatureChange change, core::SlurmNodePort::Done done) override
	{
		if (!p_.effect("change features"))
			return;
		slurm_.change_features(std::move(change), std::move(done));
		p_.plan_round(p_.out_.dice.between("round", 0, 10 * ms));
	}

private:
	static core::NodeKubeReply believed()
	{
		core::NodeKubeReply r;
		r.status = 200;
		return r;
	}
	Process &p_;
	core::NodeKubePort &kube_;
	core::SlurmNodePort &slurm_;
};

void Process::start_nodes()
{
	if (!out_.node_state)
		return;
	node_port_ = worker_->node_port(worker_->seat(settings_.name));
	node_gate_ = std::make_shared<NodeGate>(*this, *requests_, *node_port_);
	nodes_ = std::make_unique<core::NodesController>(
		settings_, core::NodesPorts{*node_gate_, *node_gate_, *this,
					    [](std::uint32_t uid) { return "user " + std::to_string(uid); }, model_slurm_uid, missing(),
					    {}, {}, dra_->wanted() ? &dra_->inventory : nullptr});
}

// What it has not written is in memory, and the next one writes all of it.
void Process::stop_engine()
{
	engine_++;
	out_.watch.stop();
	out_.foreign_watch.stop();
	if (out_.claim_watch)
		out_.claim_watch->stop();
	if (requests_) {
		requests_->die();
		former_requests_.push_back(std::move(requests_));
	}
	if (worker_)
		worker_->detach(settings_.name);
	nodes_.reset();
	reservations_.reset();
	last_seen_.clear();
	native_gate_.reset();
	foreign_.reset();
	controller_.reset();
	dra_.reset();
	journal_.reset();
	kube_.reset();
	kube_gate_.reset();
	slurm_.reset();
	slurm_gate_.reset();
	slurm_port_.reset();
	told_.clear();
	told_requests_.clear();
	started_at_ = -1;
	turn_ends_ = false;
	(void) holds_.set_full(settings_.name, {}); // the next one tells anew
}

void Process::start_engine()
{
	out_.requests.engine_starts(holds_.ledger(settings_.name));
	requests_ = std::make_unique<KubeRequests>(out_.time, out_.dice, out_.story, out_.api, out_.requests,
						   [this](std::function<void()> f) { turn(f); });
	requests_->strips_finalizers = out_.mutant == Mutant::strips_finalizers;
	requests_->faults = faults_;
	requests_->claims = out_.claims;
	kube_gate_ = std::make_unique<KubeGate>(*this, *requests_);
	kube_ = mutate(out_.mutant, *kube_gate_, out_.api);
	slurm_port_ = worker_->port(worker_->seat(settings_.name));
	slurm_gate_ = std::make_unique<SlurmGate>(*this, *slurm_port_);
	slurm_ = mutate(out_.mutant, *slurm_gate_);
	journal_ = mutate(out_.mutant,
			  std::make_unique<Journal>(out_.disk, holds_.ledger(settings_.name), [this] { return effect("flush"); },
						    [this](std::size_t n) { return out_.dice.next("torn") % (n + 1); }));
	dra_ = std::make_unique<core::Dra>(settings_.resources);
	foreign_listed_ = claims_stale_ = false;
	controller_ = std::make_unique<core::PodsController>(
		settings_, core::PodsPorts{*slurm_, *kube_, *this, holds_, *journal_,
					   [](const std::string &user) -> std::optional<core::Account> {
						   for (const auto &known : config_users)
							   if (user == known.name)
								   return core::Account{known.uid, known.uid};
						   return std::nullopt;
					   }, dra_.get()});
	foreign_ = std::make_unique<core::ForeignPods>(
		settings_.name,
		core::ForeignPorts{*slurm_, *this, holds_, *journal_,
				   [this](const std::string &uid) { return covered(uid); }, settings_.reservations.ns, false, {}, nullptr, dra_.get(),
				   [this](const core::PodKey &key) { controller_->over_elsewhere(key); }},
		controller_->nodes(), controller_->use(), settings_.resources);
	start_reservations();
	start_nodes();
	controller_->expect_foreign(out_.mutant == Mutant::foreign_not_waited_for);
	worker_->attach(worker_->seat(settings_.name), shared_from_this());
	plan_round(0);
	watch_pods();
	watch_foreign_pods();
	watch_claims();
}

void Process::watch_pods()
{
	auto as_seen = [m = out_.mutant](const std::vector<kube::PodPtr> &pods) {
		std::vector<kube::PodPtr> seen;
		for (const auto &p : pods)
			seen.push_back(mutate(m, p));
		return seen;
	};
	auto node_seen = [m = out_.mutant](const kube::NodePtr &node) { return mutate_node(m, node); };
	PodWatch::Calls calls;
	calls.lost = [this] {
		turn([&] {
			if (nodes_)
				nodes_->lost();
		});
	};
	calls.back = [this] {
		turn([&] {
			controller_->hurry();
			if (nodes_)
				nodes_->back();
		});
	};
	calls.replaced = [this, as_seen, back = calls.back, first = true](const auto &pods) mutable {
		back();
		if (!std::exchange(first, false) && out_.mutant == Mutant::relist_ignored)
			return;
		turn([&] {
			for (const auto &name : settings_.scheduler_names) { // a list of each
				std::vector<kube::PodPtr> of_it = as_seen(pods);
				std::erase_if(of_it, [&](const auto &pod) { return pod->scheduler_name != name; });
				controller_->pods_replaced(name, of_it);
			}
		});
		for (const auto &pod : pods)
			request_told(pod);
	};
	calls.changed = [this](const auto &pod) {
		turn([&] { controller_->pod_changed(mutate(out_.mutant, pod)); });
		request_told(pod);
	};
	calls.removed = [this](const auto &pod) {
		turn([&] {
			controller_->pod_removed(mutate(out_.mutant, pod));
			out_.requests.removal_told(pod->meta.uid);
		});
	};
	calls.nodes_replaced = [this, node_seen](const auto &nodes) {
		std::vector<kube::NodePtr> seen, with_devices;
		for (const auto &node : nodes) {
			out_.requests.node_told(*node);
			seen.push_back(node_seen(node));
			with_devices.push_back(mutate_devices(out_.mutant, node));
		}
		turn([&] {
			controller_->nodes_replaced(with_devices);
			full_nodes_stale_ = true;
			foreign_->nodes_changed();
			if (reservations_)
				reservations_->nodes_changed();
			if (nodes_)
				nodes_->nodes_replaced(seen);
		});
	};
	calls.node_changed = [this, node_seen](const auto &node) {
		out_.requests.node_told(*node);
		turn([&] {
			const bool placing = controller_->node_changed(mutate_devices(out_.mutant, node));
			full_nodes_stale_ |= placing;
			foreign_->node_changed(node->meta.name, placing);
			if (reservations_)
				reservations_->node_changed(node->meta.name);
			if (reservations_ && placing)
				reservations_->nodes_changed();
			if (nodes_)
				nodes_->node_changed(node_seen(node));
		});
	};
	calls.node_removed = [this](const auto &last) {
		turn([&] {
			controller_->node_removed(last);
			full_nodes_stale_ = true;
			foreign_->node_changed(last->meta.name, true);
			if (reservations_)
				reservations_->nodes_changed();
			if (nodes_ && out_.mutant != Mutant::deleted_node_unseen)
				nodes_->node_removed(last);
		});
	};
	out_.watch.start(std::move(calls), [names = settings_.scheduler_names](const kube::Pod &pod) {
		return std::ranges::find(names, pod.scheduler_name) != names.end();
	});
}

void Process::watch_foreign_pods()
{
	auto as_seen = [m = out_.mutant](const kube::PodPtr &pod) {
		return mutate_foreign(m, foreign_pod_seen(*mutate_resized(m, pod)));
	};
	PodWatch::Calls calls;
	calls.back = [this] { turn([&] { controller_->hurry(); }); };
	calls.replaced = [this, as_seen, back = calls.back](const auto &pods) {
		back();
		std::vector<core::ForeignPodPtr> seen = unlisted_as_ended(pods);
		for (const auto &pod : pods)
			seen.push_back(as_seen(pod));
		turn([&] {
			reservations_replaced(seen);
			foreign_->replaced(seen);
			foreign_listed_ = true;
			foreign_known();
			for (const auto &pod : seen)
				holds_claims(*pod);
		});
		for (const auto &pod : pods)
			told(pod);
	};
	calls.changed = [this, as_seen](const auto &pod) {
		turn([&] {
			const core::ForeignPodPtr seen = as_seen(pod);
			reservation_seen(seen, false);
			foreign_->changed(seen);
			holds_claims(*seen);
		});
		told(pod);
	};
	calls.removed = [this](const auto &pod) {
		turn([&] {
			const core::ForeignPodPtr last = mutate_removed(out_.mutant, foreign_pod_seen(*pod));
			reservation_seen(last, true);
			foreign_->removed(last);
		});
		out_.requests.removal_told(pod->meta.uid);
	};
	out_.foreign_watch.start(std::move(calls), [names = settings_.scheduler_names](const kube::Pod &pod) {
		return !pod.node_name.empty() && std::ranges::find(names, pod.scheduler_name) == names.end();
	});
}

// For a mutant: what is not listed has ended.
std::vector<core::ForeignPodPtr> Process::unlisted_as_ended(const std::vector<kube::PodPtr> &listed) const
{
	std::vector<core::ForeignPodPtr> out;
	if (out_.mutant != Mutant::foreign_absence_is_proof)
		return out;
	for (const core::Hold &h : holds_.ledger(settings_.name).holds) {
		if (!h.foreign || std::ranges::any_of(listed, [&](const auto &p) { return p->meta.uid == h.key.uid; }))
			continue;
		auto ended = std::make_shared<core::ForeignPod>();
		ended->meta.ns = h.key.ns;
		ended->meta.name = h.key.name;
		ended->meta.uid = h.key.uid;
		ended->node_name = h.node;
		ended->over = true;
		out.push_back(std::move(ended));
	}
	return out;
}

// What is told of before nodes are known is held when they are.
void Process::told(const kube::PodPtr &pod)
{
	if (!controller_ || dying_)
		return;
	if (!core::kubelet_reports_over(*pod)) // which a static pod may come back from
		told_[pod->meta.uid] = pod;
	tell_judge();
}

// The engine has seen it when its turn ends.
void Process::request_told(const kube::PodPtr &pod)
{
	if (controller_ && !dying_ && is_resizable(*pod))
		told_requests_[pod->meta.uid] = pod;
}

void Process::tell_judge()
{
	if (!controller_ || dying_)
		return;
	if (controller_->started() && started_at_ < 0)
		started_at_ = out_.time.now();
	if (!controller_->nodes().synced())
		return;
	for (const auto &[uid, pod] : std::exchange(told_, {}))
		if (controller_->nodes().shared(pod->node_name) == core::NodeView::Shared::yes)
			out_.requests.foreign_told(*pod);
	if (controller_->started())
		for (const auto &[uid, pod] : std::exchange(told_requests_, {}))
			out_.requests.request_told(*pod);
}

// What comes within one turn of the loop is served by one end_of_turn().
void Process::turn(const std::function<void()> &f)
{
	if (!controller_ || dying_)
		return;
	watching_masks(f);
	plan_later();
	if (std::exchange(turn_ends_, true))
		return;
	later(out_.dice.between("turn", 0, 2 * ms), [this, engine = engine_] {
		if (engine != engine_)
			return;
		turn_ends_ = false;
		watching_masks([this] { end_of_turn(); });
		tell_judge();
	});
}

void Process::end_of_turn()
{
	claims_changed();
	if (reservations_)
		reservations_->end_of_turn();
	if (foreign_->use_changed())
		controller_->use_changed();
	for (const auto &node : foreign_->take_deleted_nodes())
		if (nodes_)
			nodes_->deleted_before(node);
	controller_->end_of_turn();
	if (controller_->use().full_changed() || std::exchange(full_nodes_stale_, false))
		tell_full_nodes();
	if (out_.disk.full) // the loop waits for a second at most
		later(second, [this, engine = engine_] {
			if (engine == engine_)
				turn([] {});
		});
}

void Process::tell_full_nodes()
{
	std::map<std::string, core::Full> out;
	for (const auto &node : controller_->use().full())
		if (controller_->nodes().shared(node) == core::NodeView::Shared::yes && out_.mutant != Mutant::full_not_told)
			out[node] = {true, controller_->nodes().mixed(node), reservations_ ? reservations_->shares_pod_of(node) : 0};
	if (holds_.set_full(settings_.name, out))
		slurm_->wake_scheduler();
}

} // namespace sk8::sim
