// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the API server makes of the manifest of a reservation pod, and of what changes it.
#include "lib/core/names.h"
#include "lib/kube/requests.h"
#include "test/sim/kube_requests.h"
#include "test/sim/resizing.h"

namespace sk8::sim {

using core::KubeReply;
using core::PodKey;

KubeReply KubeRequests::make_reservation(const std::string &ns, const Json &object)
{
	const Json meta = object["metadata"], spec = object["spec"];
	const Json requests = spec["containers"].at(0)["resources"]["requests"];
	KubeReply reply;
	kube::Pod pod;
	pod.meta.ns = ns;
	pod.meta.name = meta["name"].str();
	reply.status = 409;
	reply.error = "already exists";
	if (api_.pod(pod.meta.name))
		return reply;
	pod.meta.uid = api_.new_uid();
	for (std::string_view name : {core::names::reservation_job, core::names::shared_reservation})
		if (const Json label = meta["labels"][name]; label.is_string())
			pod.meta.labels[std::string(name)] = label.str();
	for (std::string_view name : {core::names::job_submit_time, core::names::reservation_jobs})
		if (const Json note = meta["annotations"][name]; note.is_string())
			pod.meta.annotations[std::string(name)] = note.str();
	pod.scheduler_name = "default-scheduler";
	pod.node_name = spec["nodeName"].str();
	pod.phase = "Pending";
	pod.grace_seconds = 1;
	pod.request = kube::decode_resources(requests, pod.problem);
	if (pod.meta.labels.contains(std::string(core::names::shared_reservation)))
		set_resizing(pod, {.milli_cpu = pod.request.milli_cpu, .memory_bytes = pod.request.memory_bytes});
	watcher_.reservation_by_us(pod);
	reply = {};
	reply.status = api_.create(pod);
	reply.pod = api_.pod(pod.meta.name);
	return reply;
}

void KubeRequests::create_reservation(const std::string &ns, const Json &object,
				      std::function<void(const KubeReply &, const std::string &)> done)
{
	const PodKey key{"", ns, std::string(object["metadata"]["name"].str()), ""};
	send("create", key, true, [this, ns, object] { return make_reservation(ns, object); },
	     [done = std::move(done)](const KubeReply &r) { done(r, r.ok() && r.pod ? r.pod->meta.uid : ""); });
}

void KubeRequests::resize_reservation(const PodKey &key, const std::string &version, const Json &requests,
				      std::function<void(const KubeReply &)> done)
{
	std::string problem; // there is none in what the engine writes
	const kube::Resources asked = kube::decode_resources(requests, problem);
	send("resize", key, true,
	     [this, key, version, asked] {
		     return change_pod(key, version, [&asked](kube::Pod &pod) { ask_for(pod, asked.milli_cpu, asked.memory_bytes); });
	     },
	     std::move(done));
}

} // namespace sk8::sim
