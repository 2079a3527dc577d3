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
//
// What one side says is soon done on the other one:
//
//   * Of a node that is cordoned, not ready for long, or has a chosen condition Slurm gives no jobs, unless its
//     administrator has resumed it despite just that, which the object says and nobody else may make it say.
//   * A node that Slurm keeps away by itself (drained, down, failing, in maintenance) is cordoned, unless somebody has
//     uncordoned it despite just that, which the object says.
//   * Its condition SlurmDrained says whether jobs are left.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"
#include "test/sim/judge.h"

namespace sk8::sim {

static bool ours(const SelectNode &n)
{
	return n.drain && !n.set_down && n.reason_uid == model_slurm_uid && n.reason.starts_with(core::names::slurm_mark);
}

// core::annotation(), of a node that mostly has none.
static std::string said(const kube::Node &node, std::string_view name)
{
	return node.meta.annotations.empty() ? std::string() : core::annotation(node, name);
}

static bool is_true(const kube::Node &node, const std::string &type)
{
	const auto *c = core::find_condition(node, type);
	return c && c->status == "True";
}

static bool is_noted(const std::string &noted, std::string_view word)
{
	const auto words = split(noted, ',');
	return std::ranges::find(words, word) != words.end();
}

static bool drained(const SelectNode &n)
{
	return n.drain || n.set_down;
}

static bool kept_away(const SelectNode &n)
{
	return drained(n) || n.down || n.fail;
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
	if (!on && was_ours)
		t.uncordoned_for.insert(core::annotation(node, core::names::drain_reason));
	if (on)
		t.before_cordon = std::stoll(node.meta.resource_version);
	t.cordoned = on && !was_ours; // with our mark still on it, it looks as if it had never been taken off
	t.resumed_despite_cordon = false;
	t.uncordoned_despite.clear();
	const SelectNode &n = slurm_->select().nodes.at(name);
	// Who does that in the second of a new drain, or of another reason, means our cordon for a former one: the engine, which looks
	// each quarter of a second, may know of the one in between only.
	if (!on && was_ours && drained(n) && !ours(n) && time_.now() - t.drained_at > second &&
	    core::annotation(node, core::names::drain_reason) == n.reason)
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
	if (!drained(n) || n.reason != reason)
		t.drained_at = time_.now();
	t.resumed_despite_cordon = false;
	if (t.uncordoned_despite != reason || !drained(n))
		t.uncordoned_despite.clear(); // it is another one
}

void Judge::node_resumed_by_people(const std::string &name, bool for_cordon)
{
	NodeTruth &t = nodes_[name];
	t.news++;
	t.drained.clear();
	t.uncordoned_despite.clear();
	t.deleted_at = -1;
	t.resumed_at = time_.now();
	if (!t.our_word.empty())
		t.resumed_words.insert(std::exchange(t.our_word, {}));
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
	forget_resumed(t, node);
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

// As lib/core/nodes_controller.cc remembers it: until what Slurm's administrator decided about is over. What the object says
// counts for the next engine, too; and who cordons again in the seconds of the resume may be taken for one who had not uncordoned.
void Judge::forget_resumed(NodeTruth &t, const kube::Node &node)
{
	static constexpr Micros to_see_it = 30 * second;
	if (t.resumed_words.empty() || time_.now() - std::max({t.resumed_at, bad_at_, away_at_, unheard_at_}) < to_see_it)
		return;
	const std::string noted = core::annotation(node, core::names::resumed_in_slurm);
	std::erase_if(t.resumed_words, [&](const std::string &word) {
		const bool stands = word == "cordoned" ? node.unschedulable : word == core::not_ready_word ? !node.ready : is_true(node, word);
		return !stands && !is_noted(noted, word);
	});
}

// Why Kubernetes wants no work there, and nothing says that Slurm's administrator has decided otherwise.
std::string Judge::untold_cause(NodeTruth &t, const kube::Node &node) const
{
	const std::string noted = said(node, core::names::resumed_in_slurm);
	if (t.cordoned && node.unschedulable && !is_noted(noted, "cordoned"))
		return "cordoned";
	if (is_true(node, chosen_condition) && !is_noted(noted, chosen_condition))
		return chosen_condition;
	// Time without news is no node's fault: it begins anew with them, and with each engine.
	const Micros since = std::max({t.not_ready_since, heard_since(t), bad_at_});
	const Micros after = config_.settings.state.not_ready.after.count() * ms;
	if (!node.ready && time_.now() - since > after && !is_noted(noted, core::not_ready_word))
		return core::not_ready_word;
	return "";
}

// Why Slurm keeps jobs away by itself, as its administrator reads it; empty: it does not.
std::string Judge::own_reason(const SelectNode &n)
{
	if (n.fail || (kept_away(n) && !ours(n)))
		return ModelSlurm::reason_of(n);
	return n.maint ? "maintenance reservation" : "";
}

Micros Judge::heard_since(const NodeTruth &t) const
{
	return std::max({away_at_, unheard_at_, engine_began_, t.first_told_at, t.made_at});
}

// Wrong for so long, with nothing in the way.
bool Judge::is_wrong_too_long(const NodeTruth &t, Micros &since, bool wrong, Micros within)
{
	// What is refused or not answered (which is waited for) is tried again later and later; an engine that starts knows nothing of it.
	static constexpr Micros longest_retry = 30 * second + 60 * second;
	if (!wrong)
		since = -1;
	else if (since < 0)
		since = time_.now();
	const Micros refused = refused_at_ < engine_began_ ? 0 : refused_at_ + longest_retry;
	return wrong && time_.now() - std::max({since, refused, heard_since(t)}) > within;
}

void Judge::check_sides(const std::string &name, NodeTruth &t, const kube::Node &node, const SelectNode &n)
{
	static constexpr Micros soon = 10 * second, counted = 30 * second; // jobs are counted with each ping of Slurm's
	if (ours(n))
		t.our_word = core::cause_word(n.reason);
	if (node.ready)
		t.not_ready_since = time_.now();
	// With which settings an engine goes on that was not started since they changed cannot be seen from here.
	const bool promised = slurm_->up() && api_.has_node(name) && config_.shares(name) && !config_.broken &&
			      config_changed_at_ < engine_began_ && t.first_told_at >= engine_began_;
	const std::string cause = promised ? untold_cause(t, node) : "";
	if (is_wrong_too_long(t, t.undrained_since, !cause.empty() && !kept_away(n), soon))
		violation("I5: Kubernetes wants no work on node " + name + " (" + cause + "), and Slurm goes on giving it jobs");
	const std::string own = promised ? own_reason(n) : "";
	const bool decided = !own.empty() && said(node, core::names::drain_owner) == core::names::drain_owner_kubernetes &&
			     said(node, core::names::drain_reason) == own && t.uncordoned_for.contains(own);
	if (is_wrong_too_long(t, t.uncordoned_since, !own.empty() && !node.unschedulable && !decided, soon))
		violation("I5: Slurm keeps jobs away from node " + name + " for \"" + own + "\", and it is not cordoned");
	const auto *told = core::find_condition(node, core::names::drained_condition);
	const bool away = promised && (!own.empty() || ours(n));
	if (is_wrong_too_long(t, t.untold_since, away && (!told || (told->status == "True") != (slurm_->jobs_on(name) == 0)), counted))
		violation("I5: Slurm keeps jobs away from node " + name + ", which has " + std::to_string(slurm_->jobs_on(name)) +
			  " left, and its condition does not say so");
	const std::string noted = said(node, core::names::resumed_in_slurm);
	for (const auto word : split(noted, ','))
		if (!word.empty() && !t.resumed_words.contains(std::string(word)))
			violation("I5: node " + name + " says that somebody resumed it despite " + std::string(word) + ", and nobody has");
}

void Judge::check_nodes()
{
	static constexpr int some = 30, each = 10; // writes for all that has happened to a node, and for each news
	static constexpr Micros told_within = 30 * second;
	for (auto &[name, t] : nodes_) {
		const kube::Node &node = *api_.nodes().at(name);
		const SelectNode &n = slurm_->select().nodes.at(name);
		check_sides(name, t, node, n);
		if (t.cordoned && !node.unschedulable)
			violation("I5: somebody cordoned node " + name + ", and it is uncordoned by us");
		if (!t.uncordoned_despite.empty() && n.reason == t.uncordoned_despite && node.unschedulable)
			violation("I5: somebody uncordoned node " + name + " although Slurm drains it for \"" + n.reason +
				  "\", and it is cordoned again");
		if (!t.drained.empty() && slurm_->up() && !(drained(n) && n.reason == t.drained && n.reason_uid == 0))
			violation("I5: somebody drained node " + name + " for \"" + t.drained + "\", now it " +
				  (drained(n) ? "has the reason \"" + n.reason + "\"" : "is resumed"));
		if (t.resumed_despite_cordon && ours(n) && core::cause_word(n.reason) == "cordoned")
			violation("I5: somebody resumed node " + name + " although it is cordoned, and it is drained again");
		// An engine that started after that need not know that Kubernetes had it.
		if (kept_away(n))
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
		const auto *condition = core::find_condition(node, core::names::drained_condition);
		if (drained(n))
			return "node " + name + " is drained: " + n.reason;
		if (node.unschedulable)
			return "node " + name + " is cordoned";
		if (!core::annotation(node, core::names::drain_owner).empty())
			return "node " + name + " still has our annotation";
		if (!core::annotation(node, core::names::resumed_in_slurm).empty())
			return "node " + name + " still remembers that somebody resumed it";
		if (condition && condition->status != "False")
			return "the condition of node " + name + " still says that it is drained";
	}
	return "";
}

} // namespace sk8::sim
