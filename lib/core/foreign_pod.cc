// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/foreign_pod.h"

#include <algorithm>

#include "lib/base/log_limit.h"
#include "lib/core/lifecycle.h"
#include "lib/core/names.h"
#include "lib/core/node_use.h"

namespace sk8::core {

Result<ForeignPodPtr> decode_foreign_pod(const Json &object)
{
	auto pod = kube::decode_pod(object);
	if (!pod)
		return pod.error();
	const kube::Pod &p = **pod;
	if (!p.problem.empty()) // the API server has accepted it: what is understood of it counts
		log_limited(LogLevel::warning, p.meta.uid, "kube: pod=%s/%s: %s", p.meta.ns.c_str(),
			    p.meta.name.c_str(), p.problem.c_str());
	if (!p.meta.labels.contains(std::string(names::shared_reservation)))
		return foreign_pod_of(p);
	auto out = std::make_shared<ForeignPod>(*foreign_pod_of(p));
	auto jobs = p.meta.annotations.find(std::string(names::reservation_jobs));
	out->shared = std::make_shared<SharedPod>(
		SharedPod{kube::decode_resize(object), jobs == p.meta.annotations.end() ? "" : jobs->second});
	return ForeignPodPtr(std::move(out));
}

ForeignPodPtr foreign_pod_of(const kube::Pod &p)
{
	auto out = std::make_shared<ForeignPod>();
	out->meta.ns = p.meta.ns;
	out->meta.name = p.meta.name;
	out->meta.uid = p.meta.uid;
	out->meta.resource_version = p.meta.resource_version;
	out->meta.creation_time = p.meta.creation_time;
	out->meta.deleting = p.meta.deleting;
	out->node_name = p.node_name;
	out->milli_cpu = std::clamp<std::int64_t>(p.request.milli_cpu, 0, kube::max_milli_cpu);
	out->memory_bytes = std::max<std::int64_t>(p.request.memory_bytes, 0);
	for (const auto &[name, count] : p.request.extended)
		if (count > 0 && name.find('/') != name.npos)
			out->extended.emplace(name, count);
	out->resource_claims = p.resource_claims;
	out->host_ports = p.host_ports;
	out->storage_bytes = NodeUse::storage_of(p.request);
	out->mirror = is_mirror(p);
	// What is deleted by force its kubelet ends within the pod's own grace (pod_workers.go,
	// calculateEffectiveGracePeriod()). Who deletes a mirror says nothing of what runs.
	const bool given = p.meta.deleting && p.meta.deletion_grace_seconds > 0 && !out->mirror;
	out->grace_seconds = std::clamp<std::int64_t>(given ? p.meta.deletion_grace_seconds : p.grace_seconds, 0,
						      kube::max_grace_seconds);
	out->phase = p.phase;
	out->reason = p.reason;
	out->disruption = p.disruption;
	out->admitted = p.admitted;
	out->over = kubelet_reports_over(p);
	out->unheard = !p.admitted || p.resize_unheard;
	if (find_job_container(p.containers) && p.meta.labels.contains(std::string(names::reservation_job)))
		out->container = std::make_shared<JobContainerState>(state_of_job_container(p.containers));
	out->controlled = !p.meta.controller_kind.empty();
	out->overhead = out->mirror || p.meta.controller_kind == "DaemonSet";
	return out;
}

} // namespace sk8::core
