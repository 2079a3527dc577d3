// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for jobs in the gate.
#include <algorithm>

#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

static constexpr Millis longest_requeue{120'000};
static constexpr std::size_t max_refusals = 10'000;

void Reservations::judge(Entry &e)
{
	if (!ready()) {
		// Nothing is known of nodes yet, but who may be shared can be configured.
		const auto &names = settings_.nodes.names;
		const bool may_be_shared = names.empty() || std::ranges::any_of(e.job->shares, [&](const NativeShare &s) {
			return std::ranges::find(names, s.node) != names.end();
		});
		if (!may_be_shared)
			open(e);
		return;
	}
	if (const std::string why = taken(e); !why.empty())
		return refuse(e, why);
	for (const auto &[node, p] : e.pods)
		if (p.wanted && p.over && p.fits && e.job->requeues)
			return refuse(e, std::string(p.trouble)); // that of a shared one is forgotten meanwhile
	if (std::ranges::all_of(e.pods, [](const auto &at) { return !at.second.wanted || at.second.admitted; }))
		open(e);
}

// Slurm gives nobody what is masked. But a slurmctld that was killed may have forgotten that this
// job ended in the gate, and that a pod got what it had. Where nodes are mixed the kubelet says so.
std::string Reservations::taken(const Entry &e) const
{
	for (const NativeShare &share : e.job->shares) {
		auto it = e.pods.find(share.node);
		if (it != e.pods.end() && it->second.wanted)
			continue;
		if (const std::string why = taken_text(share, ports_.taken_by); !why.empty())
			return why;
	}
	return "";
}

void Reservations::open(Entry &e)
{
	e.in_gate = false;
	refusals_.erase(e.job->ref.id);
	for (auto &[node, p] : e.pods)
		if (p.shared)
			tell_shared(e, p); // it runs from now on
	ports_.slurm.answer(e.job->ref, {});
}

// It goes back into the queue, or ends: job_fini comes, and its pods go.
void Reservations::refuse(Entry &e, const std::string &why)
{
	if (refusals_.size() > max_refusals)
		refusals_.clear();
	const int before = refusals_[e.job->ref.id]++;
	const Millis delay = before == 0 ? Millis(0) : std::min(longest_requeue, Millis(1'000) * (1 << std::min(before - 1, 10)));
	e.in_gate = false;
	e.ending = true;
	not_wanted(e);
	log_job(info, e.job->ref, "%s: %s", e.job->requeues ? "back into the queue" : "not started", why.c_str());
	ports_.slurm.answer(e.job->ref, not_started(why, delay));
	for (auto &[node, p] : e.pods)
		step(e, p);
}

void Reservations::not_wanted(Entry &e)
{
	for (auto &[node, p] : e.pods) {
		p.wanted = false;
		cover(e, p);
	}
}

void Reservations::timeout(Id id)
{
	auto it = entries_.find(id);
	if (it == entries_.end() || !it->second.in_gate)
		return;
	std::string why = "Kubernetes has not told which nodes and pods there are";
	for (const auto &[node, p] : it->second.pods)
		if (p.wanted && !p.admitted)
			why = p.trouble.empty() ? "the kubelet of node " + node + " has not said that there is room" : p.trouble;
	refuse(it->second, why);
	sync(id);
}

} // namespace sk8::core
