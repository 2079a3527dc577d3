// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Where a device plugin hands devices out, the kubelet chooses which ones a pod gets, after Slurm has chosen some for its job.
// Slurm's record follows as soon as the node's agent has told: else it gives those that the pod uses to somebody else. So it does
// where a pod's claims have got devices and its job has others, since slurmctld died in between and the job started anew.
#include "lib/core/pods_controller.h"

#include <algorithm>
#include <iterator>

#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

using Indices = std::vector<std::uint16_t>; // sorted

static Indices without(const Indices &all, const Indices &some)
{
	Indices out;
	std::ranges::set_difference(all, some, std::back_inserter(out));
	return out;
}

static Indices both(const Indices &a, const Indices &b)
{
	Indices out;
	std::ranges::set_intersection(a, b, std::back_inserter(out));
	return out;
}

static Indices joined(const Indices &a, const Indices &b)
{
	Indices out;
	std::ranges::set_union(a, b, std::back_inserter(out));
	return out;
}

// Where its devices are chosen already, whatever its job has: it is bound there, or a Binding may arrive yet that was sent when its
// claims had got theirs. Of one that a restored etcd has taken the node from they are as old as the pod.
std::string PodsController::node_of_devices(const Entry &e) const
{
	if (!e.bound_node.empty())
		return e.bound_node;
	const bool may_have = e.pod && !e.pod->resource_claims.empty() && e.binding_unsure && !e.lost_node;
	return may_have && !cannot_have_been_bound(e) ? ports_.holds.node_of(e.key) : "";
}

// By Slurm's name of the GRES; those of which not all are known are not in it.
std::map<std::string, Indices> PodsController::devices_given(const Entry &e) const
{
	std::map<std::string, Indices> out;
	std::set<std::string> unknown;
	if (!e.pod || node_of_devices(e).empty())
		return out;
	for (const auto &[resource, count] : e.pod->request.extended) {
		const ResourceSettings *r = find_resource(settings_.resources, resource);
		if (!r || is_shared_gres(r->gres) || e.bound_node.empty()) // a kubelet chooses when the pod is bound
			continue;
		const Indices got = devices_.find(e.bound_node, e.key.uid, resource);
		if (std::cmp_not_equal(got.size(), count))
			unknown.insert(r->gres);
		out[r->gres] = joined(out[r->gres], got);
	}
	std::erase_if(out, [&](const auto &of) { return unknown.contains(of.first); });
	for (const Gres &g : all_devices_known(e) ? claimed_there(e, Whose::own) : GresList()) // of a pod that was found running
		out[g.name] = joined(out[g.name], g.devices);
	return out;
}

bool PodsController::has_its_job_there(const Entry &e) const
{
	return e.job && e.job->running() && !e.bound_node.empty() && e.job->node == e.bound_node;
}

bool PodsController::has_its_job_at_devices(const Entry &e) const
{
	return e.job && e.job->running() && e.job->node == node_of_devices(e);
}

// A pod there whose job has one of these in Slurm, and whose kubelet has not said that the pod has it: the two can exchange.
const PodsController::Entry *PodsController::find_exchange(const Entry &e, const std::string &gres, const Indices &wanted) const
{
	for (const auto &[uid, other] : entries_) {
		if (&other == &e || !has_its_job_at_devices(other) || other.job->node != e.job->node)
			continue;
		const auto given = devices_given(other);
		const auto its = given.find(gres);
		const Indices has = both(devices_named(other.job->gres, gres), wanted);
		if (!has.empty() && (its == given.end() || both(its->second, has).empty()))
			return &other;
	}
	return nullptr;
}

