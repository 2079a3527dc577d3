// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of pods that people resize in place. Their kubelet asks nobody but itself, so what is promised is that
// of foreign pods: no job starts on what such a pod has by a resize that the engine was told of, or had before one to less, until
// its kubelet has told that it has taken that back or the pod has ended; also across the end of slurmctld, if the engine had known for some seconds.
#include <algorithm>
#include <utility>

#include "test/sim/judge.h"
#include "test/sim/resizing.h"

namespace sk8::sim {

using State = Container::State;

void Judge::resized_by_people(const std::string &uid)
{
	PodTruth &t = pods_.at(uid);
	if (std::exchange(t.resized, true))
		return;
	t.placed_request = {t.program.milli(), t.program.memory};
	const bool told = !t.foreign || (t.known && !t.known_to_come);
	t.told_request = told ? t.placed_request : Sum{}; // what nobody was told of nobody can hold
	t.told_since = t.foreign ? t.known_since : 0;
}

void Judge::request_told(const kube::Pod &pod)
{
	PodTruth &t = pods_.at(pod.meta.uid);
	Sum request{pod.request.milli_cpu, pod.request.memory_bytes >> 20};
	if (t.foreign && t.resized && foreign_pod_seen(pod)->unheard)
		request = most(request, t.told_request);
	if (!t.resized || t.told_request == request)
		return;
	t.told_request = request;
	t.told_since = time_.now();
}

// Its kubelet is asked for something else than Slurm could know of then.
bool Judge::resized_since_placed(const Container &c, const PodTruth &t) const
{
	return t.resized && t.placed_request != Sum{c.program.milli(), c.program.memory};
}

// What it has of that: the rest Slurm could not keep its kubelet from setting aside.
Sum Judge::of_its_job(const Container &c) const
{
	const PodTruth &t = pods_.at(c.uid);
	const Sum has{c.program.milli(), c.program.memory};
	return t.resized ? least(has, t.placed_request) : has;
}

// What its kubelet has set aside for it, as far as the engine can know. A pod for Slurm has what its job has.
Sum Judge::known_use(const Container &c, const PodTruth &t) const
{
	const Sum has{c.program.milli(), c.program.memory};
	if (!t.resized)
		return has;
	return least(has, most(t.foreign ? Sum{} : t.placed_request, t.told_request));
}

// A backup of etcd has a former request; nobody can know what its kubelet has set aside since.
void Judge::requests_restored()
{
	for (auto &[uid, t] : pods_)
		t.told_request = {};
}

static Sum saved_for(const core::Ledger &ledger, const std::string &uid)
{
	const auto at = std::ranges::find_if(ledger.holds, [&](const core::Hold &h) { return h.key.uid == uid; });
	if (at == ledger.holds.end())
		return {};
	const auto cores = std::ssize(at->cores) + std::int64_t{at->more_cores};
	return {std::max(1000 * cores, at->milli_cpu), static_cast<std::int64_t>(at->memory_mb)};
}

// What was not saved the next engine learns when it has listed the pods.
void Judge::requests_after_crash(const core::Ledger &on_disk, Micros written_by)
{
	for (auto &[uid, t] : pods_) {
		if (!t.resized)
			continue;
		const Sum saved = saved_for(on_disk, uid), told = std::exchange(t.told_request, saved);
		for (const auto &[key, c] : kubelet_->containers()) {
			const Sum known = least({c.program.milli(), c.program.memory}, told);
			if (c.uid == uid && c.state == State::running && saved != Sum{} && t.told_since < written_by && !saved.covers(known))
				violation("I3: the saved ledger has " + std::to_string(saved.milli) + " mCPU and " + std::to_string(saved.memory) +
					  " MB for " + name_of("pod", t.name, uid) + ", which was resized, and the engine was told " +
					  std::to_string((time_.now() - t.told_since) / second) + " s before");
		}
	}
}

} // namespace sk8::sim
