// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the simulated kubelets report.
#include "test/kubesim/kubelet.h"
#include "test/kubesim/pod.h"
#include "test/kubesim/times.h"

namespace kubesim {

static std::string at(std::int64_t us)
{
	return rfc3339(us / 1000000);
}

J Kubelet::status_of(const Pod &pod) const
{
	J list = J::array();
	bool any_running = false, all_started = true, all_ended = true, failed = false;
	for (const auto &run : pod.runs) {
		J state, last = run.last_state ? run.last_state : J::object();
		const std::string id = "kubesim://" + run.id;
		if (!run.container) {
			state = J::make("waiting", J::make("reason", "ContainerCreating"));
			all_started = all_ended = false;
		} else if (!run.end) {
			state = J::make("running", J::make("startedAt", at(run.started_us)));
			any_running = true;
			all_ended = false;
		} else {
			J ended = J::make("exitCode", run.end->code, "reason", run.end->reason, "startedAt",
					  at(run.started_us), "finishedAt", at(run.end->finished_us), "containerID", id);
			if (!run.end->message.empty())
				ended.set("message", run.end->message);
			failed |= run.end->code != 0;
			state = J::make("terminated", ended);
			if (run.backoff) {
				last = state;
				state = J::make("waiting", J::make("reason", "CrashLoopBackOff", "message",
								   "back-off restarting failed container"));
				all_ended = false;
				any_running = true; // the pod's phase stays Running
			}
		}
		J s = J::make("name", run.spec["name"], "state", state, "lastState", last, "ready", run.running(),
			      "restartCount", run.restarts, "image", run.spec["image"], "imageID", "", "started",
			      run.running());
		if (run.container)
			s.set("containerID", id);
		const J resources = run.spec["resources"];
		s.set("resources", resources ? resources.copy() : J::object());
		if (J requests = resources["requests"])
			s.set("allocatedResources", requests.copy());
		list.append(s);
	}
	const bool ready = any_running && all_started && !pod.killing;
	J status = J::make("phase", any_running ? "Running" : "Pending");
	if (all_ended && !pod.runs.empty())
		status.set("phase", failed ? "Failed" : "Succeeded");
	if (pod.finished && !pod.fail_reason.empty() && !pod.start_time && !synced_)
		return J::make("startTime", rfc3339(now_s()), "observedGeneration", pod.seen); // and why later
	if (pod.finished && !pod.fail_reason.empty()) {
		status.set("phase", "Failed").set("reason", pod.fail_reason).set("message", pod.fail_message);
		if (!pod.start_time) { // rejected: no container ever was
			status.set("startTime", rfc3339(now_s()));
			return status;
		}
	}
	J conditions = J::array();
	const std::string phase = status["phase"].str();
	const char *why = phase == "Succeeded" ? "PodCompleted" : phase == "Failed" ? "PodFailed" : "ContainersNotReady";
	auto condition = [&](const char *type, bool value, const char *reason) {
		J c = J::make("type", type, "status", value ? "True" : "False", "lastProbeTime", J::null(),
			      "lastTransitionTime", rfc3339(now_s()));
		pod.object.path("status.conditions").each_item([&](const J &old) {
			if (old["type"].str() == type && old["status"] == c["status"])
				c.set("lastTransitionTime", old["lastTransitionTime"]);
		});
		if (!value)
			c.set("reason", reason);
		conditions.append(c);
	};
	condition("PodReadyToStartContainers", all_started && !all_ended, why);
	condition("Initialized", true, "");
	condition("Ready", ready, why);
	condition("ContainersReady", ready, why);
	bool told_put_off = false;
	pod.object.path("status.conditions").each_item(
		[&](const J &old) { told_put_off |= old["type"].str() == "PodResizePending"; });
	if (!pod.put_off.empty()) {
		condition("PodResizePending", true, "");
		J last = conditions.item(conditions.size() - 1);
		last.set("reason", pod.put_off).set("message", pod.put_off_why).set("observedGeneration", pod.seen);
	} else if (told_put_off) {
		conditions.append(J::make("type", "PodResizePending", "$patch", "delete"));
	}
	status.set("observedGeneration", pod.seen);
	status.set("conditions", conditions).set("containerStatuses", list).set("hostIP", "127.0.0.1");
	J ips = J::array();
	ips.append(J::make("ip", "127.0.0.1"));
	status.set("hostIPs", ips).set("startTime", rfc3339(pod.start_time));
	return status;
}

void Kubelet::write_status(Pod &pod)
{
	if (pod.vanished)
		return;
	J patch = J::make("metadata", J::make("uid", pod.uid), "status", status_of(pod));
	call(*pod.node, "PATCH", "/api/v1/namespaces/" + pod.ns + "/pods/" + pod.name + "/status", patch,
	     "application/strategic-merge-patch+json");
}

void Kubelet::write_event(const Pod &pod, const char *type, const std::string &reason, const std::string &message)
{
	const std::string now = rfc3339(now_s());
	J about = J::make("kind", "Pod", "apiVersion", "v1", "namespace", pod.ns, "name", pod.name, "uid", pod.uid);
	J event = J::make("metadata", J::make("generateName", pod.name + "."), "involvedObject", about, "reason",
			  reason, "message", message, "type", type, "count", 1, "firstTimestamp", now,
			  "lastTimestamp", now, "source", J::make("component", "kubelet", "host", pod.node->name),
			  "reportingComponent", "kubelet", "reportingInstance", pod.node->name);
	call(*pod.node, "POST", "/api/v1/namespaces/" + pod.ns + "/events", event);
}

Reply Kubelet::call(const Node &node, const char *method, const std::string &path, const J &body,
		    const char *content_type)
{
	Request r;
	r.method = method;
	r.path = path;
	r.body = body.dump();
	r.content_type = content_type;
	r.user_agent = "kubesim-kubelet";
	r.source_ip = "127.0.0.1";
	r.user = {"system:node:" + node.name, "", {"system:nodes", "system:authenticated"}};
	r.received_us = now_us();
	Reply reply = api_.handle_trusted(r);
	audit_.log(r, reply.code);
	return reply;
}

} // namespace kubesim
