// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for jobs that run, and whose pod was made anew and has got other devices than they use.
#include <algorithm>
#include <iterator>

#include "lib/core/device_exchange.h"
#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

// Those that other jobs there have in Slurm: nobody gets them from Slurm anyway, whichever pods have them.
GresList Reservations::devices_of_others(const Entry &e, const std::string &node) const
{
	GresList out;
	for (const auto &[id, other] : entries_)
		for (const NativeShare &share : other.job->shares)
			if (&other != &e && !other.ending && share.node == node)
				out.insert(out.end(), share.gres.begin(), share.gres.end());
	return out;
}

// One of the other pods that have all which the job uses and its own pod does not have; empty: not all are anybody's.
std::string Reservations::holder_of(const Pod &p, const GresList &missing) const
{
	std::string uid;
	for (const Gres &g : missing)
		for (const std::uint16_t device : g.devices)
			if (uid = devices_.find_holder(p.share.node, g.name, device, p.uid); uid.empty())
				return "";
	return uid;
}

// What of its pod no job has is masked as a foreign pod's; the rest of it stands for the job as before.
void Reservations::mask_beyond(const Pod &p, GresList beyond)
{
	const auto it = beyond_.find(p.uid);
	if (it == beyond_.end() ? beyond.empty() : it->second == beyond)
		return;
	if (beyond.empty())
		beyond_.erase(it);
	else
		beyond_[p.uid] = std::move(beyond);
	ports_.cover_changed(p.uid);
}

void Reservations::look_at_exchange(Entry &e, Pod &p)
{
	if (e.in_gate || e.ending || p.shared || !p.wanted || !p.admitted || p.exchanges_now)
		return;
	const Given given = given_devices(e, p);
	const Devices are = compare(p, given);
	if (are == Devices::unknown)
		return;
	const bool other = are == Devices::other;
	GresList own; // those of which the node tells, as the pod's
	for (const Gres &g : given.gres)
		own.push_back({g.name, g.type, g.count, devices_named(p.share.gres, g.name)});
	const GresList missing = devices_without(own, given.gres);
	const std::string holder = other ? holder_of(p, missing) : "";
	mask_beyond(p, other ? devices_without(devices_without(given.gres, own), devices_of_others(e, p.share.node)) : GresList());
	const Millis now = ports_.timer.now();
	const bool silent = nodes_.kubelet(p.share.node) != NodeView::Kubelet::ready;
	const ExchangeStep what = next_step(ExchangeFacts{other, has_container(e, p), !holder.empty(), silent || now < p.exchange_at});
	tell_exchange(e, p, what, gres_text(given.gres), holder);
	if (what != ExchangeStep::give_back)
		return;
	const Millis pause = exchange_pause(p.exchanges++);
	p.exchanges_now = true;
	p.exchange_at = now + pause;
	ports_.timer.after(pause, [this, id = Id{e.job->ref.id, e.job->ref.submit_time}] { sync(id); });
}

// Once for each trouble in the log, and for each pod in its events.
void Reservations::tell_exchange(const Entry &e, Pod &p, ExchangeStep what, const std::string &given, const std::string &holder)
{
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	if (what == ExchangeStep::none) {
		if (!std::exchange(p.other, "").empty())
			log_job(info, e.job->ref, "its reservation pod on node %s has the job's own devices again", p.share.node.c_str());
		p.exchanges = 0;
		p.exchange_at = Millis(0);
		if (std::ranges::all_of(e.pods, [](const auto &at) { return at.second.other.empty(); }))
			other_devices_.erase(id);
		return;
	}
	const bool first = p.other.empty();
	const std::string has = "the kubelet has given the reservation pod of job " + std::to_string(id.first) + ", made anew, " + given +
				", and the job goes on using " + gres_text(p.share.gres);
	p.other = has + (what == ExchangeStep::stays ? "; it stays, as tasks may run in it"
			 : !holder.empty()	    ? "; what it lacks is another pod's, as that with uid " + holder
						    : "; it is made again until it has these");
	other_devices_.insert(id);
	if (first)
		log_job(warning, e.job->ref, "node %s: %s", p.share.node.c_str(), p.other.c_str());
	if (std::exchange(p.other_told, p.uid) != p.uid && ports_.tell_devices)
		ports_.tell_devices({settings_.name, settings_.reservations.ns, p.name, p.uid}, p.other);
}

// Of jobs whose pods have other devices, when another one's devices in Slurm have changed: more may have to be masked, or less.
void Reservations::look_at_neighbours()
{
	for (const Id &id : std::set<Id>(other_devices_)) {
		const auto it = entries_.find(id);
		if (it == entries_.end() || it->second.ending)
			other_devices_.erase(id);
		else
			sync(id);
	}
}

std::vector<std::string> Reservations::other_devices(const std::string &node) const
{
	std::vector<std::string> out;
	for (const Id &id : other_devices_)
		if (const auto it = entries_.find(id); it != entries_.end() && !it->second.ending)
			if (const auto at = it->second.pods.find(node); at != it->second.pods.end() && at->second.wanted && !at->second.other.empty())
				out.push_back(at->second.other);
	return out;
}

} // namespace sk8::core
