// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a pod's object says of its job is true, also after another job has taken its place.
#include "test/sim/judge.h"

#include <algorithm>

#include "lib/core/annotations.h"
#include "lib/core/names.h"

namespace sk8::sim {

static bool says_the_truth(const kube::Pod &pod, const SlurmJob &job)
{
	static const std::string id(core::names::job_id), cores(core::names::job_cores);
	const auto &notes = pod.meta.annotations;
	const auto said_id = notes.find(id), said_cores = notes.find(cores);
	return said_id != notes.end() && said_id->second == std::to_string(job.id) && said_cores != notes.end() &&
	       said_cores->second == core::index_list(job.cores);
}

void Judge::check_annotations()
{
	static constexpr Micros longest_retry = 75 * second;
	for (const auto &[id, job] : slurm_->jobs()) {
		PodTruth *t = job.running() && !job.in_grace() ? truth_of(job.mark) : nullptr;
		const kube::PodPtr pod = t ? api_.pod(t->name) : nullptr;
		if (!pod || pod->node_name != job.node || pod->meta.deleting || std::ranges::count(schedulers_, pod->scheduler_name) == 0)
			continue; // of another scheduler's only the job is ours
		if (t->two_jobs || core::PodKey::from_mark(job.mark)->uid != pod->meta.uid || says_the_truth(*pod, job))
			t->untrue_since = -1;
		else if (t->untrue_since < 0)
			t->untrue_since = time_.now();
		else if (time_.now() > std::max({t->untrue_since, bad_at_, away_at_}) + longest_retry)
			violation("I2: " + name_of("pod", t->name, pod->meta.uid) + " does not say that its job is " +
				  std::to_string(id) + " on cores " + core::index_list(job.cores));
	}
}

} // namespace sk8::sim
