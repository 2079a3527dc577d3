// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the two administrators of a node do.
#include "lib/core/node_state.h"
#include "test/sim/world.h"

namespace sk8::sim {

static constexpr Micros pod_gc = 60 * second; // it looks each 20 s, and once more after 40

void World::cordon(const std::string &name, bool on)
{
	auto it = api_.nodes().find(name);
	if (!api_.has_node(name))
		return;
	judge_.node_cordoned_by_people(name, on);
	if (case_.node_state && it->second->unschedulable == on)
		return; // kubectl does nothing then
	kube::Node node = *it->second;
	node.unschedulable = on;
	api_.set_node(std::move(node));
}

// scontrol update node= state=fail, or a reservation for maintenance that begins.
void World::flag_node(const std::string &name, bool SelectNode::*flag, Micros lasts, const Action &a)
{
	if (!slurm_.up() || !slurm_.select().nodes.contains(name) || slurm_.select().nodes.at(name).*flag)
		return;
	judge_.node_news(name);
	slurm_.set_flag(name, flag, true);
	until(lasts, a, [this, name, flag] { unflag_node(name, flag); });
}

void World::unflag_node(const std::string &name, bool SelectNode::*flag)
{
	if (!slurm_.up() || !(slurm_.select().nodes.at(name).*flag))
		return;
	judge_.node_news(name);
	slurm_.set_flag(name, flag, false);
}

// Somebody, for example node-problem-detector, says of it what stateSync.conditions names.
void World::set_condition(const std::string &name, Micros lasts, const Action &a)
{
	if (!api_.has_node(name))
		return;
	tell_condition(name, "True");
	until(lasts, a, [this, name] { tell_condition(name, "False"); });
}

void World::tell_condition(const std::string &name, const char *status)
{
	kube::Node node = *api_.nodes().at(name);
	std::erase_if(node.conditions, [](const auto &c) { return c.type == chosen_condition; });
	node.conditions.push_back({chosen_condition, status, "", ""});
	judge_.node_news(name);
	api_.set_node(std::move(node));
}

// kubectl delete node. Its kubelet goes on with its pods, those that nobody deletes, and registers when it starts anew.
void World::delete_node(const std::string &name, Micros absent, const Action &a)
{
	if (!api_.has_node(name))
		return;
	judge_.node_deleted_by_people(name);
	api_.remove_node(name);
	time_.after(pod_gc, [this, name] { collect_pods_of(name); });
	until(absent, a, [this, name] { register_node(name); });
}

// kube-controller-manager, pkg/controller/podgc, 1.35: pods of a node that is not there for so long, by force.
void World::collect_pods_of(const std::string &node)
{
	if (api_.has_node(node))
		return;
	for (const auto &[name, pod] : std::map(api_.pods()))
		if (pod->node_name == node) {
			if (judge_.is_reservation(pod->meta.uid))
				judge_.reservation_taken(pod->meta.uid, false, false);
			judge_.deleted_by_people(pod->meta.uid);
			collect_pod(*pod);
		}
}

void World::register_node(const std::string &name)
{
	if (api_.has_node(name) || judge_.is_gone(name))
		return;
	api_.register_node(name);
	kubelet_.registered(name);
	judge_.node_made_again(name);
}

// In the end all are well.
void World::mend_nodes()
{
	for (const auto &[name, node] : std::map(api_.nodes())) {
		register_node(name);
		if (core::find_condition(*node, chosen_condition))
			tell_condition(name, "False");
		for (bool SelectNode::*flag : {&SelectNode::fail, &SelectNode::maint})
			if (slurm_.select().nodes.contains(name))
				unflag_node(name, flag);
	}
}

void World::drain(const std::string &name, const std::string &reason)
{
	if (!slurm_.up() || !slurm_.select().nodes.contains(name))
		return;
	judge_.node_drained_by_people(name, reason);
	slurm_.drain(name, reason, 0);
}

void World::set_down(const std::string &name, const std::string &reason)
{
	if (!slurm_.up() || !slurm_.select().nodes.contains(name))
		return;
	judge_.node_drained_by_people(name, reason);
	slurm_.set_down(name, reason, 0);
}

void World::resume(const std::string &name)
{
	if (!slurm_.up() || !slurm_.select().nodes.contains(name))
		return;
	const bool failed = slurm_.select().nodes.at(name).fail;
	unflag_node(name, &SelectNode::fail); // it takes that off, too
	if (!slurm_.select().nodes.at(name).drain && !slurm_.select().nodes.at(name).set_down)
		return;
	const bool seen = process_ && process_->started_at() >= 0; // an engine that starts finds no drain
	const SelectNode &n = slurm_.select().nodes.at(name);
	// They read one cause, and decide about that one; of a node that has failed they may have decided about that.
	const bool for_cordon = seen && !failed && n.reason_uid == model_slurm_uid && core::cause_word(n.reason) == "cordoned";
	slurm_.resume(name);
	judge_.node_resumed_by_people(name, for_cordon);
}

} // namespace sk8::sim
