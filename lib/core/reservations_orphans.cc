// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for pods that stand for no job: they go.
#include "lib/base/log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

static constexpr Millis orphan_pause{10'000};

// Pods with names of ours that no entry has had: an entry has come since, or their job ended
// while slurmctld was away.
void Reservations::look_at_orphans()
{
	heed_nodes();
	std::vector<ForeignPodPtr> found, gone;
	for (const auto &[name, pod] : orphans_) {
		if (const auto job = nodes_.last(pod->node_name) ? std::nullopt : job_of_reservation(name, pod->node_name))
			if (const auto e = entries_.find({job->id, job->submit_time}); e != entries_.end() && ready())
				choose_nodes(e->second); // nothing but its pod says that it is to have one
		if (asked_.contains(pod->meta.uid))
			continue;
		if (by_name_.contains(name))
			found.push_back(pod);
		else if (may_go(*pod))
			gone.push_back(pod);
	}
	for (const auto &pod : found) {
		orphans_.erase(pod->meta.name);
		const auto unbound = unbound_.find(pod->meta.name);
		unbound != unbound_.end() && unbound->second == pod ? unbound_changed(pod) : changed(pod);
	}
	for (const auto &pod : gone) {
		log_info("cluster %s: reservation pod %s stands for no job%s and is deleted", settings_.name.c_str(),
			 pod->meta.name.c_str(), only_former_ ? " any more, since no job has pods," : "");
		asked_.insert(pod->meta.uid);
		remove({settings_.name, pod->meta.ns, pod->meta.name, pod->meta.uid},
		       [this, name = pod->meta.name, uid = pod->meta.uid](const KubeReply &r) {
			       orphan_deleted(name, uid, r);
		       });
	}
}

bool Reservations::may_go(const ForeignPod &orphan)
{
	if (!ready() || !(only_former_ || jobs_listed_) || !nodes_.in_slurm(orphan.node_name))
		return false;
	const bool tasks_may_run = orphan.container && !nodes_.mixed(orphan.node_name); // a job for which nothing is wanted there now
	return (mixed_ && !tasks_may_run) || former_may_go(orphan);
}

// 409 is another pod of that name, of which the watch tells, or a collision with another writer.
void Reservations::orphan_deleted(const std::string &name, const std::string &uid, const KubeReply &r)
{
	asked_.erase(uid);
	auto it = orphans_.find(name);
	if (it == orphans_.end() || it->second->meta.uid != uid)
		return;
	if (r.ok() || r.status == 404)
		orphans_.erase(it);
	else if (by_name_.contains(name)) // its job has come into the gate again
		look_at_orphans();
	else
		ports_.timer.after(orphan_pause, [this] { look_at_orphans(); });
}

} // namespace sk8::core
