// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What is seen of the shared reservation pods, and who is let out or refused.
#include "lib/core/shared_reservations.h"

#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/core/reservation_log.h"
#include "lib/kube/resource_version.h"

namespace sk8::core {

SharedReservations::SharedReservations(const ClusterSettings &settings, SharedReservationPorts ports)
	: settings_(settings), ports_(std::move(ports))
{
}

PodKey SharedReservations::key_of(const std::string &node, const Node &n) const
{
	return {settings_.name, settings_.reservations.ns, shared_reservation_name(node), n.uid};
}

// ---- what Kubernetes tells ----

void SharedReservations::replaced(const std::set<std::string> &listed)
{
	if (!std::exchange(listed_, true))
		begun_ = ports_.timer.now();
	std::vector<std::string> missing;
	for (auto &[node, n] : nodes_)
		if (n.relisted = !n.uid.empty(); n.relisted && !listed.contains(n.uid))
			missing.push_back(node);
	for (const auto &node : missing)
		lose(node, Gone::unseen);
}

bool SharedReservations::changed(const ForeignPodPtr &pod)
{
	const std::string node = node_of_shared_reservation(pod->meta.name);
	if (node.empty() || pod->meta.ns != settings_.reservations.ns)
		return false;
	if (see(node, nodes_[node], *pod))
		ports_.news(node, Gone::no);
	return true;
}

bool SharedReservations::removed(const ForeignPodPtr &last)
{
	const std::string node = node_of_shared_reservation(last->meta.name);
	if (node.empty() || last->meta.ns != settings_.reservations.ns)
		return false;
	auto it = nodes_.find(node);
	if (it == nodes_.end() || it->second.uid != last->meta.uid)
		return true;
	if (see(node, it->second, *last)) { // perhaps with the reason
		const bool busy = std::exchange(it->second.busy, true); // nothing is asked of what is gone
		ports_.news(node, Gone::no);
		it->second.busy = busy;
	}
	lose(node, Gone::seen);
	return true;
}

static Amount as_amount(const kube::Resources &r)
{
	return {r.milli_cpu, r.memory_bytes};
}

// False: it says nothing new of the pod that is there.
bool SharedReservations::see(const std::string &node, Node &n, const ForeignPod &pod)
{
	if (n.uid != pod.meta.uid) {
		if (!n.uid.empty() && !n.creating)
			return false; // not made by us, in the place of ours
		node_of_.erase(n.uid);
		node_of_[pod.meta.uid] = node;
		n.uid = pod.meta.uid;
		n.version.clear();
		n.by_us = false;
		n.sent = {};
		n.found_deleting = pod.meta.deleting;
		n.former = !n.creating;
		n.resize = {};
		for (auto &[id, m] : n.members)
			m.was_admitted = false;
	}
	// The watch and the answers to what we write overtake each other. In a list it may be etcd restored
	// from a backup: nothing else is told any more, but what its kubelet has set aside is not known.
	const bool relisted = std::exchange(n.relisted, false), older = kube::is_older(pod.meta.resource_version, n.version);
	if (older && !relisted)
		return false;
	n.version = pod.meta.resource_version;
	n.fits = pod.shared && pod.node_name == node && pod.host_ports.empty() && pod.extended.empty();
	n.over = pod.ended();
	// Perhaps the engine before this one has asked for it, and its request came late.
	n.found_deleting |= n.former && pod.meta.deleting && !n.deleting && ports_.timer.now() - begun_ < longest_request;
	n.deleting = pod.meta.deleting;
	n.admitted = pod.admitted && n.fits && !n.deleting && !n.over;
	n.reason = pod.reason;
	n.disruption = pod.disruption;
	n.held = {pod.milli_cpu, pod.memory_bytes};
	n.resize = pod.shared ? pod.shared->resize : kube::Resize{};
	if (older)
		n.resize.allocated.reset();
	n.asked = as_amount(n.resize.asked);
	n.jobs = pod.shared ? pod.shared->jobs : "";
	n.trouble = n.fits ? "" : "another pod has the name of the reservation pod that small jobs share on node " + node;
	if (n.admitted)
		n.failures = 0;
	if (n.asked.covers(wanted(n)))
		for (auto &[id, m] : n.members)
			m.asked |= m.requested();
	judge(node, n);
	return true;
}

// ---- what is made of it ----

// Who waits is let out, or refused.
void SharedReservations::judge(const std::string &node, Node &n)
{
	using Pending = kube::Resize::Pending;
	// Admitted once it stays so while the next change is under way: whatever is asked, it is a part of it.
	const bool known = n.admitted && !n.sent.resizing && !may_be_resized_yet(n) && n.resize.allocated;
	const bool there = ready_ && !n.uid.empty() && n.fits && !n.deleting && !n.sent.removing;
	if (known || !there || !n.admitted)
		for (auto &[id, m] : n.members)
			m.admitted = false;
	count(n);
	if (!there)
		return;
	if (known) {
		const Amount has = as_amount(*n.resize.allocated);
		Amount so_far = sum(n, [](const Member &m) { return m.use != Use::waits; });
		const bool all = has.covers(request_for(so_far));
		std::vector<Member *> waiting;
		for (auto &[id, m] : n.members)
			if (m.use != Use::waits)
				m.was_admitted |= all;
			else if (!m.refused)
				waiting.push_back(&m);
		// What a slurmctld that was killed may have launched has its room before anybody else, in whatever order they wait now.
		so_far = sum(n, [](const Member &m) { return m.use != Use::waits || m.perhaps_runs; });
		std::ranges::sort(waiting, {}, &Member::arrival);
		for (Member *m : waiting) {
			if (!m->perhaps_runs)
				so_far += amount_of(m->share);
			m->admitted = has.covers(request_for(so_far));
		}
	}
	if (n.busy || n.asked != wanted(n))
		return; // a word about something else
	if (n.over)
		return refuse(node, n, n.reason.empty() ? "refused" : n.reason);
	if (n.resize.pending == Pending::infeasible && !n.resize.message.starts_with("Node didn't have enough"))
		return cannot_resize(node, n, n.resize.message);
	if (n.resize.pending != Pending::no)
		return refuse(node, n, n.resize.message.empty() ? "Deferred" : "Deferred: " + n.resize.message);
	if (n.admitted && n.resizes && !n.resize.observed)
		cannot_resize(node, n, "its kubelet does not tell what it has seen (status.observedGeneration)");
}

// The later half of those that wait: with the rest it is tried at once.
void SharedReservations::refuse(const std::string &node, Node &n, const std::string &why)
{
	std::vector<std::pair<std::uint64_t, Id>> waiting;
	for (const auto &[id, m] : n.members)
		if (m.use == Use::waits && !m.refused && !m.admitted)
			waiting.emplace_back(m.arrival, id);
	std::ranges::sort(waiting);
	for (std::size_t i = waiting.size() / 2; i < waiting.size(); i++) {
		const Id id = waiting[i].second;
		Member &m = n.members.at(id);
		m.refused = true;
		m.asked &= m.perhaps_runs;
		m.trouble = "the kubelet of node " + node + " refuses room for the job in the reservation pod of small jobs (" + why + ")";
		const Millis delay = pause_after(m.refusals++);
		ports_.timer.after(delay, [this, node, id, arrival = m.arrival] {
			auto at = nodes_.find(node);
			if (at == nodes_.end())
				return;
			auto it = at->second.members.find(id);
			if (it == at->second.members.end() || it->second.arrival != arrival)
				return;
			it->second.refused = false;
			ports_.news(node, Gone::no);
		});
	}
	count(n);
}

void SharedReservations::cannot_resize(const std::string &node, Node &n, const std::string &why)
{
	n.resizes = false;
	log_shared(warning, node, "cannot be resized in place: %s; from now on each job has a pod of its own there", why.c_str());
}

void SharedReservations::lose(const std::string &node, Gone gone)
{
	Node &n = nodes_.at(node);
	node_of_.erase(n.uid);
	const bool again_later = n.over;
	n.uid.clear();
	n.version.clear();
	n.fits = n.admitted = n.over = n.deleting = n.by_us = n.found_deleting = false;
	n.sent = {};
	n.asked = n.held = n.covered = {};
	n.resize = {};
	for (auto &[id, m] : n.members)
		m.admitted = m.was_admitted = m.asked = false;
	if (again_later && std::ranges::any_of(n.members, [](const auto &at) { return at.second.use == Use::runs; })) {
		const Millis delay = pause_after(n.failures++);
		n.retry_at = ports_.timer.now() + delay;
		again(node, delay);
	}
	ports_.news(node, gone);
}

} // namespace sk8::core
