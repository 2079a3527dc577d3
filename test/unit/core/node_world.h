// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One node with an API server and a Slurm as models behind the nodes controller's ports,
// and an administrator on each side. News and answers are on their way until step() or
// run() delivers them, one at a time and in the order of their source.
#ifndef SK8_TEST_NODE_WORLD_H
#define SK8_TEST_NODE_WORLD_H

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/names.h"
#include "lib/core/nodes_controller.h"
#include "test/unit/core/world.h"

namespace sk8::core::test {

class NodeWorld final : public NodeKubePort, public SlurmNodePort {
public:
	explicit NodeWorld(const std::function<void(ClusterSettings &)> &configure = {})
	{
		settings.name = "c";
		if (configure)
			configure(settings);
		kube.meta.name = slurm.name = "n1";
		kube.meta.uid = "uid-1";
		kube.ready = true;
		start();
	}

	// ---- people ----
	void cordon(bool wanted)
	{
		if (kube.unschedulable == wanted)
			return; // as kubectl
		kube.unschedulable = admin_cordoned = wanted;
		changed();
	}
	void ready(bool wanted)
	{
		kube.ready = wanted;
		changed();
	}
	void drain(const std::string &reason = "bad disk")
	{
		slurm.drain = true;
		slurm.reason = reason;
		slurm.reason_uid = 0;
		scan();
	}
	void resume()
	{
		slurm.drain = slurm.down = false;
		slurm.reason.clear();
		slurm.reason_uid = SK8_NO_UID;
		scan();
	}
	// scontrol update, or slurm.conf read again: both lists
	void set_features(const std::string &list)
	{
		slurm.features = slurm.active_features = list;
		scan();
	}
	void set_slurm_gres(const GresList &gres)
	{
		slurm.gres = gres;
		scan();
	}
	void set_devices(const std::map<std::string, std::int64_t> &capacity, const std::map<std::string, std::int64_t> &allocatable)
	{
		kube.capacity = capacity;
		kube.allocatable.extended = allocatable;
		changed();
	}
	void asleep(bool on)
	{
		slurm.asleep = on;
		scan();
	}
	void jobs(std::uint32_t left)
	{
		slurm.jobs = left;
		scan();
	}
	void delete_node()
	{
		exists = false;
		kube_news_.push_back([this, last = copy()] { controller->node_removed(last); });
	}
	void create_node()
	{
		exists = true;
		kube.meta.uid = "uid-2";
		kube.unschedulable = false;
		kube.meta.annotations.clear();
		changed();
	}
	bool tainted() const { return std::ranges::find(kube.taints, our_taint) != kube.taints.end(); }
	void set_taints(const std::vector<kube::Taint> &taints)
	{
		kube.taints = taints;
		changed();
	}
	void set_label(const std::string &key, const std::string &value)
	{
		kube.meta.labels[key] = value;
		changed();
	}
	void set_labels(const std::map<std::string, std::string> &labels)
	{
		kube.meta.labels = labels;
		changed();
	}
	void annotate(std::string_view name, const std::string &value)
	{
		kube.meta.annotations[std::string(name)] = value;
		changed();
	}
	void condition(const std::string &type, const std::string &status)
	{
		for (auto &c : kube.conditions)
			if (c.type == type) {
				c.status = status;
				return changed();
			}
		kube.conditions.push_back({type, status, "Why", "because"});
		changed();
	}
	// slurmctld dies: nobody remembers anything, what was on its way is lost
	void restart() { start(); }

	// ---- delivery ----
	// One piece of news or one answer; false: nothing is on its way.
	bool step(bool kube_first = true)
	{
		auto *queue = kube_news_.empty() || (!kube_first && !slurm_news_.empty()) ? &slurm_news_ : &kube_news_;
		if (queue->empty())
			return false;
		auto f = std::move(queue->front());
		queue->pop_front();
		f();
		return true;
	}
	void run(Millis time = Millis(0))
	{
		for (int steps = 0; step(steps % 2); steps++)
			if (steps > 200)
				throw std::logic_error("the node does not come to rest");
		if (time > Millis(0)) {
			const Millis some = std::min(time, Millis(250));
			timer.advance(some);
			run(time - some);
		}
	}

	// ---- what is seen ----
	std::string note(std::string_view name) const
	{
		auto it = kube.meta.annotations.find(std::string(name));
		return it == kube.meta.annotations.end() ? "" : it->second;
	}
	std::string owner() const { return note(names::drain_owner); }
	bool ours() const { return slurm.reason_uid == slurm_uid && slurm.reason.starts_with(names::slurm_mark); }
	std::string drained() const // by whom, or nothing
	{
		return !slurm.drain && !slurm.down ? "" : slurm.reason;
	}
	std::string condition_text() const
	{
		const auto *c = find_condition(kube, names::drained_condition);
		return c ? c->status + " " + c->reason : "none";
	}

