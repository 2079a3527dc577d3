// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's part for jobs of Slurm's own: the way of news to and from the reservations.
#include "lib/core/cluster_engine.h"
#include "lib/core/reservation_link.h"

namespace sk8::core {

void ClusterEngine::reserve()
{
	reservation_kube_ = std::make_unique<ReservationLink>(*client_);
	auto cover_changed = [this](const std::string &uid) { foreign_->cover_changed(uid); };
	reservations_ = std::make_unique<Reservations>(
		settings_, ReservationPorts{*this, *reservation_kube_, *this, user_name, cover_changed, holds_.taken_by()}, pods_->nodes());
	gate_changed();
}

void ClusterEngine::gate_changed()
{
	post([this] {
		if (reservations_)
			for (const auto &job : gate_.waiting(settings_.name))
				reservations_->arrived(job);
	});
}

void ClusterEngine::native_ended(JobRef job)
{
	post([this, job] {
		if (reservations_)
			reservations_->ended(job);
	});
}

void ClusterEngine::natives_replaced(const std::vector<NativeJobPtr> &jobs)
{
	if (reservations_)
		reservations_->jobs_replaced(jobs);
}

void ClusterEngine::native_left(JobRef job, const std::set<std::string> &still_on)
{
	if (reservations_)
		reservations_->left(job, still_on);
}

} // namespace sk8::core
