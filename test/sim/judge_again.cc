// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Bare pods that are made again because Slurm took their node: only those, once, when
// nothing of them runs any more, against nobody's wish, with the age of their job.
#include "test/sim/judge.h"

#include <algorithm>

namespace sk8::sim {

void Judge::delete_sent_by_us(const core::PodKey &key, std::int64_t grace)
{
	preempted_delete_sent(key.uid, grace);
	PodTruth &t = pods_.at(key.uid);
	if (t.reservation)
		reservation_deleted_by_us(key, t);
	if (t.delete_sent < 0)
		t.delete_sent = time_.now();
	t.sent_ahead |= slurm_->clock_step > 0;
	t.sent_behind |= slurm_->clock_step < 0;
}

void Judge::made_again_by_us(const std::string &from, const kube::Pod &pod)
{
	PodTruth &old = pods_.at(from);
	const std::string who = "I3: " + name_of("pod", old.name, from) + " is made again";
	if (!old.bare)
		violation(who + " by us, and its controller would");
	if (!old.taken_once)
		violation(who + ", and Slurm never took its node");
	if (old.made_again++ && !old.restored && !trouble_) // else the first request may come last
		violation(who + " a second time");
	// in whole seconds: that is all the API server tells of it, if our DELETE's answer is lost with slurmctld
	const bool unwanted = old.deleted_by_people >= 0 &&
			      (old.delete_sent < 0 || old.deleted_by_people / second < old.delete_sent / second);
	// If changed settings end the engine before the answer, the clocks decide as well.
	const bool limit = old.delete_unsure || (config_changed_ && old.sent_behind);
	if (unwanted && !old.restored && !limit && !crashes_)
		violation(who + ", and its owner had deleted it");
	if (kubelet_->runs_anywhere(from) && !old.restored && !old.unknown && !old.released)
		violation(who + " while it runs");
	for (const auto &[key, c] : kubelet_->containers())
		if (c.uid == from && c.by_itself && c.exit_code == 0 && c.ended_at + second < old.deleted && !old.restored &&
		    !old.phase_set && !old.released)
			violation(who + ", and had ended well before it was deleted");
	const Program program = old.program;
	created(pod, program);
	if (!std::exchange(old.age_given, true)) // else it is settled, also if slurmctld cannot know that
		pods_.at(pod.meta.uid).from = from;
	same_program(from, pod.meta.uid);
}

void Judge::check_age(const SlurmJob &job)
{
	const PodTruth *t = truth_of(job.mark);
	if (!t || t->from.empty() || t->bound > 0 || t->restored || state_lost_ || config_changed_)
		return;
	const PodTruth &old = pods_.at(t->from);
	// Somebody made a pod of that name, and it was given up: then a request arrives that had no answer.
	const auto in_its_place = [&](const auto &other) {
		return other.second.name == t->name && other.first != t->from && other.second.from.empty();
	};
	if (std::ranges::any_of(pods_, in_its_place))
		return;
	if (!old.accrue_times.contains(job.accrue_time) && !old.restored && !old.two_jobs && !t->two_jobs)
		violation("I3: job " + std::to_string(job.id) + " of " + name_of("pod", t->name, t->from) +
			  ", which was made again, has not the age of its former one");
}

void Judge::again_after_crash(const core::Ledger &on_disk)
{
	for (auto &[uid, t] : pods_)
		t.kept = false;
	for (const auto &r : on_disk.resubmits) {
		PodTruth &t = pods_.at(r.key.uid);
		t.kept = r.step == core::Resubmit::Step::kept;
		if (t.kept)
			t.made_again = 0; // nobody knows that it was, if it has been deleted meanwhile
	}
}

// Where nothing came in between that leaves it open.
bool Judge::should_be_made_again(const std::string &uid, const PodTruth &t) const
{
	if (t.made_again || !t.bare || !t.taken || t.evicted || !t.deleted_by_us || t.restored || t.phase_set ||
	    t.ended_by_itself || t.released || t.deleted_by_people >= 0 || t.bound == 0 || !t.protected_ || config_changed_ || state_lost_)
		return false;
	if (crashes_ && !t.kept)
		return false;
	// Its owner was first by the API server's clock: a limit that doc/reliability.md states.
	if (t.delete_unsure && t.sent_ahead)
		return false;
	return std::ranges::none_of(pods_, [&](const auto &other) { return other.first != uid && other.second.name == t.name; });
}

} // namespace sk8::sim