	static constexpr std::uint32_t slurm_uid = 64030;
	bool exclusive = false; // a job has it without others' pods
	bool alone = false; // no other cluster is attached
	std::optional<std::string> lost = ""; // its agent is to be asked about these pods
	const kube::Taint exclusive_taint{std::string(names::exclusive_taint), "slurm", kube::TaintEffect::no_schedule};
	const kube::Taint our_taint{std::string(names::dedicated_taint), "slurm", kube::TaintEffect::no_schedule};
	kube::Node kube;
	SlurmNode slurm;
	bool exists = true, admin_cordoned = false;
	ClusterSettings settings;
	VirtualTimer timer;
	int slurm_writes = 0, feature_writes = 0, kube_writes = 0, refused = 0;
	GresList missing; // as it was told last
	std::vector<std::string> features_told; // the same
	bool had_features = false; // a former slurmctld did; from the next start on
	int fail_slurm = 0; // so many changes of its state are refused
	const DraInventory *dra = nullptr; // from the next start on
	int fail_kube = 0; // HTTP status of the next writes; 0: they succeed
	std::unique_ptr<NodesController> controller;

private:
	void start()
	{
		kube_news_.clear();
		slurm_news_.clear();
		timer = VirtualTimer();
		auto user = [](std::uint32_t uid) { return "user " + std::to_string(uid); };
		controller = std::make_unique<NodesController>(settings, NodesPorts{*this, *this, timer, user, slurm_uid,
			[this](const std::string &, const GresList &gres) { missing = gres; },
			[this](const std::string &) { return exclusive; }, [this](const std::string &) { return lost; }, dra,
			[this] { return alone; },
			[this](const std::string &, const std::vector<std::string> &features) { features_told = features; }});
		if (had_features)
			controller->had_features("n1");
		kube_news_.push_back([this, now = copy(), there = exists] {
			controller->nodes_replaced(there ? std::vector{now} : std::vector<kube::NodePtr>{});
		});
		scan();
	}
	kube::NodePtr copy() const { return std::make_shared<kube::Node>(kube); }
	void changed()
	{
		kube.meta.resource_version = std::to_string(++version_);
		kube_news_.push_back([this, now = copy()] { controller->node_changed(now); });
	}
	void scan()
	{
		slurm_news_.push_back([this, now = slurm] { controller->slurm_nodes({now}); });
	}

	// A request is decided when it arrives, so behind what is on its way to us already.
	void write(const kube::Meta &node, std::function<void()> f, NodeKubePort::Done done)
	{
		NodeKubeReply r;
		r.status = !exists				? 404
			   : fail_kube				? fail_kube
			   : node.uid != kube.meta.uid		? 422
			   : node.resource_version != kube.meta.resource_version ? 409
									: 200;
		if (r.ok()) {
			kube_writes++;
			f();
			changed();
			r.node = copy();
		} else {
			refused++;
			r.error = "refused";
		}
		kube_news_.push_back([done = std::move(done), r] { done(r); });
	}
	void patch_node(const kube::Meta &node, const NodePatch &patch, NodeKubePort::Done done) override
	{
		write(node, [&] {
			if (patch.unschedulable)
				kube.unschedulable = *patch.unschedulable;
			for (const auto &[name, value] : patch.annotations) {
				if (value)
					kube.meta.annotations[name] = *value;
				else
					kube.meta.annotations.erase(name);
			}
		}, std::move(done));
	}
	void set_our_taint(const kube::Node &node, OurTaint which, bool on, NodeKubePort::Done done) override
	{
		write(node.meta, [&] {
			if (on)
				kube.taints.push_back(which == OurTaint::dedicated ? our_taint : exclusive_taint);
			else
				std::erase(kube.taints, which == OurTaint::dedicated ? our_taint : exclusive_taint);
		}, std::move(done));
	}
	void set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
				std::optional<std::int64_t>, NodeKubePort::Done done) override
	{
		write(node, [&] {
			std::erase_if(kube.conditions, [&](const auto &c) { return c.type == condition.type; });
			kube.conditions.push_back(condition);
		}, std::move(done));
	}
	// As lib/slurm/node_state.c compares.
	void change_node(NodeChange c, SlurmNodePort::Done done) override
	{
		const bool away = slurm.drain || slurm.down;
		const bool fits = c.expected.empty() ? c.action != SK8_NODE_RESUME && !away
						     : away && slurm.reason == c.expected && slurm.reason_uid == slurm_uid;
		SlurmReply r;
		r.ok = fits && (fail_slurm == 0 || fail_slurm-- == 0);
		if (r.ok) {
			slurm_writes++;
			slurm.drain = c.action != SK8_NODE_RESUME;
			slurm.down = c.action == SK8_NODE_DOWN;
			slurm.reason = c.action == SK8_NODE_RESUME ? "" : c.reason;
			slurm.reason_uid = c.action == SK8_NODE_RESUME ? SK8_NO_UID : slurm_uid;
		} else {
			refused++;
		}
		r.node = slurm;
		slurm_news_.push_back([done = std::move(done), r] { done(r); });
		scan();
	}

	// As lib/slurm/node_features.c compares.
	void change_features(FeatureChange c, SlurmNodePort::Done done) override
	{
		SlurmReply r;
		r.ok = c.expected == slurm.features && c.expected_active == slurm.active_features;
		if (r.ok) {
			feature_writes++;
			slurm.features = c.features;
			slurm.active_features = c.active;
		} else {
			refused++;
		}
		r.node = slurm;
		slurm_news_.push_back([done = std::move(done), r] { done(r); });
		scan();
	}

	std::deque<std::function<void()>> kube_news_, slurm_news_;
	int version_ = 1;
};

} // namespace sk8::core::test

#endif
