// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Resize in place, as pkg/kubelet/allocation of Kubernetes 1.35: what a changed spec requests is set
// aside if it fits beside what other pods have, and else put off until there is more room.
#include "test/kubesim/kubelet.h"
#include "test/kubesim/pod.h"

namespace kubesim {

void Kubelet::resize(Pod &pod)
{
	const std::int64_t generation = pod.object.path("metadata.generation").num();
	if (pod.killing || (generation == pod.seen && pod.put_off.empty()))
		return;
	auto wanted = pod_requests(pod.object);
	wanted["pods"] = 1;
	std::string put_off, why, what;
	for (const char *name : {"cpu", "memory"})
		if (wanted[name] > pod.node->allocatable[name]) {
			put_off = "Infeasible";
			why = std::string("Node didn't have enough capacity: ") + name + ", requested: " + std::to_string(wanted[name]) +
			      ", capacity: " + std::to_string(pod.node->allocatable[name]);
		}
	const bool changes = wanted != pod.requests;
	if (put_off.empty() && changes) {
		why = lacking(pod, wanted, &what);
		put_off = why.empty() ? "" : "Deferred";
	}
	if (put_off.empty()) {
		pod.requests = wanted;
		std::size_t i = 0;
		for (auto &run : pod.runs)
			run.spec.set("resources", pod.object.path("spec.containers").item(i++)["resources"].copy());
	}
	if (generation == pod.seen && put_off == pod.put_off && why == pod.put_off_why)
		return;
	pod.seen = generation;
	pod.put_off = put_off;
	pod.put_off_why = why;
	write_status(pod);
	if (put_off.empty() && changes)
		retry_resizes(*pod.node);
}

// There may be more room than before.
void Kubelet::retry_resizes(Node &node)
{
	for (const auto &uid : node.pods)
		if (!pods_.at(uid).put_off.empty())
			loop_.post([this, uid] {
				auto it = pods_.find(uid);
				if (it != pods_.end() && !it->second.finished && !it->second.killing && !it->second.put_off.empty())
					resize(it->second);
			});
}

// Of a pod that an earlier kubesim has started: what that one had set aside.
void Kubelet::restore_allocated(Pod &pod, const J &json)
{
	bool other = false;
	J as_allocated = json.copy();
	for (std::size_t i = 0; i < pod.runs.size(); i++)
		json.path("status.containerStatuses").each_item([&](const J &s) {
			const J allocated = s["allocatedResources"];
			if (!allocated || !(s["name"] == pod.runs[i].spec["name"]) ||
			    allocated == pod.runs[i].spec.path("resources.requests"))
				return;
			other = true;
			J container = as_allocated.path("spec.containers").item(i);
			container.child("resources").set("requests", allocated.copy());
			pod.runs[i].spec = container;
		});
	if (!other)
		return;
	pod.requests = pod_requests(as_allocated);
	pod.requests["pods"] = 1;
	pod.seen = 0; // it is looked at again
}

} // namespace kubesim
