// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of static pods. What runs has a uid of its own, and what is promised of
// foreign pods is promised of that (judge_foreign.cc), from the moment the engine is told of a
// mirror of it until its container has ended: whatever becomes of its mirrors, which come with
// other uids. What a mirror held comes free by itself, without a person's word.
#include <algorithm>

#include "test/sim/judge.h"

namespace sk8::sim {

void Judge::static_pod_written(const StaticPod &pod)
{
	PodTruth &t = pods_[pod.uid];
	t.name = pod.name;
	t.program = pod.program;
	t.node = pod.node;
	t.foreign = t.overhead = t.from_file = true;
	t.innocent = false;
}

void Judge::mirror_made(const kube::Pod &pod, const std::string &shows)
{
	foreign_created(pod, pod.node_name, pods_.at(shows).program);
	pods_.at(pod.meta.uid).shows = shows;
}

// What stands behind that object.
const std::string &Judge::behind(const std::string &uid) const
{
	const PodTruth &t = pods_.at(uid);
	return t.shows.empty() ? uid : t.shows;
}

bool Judge::is_shown(const std::string &uid, const PodTruth &t) const
{
	kube::PodPtr pod = api_.pod(t.name);
	return pod && !pod->node_name.empty() && behind(pod->meta.uid) == uid;
}

bool Judge::saves(const core::Ledger &ledger, const std::string &uid) const
{
	return std::ranges::any_of(ledger.holds, [&](const core::Hold &h) { return behind(h.key.uid) == uid; });
}

} // namespace sk8::sim
