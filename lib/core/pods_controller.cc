// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// When the table is asked, and asked again. What is known of pods and jobs comes in by
// pods_news.cc; the effects are in pods_effects.cc, pods_binding.cc, pods_adoption.cc, pods_ends.cc.
#include "lib/core/pods_controller.h"

#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/base/log.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

PodsController::PodsController(const ClusterSettings &settings, PodsPorts ports)
	: settings_(settings), ports_(ports), reports_(settings.name, ports.kube, ports.timer,
		   [this](const std::string &uid) {
			   auto it = entries_.find(uid);
			   return it == entries_.end() ? 0 : job_id(it->second);
		   }),
	  resubmits_(ports.holds.ledger(settings.name).resubmits, {ports.kube, ports.timer, ports.holds, ports.journal, reports_},
		     [this](const kube::PodPtr &pod) { made_again(pod); }),
	  nodes_(settings.nodes), devices_(settings.resources)
{
	// Pods that a former slurmctld bound, or a person released: they are looked for even
	// if no list has them any more.
	const Ledger known = ports_.holds.ledger(settings_.name);
	for (const Hold &h : known.holds) {
		if (h.foreign)
			continue;
		entry(h.key).binding_unsure = true;
		entry(h.key).lost_node = h.lost_node;
	}
	for (const Released &r : known.released)
		if (!r.foreign)
			entry(r.key).declared = r.by;
}

PodsController::Entry &PodsController::entry(const PodKey &key)
{
	Entry &e = entries_[key.uid];
	if (e.key.uid.empty()) {
		e.key = key;
		e.seen_at = ports_.timer.now();
		e.delete_arrived = resubmits_.find(key.uid); // a former slurmctld may have sent it
	}
	return e;
}

// ---- deciding ----

void PodsController::maybe_start()
{
	if (started_ || !synced())
		return;
	started_ = true;
	log_info("cluster %s: %zu pods and jobs known, starting", settings_.name.c_str(), entries_.size());
	for (const Hold &h : ports_.holds.ledger(settings_.name).holds)
		if (nodes_.shared_in_kubernetes(h.node) == NodeView::Shared::unknown)
			deleted_nodes_.insert(h.node);
	sync_all(); // whichever list came last
	std::unordered_set<std::string> made;
	for (const auto &[uid, e] : entries_)
		made.insert(e.made_from);
	resubmits_.start([this](const std::string &uid) { return entries_.contains(uid); },
			 [&made](const std::string &uid) { return made.contains(uid); });
	unblock_due_ = true;
}

void PodsController::expect_foreign(bool listed)
{
	foreign_listed_ = listed;
	unblock_due_ = true;
}

// What the lists have told is masked by now, also without a saved ledger: at the end of a turn, for those who mask it hear of
// the last list after us.
void PodsController::unblock_nodes()
{
	if (!foreign_listed_)
		return;
	unblock_due_ = false;
	ports_.journal.complete(); // save_journal() writes it
	if (ports_.holds.unblock_nodes(settings_.name))
		log_info("cluster %s has told what runs where: that is masked, and all else may be had by Slurm's jobs", settings_.name.c_str());
	ports_.slurm.wake_scheduler();
}

// What those that are on their nodes, or may be bound to them, use there must count before the first of the others is bound.
void PodsController::count_use()
{
	for (const auto &[uid, e] : entries_) {
		const PodState pod = classify(facts(e));
		const std::string node = node_of(e);
		if (pod != PodState::over && pod != PodState::gone && e.pod && !node.empty())
			take_use(e, node);
	}
}

void PodsController::take_use(const Entry &e, const std::string &node)
{
	use_changed_ |= use_.add(e.key.uid, node, e.pod->host_ports, NodeUse::storage_of(e.pod->request));
}

// sync() may erase entries: uids first. Who waits longest is the first to get a job.
void PodsController::sync_all()
{
	if (!started_)
		return;
	count_use();
	std::vector<std::pair<std::int64_t, std::string>> by_age;
	by_age.reserve(entries_.size());
	for (const auto &[uid, e] : entries_)
		by_age.emplace_back(e.pod ? e.pod->meta.creation_time : 0, uid);
	std::ranges::sort(by_age);
	for (const auto &[created, uid] : by_age)
		sync(uid);
}

void PodsController::sync_node(const std::string &node)
{
	std::vector<std::string> there;
	for (const auto &[uid, e] : entries_)
		if (node_of_devices(e) == node)
			there.push_back(uid);
	for (const auto &uid : there)
		sync(uid);
}

void PodsController::sync_unbound()
{
	std::vector<std::string> uids;
	for (const auto &[uid, e] : entries_)
		if (e.bound_node.empty())
			uids.push_back(uid);
	for (const auto &uid : uids)
		sync(uid);
}

