// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of people's word that nothing of a pod runs any more: when it is
// true, when nothing else can tell, and what must follow from it.
#include <algorithm>
#include <utility>

#include "lib/core/hold_journal.h"
#include "test/sim/judge_claims.h"

namespace sk8::sim {

using State = Container::State;

static bool holds(const core::Ledger &ledger, const std::string &uid)
{
	return std::ranges::any_of(ledger.holds, [&](const core::Hold &h) { return h.key.uid == uid; });
}

static bool remembers(const core::Ledger &ledger, const std::string &uid)
{
	return std::ranges::any_of(ledger.released, [&](const core::Released &r) { return r.key.uid == uid; });
}

bool Judge::remembered(const std::string &uid, const core::Ledger &known)
{
	return remembers(known, uid);
}

bool Judge::freed(const std::string &uid, const core::Ledger &known)
{
	return remembers(known, uid) || !holds(known, uid);
}

// What was not written before the crash is not known after it; nor is it whether what was
// written was followed by a Binding.
void Judge::slurm_crashed(const core::Ledger &on_disk, Micros written_by)
{
	foreign_after_crash(on_disk, written_by);
	requests_after_crash(on_disk, written_by);
	nodes_after_crash();
	again_after_crash(on_disk);
	if (device_plugin)
		devices_after_crash(on_disk);
	else if (!claims_)
		gpus_after_crash(on_disk, written_by);
	if (claims_)
		claims_->crashed(on_disk);
	for (auto &[uid, p] : preemptions_)
		p.before_crash = true;
	for (auto &[ref, n] : natives_)
		n.ended = false; // Slurm may have forgotten that
	crashes_++;
	trouble();
	people_are_gone(); // Slurm may have forgotten what they did
	for (const auto &h : on_disk.holds) {
		PodTruth &t = pods_.at(h.key.uid);
		t.may_be_bound = true;
		t.told = t.said = false;
	}
	for (auto &[uid, t] : pods_) {
		t.word &= remembers(on_disk, uid);
		t.end_forgotten |= t.released; // Slurm may have, and then nobody can tell why its job waits
	}
}

// ... nor is it for an engine that starts with other settings, and does not know what the former one
// was about to write.
void Judge::engine_starts(const core::Ledger &known)
{
	engine_began_ = time_.now();
	if (claims_)
		claims_->engine_starts();
	config_is_read();
	read_mixed();
	// A person's word is about a pod of ours or a foreign one, and is forgotten with that.
	const bool others = std::exchange(schedulers_, config_.settings.scheduler_names) != config_.settings.scheduler_names;
	for (auto &[uid, t] : pods_)
		t.word &= !others;
	for (const auto &h : known.holds) {
		PodTruth &t = pods_.at(h.key.uid);
		t.may_be_bound = true;
		t.told = t.said = false;
	}
	for (auto &[name, t] : nodes_) {
		t.uncordoned_despite.clear();
		t.resumed_despite_cordon = false;
	}
}

bool Judge::waits_for_gone_node(const SlurmJob &job)
{
	const PodTruth *t = truth_of(job.mark);
	return job.pending() && t && t->end_forgotten && gone_.contains(job.required);
}

// ---- release by hand ----

bool Judge::nothing_left(const std::string &uid, const std::string &held_node) const
{
	const PodTruth &t = pods_.at(uid);
	const std::string &runs = behind(uid);
	for (const auto &[key, c] : kubelet_->containers())
		if (c.uid == runs && c.state != State::ended)
			return false;
	if (kubelet_->has_file(runs) && !gone_.contains(t.node))
		return false;
	// its object, also one that comes back from a backup
	for (const auto &pod : {api_.pod(t.name), restores_ ? api_.saved_pod(t.name) : nullptr}) {
		if (!is_there(pod, uid))
			continue;
		const std::string &node = pod->node_name.empty() ? held_node : pod->node_name;
		if (gone_.contains(node))
			continue;
		if (pod->node_name.empty() ? t.may_arrive > 0 : !kubelet_->find(node, runs))
			return false; // a Binding of it may arrive, or its kubelet may start it
	}
	return true;
}

// Before our finalizer is on it, a pod's object can vanish without anybody's word of how
// it ended: nobody can tell then, and what it held stays masked until a person decides.
bool Judge::lost(const PodTruth &t)
{
	return t.gone && t.excused && !t.protected_ && !t.said && may_have_node(t) && !(t.tells && t.told);
}

bool Judge::needs_person(const std::string &uid, const std::string &held_node) const
{
	const PodTruth &t = pods_.at(uid);
	kube::PodPtr pod = api_.pod(t.name);
	if (is_there(pod, uid)) {
		// deleted before it could be bound anew
		const bool forgotten = t.node_forgotten && !t.said && pod->node_name.empty() && pod->meta.deleting;
		if (forgotten || gone_.contains(pod->node_name))
			return true;
	}
	if (!t.shows.empty())
		return gone_.contains(held_node);
	if (t.foreign)
		return (t.gone && ((t.told && !t.tells) || t.lost_before)) || gone_.contains(held_node);
	return lost(t) || gone_.contains(held_node);
}

void Judge::released_by_people(const std::string &uid, bool force, bool former, bool unsaved, const core::Ledger &known,
			       const core::Ledger &on_disk)
{
	PodTruth &t = pods_.at(uid);
	const std::string who = name_of("pod", t.name, uid);
	kube::PodPtr pod = api_.pod(t.name);
	const bool says_otherwise = is_there(pod, uid) && !pod->node_name.empty();
	t.released = true;
	t.forced |= force;
	t.innocent = false;
	t.said = true;
	// Who does not know yet that it has a node cannot remember more than that it has none.
	const bool knows = !force && !(t.foreign && t.restored) && // of a backup it may hear later
			   (t.foreign || !former);
	// A pod for Slurm that is foreign, since its scheduler is none of ours at the moment.
	const auto &ours = schedulers_; // as the engine has read them
	const bool between = !t.foreign && std::ranges::find(ours, "slurm") == ours.end();
	t.word = says_otherwise && !between && (knows || remembers(known, uid));
	if (t.word && !remembers(known, uid))
		violation("I3: " + who + " was released by hand, and that is not remembered");
	const bool other_word = !between && remembers(on_disk, uid) != remembers(known, uid);
	if (!unsaved && (holds(on_disk, uid) != holds(known, uid) || other_word))
		violation("I3: " + who + " was released by hand, and a restart undoes it without a word");
}

void Judge::check_words()
{
	for (const auto &[uid, t] : pods_)
		if (t.word && holds_something(uid))
			violation("I3: " + name_of("pod", t.name, uid) + " was released by hand and holds something again");
}

} // namespace sk8::sim
