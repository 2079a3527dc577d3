// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of nodes that can have so many pods (Case::slots), of which Slurm knows nothing:
//
//   * No job that needs one more pod starts on a node of which the engine was told that it has all of them: a pod's job, or on a
//     mixed node one of Slurm's own that has no part of a pod that is there.
//   * Whom a kubelet refuses for lack of a slot comes to its end all the same. Of pods for Slurm, beside pods for Slurm, it
//     refuses none for lack of anything else, and none where those that the engine saw when Slurm chose the node have all slots:
//     container_refused().
//
// The windows that the design leaves: jobs that start at once are not counted against each other, nor against a pod whose Binding,
// or whose object, the engine does not see yet; and a slurmctld that starts knows of no slots before it has heard of all pods.
// While the mirror of a static pod is replaced its slot is free; after a restore of etcd that of a pod that is gone from there,
// which keeps what it holds; and with other scheduler names a pod is another kind of pod, and counts when it is seen again.
#include <algorithm>

#include "test/sim/judge.h"

namespace sk8::sim {

using State = Container::State;

static constexpr Micros unseen = second, to_hear_of_all = 10 * second;

bool Judge::needs_slot(const SlurmJob &job) const
{
	if (!job.batch())
		return job.required.empty();
	const bool small = job.gpus == 0 && job.cpus <= config_.settings.reservations.shared.max_cpus;
	return promised(job.node) && !small;
}

// Does the engine see that this one is there?
bool Judge::has_slot(const Container &c) const
{
	const PodTruth &t = pods_.at(c.uid);
	if (c.state == State::ended || t.released || t.unknown || t.restored || t.from_file)
		return false;
	if (t.foreign)
		return t.known && time_.now() - t.known_since > unseen && is_there(api_.pod(t.name), c.uid);
	return is_there(api_.pod(t.name), c.uid) && api_.pod(t.name)->node_name == c.node && time_.now() - t.bound_at > unseen;
}

void Judge::check_slots(const SlurmJob &job)
{
	const std::int64_t slots = api_.nodes().at(job.node)->allocatable_pods;
	const Micros troubled = std::max({away_at_, bad_at_, engine_began_});
	if (slots == 0 || !needs_slot(job) || config_changed_ || time_.now() - troubled < to_hear_of_all)
		return;
	const auto taken = std::ranges::count_if(kubelet_->containers(), [&](const auto &at) {
		return at.second.node == job.node && has_slot(at.second);
	});
	if (taken >= slots)
		violation("I1: job " + std::to_string(job.id) + " starts on " + job.node + ", which has all of the " +
			  std::to_string(slots) + " pods that it can have");
}

// A kubelet refuses it for lack of a slot, and nothing else: did the engine not know all pods there when Slurm chose the node?
bool Judge::may_lack_slot(const Container &c) const
{
	const PodTruth &t = pods_.at(c.uid);
	const Micros troubled = std::max({away_at_, bad_at_, engine_began_});
	if (t.placed_at < 0 || config_changed_ || t.placed_at - troubled < to_hear_of_all)
		return true;
	const auto known = std::ranges::count_if(kubelet_->containers(), [&](const auto &at) {
		const Container &other = at.second;
		return other.uid != c.uid && other.node == c.node && has_slot(other) && pods_.at(other.uid).bound_at < t.placed_at - unseen;
	});
	return known < api_.nodes().at(c.node)->allocatable_pods;
}

} // namespace sk8::sim
