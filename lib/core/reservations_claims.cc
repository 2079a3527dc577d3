// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for pods whose containers claim devices (job_claims.h).
//
// Such a pod is made without a node. One that has a node gets from kube-controller-manager whatever its claims have, be that
// the devices of the job before (pkg/controller/resourceclaim, syncPod()), and its kubelet starts it with these. So its claims get the
// job's devices first, and are its own from then on; then it is bound, as a pod for Slurm is.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>

#include "lib/base/doubling.h"
#include "lib/core/claim_pods.h"
#include "lib/core/claim_writer.h"
#include "lib/core/job_claims.h"
#include "lib/core/names.h"
#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

// ---- what the watch of pods without a node tells ----

// As it will be there; null: it is none of ours.
static ForeignPodPtr on_its_node(const ForeignPod &pod)
{
	auto out = std::make_shared<ForeignPod>(pod);
	out->node_name = node_of_reservation(pod.meta.name);
	return out->node_name.empty() ? nullptr : out;
}

void Reservations::unbound_replaced(const std::vector<ForeignPodPtr> &pods)
{
	heed_nodes();
	std::set<std::string> listed;
	for (const auto &pod : pods)
		listed.insert(pod->meta.uid);
	std::vector<ForeignPodPtr> missing;
	for (const auto &[name, pod] : unbound_)
		if (!listed.contains(pod->meta.uid))
			missing.push_back(pod);
	for (const auto &pod : missing)
		unbound_removed(pod);
	for (auto &[id, e] : entries_) // one that was made while the watch was down, and of which it never told
		for (auto &[node, p] : e.pods)
			p.doubtful |= p.to_place && !listed.contains(p.uid);
	for (const auto &pod : pods)
		unbound_changed(pod);
	unbound_listed_ = true;
	claims_changed();
}

void Reservations::unbound_changed(const ForeignPodPtr &pod)
{
	const ForeignPodPtr there = pod->meta.ns == settings_.reservations.ns ? on_its_node(*pod) : nullptr;
	if (!there)
		return;
	heed_nodes();
	unbound_[there->meta.name] = there;
	count_formers();
	if (only_former_)
		return former_changed(there);
	Entry *e = nullptr;
	Pod *p = find(there->meta.ns, there->meta.name, &e);
	if (p && !p->shared) {
		orphans_.erase(there->meta.name);
		return see_unbound(*e, *p, there);
	}
	if (there->meta.deleting)
		return;
	orphans_[there->meta.name] = there;
	look_at_orphans();
}

// The two watches know nothing of each other: this one may tell late of one that is bound.
void Reservations::see_unbound(Entry &e, Pod &p, const ForeignPodPtr &there)
{
	if (p.uid == there->meta.uid && !p.to_place)
		return;
	see(e, p, *there);
	if (p.uid != there->meta.uid)
		return;
	if (p.fits)
		p.made_uid = p.uid;
	p.unbound = there;
	is_to_be_placed(e, p);
	sync({e.job->ref.id, e.job->ref.submit_time});
}

// It is bound, or gone.
void Reservations::unbound_removed(const ForeignPodPtr &last)
{
	heed_nodes();
	look_at_counted(last->meta.uid);
	if (const auto it = unbound_.find(last->meta.name); it != unbound_.end() && it->second->meta.uid == last->meta.uid)
		unbound_.erase(it);
	if (const auto it = orphans_.find(last->meta.name); it != orphans_.end() && it->second->meta.uid == last->meta.uid)
		orphans_.erase(it);
	Entry *e = nullptr;
	Pod *p = find(last->meta.ns, last->meta.name, &e);
	if (!p || p->uid != last->meta.uid || !p->to_place)
		return;
	p->doubtful = true;
	sync(by_name_.at(last->meta.name).job);
}

// ---- its claims, and then its node ----

void Reservations::is_to_be_placed(const Entry &e, Pod &p)
{
	p.to_place = true;
	placing_.insert({e.job->ref.id, e.job->ref.submit_time});
}

