// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for jobs that run and whose pods somebody takes.
#include "lib/core/eviction.h"
#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

std::string Reservations::eviction(const Entry &e, const Pod &p, Gone gone) const
{
	return eviction_of({.runs = p.wanted && !e.in_gate && !e.ending,
			    .admitted = p.was_admitted,
			    .by_us = p.by_us,
			    .heard_of = nodes_.kubelet(p.share.node) == NodeView::Kubelet::ready,
			    .over = p.over,
			    .deleting = p.deleting,
			    .found_deleting = p.found_deleting,
			    .deleted = gone == Gone::seen,
			    .reason = p.reason,
			    .disruption = p.disruption});
}

// What the settings say of a job whose pod somebody has taken.
void Reservations::give_up(Entry &e, const Pod &p, Gone gone)
{
	using OnEviction = ReservationSettings::OnEviction;
	OnEviction wish = settings_.reservations.eviction;
	if (wish == OnEviction::ignore && has_container(e, p)) // its tasks have lost their files: nobody gives these back
		wish = OnEviction::requeue;
	if (wish == OnEviction::ignore || e.asked != Asked::no || p.uid.empty() || !p.fits)
		return;
	const std::string how = eviction(e, p, gone);
	if (how.empty())
		return;
	e.asked = Asked::waits;
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	const std::string why = "its reservation pod on node " + p.share.node + " " + how;
	ports_.slurm.end(e.job->ref, wish == OnEviction::requeue, why, [this, id, ref = e.job->ref, why](const SlurmReply &r) {
		if (r.ok)
			log_job(info, ref, "%s: %s", r.requeued ? "back into the queue" : "cancelled", why.c_str());
		auto it = entries_.find(id);
		if (r.ok || it == entries_.end() || it->second.ending)
			return;
		log_job(warning, ref, "%s; it goes on: Slurm does not end it: %s", why.c_str(), r.text.c_str());
		it->second.asked = Asked::refused;
		sync(id);
	});
}

} // namespace sk8::core
