// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part where no job has pods any more: what there is of former settings
// stands for nothing, and would be masked beside the jobs for which it was made. It is given up at once,
// as on a node whose group is shared otherwise now: Slurm's own jobs are not to be seen in Kubernetes, and
// gets in their way nobody whom the settings keep out. But a pod in which tasks of its job run goes when
// that has left the node.
#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

void Reservations::former_changed(const ForeignPodPtr &pod)
{
	const bool of_one = is_reservation_name(pod->meta.name), of_many = pod->shared && !node_of_shared_reservation(pod->meta.name).empty();
	if (pod->meta.deleting || !(of_one || of_many))
		return;
	orphans_[pod->meta.name] = pod;
	look_at_orphans();
}

// Those of a node that is not of this Slurm are another one's, which has the same namespace.
bool Reservations::former_may_go(const ForeignPod &pod)
{
	if (!nodes_.in_slurm(pod.node_name))
		return false;
	const auto job = pod.container ? job_of_reservation(pod.meta.name, pod.node_name) : std::nullopt;
	if (!job)
		return true;
	const auto [it, fresh] = formers_used_.try_emplace({job->id, job->submit_time});
	if (fresh)
		ports_.slurm.watch_end(*job);
	return it->second && !it->second->contains(pod.node_name);
}

void Reservations::former_left(JobRef job, const std::set<std::string> &still_on)
{
	auto it = formers_used_.find({job.id, job.submit_time});
	if (it == formers_used_.end())
		return;
	it->second = still_on;
	look_at_orphans();
	if (still_on.empty())
		formers_used_.erase(it);
}

} // namespace sk8::core