void Reservations::claims_changed()
{
	count_formers();
	for (const Id &id : std::set<Id>(placing_)) {
		const auto it = entries_.find(id);
		const auto looks = [&](const auto &at) { return at.second.to_place || (it->second.in_gate && !at.second.claims.empty()); };
		if (it == entries_.end() || std::ranges::none_of(it->second.pods, looks))
			placing_.erase(id);
		else
			sync(id);
	}
}

// ... than it had when it was reserved for this pod. A Binding followed that perhaps, of an engine that is no more: its kubelet may
// have prepared them.
static bool has_other_devices(const ClaimDevices &wanted, const std::string &uid)
{
	return wanted.claim->allocated && is_reserved_for(*wanted.claim, uid) && wanted.claim->devices != wanted.devices;
}

// Of one that has a node.
Reservations::Devices Reservations::compare_claims(const Entry &e, const Pod &p) const
{
	if (p.claims.empty())
		return has_claims(e, p) ? Devices::unknown : Devices::same;
	if (!ports_.dra || !ports_.dra->synced())
		return Devices::unknown;
	GresList has;
	for (const auto &c : p.claims) {
		const auto claim = ports_.dra->find(settings_.reservations.ns, c.claim);
		if (!claim || !claim->allocated || !is_reserved_for(*claim, p.uid))
			return Devices::unknown; // its kubelet starts nothing without
		auto devices = ports_.dra->devices_of(*claim);
		if (!devices)
			return Devices::unknown;
		if (!devices->node.empty() && devices->node != p.share.node)
			return Devices::other;
		std::ranges::move(devices->gres, std::back_inserter(has));
	}
	const bool same = std::ranges::all_of(settings_.resources, [&](const ResourceSettings &r) {
		return r.device_class.empty() || devices_named(has, r.gres) == devices_named(p.share.gres, r.gres);
	});
	return same ? Devices::same : Devices::other;
}

void Reservations::look_at_claims(Entry &e, Pod &p)
{
	if (e.in_gate && p.wanted && p.admitted && !p.shared && !p.other_claims && compare_claims(e, p) == Devices::other)
		give_claims_back(e, p);
}

// What they have is masked from now on, as a foreign pod's.
void Reservations::give_claims_back(Entry &e, Pod &p)
{
	p.other_claims = true;
	p.trouble = "the resource claims of the job's pod on node " + p.share.node + " have other devices than the job";
	log_job(info, e.job->ref, "%s; the pod is given back", p.trouble.c_str());
	cover(e, p);
}

void Reservations::place(Entry &e, Pod &p)
{
	if (!p.unbound || !ports_.dra)
		return; // the watch has not told of it yet
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	JobClaims claims = claims_of_job(*p.unbound, p.share, *ports_.dra, settings_.resources);
	const bool misses = claims.is == JobClaims::Is::missing;
	if (misses && p.misses_since == Millis(0)) {
		p.misses_since = ports_.timer.now();
		ports_.timer.after(time_to_mount, [this, id] { sync(id); });
	} else if (!misses) {
		p.misses_since = Millis(0);
	}
	const bool for_good = misses && ports_.timer.now() - p.misses_since >= time_to_mount;
	p.wrong_claims = claims.is == JobClaims::Is::wrong || for_good ? claims.why : "";
	if (claims.is != JobClaims::Is::ready) {
		p.trouble = "the reservation pod on node " + p.share.node + ": " + claims.why;
		return; // a change of a claim or of devices leads here again
	}
	if (std::ranges::any_of(claims.devices, [&](const ClaimDevices &c) { return has_other_devices(c, p.uid); })) {
		give_claims_back(e, p);
		return step(e, p);
	}
	if (const std::string why = claimed_taken(e, p); !why.empty()) {
		p.trouble = why;
		return later(e, p);
	}
	p.awaits = Pod::Awaits::place;
	const auto writes = std::make_shared<ClaimWrites>(ClaimWrites{p.name, p.uid, p.share.node, std::move(claims.devices), SIZE_MAX});
	write_claims(writes, {*ports_.dra, std::bind_front(&KubePort::patch_claim, ports_.pods),
			      [this, id, node = p.share.node, uid = p.uid] { return goes_on_placing(id, node, uid); },
			      [this, id, node = p.share.node, uid = p.uid](const std::string &why, const KubeReply &) {
				      claims_written(id, node, uid, why);
			      }});
}

