// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for jobs that share a pod with others: to them it looks like
// one of their own.
#include "lib/core/reservations.h"

namespace sk8::core {

void Reservations::tell_shared(Entry &e, Pod &p)
{
	using Use = SharedReservations::Use;
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	if (!p.wanted)
		shared_.leave(id, p.share.node);
	else if (e.ending || e.asked == Asked::waits)
		shared_.set(id, p.share, Use::ends);
	else
		shared_.set(id, p.share, e.in_gate ? Use::waits : Use::runs, e.in_gate && e.perhaps_launched);
	static_cast<ReservationState &>(p) = shared_.state(id, p.share.node);
}

void Reservations::share(Entry &e, Pod &p)
{
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	tell_shared(e, p);
	if (!shared_.needs_own(id, p.share.node))
		return;
	shared_.leave(id, p.share.node);
	p.shared = false;
	static_cast<ReservationState &>(p) = {};
	if (auto it = orphans_.find(p.name); it != orphans_.end()) {
		const ForeignPodPtr pod = it->second;
		orphans_.erase(it);
		see(e, p, *pod);
	}
}

void Reservations::shared_news(const std::string &node, Gone gone)
{
	const auto ids = shared_.jobs(node);
	for (const Id &id : ids)
		if (auto it = entries_.find(id); it != entries_.end() && gone != Gone::no)
			lose(it->second, it->second.pods.at(node), gone);
	for (const Id &id : ids)
		sync(id);
	shared_.sync(node);
}

} // namespace sk8::core
