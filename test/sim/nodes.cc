// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the two administrators of a node do.
#include "test/sim/world.h"

namespace sk8::sim {

void World::cordon(const std::string &name, bool on)
{
	auto it = api_.nodes().find(name);
	if (it == api_.nodes().end())
		return;
	judge_.node_cordoned_by_people(name, on);
	if (case_.node_state && it->second->unschedulable == on)
		return; // kubectl does nothing then
	kube::Node node = *it->second;
	node.unschedulable = on;
	api_.set_node(std::move(node));
}

void World::drain(const std::string &name, const std::string &reason)
{
	if (!slurm_.up() || !slurm_.select().nodes.contains(name))
		return;
	judge_.node_drained_by_people(name, reason);
	slurm_.drain(name, reason, 0);
}

void World::resume(const std::string &name)
{
	if (!slurm_.up() || !slurm_.select().nodes.contains(name) || !slurm_.select().nodes.at(name).drain)
		return;
	const bool seen = process_ && process_->started_at() >= 0; // an engine that starts finds no drain
	const bool ours = seen && slurm_.select().nodes.at(name).reason_uid == model_slurm_uid;
	slurm_.resume(name);
	judge_.node_resumed_by_people(name, ours);
}

} // namespace sk8::sim
