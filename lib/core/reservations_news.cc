// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for what Kubernetes tells of jobs' pods and of nodes.
#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

Reservations::Pod *Reservations::find(const std::string &ns, const std::string &name, Entry **entry)
{
	if (ns != settings_.reservations.ns)
		return nullptr;
	auto at = by_name_.find(name);
	if (at == by_name_.end())
		return nullptr;
	Entry &e = entries_.at(at->second.job);
	*entry = &e;
	return &e.pods.at(at->second.node);
}

void Reservations::replaced(const std::vector<ForeignPodPtr> &pods)
{
	heed_nodes();
	std::set<std::string> listed;
	for (const auto &pod : pods)
		listed.insert(pod->meta.uid);
	for (auto &[id, e] : entries_)
		for (auto &[node, p] : e.pods)
			if (!p.uid.empty() && !p.to_place && !listed.contains(p.uid))
				lose(e, p, Gone::unseen);
	std::erase_if(orphans_, [&](const auto &o) { return !unbound_.contains(o.first) || listed.contains(o.second->meta.uid); });
	choose_all(); // of which some of these may be
	if (!std::exchange(pods_listed_, true))
		begun_ = ports_.timer.now();
	pods_are_news_ = true;
	all_listed_ |= !ports_.dra || !ports_.dra->wanted();
	shared_.replaced(listed);
	for (const auto &pod : pods)
		changed(pod);
	sync_all();
}

void Reservations::changed(const ForeignPodPtr &pod)
{
	if (pod->meta.ns != settings_.reservations.ns)
		return;
	counted_.erase(pod->meta.uid); // it is a foreign pod from now on
	heed_nodes();
	if (only_former_)
		return former_changed(pod);
	if (shared_.changed(pod))
		return;
	Entry *e = nullptr;
	if (Pod *p = find(pod->meta.ns, pod->meta.name, &e)) {
		const Id id = by_name_.at(pod->meta.name).job;
		if (p->shared && !stands_for(*e, *p, *pod)) {
			orphans_[pod->meta.name] = pod;
			return;
		}
		orphans_.erase(pod->meta.name);
		if (std::exchange(p->shared, false)) {
			shared_.leave(id, p->share.node);
			static_cast<ReservationState &>(*p) = {};
		}
		see(*e, *p, *pod);
		if (p->uid == pod->meta.uid && p->to_place)
			has_node(*e, *p, pod->node_name);
		return sync(id);
	}
	if (is_reservation_name(pod->meta.name) && !pod->meta.deleting) {
		orphans_[pod->meta.name] = pod;
		look_at_orphans();
	}
}

// Has it had this one before the settings changed, so that its part of the shared pod is given back? If it
// runs, only what its kubelet has set aside counts.
bool Reservations::stands_for(const Entry &e, const Pod &p, const ForeignPod &seen) const
{
	const bool all = fits_share(seen, p.share, settings_.resources) &&
			 Amount{seen.milli_cpu, seen.memory_bytes} == amount_of(p.share);
	const bool goes = seen.meta.deleting || seen.ended();
	return all && !goes && (e.in_gate || seen.admitted);
}

void Reservations::removed(const ForeignPodPtr &last)
{
	counted_.erase(last->meta.uid);
	heed_nodes();
	if (last->meta.ns != settings_.reservations.ns || (!only_former_ && shared_.removed(last)))
		return;
	if (auto it = orphans_.find(last->meta.name); it != orphans_.end() && it->second->meta.uid == last->meta.uid)
		orphans_.erase(it);
	Entry *e = nullptr;
	Pod *p = find(last->meta.ns, last->meta.name, &e);
	if (!p || p->uid != last->meta.uid)
		return;
	const Id id = by_name_.at(last->meta.name).job;
	see(*e, *p, *last); // perhaps with the reason
	lose(*e, *p, Gone::seen);
	sync(id);
}

std::string Reservations::too_large_text(const Pod &p) const
{
	return "admission in Kubernetes (a webhook, or a LimitRange of namespace " + settings_.reservations.ns +
	       ") makes the reservation pod on node " + p.share.node + " larger than its job";
}

std::string Reservations::astray_text(const Pod &p)
{
	return "somebody has bound the job's reservation pod for node " + p.share.node + " to node " + p.elsewhere;
}

