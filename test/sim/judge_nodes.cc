// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of the state of nodes, which has two administrators:
//
//   * A cordon that somebody put on stays until somebody takes it off; so does a drain in
//     Slurm, with its reason and its user.
//   * Who takes off the cordon that we put on for Slurm's drain has decided: it does not
//     come back while Slurm has the same reason. Who resumes in Slurm what we drained for a
//     cordon has decided: it is not drained again while that cordon stands. What was decided
//     while the engine was not there, or in the seconds before it was killed, it cannot know.
//   * Both sides come to rest: what we write is not much more than what happened.
//   * When both administrators have taken back what they did, nothing of ours is left.
//   * A node that is deleted in Kubernetes is drained in Slurm.
#include "lib/core/names.h"
#include "lib/core/node_state.h"
#include "test/sim/judge.h"

namespace sk8::sim {

static bool ours(const SelectNode &n)
{
	return n.drain && n.reason_uid == model_slurm_uid && n.reason.starts_with(core::names::slurm_mark);
}

void Judge::node_cordoned_by_people(const std::string &name, bool on)
{
	NodeTruth &t = nodes_[name];
	const kube::Node &node = *api_.nodes().at(name);
	t.news++;
	if (node.unschedulable == on)
		return; // kubectl does nothing then
	const bool was_ours = core::annotation(node, core::names::drain_owner) == core::names::drain_owner_slurm;
	t.drained_since = false;
	if (on)
		t.before_cordon = std::stoll(node.meta.resource_version);
	t.cordoned = on && !was_ours; // with our mark still on it, it looks as if it had never been taken off
	t.resumed_despite_cordon = false;
	t.uncordoned_despite.clear();
	const SelectNode &n = slurm_->select().nodes.at(name);
	// Who does that in the second of a new drain, or of another reason, means our cordon for a former one: the engine, which looks
	// each quarter of a second, may know of the one in between only.
	if (!on && was_ours && n.drain && !ours(n) && time_.now() - t.drained_at > second && core::annotation(node, core::names::drain_reason) == n.reason)
		t.uncordoned_despite = n.reason;
}

// With its object goes all that was said of it there.
void Judge::node_deleted_by_people(const std::string &name)
{
	NodeTruth &t = nodes_[name];
	t.news += 2; // and it comes back
	t.cordoned = t.drained_since = t.resumed_despite_cordon = false;
	t.uncordoned_despite.clear();
	t.deleted_at = time_.now();
	nodes_troubled();
}

void Judge::node_drained_by_people(const std::string &name, const std::string &reason)
{
	NodeTruth &t = nodes_[name];
	t.news++;
	t.drained = reason;
	const SelectNode &n = slurm_->select().nodes.at(name);
	if (!n.drain || n.reason != reason)
		t.drained_at = time_.now();
	t.resumed_despite_cordon = false;
	if (t.uncordoned_despite != reason || !n.drain)
		t.uncordoned_despite.clear(); // it is another one
}

void Judge::node_resumed_by_people(const std::string &name, bool for_cordon)
{
	NodeTruth &t = nodes_[name];
	t.news++;
	t.drained.clear();
	t.uncordoned_despite.clear();
	t.deleted_at = -1;
	t.resumed_despite_cordon = for_cordon && t.cordoned && t.drained_since;
}

void Judge::node_event(const NodeEvent &event)
{
	NodeTruth &t = nodes_[event.node->meta.name];
	t.news += t.ready != event.node->ready;
	t.ready = event.node->ready;
}

void Judge::node_told(const kube::Node &node)
{
	NodeTruth &t = nodes_[node.meta.name];
	t.told = std::stoll(node.meta.resource_version);
	if (t.first_told_at < engine_began_)
		t.first_told_at = time_.now();
	if (!core::annotation(node, core::names::devices).empty())
		t.devices_told_at = time_.now();
	if (device_plugin)
		devices_told(node);
}

void Judge::nodes_after_crash()
{
	for (auto &[name, t] : nodes_) {
		t.news++;
		t.drained.clear(); // Slurm saves its nodes late
		t.uncordoned_despite.clear();
		t.resumed_despite_cordon = false;
	}
}

void Judge::check_nodes()
{
	static constexpr int some = 30, each = 10; // writes for all that has happened to a node, and for each news
	static constexpr Micros told_within = 30 * second;
	for (auto &[name, t] : nodes_) {
		const kube::Node &node = *api_.nodes().at(name);
		const SelectNode &n = slurm_->select().nodes.at(name);
		if (t.cordoned && !node.unschedulable)
			violation("I5: somebody cordoned node " + name + ", and it is uncordoned by us");
		if (!t.uncordoned_despite.empty() && n.reason == t.uncordoned_despite && node.unschedulable)
			violation("I5: somebody uncordoned node " + name + " although Slurm drains it for \"" + n.reason +
				  "\", and it is cordoned again");
		if (!t.drained.empty() && slurm_->up() && !(n.drain && n.reason == t.drained && n.reason_uid == 0))
			violation("I5: somebody drained node " + name + " for \"" + t.drained + "\", now it " +
				  (n.drain ? "has the reason \"" + n.reason + "\"" : "is resumed"));
		if (t.resumed_despite_cordon && ours(n) && core::cause_word(n.reason) == "cordoned")
			violation("I5: somebody resumed node " + name + " although it is cordoned, and it is drained again");
		// An engine that started after that need not know that Kubernetes had it.
		if (n.drain || n.down || n.fail)
			t.kept_away_at = time_.now();
		const Micros since = std::max({t.deleted_at, t.kept_away_at, away_at_, bad_at_, engine_began_});
		if (t.deleted_at >= 0 && !api_.has_node(name) && t.first_told_at >= engine_began_ && config_.shares(name) && slurm_->up() &&
		    time_.now() - since > told_within)
			violation("I5: Kubernetes has no node " + name + " any more, and Slurm goes on giving it jobs");
		if (t.writes > some + each * t.news)
			violation("I3: node " + name + " does not come to rest: " + std::to_string(t.writes) +
				  " writes of ours for " + std::to_string(t.news) + " news");
	}
}

std::string Judge::unfinished_nodes() const
{
	for (const auto &[name, n] : slurm_->select().nodes) {
		if (gone_.contains(name))
			continue;
		const kube::Node &node = *api_.nodes().at(name);
		const auto *drained = core::find_condition(node, core::names::drained_condition);
		if (n.drain)
			return "node " + name + " is drained: " + n.reason;
		if (node.unschedulable)
			return "node " + name + " is cordoned";
		if (!core::annotation(node, core::names::drain_owner).empty())
			return "node " + name + " still has our annotation";
		if (!core::annotation(node, core::names::resumed_in_slurm).empty())
			return "node " + name + " still remembers that somebody resumed it";
		if (drained && drained->status != "False")
			return "the condition of node " + name + " still says that it is drained";
	}
	return "";
}

} // namespace sk8::sim
