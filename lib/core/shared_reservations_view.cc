// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The shared reservation pods as jobs and masks see them.
#include <algorithm>

#include "lib/core/job_request.h"
#include "lib/core/shared_reservations.h"

namespace sk8::core {

bool SharedReservations::takes(const NativeShare &share) const
{
	auto it = nodes_.find(share.node);
	return resizes_ && may_share(share, settings_.reservations) && (it == nodes_.end() || it->second.resizes);
}

bool SharedReservations::has_pod(const std::string &node) const
{
	auto it = nodes_.find(node);
	if (it == nodes_.end() || !resizes_)
		return false;
	const Node &n = it->second;
	return n.resizes && !n.uid.empty() && n.fits && !n.over && !n.deleting && !n.sent.removing;
}

void SharedReservations::set(Id job, const NativeShare &share, Use use, bool perhaps_runs)
{
	Node &n = nodes_[share.node];
	const auto [it, fresh] = n.members.try_emplace(job);
	Member &m = it->second;
	m.perhaps_runs |= perhaps_runs;
	if (fresh) {
		m.share = share;
		m.arrival = ++arrivals_;
		m.asked = n.fits && n.asked.covers(wanted(n));
	} else if (m.use == use) {
		return;
	}
	m.use = use;
	if (use != Use::waits)
		m.refused = false;
	judge(share.node, n);
}

void SharedReservations::leave(Id job, const std::string &node)
{
	auto it = nodes_.find(node);
	if (it == nodes_.end() || !it->second.members.erase(job))
		return;
	if (it->second.members.empty())
		it->second.empty_since = ports_.timer.now();
	judge(node, it->second);
	// There may be room now for one that came later.
	ports_.timer.after(Millis(1), [this, node] { ports_.news(node, Gone::no); });
}

std::vector<SharedReservations::Id> SharedReservations::jobs(const std::string &node) const
{
	std::vector<Id> out;
	if (auto it = nodes_.find(node); it != nodes_.end())
		for (const auto &[id, m] : it->second.members)
			out.push_back(id);
	return out;
}

ReservationState SharedReservations::state(Id job, const std::string &node) const
{
	auto at = nodes_.find(node);
	if (at == nodes_.end())
		return {};
	const Node &n = at->second;
	auto it = n.members.find(job);
	if (it == n.members.end())
		return {};
	const Member &m = it->second;
	ReservationState s = n;
	s.was_admitted = m.was_admitted;
	if (!m.trouble.empty())
		s.trouble = m.trouble;
	if (m.use != Use::waits)
		return s;
	s.admitted = m.admitted;
	s.over = m.refused;
	s.fits |= m.refused; // the pod that it was refused by may be gone
	return s;
}

bool SharedReservations::needs_own(Id job, const std::string &node) const
{
	auto at = nodes_.find(node);
	if (at == nodes_.end() || (resizes_ && at->second.resizes))
		return false;
	auto it = at->second.members.find(job);
	return it != at->second.members.end() && it->second.use == Use::waits && !it->second.admitted;
}

Amount SharedReservations::sum(const Node &n, bool (*counts)(const Member &))
{
	Amount out;
	for (const auto &[id, m] : n.members)
		if (counts(m))
			out += amount_of(m.share);
	return out;
}

Amount SharedReservations::wanted(const Node &n)
{
	return request_for(sum(n, [](const Member &m) { return m.requested(); }));
}

std::string SharedReservations::job_ids(const Node &n) const
{
	std::vector<std::uint32_t> ids;
	for (const auto &[id, m] : n.members)
		if (m.requested())
			ids.push_back(id.first);
	return job_list(ids);
}

// What is masked of it is what those that end have, and what it has not given back yet.
void SharedReservations::count(Node &n)
{
	const Amount jobs = sum(n, [](const Member &m) { return m.use != Use::ends && m.asked; });
	const Amount end = sum(n, [](const Member &m) { return m.use == Use::ends; });
	const Amount before = n.covered;
	n.covered = request_for(jobs);
	n.covered.milli_cpu = std::clamp<std::int64_t>(n.held.milli_cpu - end.milli_cpu, 0, n.covered.milli_cpu);
	if (end.memory_bytes)
		n.covered.memory_bytes = std::clamp<std::int64_t>(n.held.memory_bytes - end.memory_bytes, 0, n.covered.memory_bytes);
	if (!n.fits)
		n.covered = {};
	if (n.covered != before && !n.uid.empty())
		ports_.cover_changed(n.uid);
}

Cover SharedReservations::covered(const std::string &uid) const
{
	auto at = node_of_.find(uid);
	if (at == node_of_.end())
		return {};
	const Amount &amount = nodes_.at(at->second).covered;
	return {.milli_cpu = amount.milli_cpu, .memory_mb = whole_mib(amount.memory_bytes)};
}

} // namespace sk8::core