void Reservations::see(Entry &e, Pod &p, const ForeignPod &seen)
{
	if (!p.uid.empty() && p.uid != seen.meta.uid) {
		if (p.awaits != Pod::Awaits::create)
			return; // not made by us, in the place of ours
		uncover(p.uid);
		p.was_admitted = p.by_us = false;
	}
	if (p.uid != seen.meta.uid) {
		p.found_deleting = seen.meta.deleting;
		p.former = p.awaits != Pod::Awaits::create;
	}
	// Perhaps the engine before this one has asked for it, and its request came late.
	p.found_deleting |= p.former && seen.meta.deleting && !p.deleting && ports_.timer.now() - begun_ < longest_request;
	p.uid = seen.meta.uid;
	p.elsewhere = seen.node_name == p.share.node ? "" : seen.node_name;
	p.fits = fits_share(seen, p.share, settings_.resources);
	p.small = seen.milli_cpu < std::int64_t{1000} * p.share.cpus;
	p.over = seen.ended();
	p.admitted = seen.admitted && p.fits && !seen.meta.deleting;
	p.deleting = seen.meta.deleting;
	p.was_admitted |= p.fits && seen.admitted;
	p.reason = seen.reason;
	p.disruption = seen.disruption;
	p.container = seen.container && p.fits ? *seen.container : JobContainerState();
	p.claims = seen.resource_claims;
	if (!p.claims.empty())
		placing_.insert({e.job->ref.id, e.job->ref.submit_time});
	if (p.admitted)
		p.failures = 0;
	if (p.over && !p.deleting)
		p.trouble = "the kubelet of node " + p.share.node + " refuses the job's reservation pod" +
			    (seen.reason.empty() ? "" : " (" + seen.reason + ")");
	else if (p.astray())
		p.trouble = astray_text(p);
	else if (p.too_large())
		p.trouble = too_large_text(p);
	else if (!p.fits)
		p.trouble = "another pod has the name of the job's reservation pod on node " + p.share.node;
	cover(e, p);
}

void Reservations::lose(Entry &e, Pod &p, Gone gone)
{
	if (p.refused() && !p.exchanges_now && p.wanted && !p.shared) // refused, or evicted: not at once again
		later(e, p);
	give_up(e, p, gone);
	if (const std::string how = eviction(e, p, gone); p.was_admitted && p.wanted && !p.exchanges_now && !e.in_gate && !e.ending && e.asked != Asked::waits)
		log_job(warning, e.job->ref, "its reservation pod on node %s %s; it is made again", p.share.node.c_str(),
			how.empty() ? "is gone" : how.c_str());
	uncover(p.uid);
	p.uid.clear();
	p.made_uid.clear();
	uncount(p);
	p.to_place = p.doubtful = p.unsure = false;
	p.unbound = nullptr;
	p.misses_since = Millis(0);
	p.wrong_claims.clear();
	p.elsewhere.clear();
	p.claims.clear();
	p.other_claims = false;
	p.fits = p.admitted = p.over = p.deleting = p.was_admitted = p.by_us = p.found_deleting = p.other_devices = p.exchanges_now = p.small = false;
	p.container = {};
}

void Reservations::cover(Entry &e, Pod &p)
{
	if (p.shared)
		return tell_shared(e, p);
	if (p.uid.empty())
		return;
	if (!p.fits || e.ending || !p.wanted || p.over || p.other_claims)
		return uncover(p.uid);
	if (covered_.insert(p.uid).second)
		ports_.cover_changed(p.uid);
}

void Reservations::uncover(const std::string &uid)
{
	if (!covered_.erase(uid))
		return;
	beyond_.erase(uid);
	ports_.cover_changed(uid);
}

Cover Reservations::covered(const std::string &uid) const
{
	if (!covers(uid))
		return shared_.covered(uid);
	const auto beyond = beyond_.find(uid);
	return {.whole = true, .beyond = beyond == beyond_.end() ? GresList() : beyond->second};
}

void Reservations::nodes_changed()
{
	nodes_are_news_ = choice_is_old_ = true;
}

// By now foreign pods have heard of all that was listed in this turn: what is taken is masked.
void Reservations::end_of_turn()
{
	if (std::exchange(pods_are_news_, false) && ports_.placed)
		for (const auto &[uid, pod] : counted_) // a list of those that have a node lacks them
			ports_.placed(pod, true);
	if (!all_listed_ && pods_listed_ && unbound_listed_ && ports_.dra->synced()) {
		count_formers();
		all_listed_ = nodes_are_news_ = true;
	}
	if (nodes_are_news_)
		sync_all();
}

void Reservations::look(JobRef job)
{
	sync({job.id, job.submit_time});
}

void Reservations::node_changed(const std::string &node)
{
	const kube::Node *n = nodes_.find(node);
	if (!n || only_former_ || nodes_.shared_in_kubernetes(node) != NodeView::Shared::yes || !devices_.read(*n))
		return;
	std::vector<Id> waiting;
	for (const auto &[id, e] : entries_)
		if (const auto p = e.pods.find(node); p != e.pods.end() && (e.in_gate || (!e.ending && !p->second.share.gres.empty())))
			waiting.push_back(id);
	for (const Id &id : waiting)
		sync(id);
}

} // namespace sk8::core
