// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_state.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/names.h"

namespace sk8::core {

static constexpr std::size_t max_reason = 200;

// ---- Kubernetes' side ----

const kube::NodeCondition *find_condition(const kube::Node &node, std::string_view type)
{
	auto it = std::ranges::find(node.conditions, type, &kube::NodeCondition::type);
	return it == node.conditions.end() ? nullptr : &*it;
}

std::string annotation(const kube::Node &node, std::string_view name)
{
	auto it = node.meta.annotations.find(std::string(name));
	return it == node.meta.annotations.end() ? std::string() : it->second;
}

// Slurm itself appends to a reason with " : ", which tells a reason that is still ours
// alone from one that is not.
static std::string plain(std::string_view text)
{
	std::string out = one_line(text, max_reason);
	for (std::size_t at; (at = out.find(" : ")) != out.npos;)
		out.erase(at, 1);
	return out;
}

static Cause cause(std::string word, std::string_view about, bool down = false)
{
	std::string text = word;
	if (!about.empty())
		text += std::string(": ").append(about);
	return {std::move(word), plain(text), down};
}

static Cause cordon_cause(const kube::Node &node)
{
	std::string text = "cordoned";
	if (!node.cordoned_by.empty())
		text += " by " + node.cordoned_by;
	if (const std::string why = annotation(node, names::cordon_reason); !why.empty())
		text += ": " + why;
	return {"cordoned", plain(text), false};
}

bool was_not_ready(const NodeFacts &facts)
{
	return cause_word(facts.our_reason) == not_ready_word || facts.resumed_noted.contains(not_ready_word);
}

static std::string about(const kube::NodeCondition *c)
{
	return !c ? "" : c->message.empty() ? c->reason : c->message;
}

// A kubelet that tells nothing proves nothing: whoever wonders why the node's cores stay
// allocated reads it here.
static Cause not_ready_cause(const kube::Node &node, const StateSettings &settings)
{
	const std::string why = about(find_condition(node, "Ready"));
	return cause(not_ready_word, why + (why.empty() ? "" : " ") + "(what its pods hold stays masked)",
		     settings.not_ready.action == NotReadySettings::Action::down);
}

Cause deleted_cause()
{
	return cause("deleted", "Kubernetes has no such node");
}

std::vector<Cause> causes_of(const kube::Node &node, const StateSettings &settings, bool not_ready,
			     bool ours_cordon)
{
	std::vector<Cause> out;
	if (node.unschedulable && !ours_cordon && settings.cordon == StateSettings::OnCordon::drain)
		out.push_back(cordon_cause(node));
	if (not_ready && settings.not_ready.action != NotReadySettings::Action::ignore)
		out.push_back(not_ready_cause(node, settings));
	for (const auto &type : settings.conditions)
		if (const auto *c = find_condition(node, type); c && c->status == "True")
			out.push_back(cause(type, about(c)));
	return out;
}

std::optional<std::string> taken_over_for(const kube::Node &node)
{
	if (node.unschedulable || annotation(node, names::drain_owner) != names::drain_owner_slurm)
		return std::nullopt;
	return annotation(node, names::drain_reason);
}

void look_at(const kube::Node &node, bool taken_over, NodeFacts &facts)
{
	facts.exists = true;
	facts.unschedulable = node.unschedulable;
	facts.owner = annotation(node, names::drain_owner);
	facts.owned_for = annotation(node, names::drain_reason);
	const bool ours = facts.owner == names::drain_owner_slurm && !taken_over;
	facts.ours_cordon = ours && node.unschedulable;
	facts.decided = !facts.owner.empty() && !facts.ours_cordon;
	const std::string noted = annotation(node, names::resumed_in_slurm);
	for (auto word : split(noted, ','))
		if (!word.empty())
			facts.resumed_noted.emplace(word);
	facts.has_condition = find_condition(node, names::drained_condition) != nullptr;
}

// ---- Slurm's side ----

std::string_view cause_word(std::string_view reason)
{
	if (!reason.starts_with(names::slurm_mark) || reason.find(" : ") != reason.npos)
		return {};
	reason.remove_prefix(names::slurm_mark.size());
	return reason.substr(0, reason.find_first_of(" :"));
}

void look_at(const SlurmNode &node, std::uint32_t slurm_uid, NodeFacts &facts)
{
	const bool kept_away = node.drain || node.down;
	facts.known = true;
	facts.down = node.down;
	facts.jobs = node.jobs;
	facts.ours = kept_away && !node.fail && node.reason_uid == slurm_uid && !cause_word(node.reason).empty();
	if (facts.ours)
		facts.our_reason = node.reason;
	facts.own_drain = (kept_away || node.fail) && !facts.ours;
	facts.own = facts.own_drain || node.maint;
	if (facts.own_drain)
		facts.own_reason = !node.reason.empty() ? one_line(node.reason, max_reason)
				   : node.fail		? "FAIL"
				   : node.down		? "DOWN"
							: "DRAIN";
	else if (node.maint)
		facts.own_reason = "maintenance reservation";
}

// ---- decisions ----

static NodeChange change(sk8_node_action action, const Cause *cause, const NodeFacts &f)
{
	return {{}, action, cause ? std::string(names::slurm_mark) + cause->text : std::string(), f.our_reason};
}

static std::optional<NodeChange> for_slurm(const NodeFacts &f)
{
	if (!f.known || (f.own_drain && !f.ours))
		return std::nullopt;
	const Cause *first = nullptr, *down = nullptr;
	bool backed = false; // what our reason says still holds
	for (const Cause &c : f.causes) {
		if (!f.shared || f.resumed.contains(c.word))
			continue;
		first = first ? first : &c;
		down = down || !c.down ? down : &c;
		backed |= c.word == cause_word(f.our_reason);
	}
	if (!first)
		return f.ours ? std::optional(change(SK8_NODE_RESUME, nullptr, f)) : std::nullopt;
	// Once: with ReturnToService=2 it is only drained after slurmd has registered again.
	if (down && !f.down && down->word != cause_word(f.our_reason))
		return change(SK8_NODE_DOWN, down, f);
	if (!f.ours || !backed)
		return change(SK8_NODE_DRAIN, first, f);
	return std::nullopt;
}

// Our cordon and its annotations, for what Slurm says by itself.
static void own_cordon(const NodeFacts &f, NodePatch &out)
{
	auto note = [&](std::string_view name, std::optional<std::string> value) {
		out.annotations[std::string(name)] = std::move(value);
	};
	const bool same = f.owned_for == f.own_reason;
	if (f.ours_cordon && same)
		return;
	// Whoever uncordoned it has decided, until Slurm has another reason.
	if (f.decided && same) {
		if (f.owner != names::drain_owner_kubernetes)
			note(names::drain_owner, std::string(names::drain_owner_kubernetes));
		return;
	}
	if (f.unschedulable && !f.ours_cordon)
		return;
	out.unschedulable = true;
	note(names::drain_owner, std::string(names::drain_owner_slurm));
	note(names::drain_reason, f.own_reason);
	note(names::drain_by, f.own_by.empty() ? std::nullopt : std::optional(f.own_by));
}

static NodePatch for_kubernetes(const NodeFacts &f, const StateSettings &settings)
{
	NodePatch out;
	if (!f.exists)
		return out;
	const bool writes = f.shared && settings.slurm == StateSettings::OnSlurm::cordon;
	if (writes && f.own) {
		own_cordon(f, out);
	} else if (!f.owner.empty()) {
		if (f.ours_cordon)
			out.unschedulable = false;
		for (auto name : {names::drain_owner, names::drain_reason, names::drain_by})
			out.annotations[std::string(name)] = std::nullopt;
	}
	const std::set<std::string> noted = writes ? f.resumed : std::set<std::string>{};
	if (noted != f.resumed_noted)
		out.annotations[std::string(names::resumed_in_slurm)] =
			noted.empty() ? std::nullopt
				      : std::optional(join(std::vector(noted.begin(), noted.end()), ","));
	return out;
}

static std::optional<kube::NodeCondition> condition_of(const NodeFacts &f, const StateSettings &settings)
{
	const bool wanted = f.shared && f.known && settings.slurm == StateSettings::OnSlurm::cordon;
	const bool kept_away = f.ours || f.own;
	if (!f.exists || !(f.has_condition || (wanted && kept_away)))
		return std::nullopt;
	const std::string type(names::drained_condition);
	if (!wanted || !kept_away)
		return kube::NodeCondition{type, "False", "InService", "Slurm gives this node jobs"};
	std::string why = f.own ? f.own_reason : f.our_reason;
	if (f.own && !f.own_by.empty())
		why += ", by " + f.own_by;
	const std::string left = std::to_string(f.jobs) + (f.jobs == 1 ? " job" : " jobs") + " of Slurm left: ";
	return kube::NodeCondition{type, f.jobs ? "False" : "True", f.jobs ? "Draining" : "Drained",
				   (f.jobs ? left : "no job of Slurm left: ") + why};
}

// Jobs come and go there, so that the rest of the text may be older than the reason.
bool tells_drain(const kube::Node &node, std::string_view reason)
{
	const auto *c = find_condition(node, names::drained_condition);
	return c && c->message.ends_with(std::string(" left: ").append(reason));
}

NodePlan decide(const NodeFacts &facts, const StateSettings &settings)
{
	return {for_slurm(facts), for_kubernetes(facts, settings), condition_of(facts, settings)};
}

} // namespace sk8::core