// Pods come and go all the time where the storage of nodes is nearly all requested, and each time all that wait for some would be
// told to Slurm: so only now and then. A job that starts meanwhile where none is left is not bound there.
static constexpr Millis between_looks{5'000};

void PodsController::look_for_room()
{
	const Millis now = ports_.timer.now();
	if (now < room_at_) {
		if (!std::exchange(room_planned_, true))
			ports_.timer.after(room_at_ - now, [this] {
				room_planned_ = false;
				look_for_room();
				end_of_turn();
			});
		return;
	}
	room_at_ = now + between_looks;
	std::vector<std::string> uids;
	for (auto &[uid, e] : entries_) {
		if (!e.pod || !e.bound_node.empty() || !NodeUse::storage_of(e.pod->request) || nodes_taken(e) == e.taken)
			continue;
		if (std::exchange(e.refusal_by_room, false))
			e.refusal.clear();
		uids.push_back(uid);
	}
	for (const auto &uid : uids)
		sync(uid);
}

// A job that we ended ourselves, because of the pod, is no reason to end the pod;
// nor is one that ran on another node than the pod.
const Job *PodsController::relevant_job(const Entry &e) const
{
	if (!e.job || (e.job->ended() && e.job->ended_by_us))
		return nullptr;
	if (e.job->ended() && !e.bound_node.empty() && !e.job->node.empty() && e.job->node != e.bound_node)
		return nullptr;
	return e.job.get();
}

PodFacts PodsController::facts(const Entry &e) const
{
	return {.pod = e.pod,
		.absent = e.absent,
		.bound_node = e.bound_node,
		.lost_node = e.lost_node,
		.proved_over = e.proved_over,
		.held_node = ports_.holds.node_of(e.key),
		.refused = !e.refusal.empty(),
		.declared_gone = !e.declared.empty(),
		.seen_gone = e.seen_gone,
		.job = relevant_job(e)};
}

PodNumbers PodsController::numbers() const
{
	PodNumbers out;
	out.reports_waiting = reports_.waiting();
	for (const auto &[uid, e] : entries_) {
		const PodState pod = classify(facts(e));
		const JobState job = classify(relevant_job(e), e.op == Op::submitting);
		out.pods[static_cast<std::size_t>(pod)]++;
		out.jobs[static_cast<std::size_t>(job)]++;
		const HoldTable::Cover cover = ports_.holds.cover(e.key);
		const bool suspended = e.job && e.job->state == SK8_JOB_SUSPENDED;
		if (cover == HoldTable::Cover::covered || (cover == HoldTable::Cover::masked && suspended))
			out.placed++;
		else if (cover == HoldTable::Cover::masked)
			(pod == PodState::lost ? out.lost : out.leaving)++;
	}
	return out;
}

void PodsController::sync(const std::string &uid)
{
	auto it = entries_.find(uid);
	if (!started_ || it == entries_.end())
		return;
	Entry &e = it->second;
	end_others(e);
	const PodState pod = classify(facts(e));
	const JobState job = classify(relevant_job(e), e.op == Op::submitting);

	ask_agent(e, pod);
	// The proof is what counts, whatever else is going on with this pod. Only its own
	// job may still need the room: see end_where_it_ran().
	if (pod == PodState::over || pod == PodState::gone) {
		e.proved_over |= pod == PodState::over;
		if (job != JobState::queued || e.bound_node.empty())
			free_hold(e);
		use_changed_ |= use_.remove(uid);
	} else if (e.pod && !e.bound_node.empty()) {
		take_use(e, e.bound_node);
		hold_what_runs(e);
		correct_devices(e);
	} else if (e.pod && ports_.holds.held(e.key) && e.op == Op::binding) {
		hold_what_it_asks_for(e); // its Binding may take effect
	} else if (pod == PodState::kept && e.op == Op::none) {
		correct_devices(e);
	}
	if (e.op != Op::none)
		return; // its answer leads here again
	const bool nothing_left = pod == PodState::unknown &&
				  (job == JobState::none || job == JobState::ended) && !ports_.holds.held(e.key) &&
				  e.declared.empty();
	if (nothing_left && !e.doubted)
		return forget(uid);
	if (e.retry_at > ports_.timer.now())
		return plan_retry(e);
	if (nothing_left)
		return look(e); // it may wait for a DELETE, or for its finalizer to be taken off
	perform(next_effect(pod, job), pod, e);
}

void PodsController::perform(Effect effect, PodState state, Entry &e)
{
	if (effect != Effect::nothing && effect != Effect::mirror && effect != Effect::refuse &&
	    effect != Effect::protect)
		log_pod(debug, e.key, job_id(e), "%s: %s", name(state), name(effect));
	switch (effect) {
	case Effect::nothing:
		if (state == PodState::lost)
			tell_loss(e);
		break;
	case Effect::look:
		look(e);
		break;
	case Effect::refuse:
		refuse(e);
		break;
	case Effect::submit:
		submit(e);
		break;
	case Effect::mirror:
		mirror(e);
		break;
	case Effect::bind:
		bind(e);
		break;
	case Effect::protect:
		protect(e);
		annotate(e);
		break;
	case Effect::adopt:
		adopt(e);
		break;
	case Effect::end_job:
		end_job(e, end_because_of(e, state));
		break;
	case Effect::delete_pod:
		delete_pod(e);
		break;
	case Effect::again:
		again(e);
		break;
	case Effect::release:
		release(e);
		break;
	case Effect::forget:
		forget(e.key.uid);
		break;
	}
}

void PodsController::forget(const std::string &uid)
{
	auto it = entries_.find(uid);
	if (it == entries_.end())
		return;
	reports_.stop(uid);
	if (it->second.agent_asked)
		lost_.remove(uid);
	forget_release(it->second);
	resubmits_.settled(it->second.key, it->second.made_from);
	use_changed_ |= use_.remove(uid);
	const std::string copy = uid; // it may be the entry's own
	entries_.erase(it);
	resubmits_.gone(copy);
}

std::uint64_t PodsController::elapsed_ms(Millis since) const
{
	return static_cast<std::uint64_t>(std::max(ports_.timer.now() - since, Millis(0)).count());
}

// ---- retries ----

static constexpr std::size_t max_denied = 16; // of one pod
static constexpr Millis first_delay{500}, longest_delay{30'000};

Millis PodsController::retry_delay(int failures)
{
	return doubled(first_delay, longest_delay, failures);
}

void PodsController::back_off(Entry &e, const std::string &why, std::optional<Millis> at_least)
{
	e.waits_for_server = false;
	Millis delay = retry_delay(e.failures++);
	// Pods that failed together do not come back together.
	delay += delay * static_cast<int>(std::hash<std::string>()(e.key.uid) % 32) / 100;
	e.trouble = why;
	e.retry_at = ports_.timer.now() + std::max(delay, at_least.value_or(Millis(0)));
	// What fails again and again is no passing conflict.
	if (e.failures > 3)
		log_pod(warning, e.key, job_id(e), "%s; tried again", why.c_str());
	else
		log_pod(verbose, e.key, job_id(e), "%s", why.c_str());
}

void PodsController::back_off_from_server(Entry &e, const std::string &why, std::optional<Millis> retry_after)
{
	back_off(e, why, retry_after);
	e.waits_for_server = !retry_after;
}

void PodsController::succeeded(Entry &e)
{
	e.failures = 0;
	e.retry_at = Millis(0);
	e.trouble.clear();
	forget_passing_denials(e);
}

void PodsController::forget_passing_denials(Entry &e)
{
	std::erase_if(e.denied, [](const auto &entry) { return !entry.second.told; });
}

void PodsController::refused(Entry &e, const std::string &what, const KubeReply &r)
{
	back_off_from_server(e, what + r.error, r.retry_after);
	tell_denied(e, r);
}

// Its owner sees what the administrator has to mend, if it lasts; it is tried again.
void PodsController::tell_denied(Entry &e, const KubeReply &r)
{
	if (r.status != 403 || (e.denied.size() >= max_denied && !e.denied.contains(r.error)))
		return;
	const Millis now = ports_.timer.now();
	Entry::Denial &d = e.denied.try_emplace(r.error, Entry::Denial{now, false}).first->second;
	if (d.told || now - d.since < denial_lasts)
		return;
	d.told = true;
	reports_.event(e.key, {true, std::string(names::event_denied), r.error});
}

void PodsController::plan_retry(Entry &e)
{
	if (e.retry_planned > Millis(0) && e.retry_planned <= e.retry_at)
		return;
	e.retry_planned = e.retry_at;
	ports_.timer.after(e.retry_at - ports_.timer.now(), [this, uid = e.key.uid, at = e.retry_at] {
		auto it = entries_.find(uid);
		if (it == entries_.end() || it->second.retry_planned != at)
			return; // another one was planned, for earlier
		it->second.retry_planned = Millis(0);
		sync(uid); // what comes of it is done once for all that are tried again in this turn
	});
}

static constexpr Millis hurried{1'000}; // at most, by the pod's uid: not all at once

void PodsController::hurry()
{
	const Millis now = ports_.timer.now();
	for (auto &[uid, e] : entries_) {
		const Millis delay = hurried * static_cast<int>(std::hash<std::string>()(uid) % 32) / 32;
		// What is still on its way may fail later, and then counts as the second time.
		e.failures = std::min(e.failures, 1);
		e.protect_failures = std::min(e.protect_failures, 1);
		if (e.waits_for_server && e.retry_at > now + delay) {
			e.retry_at = now + delay;
			plan_retry(e);
		}
		if (e.protecting && std::exchange(e.protect_hurries, false) && e.protect_at > now + delay)
			protect_later(e, delay);
	}
	reports_.hurry();
}

} // namespace sk8::core
