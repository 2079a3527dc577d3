// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The life of one pod on a simulated node.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <unistd.h>

#include "test/kubesim/kubelet.h"
#include "test/kubesim/meta.h"
#include "test/kubesim/quantity.h"
#include "test/kubesim/times.h"

namespace kubesim {

static const std::string own = "kubesim.slurm-k8s.io/";

static std::string annotation(const J &pod, const char *name)
{
	return pod["metadata"]["annotations"][own + name].str();
}

void Kubelet::start_pod(Pod &pod)
{
	pod.start_time = now_s();
	watch_deadline(pod);
	if (!pod.node->fake)
		write_status(pod); // ContainerCreating
	for (auto &run : pod.runs)
		start_run(pod, run);
	write_status(pod);
}

// The value of an environment variable, also from the pod's own fields.
static std::string env_value(const J &variable, const J &pod)
{
	if (J value = variable["value"])
		return value.str();
	const std::string path = variable.path("valueFrom.fieldRef.fieldPath").str();
	for (const char *map : {"metadata.annotations", "metadata.labels"})
		if (const std::string prefix = std::string(map) + "['"; path.compare(0, prefix.size(), prefix) == 0)
			return pod.path(map)[path.substr(prefix.size(), path.size() - prefix.size() - 2)].str();
	return pod.path(path).str();
}

// $(NAME) in command and args.
static std::string expand(const std::string &text, const std::map<std::string, std::string> &env)
{
	std::string out;
	for (std::size_t i = 0; i < text.size(); i++) {
		std::size_t close = text.compare(i, 2, "$(") == 0 ? text.find(')', i) : text.npos;
		auto it = close == text.npos ? env.end() : env.find(text.substr(i + 2, close - i - 2));
		if (it == env.end()) {
			out += text[i];
			continue;
		}
		out += it->second;
		i = close;
	}
	return out;
}

ProcessSpec Kubelet::process_spec(const Pod &pod, const Run &run) const
{
	std::map<std::string, std::string> env = {
		{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, {"HOSTNAME", pod.name}};
	run.spec["env"].each_item([&](const J &v) {
		env[v["name"].str()] = expand(env_value(v, pod.object), env);
	});
	ProcessSpec spec;
	spec.dir = options_.runtime_dir + "/" + run.id;
	for (const auto &[name, value] : env)
		spec.env.push_back(name + "=" + value);
	for (const char *list : {"command", "args"})
		for (const auto &word : run.spec[list].strings())
			spec.argv.push_back(expand(word, env));
	if (spec.argv.empty()) // what images for placeholders do
		spec.argv = {"sleep", "infinity"};
	spec.cwd = run.spec["workingDir"].str("/");
	spec.about = J::make("uid", pod.uid, "container", run.spec["name"], "pod", pod.ns + "/" + pod.name, "node",
			     pod.node->name, "restarts", run.restarts);
	return spec;
}

void Kubelet::start_run(Pod &pod, Run &run)
{
	run.id = new_uid();
	run.end.reset();
	if (pod.node->fake) {
		FakeSpec spec;
		spec.started_us = run.started_us; // of a pod that is taken over
		if (std::string s = annotation(pod.object, "run-seconds"); !s.empty())
			spec.run_seconds = std::max(0.0, std::atof(s.c_str()));
		spec.exit_code = std::atoi(annotation(pod.object, "exit-code").c_str());
		spec.ignores_term = annotation(pod.object, "ignore-term") == "true";
		run.container = start_fake(loop_, spec);
	} else {
		run.container = start_process(loop_, process_spec(pod, run));
		write_event(pod, "Normal", "Started", "Started container " + run.spec["name"].str());
	}
	follow(pod, run);
	log_run(pod, run, "start", run.started_us);
}

void Kubelet::follow(Pod &pod, Run &run)
{
	run.started_us = run.container->started_us;
	const std::string uid = pod.uid, name = run.spec["name"].str();
	run.container->on_end = [this, uid, name](const ContainerEnd &end) { ended(uid, name, end); };
}

void Kubelet::ended(const std::string &uid, const std::string &container, const ContainerEnd &end)
{
	auto it = pods_.find(uid);
	if (it == pods_.end())
		return;
	Pod &pod = it->second;
	for (auto &run : pod.runs) {
		if (run.spec["name"].str() != container)
			continue;
		run.end = end;
		if (annotation(pod.object, "terminate-as") == "OOMKilled") {
			run.end->reason = "OOMKilled";
			run.end->code = 137;
		}
		log_run(pod, run, "stop", end.gone_us);
		const std::string policy = pod.object.path("spec.restartPolicy").str();
		if (!pod.killing && (policy == "Always" || (policy == "OnFailure" && run.end->code != 0)))
			restart_later(pod, run);
	}
	settle(pod);
}

void Kubelet::restart_later(Pod &pod, Run &run)
{
	// Once at once, then after 10, 20, 40 ... 300 seconds.
	std::int64_t wait = run.restarts ? std::min<std::int64_t>(10 << std::min(run.restarts - 1, 5), 300) : 0;
	const std::string uid = pod.uid, name = run.spec["name"].str();
	run.backoff = loop_.after_us(wait * 1000000, [this, uid, name] {
		auto it = pods_.find(uid);
		if (it == pods_.end())
			return;
		for (auto &r : it->second.runs)
			if (r.spec["name"].str() == name && r.backoff) {
				r.backoff.reset();
				r.restarts++;
				r.last_state = J::object();
				r.started_us = 0;
				J before = status_of(it->second)["containerStatuses"];
				before.each_item([&](const J &s) {
					if (s["name"].str() == name)
						r.last_state = J::make("terminated",
								       s.path("state.terminated"));
				});
				start_run(it->second, r);
				write_status(it->second);
			}
	});
}

void Kubelet::watch_deadline(Pod &pod)
{
	const J seconds = pod.object.path("spec.activeDeadlineSeconds");
	if (!seconds.is_integer())
		return;
	const std::string uid = pod.uid;
	std::int64_t left = pod.start_time + seconds.num() - now_s();
	pod.deadline_timer = loop_.after_us(std::max<std::int64_t>(left, 0) * 1000000, [this, uid] {
		auto it = pods_.find(uid);
		if (it == pods_.end() || it->second.finished)
			return;
		Pod &late = it->second;
		late.deadline_timer.reset();
		if (late.killing)
			return;
		late.fail_reason = "DeadlineExceeded";
		late.fail_message = "Pod was active on the node longer than the specified deadline";
		write_event(late, "Normal", "DeadlineExceeded", late.fail_message);
		begin_kill(late, std::max<std::int64_t>(
					 late.object.path("spec.terminationGracePeriodSeconds").num(), 1));
	});
}

// SIGTERM now, SIGKILL after the grace period; a second call may only shorten it.
void Kubelet::begin_kill(Pod &pod, std::int64_t grace)
{
	if (pod.killing && grace >= pod.grace)
		return;
	const bool again = pod.killing;
	pod.killing = true;
	pod.grace = grace;
	if (pod.kill_timer)
		loop_.cancel(*pod.kill_timer);
	for (auto &run : pod.runs) {
		if (run.backoff)
			loop_.cancel(*run.backoff);
		run.backoff.reset();
		if (!run.running())
			continue;
		if (!again && !pod.node->fake)
			write_event(pod, "Normal", "Killing", "Stopping container " + run.spec["name"].str());
		run.container->terminate();
	}
	const std::string uid = pod.uid;
	pod.kill_timer = loop_.after_us(grace * 1000000, [this, uid] {
		auto it = pods_.find(uid);
		if (it == pods_.end())
			return;
		it->second.kill_timer.reset();
		for (auto &run : it->second.runs)
			if (run.running())
				run.container->kill();
	});
	settle(pod);
}

// After anything ended: is the pod over?
void Kubelet::settle(Pod &pod)
{
	for (const auto &run : pod.runs)
		if (run.running() || run.backoff) {
			write_status(pod);
			return;
		}
	pod.finished = true;
	pod.node->pods.erase(pod.uid);
	retry_resizes(*pod.node);
	for (auto *timer : {&pod.kill_timer, &pod.deadline_timer})
		if (*timer) {
			loop_.cancel(**timer);
			timer->reset();
		}
	write_status(pod);
	finish(pod);
}

// Nothing runs any more: a pod that is being deleted may go.
void Kubelet::finish(Pod &pod)
{
	pod.finished = true;
	if (pod.vanished) {
		const std::string uid = pod.uid;
		loop_.post([this, uid] { pods_.erase(uid); });
		return;
	}
	if (pod.deleted || !pod.object.path("metadata.deletionTimestamp"))
		return;
	pod.deleted = true;
	J options = J::make("kind", "DeleteOptions", "apiVersion", "v1", "gracePeriodSeconds", 0, "preconditions",
			    J::make("uid", pod.uid));
	call(*pod.node, "DELETE", "/api/v1/namespaces/" + pod.ns + "/pods/" + pod.name, options);
}

void Kubelet::log_run(const Pod &pod, const Run &run, const char *event, std::int64_t us)
{
	if (log_fd_ < 0)
		return;
	const J requests = run.spec.path("resources.requests");
	auto cpu = parse_quantity(requests["cpu"]), memory = parse_quantity(requests["memory"]);
	J line = J::make("time", rfc3339_micro(us), "event", event, "node", pod.node->name, "pod",
			 pod.ns + "/" + pod.name, "uid", pod.uid, "container", run.spec["name"], "id", run.id,
			 "cpuMilli", cpu ? cpu->milli() : 0, "memory", memory ? memory->whole() : 0);
	if (run.end)
		line.set("exitCode", run.end->code).set("reason", run.end->reason);
	const std::string text = line.dump() + "\n";
	if (write(log_fd_, text.data(), text.size()) < 0)
		dprintf(2, "kubesim: cannot write the runtime log: %s\n", strerror(errno));
}

} // namespace kubesim
