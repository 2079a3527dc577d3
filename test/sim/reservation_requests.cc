// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the API server makes of the manifest of a reservation pod.
#include <cstdlib>

#include "lib/core/names.h"
#include "test/sim/config.h"
#include "test/sim/kube_requests.h"

namespace sk8::sim {

using core::KubeReply;
using core::PodKey;

static std::int64_t number(const Json &json)
{
	return std::strtoll(std::string(json.str()).c_str(), nullptr, 10);
}

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
	pod.meta.labels["job"] = meta["labels"][core::names::reservation_job].str();
	pod.meta.annotations["time"] = meta["annotations"][core::names::job_submit_time].str();
	pod.scheduler_name = "default-scheduler";
	pod.node_name = spec["nodeName"].str();
	pod.phase = "Pending";
	pod.grace_seconds = 1;
	pod.request.milli_cpu = 1000 * number(requests["cpu"]);
	pod.request.memory_bytes = number(requests["memory"]) << 20; // in Mi
	if (const std::int64_t gpus = number(requests[gpu_resource]))
		pod.request.extended[gpu_resource] = gpus;
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

} // namespace sk8::sim