bool Reservations::goes_on_placing(Id id, const std::string &node, const std::string &uid)
{
	auto it = entries_.find(id);
	if (it == entries_.end())
		return false;
	Pod &p = it->second.pods.at(node);
	if (p.uid == uid && p.to_place && p.wanted && !p.doubtful && !it->second.ending && it->second.asked == Asked::no)
		return true;
	p.awaits = Pod::Awaits::nothing;
	sync(id);
	return false;
}

void Reservations::claims_written(Id id, const std::string &node, const std::string &uid, const std::string &why)
{
	auto it = entries_.find(id);
	if (it == entries_.end())
		return;
	Pod &p = it->second.pods.at(node);
	if (!why.empty()) {
		p.awaits = Pod::Awaits::nothing;
		failed(it->second, p, "its resource claims cannot be allocated: " + why);
		return sync(id);
	}
	bind(it->second, p, uid);
}

// From now on its kubelet may start it, whatever becomes of the answer, and of the job.
void Reservations::bind(const Entry &e, Pod &p, const std::string &uid)
{
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	if (ports_.placed)
		ports_.placed(p.unbound, true);
	p.counted = true;
	p.unsure |= counted_.erase(uid) > 0;
	const PodKey key{settings_.name, settings_.reservations.ns, p.name, uid};
	ports_.pods->bind(key, p.share.node, {}, [this, id, node = p.share.node, uid](const KubeReply &r) {
		auto it = entries_.find(id);
		if (it == entries_.end())
			return;
		Pod &pod = it->second.pods.at(node);
		pod.awaits = Pod::Awaits::nothing;
		if (pod.uid == uid && pod.to_place && !r.ok())
			not_bound(it->second, pod, r);
		else if (pod.uid == uid && r.ok())
			is_bound(it->second, pod);
		sync(id);
	});
}

// The watch of pods with a node tells the rest, before or after that.
void Reservations::is_bound(const Entry &e, Pod &p)
{
	if (!p.to_place)
		return;
	touch_later({e.job->ref.id, e.job->ref.submit_time}, p.share.node, p.uid, 0);
	p.to_place = p.doubtful = p.counted = p.unsure = false;
	p.unbound = nullptr;
	p.trouble.clear();
	p.mount_trouble.clear();
}

// As a watch or an answer tells of one that had none. Bound by others to another node it stands for nothing there.
void Reservations::has_node(Entry &e, Pod &p, const std::string &node)
{
	is_bound(e, p);
	if (node == p.share.node)
		return;
	p.elsewhere = node;
	p.fits = p.admitted = false;
	p.trouble = astray_text(p);
	cover(e, p);
}

static constexpr int most_touches = 6; // in two minutes

// Its kubelet may have asked for a claim before the API server had seen that it may read it. It asks again when its pod is another
// (pkg/kubelet/config, podsDifferSemantically()), or after its syncFrequency, a minute.
void Reservations::touch_later(Id id, const std::string &node, const std::string &uid, int times)
{
	if (times == most_touches)
		return;
	ports_.timer.after(doubled(Millis(2'000), Millis(60'000), times), [this, id, node, uid, times] {
		const auto it = entries_.find(id);
		if (it == entries_.end())
			return;
		const Pod &p = it->second.pods.at(node);
		if (p.uid != uid || !p.wanted || p.deleting || p.over || p.astray() || p.container.runs)
			return;
		ports_.kube.annotate_pod({settings_.name, settings_.reservations.ns, p.name, uid}, names::look_again, std::to_string(times + 1),
					 [](const KubeReply &) {});
		touch_later(id, node, uid, times + 1);
	});
}

