// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/resizing.h"

#include <algorithm>
#include <sstream>

#include "lib/base/text.h"

namespace sk8::sim {

static const std::string note = "model/resizing";

// Of others a kubelet does not tell what it has set aside for them.
static bool is_running(const kube::ContainerStatus &c)
{
	return c.state == kube::ContainerStatus::State::running;
}

bool is_resizable(const kube::Pod &pod)
{
	return pod.meta.annotations.contains(note);
}

Resizing resizing_of(const kube::Pod &pod)
{
	Resizing r;
	std::istringstream in(pod.meta.annotations.at(note));
	in >> r.generation >> r.milli_cpu >> r.memory_bytes >> r.seen >> r.has_milli_cpu >> r.has_memory_bytes >> r.put_off;
	return r;
}

void set_resizing(kube::Pod &pod, const Resizing &r)
{
	std::ostringstream out;
	out << r.generation << ' ' << r.milli_cpu << ' ' << r.memory_bytes << ' ' << r.seen << ' ' << r.has_milli_cpu << ' '
	    << r.has_memory_bytes << ' ' << r.put_off;
	pod.meta.annotations[note] = out.str();
	const bool tells = std::ranges::any_of(pod.containers, is_running);
	pod.request.milli_cpu = std::max(r.milli_cpu, tells ? r.has_milli_cpu : 0);
	pod.request.memory_bytes = std::max(r.memory_bytes, tells ? r.has_memory_bytes : 0);
}

void ask_for(kube::Pod &pod, std::int64_t milli_cpu, std::int64_t memory_bytes)
{
	Resizing r;
	if (is_resizable(pod)) {
		r = resizing_of(pod);
	} else if (pod.admitted) { // its kubelet has set that aside
		r.seen = r.generation;
		r.has_milli_cpu = pod.request.milli_cpu;
		r.has_memory_bytes = pod.request.memory_bytes;
	}
	r.generation++;
	r.milli_cpu = milli_cpu;
	r.memory_bytes = memory_bytes;
	set_resizing(pod, r);
}

static Json resources(std::int64_t milli_cpu, std::int64_t memory_bytes)
{
	return Json::object().set("cpu", std::to_string(milli_cpu) + "m").set("memory", std::to_string(memory_bytes));
}

static Json metadata(const kube::Meta &meta, const Resizing &r)
{
	Json labels = Json::object(), notes = Json::object(), out = Json::object();
	for (const auto &[name, value] : meta.labels)
		labels.set(name, value);
	for (const auto &[name, value] : meta.annotations)
		notes.set(name, value);
	out.set("namespace", meta.ns).set("name", meta.name).set("uid", meta.uid).set("resourceVersion", meta.resource_version);
	out.set("generation", Json::integer(r.generation)).set("labels", labels).set("annotations", notes);
	if (!meta.controller_kind.empty()) {
		const Json owner = Json::object().set("kind", meta.controller_kind).set("name", "owner").set("controller", Json::boolean(true));
		out.set("ownerReferences", Json::array().append(owner));
	}
	if (meta.deleting) {
		out.set("deletionTimestamp", format_rfc3339(meta.deletion_time));
		out.set("deletionGracePeriodSeconds", Json::integer(meta.deletion_grace_seconds));
	}
	return out;
}

static Json state_of(const kube::ContainerStatus &c)
{
	using State = kube::ContainerStatus::State;
	if (c.state == State::running)
		return Json::object().set("running", Json::object());
	if (c.state == State::waiting)
		return Json::object().set("waiting", Json::object());
	Json ended = Json::object();
	ended.set("exitCode", Json::integer(c.exit_code)).set("finishedAt", format_rfc3339(c.finished_at));
	return Json::object().set("terminated", ended);
}

static Json conditions_of(const kube::Pod &pod, const Resizing &r)
{
	Json out = Json::array();
	if (pod.admitted)
		out.append(Json::object().set("type", "Initialized").set("status", "True"));
	if (r.put_off)
		out.append(Json::object()
				   .set("type", "PodResizePending")
				   .set("status", "True")
				   .set("reason", "Deferred")
				   .set("observedGeneration", Json::integer(r.seen)));
	static constexpr std::pair<kube::Disruption, const char *> reasons[] = {
		{kube::Disruption::kubelet, "TerminationByKubelet"},
		{kube::Disruption::eviction, "EvictionByEvictionAPI"},
		{kube::Disruption::preemption, "PreemptionByScheduler"},
		{kube::Disruption::taint, "DeletionByTaintManager"},
		{kube::Disruption::garbage, "DeletionByPodGC"},
	};
	for (const auto &[disruption, reason] : reasons)
		if (pod.disruption == disruption || (pod.garbage_collected && disruption == kube::Disruption::garbage))
			out.append(Json::object().set("type", "DisruptionTarget").set("status", "True").set("reason", reason));
	return out;
}

static Json status_of(const kube::Pod &pod, const Resizing &r)
{
	Json out = Json::object(), containers = Json::array();
	for (const auto &c : pod.containers) {
		Json status = Json::object();
		status.set("name", c.name).set("state", state_of(c)).set("started", Json::boolean(c.started_ever));
		if (is_running(c))
			status.set("allocatedResources", resources(r.has_milli_cpu, r.has_memory_bytes));
		containers.append(status);
	}
	out.set("phase", pod.phase).set("reason", pod.reason).set("containerStatuses", containers);
	out.set("conditions", conditions_of(pod, r));
	if (pod.started_at)
		out.set("startTime", format_rfc3339(pod.started_at));
	if (r.seen)
		out.set("observedGeneration", Json::integer(r.seen));
	return out;
}

core::ForeignPodPtr foreign_pod_seen(const kube::Pod &pod)
{
	if (!is_resizable(pod))
		return core::foreign_pod_of(pod);
	const Resizing r = resizing_of(pod);
	Json container = Json::object(), spec = Json::object(), object = Json::object();
	container.set("name", "main");
	Json requests = resources(r.milli_cpu, r.memory_bytes);
	for (const auto &[name, count] : pod.request.extended)
		requests.set(name, std::to_string(count));
	container.set("resources", Json::object().set("requests", requests));
	Json claims = Json::array();
	for (const auto &c : pod.resource_claims)
		claims.append(Json::object().set("name", c.name).set("resourceClaimName", c.claim));
	spec.set("resourceClaims", claims);
	spec.set("schedulerName", pod.scheduler_name).set("nodeName", pod.node_name).set("containers", Json::array().append(container));
	spec.set("terminationGracePeriodSeconds", Json::integer(pod.grace_seconds));
	object.set("metadata", metadata(pod.meta, r)).set("spec", spec).set("status", status_of(pod, r));
	return *core::decode_foreign_pod(object);
}

} // namespace sk8::sim
