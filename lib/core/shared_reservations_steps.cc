// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What is done with the shared reservation pods.
#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/core/names.h"
#include "lib/core/reservation_log.h"
#include "lib/core/shared_reservations.h"

namespace sk8::core {

static constexpr std::int64_t grace_seconds = 1;
// After another writer has come first, if the watch does not tell.
static constexpr Millis reads_again{500};
// How long a pod that nobody uses stays for the next job.
static constexpr Millis lingers_for{10'000};
// Its annotation is for people: not more often.
static constexpr Millis lists_every{2'000};
// A request without an answer comes to nothing after that: kube-apiserver's --request-timeout.
static constexpr Millis arrives_within{60'000};
// What a kubelet has not looked at after that is changed once more all the same.
static constexpr Millis patience{2'000};

// Does nobody wait for what was asked last, or has the kubelet looked at it? Changed before, it would
// never come to an end where a job comes every moment.
bool SharedReservations::settled(const Node &n) const
{
	const bool awaited = std::ranges::any_of(n.members, [](const auto &at) {
		const Member &m = at.second;
		return m.use == Use::waits && m.asked && !m.refused && !m.admitted;
	});
	return !awaited || n.resize.allocated || n.resize.pending != kube::Resize::Pending::no ||
	       ports_.timer.now() - n.asked_at >= patience;
}

// A resize had no answer. What the kubelet has set aside is known again when another version of the object
// is told, which that request cannot change any more; whoever waits makes one, by the annotation at least.
// So none is asked for before the watch has told of the object: without a version it could change any.
bool SharedReservations::may_be_resized_yet(const Node &n)
{
	return !n.version.empty() && n.version == n.sent.resize_version;
}

SharedFacts SharedReservations::facts(const std::string &node, const Node &n) const
{
	SharedFacts f;
	for (const auto &[id, m] : n.members) {
		f.used |= m.requested();
		f.wanted |= !m.refused && m.use != Use::ends;
	}
	f.lingers = settings_.reservations.shared.max_cpus && resizes_ && n.resizes &&
		    (!n.members.empty() || ports_.timer.now() - n.empty_since < lingers_for);
	f.exists = !n.uid.empty();
	f.ours = n.fits && ports_.in_slurm(node);
	f.over = n.over;
	f.deleting = n.deleting;
	f.removing = n.sent.removing;
	f.fits = n.asked == wanted(n) || n.version.empty() ||
		 (n.version == n.refused_version && ports_.timer.now() - n.asked_at < reads_again);
	f.resizes = resizes_ && n.resizes;
	f.listed = n.jobs == job_ids(n) || ports_.timer.now() - n.listed_at < lists_every;
	return f;
}

void SharedReservations::sync(const std::string &node)
{
	auto it = nodes_.find(node);
	if (it == nodes_.end() || !ready_ || it->second.busy)
		return;
	Node &n = it->second;
	if (n.uid.empty() && n.members.empty() && n.resizes) {
		nodes_.erase(it);
		return;
	}
	const Millis now = ports_.timer.now();
	if (now < n.retry_at)
		return again(node, n.retry_at - now);
	const SharedFacts f = facts(node, n);
	switch (next_step(f)) {
	case SharedStep::create:
		return ports_.in_kubernetes(node) ? create(node, n) : void();
	case SharedStep::resize:
		return settled(n) ? resize(node, n) : again(node, n.asked_at + patience - now);
	case SharedStep::annotate:
		return annotate(node, n);
	case SharedStep::remove:
		return remove(node, n);
	case SharedStep::none:
		break;
	}
	if (!f.exists || !f.ours || f.deleting)
		return;
	if (f.resizes && n.asked != wanted(n) && !n.version.empty()) // it was read too early
		again(node, reads_again);
	if (n.members.empty())
		again(node, n.empty_since + lingers_for - now);
	else if (n.jobs != job_ids(n))
		again(node, n.listed_at + lists_every - now);
}

void SharedReservations::sync_all()
{
	std::vector<std::string> names;
	for (const auto &[node, n] : nodes_)
		names.push_back(node);
	for (const auto &node : names)
		if (auto it = nodes_.find(node); it != nodes_.end()) {
			judge(node, it->second);
			ports_.news(node, Gone::no);
		}
}

void SharedReservations::again(const std::string &node, Millis delay)
{
	Node &n = nodes_.at(node);
	const Millis now = ports_.timer.now(), at = now + std::max(delay, Millis(1));
	if (n.wakes_at > now && n.wakes_at <= at)
		return; // one is under way
	n.wakes_at = at;
	ports_.timer.after(at - now, [this, node] { sync(node); });
}

void SharedReservations::failed(const std::string &node, Node &n, const std::string &why)
{
	n.trouble = "the reservation pod that small jobs share on node " + node + ": " + why;
	log_shared(warning, node, "%s; tried again", why.c_str());
	const Millis delay = pause_after(n.failures++);
	n.retry_at = ports_.timer.now() + delay;
	again(node, delay);
}

static void mark_asked(auto &members)
{
	for (auto &[id, m] : members)
		m.asked = !m.refused;
}

void SharedReservations::create(const std::string &node, Node &n)
{
	const Amount jobs = sum(n, [](const Member &m) { return !m.refused; });
	n.busy = n.creating = true;
	n.asked_at = n.listed_at = ports_.timer.now();
	mark_asked(n.members);
	ports_.kube.create_pod(settings_.reservations.ns,
			       shared_reservation_object(node, jobs, job_ids(n), settings_.reservations),
			       [this, node, asked = request_for(jobs)](const KubeReply &r, const std::string &uid) {
		Node &now = nodes_.at(node);
		now.busy = now.creating = false;
		if (!r.ok()) {
			failed(node, now, r.error);
		} else if (now.uid.empty()) { // faster than the watch
			now.uid = uid;
			now.fits = true;
			now.asked = now.held = asked;
			node_of_[uid] = node;
		}
		judge(node, now);
		ports_.news(node, Gone::no);
	});
}

void SharedReservations::resize(const std::string &node, Node &n)
{
	n.busy = n.sent.resizing = true;
	n.asked_at = ports_.timer.now();
	mark_asked(n.members);
	count(n);
	ports_.kube.resize_pod(key_of(node, n), n.version, requests_of(wanted(n)),
			       [this, node, version = n.version](const KubeReply &r, ReservationPort::Resizes can,
								 const ForeignPodPtr &pod) { resized(node, version, r, can, pod); });
}

void SharedReservations::resized(const std::string &node, const std::string &version, const KubeReply &r,
				 ReservationPort::Resizes can, const ForeignPodPtr &pod)
{
	Node &n = nodes_.at(node);
	n.busy = n.sent.resizing = false;
	if (r.unsure())
		n.sent.resize_version = version;
	if (r.ok() && pod && pod->meta.uid == n.uid) {
		see(node, n, *pod);
	} else if (can == ReservationPort::Resizes::not_server) {
		resizes_ = false;
		log_shared(warning, node, "the API server of the cluster cannot resize pods in place; each job has a pod of its own");
	} else if (can == ReservationPort::Resizes::not_node) {
		cannot_resize(node, n, r.error);
	} else if (r.status == 409 && n.version == version) { // its kubelet has written meanwhile: the watch tells
		n.refused_version = version;
	} else if (r.status != 409 && r.status != 404 && !r.ok()) { // 404: the watch tells that, too
		failed(node, n, r.error);
	}
	judge(node, n);
	ports_.news(node, Gone::no);
}

void SharedReservations::annotate(const std::string &node, Node &n)
{
	n.busy = true;
	n.listed_at = ports_.timer.now();
	const std::string jobs = job_ids(n);
	ports_.kube.annotate_pod(key_of(node, n), names::reservation_jobs, jobs,
				 [this, node, uid = n.uid, jobs](const KubeReply &r) {
		Node &now = nodes_.at(node);
		now.busy = false;
		if (r.ok() && now.uid == uid)
			now.jobs = jobs;
		ports_.news(node, Gone::no); // it is tried again, but it is nobody's trouble
	});
}

void SharedReservations::remove(const std::string &node, Node &n)
{
	n.busy = n.sent.removing = true;
	n.by_us = !n.over; // else somebody has taken it already
	judge(node, n);
	ports_.kube.delete_pod(key_of(node, n), grace_seconds, [this, node, uid = n.uid](const KubeReply &r) {
		Node &now = nodes_.at(node);
		now.busy = false;
		if (now.uid == uid && r.status == 404)
			return lose(node, Gone::unseen);
		if (now.uid == uid && r.ok()) {
			now.deleting = true;
		} else if (now.uid == uid) {
			if (r.unsure())
				now.sent.delete_until = ports_.timer.now() + arrives_within;
			now.sent.removing = ports_.timer.now() < now.sent.delete_until;
			now.by_us &= now.sent.removing;
			failed(node, now, r.error);
		}
		judge(node, now);
		ports_.news(node, Gone::no);
	});
}

} // namespace sk8::core