// One step: with nobody, or with one other pod. What comes after it has what its kubelet has given it, or comes nearer to that;
// as a kubelet gives a device to one pod at a time, no step undoes another.
std::optional<DeviceChange> PodsController::next_device_change(const Entry &e) const
{
	for (const auto &[gres, given] : devices_given(e)) {
		const Indices had = devices_named(e.job->gres, gres);
		const Indices missing = without(given, had);
		if (missing.empty() || had.size() != given.size())
			continue;
		const Entry *other = find_exchange(e, gres, missing);
		if (!other)
			return DeviceChange{e.job->node, gres, given};
		const Indices theirs = both(devices_named(other->job->gres, gres), missing);
		Indices ours = without(had, given);
		ours.resize(theirs.size()); // there are as many as are missing
		return DeviceChange{e.job->node, gres, joined(without(had, ours), theirs), other->job->ref};
	}
	return {};
}

// By a pod that may run without its job, as when its Binding has no answer: the kubelet has given it another one for that, perhaps
// what this job has, which would be free for anybody then. It gets a job, or its end is heard of. What foreign and lost pods hold
// they have had, and the kubelet has taken it back.
bool PodsController::held_by_another(const Entry &e, const DeviceChange &change) const
{
	if (change.from.id)
		return false;
	const Indices more = without(change.devices, devices_named(e.job->gres, change.gres));
	const auto other = ports_.holds.masked_by_other(e.key, change.node, {}, {{change.gres, "", more.size(), more}});
	const auto it = other ? entries_.find(other->uid) : entries_.end();
	return it != entries_.end() && !it->second.absent && !has_its_job_there(it->second);
}

void PodsController::correct_devices_later(Entry &e)
{
	const Millis delay = retry_delay(e.devices.failures++);
	e.devices.again_at = ports_.timer.now() + delay;
	ports_.timer.after(delay, [this, uid = e.key.uid] { sync(uid); });
}

void PodsController::correct_devices(Entry &e)
{
	if (e.devices.again_at > ports_.timer.now() || e.proved_over || !has_its_job_at_devices(e) || e.job->gres.empty() ||
	    devices_asked_.contains(e.job->node))
		return;
	const auto change = next_device_change(e);
	if (!change)
		return;
	if (held_by_another(e, *change))
		return correct_devices_later(e);
	devices_asked_.insert(e.job->node); // what another pod there wants depends on the answer
	ports_.slurm.set_devices(e.job->ref, *change, [this, uid = e.key.uid, change = *change](const SlurmReply &r) {
		devices_asked_.erase(change.node);
		for (const auto &[key, job] : r.changed)
			if (const auto it = entries_.find(key.uid); it != entries_.end())
				set_job(it->second, job, ports_.timer.now());
		if (const auto it = entries_.find(uid); it != entries_.end() && has_its_job_at_devices(it->second))
			devices_corrected(it->second, change, r);
		sync_node(change.node);
	});
}

// Its job is about to have what its claims have: the answer leads to bind() again.
bool PodsController::gets_its_devices(const Entry &e) const
{
	return devices_asked_.contains(e.job->node) && has_its_job_at_devices(e) && next_device_change(e);
}

void PodsController::devices_corrected(Entry &e, const DeviceChange &change, const SlurmReply &r)
{
	const std::string text = change.gres + "(" + index_list(change.devices) + ") of node " + change.node;
	const bool done = r.ok && devices_named(e.job->gres, change.gres) == change.devices; // else it would be asked without end
	if (done) {
		log_pod(info, e.key, job_id(e), "its job has %s now, as %s", text.c_str(),
			e.bound_node.empty() ? "its resource claims have" : "the kubelet has chosen");
		e.devices = {};
		return;
	}
	correct_devices_later(e);
	if (e.devices.told == text)
		return;
	e.devices.told = text;
	const std::string given = e.bound_node.empty() ? "its resource claims have " : "the kubelet has given it ";
	const std::string why = given + text + ", which its job cannot have in Slurm: " +
				(r.ok ? "it has others all the same" : r.text);
	log_pod(warning, e.key, job_id(e), "%s", why.c_str());
	reports_.event(e.key, {true, std::string(names::event_devices), why});
}

} // namespace sk8::core