// 404, 409: it is gone, or has a node already, perhaps by us.
void Reservations::not_bound(const Entry &e, Pod &p, const KubeReply &r)
{
	p.unsure |= r.unsure();
	p.doubtful = r.unsure() || r.status == 404 || r.status == 409;
	if (!p.unsure)
		uncount(p);
	failed(e, p, r.error);
}

// No Binding of it was sent, none will take effect any more, or it is gone with one that may have.
void Reservations::uncount(Pod &p)
{
	if (!std::exchange(p.counted, false) || !ports_.placed)
		return;
	auto last = std::make_shared<ForeignPod>(*p.unbound);
	last->over = !p.unsure;
	ports_.placed(last, false);
}

// An engine sends a Binding when all claims are the pod's own. One of the engine before this one may have its effect yet: what the
// claims have is masked, unless its job is here.
void Reservations::count_formers()
{
	if (!ports_.placed || !ports_.dra || !ports_.dra->synced())
		return;
	const auto is_own = [this](const ForeignPod &pod, const kube::PodResourceClaim &c) {
		const auto claim = ports_.dra->find(pod.meta.ns, c.claim);
		return claim && claim->allocated && is_reserved_for(*claim, pod.meta.uid);
	};
	for (const auto &[name, pod] : unbound_) {
		const bool all_own = std::ranges::all_of(pod->resource_claims, [&](const auto &c) { return is_own(*pod, c); });
		Entry *e = nullptr;
		const Pod *p = find(pod->meta.ns, name, &e);
		const bool by_us = p && p->uid == pod->meta.uid && (!p->former || !p->to_place || p->counted);
		if (!all_own || pod->resource_claims.empty() || by_us || !counted_.try_emplace(pod->meta.uid, pod).second)
			continue;
		ports_.placed(pod, true);
	}
}

// It is not among those without a node any more. The watch of those that have one tells of it, or it is gone.
void Reservations::look_at_counted(const std::string &uid)
{
	const auto it = counted_.find(uid);
	if (it == counted_.end())
		return;
	const auto &meta = it->second->meta;
	ports_.pods->get_pod({settings_.name, meta.ns, meta.name, uid}, [this, uid](const KubeReply &r) {
		const auto at = counted_.find(uid);
		if (at == counted_.end())
			return;
		const bool gone = r.status == 404 || (r.ok() && r.pod && r.pod->meta.uid != uid);
		if (!gone && !(r.ok() && r.pod && !r.pod->node_name.empty()))
			return ports_.timer.after(pause_after(0), [this, uid] { look_at_counted(uid); });
		if (gone) {
			const ForeignPodPtr last = at->second;
			counted_.erase(at);
			ports_.placed(last, false);
		}
	});
}

void Reservations::look_where_it_is(const Entry &e, Pod &p)
{
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	p.awaits = Pod::Awaits::look;
	const PodKey key{settings_.name, settings_.reservations.ns, p.name, p.uid};
	ports_.pods->get_pod(key, [this, id, node = p.share.node, uid = p.uid](const KubeReply &r) {
		auto it = entries_.find(id);
		if (it == entries_.end())
			return;
		Pod &pod = it->second.pods.at(node);
		pod.awaits = Pod::Awaits::nothing;
		const bool gone = r.status == 404 || (r.ok() && r.pod && r.pod->meta.uid != uid);
		if (pod.uid == uid && pod.to_place && gone)
			lose(it->second, pod, Gone::unseen);
		else if (pod.uid == uid && pod.to_place && r.ok() && r.pod && !r.pod->node_name.empty())
			has_node(it->second, pod, r.pod->node_name);
		else if (pod.uid == uid && pod.to_place && !r.ok())
			failed(it->second, pod, r.error);
		else
			pod.doubtful = false;
		sync(id);
	});
}

} // namespace sk8::core
