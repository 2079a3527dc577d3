// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's part for jobs of Slurm's own: the way of news to and from the reservations.
#include "lib/core/cluster_engine.h"
#include "lib/core/eviction_link.h"
#include "lib/core/names.h"
#include "lib/core/reservation_link.h"

namespace sk8::core {

void ClusterEngine::empty_nodes()
{
	eviction_kube_ = std::make_unique<EvictionLink>(*client_);
	exclusive_ = std::make_unique<ExclusiveNodes>(
		settings_,
		ExclusivePorts{.slurm = *this,
			       .kube = *eviction_kube_,
			       .timer = *this,
			       .known = [this] { return foreign_->synced(); },
			       .crowd = [this](const std::string &node) { return foreign_->crowd(node); },
			       .taint_changed = [this](const std::string &node) { nodes_->exclusive_changed(node); },
			       .keeps_changed = [this](const std::string &node) { foreign_->keeps_changed(node); },
			       .word_changed = [this](JobRef job) { reservations_->look(job); }},
		pods_->nodes());
}

void ClusterEngine::reserve()
{
	empty_nodes();
	reservation_kube_ = std::make_unique<ReservationLink>(*client_);
	auto cover_changed = [this](const std::string &uid) { foreign_->cover_changed(uid); };
	auto tell_devices = [this](const PodKey &pod, const std::string &what) {
		pods_->warn(pod, names::event_devices, what);
	};
	auto placed = [this](const ForeignPodPtr &pod, bool there) { there ? foreign_->changed(pod) : foreign_->removed(pod); };
	reservations_ = std::make_unique<Reservations>(settings_,
						       ReservationPorts{*this, *reservation_kube_, *this, known_user_name, cover_changed,
									holds_.taken_by(), exclusive_.get(), tell_devices, groups_of,
									&dra_, kube_.get(), placed},
						       pods_->nodes());
	gate_changed();
}

void ClusterEngine::gate_changed()
{
	post([this] {
		if (!reservations_)
			return refuse_after_timeout();
		for (const auto &job : gate_.waiting(settings_.name)) {
			exclusive_->arrived(job);
			reservations_->arrived(job);
		}
	});
}

// While the credentials cannot be read there is nobody who asks for pods, nor who says that it takes too long.
void ClusterEngine::refuse_after_timeout()
{
	loop_.after(settings_.nodes.gate_timeout, [this, jobs = gate_.waiting(settings_.name)] {
		if (reservations_)
			return; // it has heard of them since
		for (const auto &job : jobs)
			gate_.vote(settings_.name, job->ref, not_started("cluster " + settings_.name + ": " + access_error_, settings_.nodes.gate_timeout));
	});
}

void ClusterEngine::native_ended(JobRef job)
{
	post([this, job] {
		if (!reservations_)
			return;
		exclusive_->ended(job);
		reservations_->ended(job);
	});
}

void ClusterEngine::natives_replaced(const std::vector<NativeJobPtr> &jobs)
{
	if (!reservations_)
		return;
	exclusive_->jobs_replaced(jobs);
	reservations_->jobs_replaced(jobs);
}

void ClusterEngine::native_left(JobRef job, const std::set<std::string> &still_on)
{
	if (!reservations_)
		return;
	exclusive_->left(job, still_on);
	reservations_->left(job, still_on);
}

} // namespace sk8::core
