// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/kubelet.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include "test/kubesim/meta.h"
#include "test/kubesim/pod.h"
#include "test/kubesim/quantity.h"
#include "test/kubesim/times.h"

namespace kubesim {

Kubelet::Kubelet(Loop &loop, Api &api, Audit &audit, const Options &options)
	: loop_(loop), api_(api), audit_(audit), options_(options)
{
}

Kubelet::~Kubelet()
{
	if (log_fd_ >= 0)
		close(log_fd_);
}

static constexpr std::int64_t first_sync_us = 2'000'000; // housekeepingPeriod of the real one

std::string Kubelet::start()
{
	if (!options_.runtime_log.empty()) {
		log_fd_ = open(options_.runtime_log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (log_fd_ < 0)
			return "cannot write " + options_.runtime_log + ": " + strerror(errno);
	}
	if (!options_.runtime_dir.empty())
		mkdir(options_.runtime_dir.c_str(), 0700);
	std::string problem;
	for (const auto &name : options_.sim_kubelets)
		problem = problem.empty() ? make_node(name, false) : problem;
	for (long i = 1; i <= options_.fake_nodes; i++)
		problem = problem.empty() ? make_node(options_.fake_prefix + std::to_string(i), true) : problem;
	if (!problem.empty() || nodes_.empty())
		return problem;

	find_left_containers();
	const std::size_t storage = kind_of("pods").storage;
	std::vector<ObjectPtr> mine;
	for (const auto &[key, pod] : api_.store().all(storage))
		if (nodes_.count(pod->json().path("spec.nodeName").str()))
			mine.push_back(pod);
	std::sort(mine.begin(), mine.end(), [](auto &a, auto &b) {
		return a->json().path("metadata.creationTimestamp").str() <
		       b->json().path("metadata.creationTimestamp").str();
	});
	for (const auto &pod : mine)
		adopt(pod);
	for (auto &[uid, folders] : left_) // their pods were deleted meanwhile
		for (const auto &dir : folders)
			adopt_process(loop_, dir)->kill();
	left_.clear();

	api_.store().subscribe([this, storage](std::size_t s, const Event &e) {
		if (s == storage)
			changed(e.after ? *e.after : *e.gone);
	});
	api_.logs = [this](const Object &pod, const Request &r) { return logs(pod, r); };
	heartbeat();
	loop_.after_us(first_sync_us, [this] { synced(); });
	return {};
}

static std::string field_of(const Object &o, const char *name)
{
	for (const auto &[key, value] : o.fields)
		if (key == name)
			return value;
	return {};
}

void Kubelet::changed(const Object &pod)
{
	if (!nodes_.count(field_of(pod, "spec.nodeName")) || !due_.insert(pod.uid).second)
		return;
	const std::string uid = pod.uid, ns = pod.ns, name = pod.name;
	loop_.post([this, uid, ns, name] {
		due_.erase(uid);
		if (pods_.count(uid)) {
			sync(uid);
			return;
		}
		ObjectPtr object = api_.store().find(kind_of("pods").storage, ns, name);
		if (object && object->uid == uid)
			take(object);
	});
}

Kubelet::Pod Kubelet::described(const Object &object, const J &json)
{
	Pod pod;
	pod.node = &nodes_.at(json.path("spec.nodeName").str());
	pod.ns = object.ns;
	pod.name = object.name;
	pod.uid = object.uid;
	pod.object = json;
	pod.requests = pod_requests(json);
	pod.requests["pods"] = 1;
	pod.seen = json.path("metadata.generation").num();
	json.path("spec.containers").each_item([&](const J &c) {
		pod.runs.emplace_back();
		pod.runs.back().spec = c;
	});
	return pod;
}

// A pod that is new on its node.
void Kubelet::take(const ObjectPtr &object)
{
	J json = object->json();
	const std::string phase = json.path("status.phase").str();
	Pod pod = described(*object, json);
	if (phase == "Succeeded" || phase == "Failed")
		pod.finished = true;
	Pod &kept = pods_.emplace(pod.uid, std::move(pod)).first->second;
	if (kept.finished || json.path("metadata.deletionTimestamp")) {
		finish(kept); // never to be started
	} else if (admit(kept)) {
		kept.node->pods.insert(kept.uid);
		start_pod(kept);
	}
}

void Kubelet::sync(const std::string &uid)
{
	Pod &pod = pods_.at(uid);
	ObjectPtr object = api_.store().find(kind_of("pods").storage, pod.ns, pod.name);
	pod.vanished = !object || object->uid != uid;
	if (pod.vanished && pod.node->pods.erase(uid)) // the kubelet forgets what it holds, though it may still run
		retry_resizes(*pod.node);
	if (!pod.vanished)
		pod.object = object->json();
	if (pod.finished) {
		if (pod.vanished)
			pods_.erase(uid);
		else
			finish(pod);
		return;
	}
	const J meta = pod.object["metadata"];
	if (!pod.vanished && !meta["deletionTimestamp"])
		return resize(pod);
	// As the kubelet's calculateEffectiveGracePeriod: a force-deleted pod keeps its own
	// grace period, and none gets less than a second.
	std::int64_t grace = meta["deletionGracePeriodSeconds"].num();
	if (grace <= 0)
		grace = pod.object.path("spec.terminationGracePeriodSeconds").num();
	begin_kill(pod, std::max<std::int64_t>(grace, 1));
}

std::string Kubelet::make_node(const std::string &name, bool fake)
{
	auto cpu = parse_quantity(options_.node_cpus), memory = parse_quantity(options_.node_memory);
	if (!cpu || !memory)
		return "--node-cpus and --node-memory need quantities such as 8 and 16Gi";
	Node &node = nodes_[name];
	node.name = name;
	node.fake = fake;
	node.allocatable = {{"cpu", cpu->milli()}, {"memory", memory->whole()}, {"pods", options_.node_pods}};
	const Kind &kind = kind_of("nodes");
	if (api_.store().find(kind.storage, "", name))
		return {};
	J labels = J::make("kubernetes.io/hostname", name, "kubernetes.io/os", "linux", "kubernetes.io/arch", "amd64");
	for (const auto &l : options_.node_labels)
		labels.set(l.substr(0, l.find('=')), l.find('=') == l.npos ? "" : l.substr(l.find('=') + 1));
	J amounts = J::make("cpu", cpu->canonical(), "memory", memory->canonical(), "pods",
			    std::to_string(options_.node_pods));
	J conditions = J::array();
	const std::string now = rfc3339(now_s());
	for (const char *type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
		const bool ready = std::string_view(type) == "Ready";
		conditions.append(J::make("type", type, "status", ready ? "True" : "False", "lastHeartbeatTime", now,
					  "lastTransitionTime", now, "reason", ready ? "KubeletReady" : "KubeletHasEnough",
					  "message", ready ? "kubesim is posting ready status" : "enough of it"));
	}
	J addresses = J::array();
	addresses.append(J::make("type", "InternalIP", "address", "127.0.0.1"));
	addresses.append(J::make("type", "Hostname", "address", name));
	return api_.seed(J::make(
		"kind", "Node", "apiVersion", "v1", "metadata", J::make("name", name, "labels", labels), "spec",
		J::object(), "status",
		J::make("capacity", amounts, "allocatable", amounts.copy(), "conditions", conditions, "addresses",
			addresses, "nodeInfo",
			J::make("kubeletVersion", "v1.35.4+kubesim", "operatingSystem", "linux", "architecture",
				"amd64", "osImage", fake ? "none (timers only)" : "this machine",
				"containerRuntimeVersion", fake ? "fake://1" : "process://1"))));
}

// What the kubelet's admission checks: whether the pod fits beside the pods that
// have been admitted and may still run containers.
bool Kubelet::admit(Pod &pod)
{
	const J selector = pod.object.path("spec.nodeSelector");
	ObjectPtr node;
	if (selector.size())
		node = api_.store().find(kind_of("nodes").storage, "", pod.node->name);
	bool matches = true;
	const J labels = node ? node->json().path("metadata.labels") : J();
	selector.each_member([&](const std::string &k, const J &v) { matches &= labels[k] == v; });
	if (!matches) {
		reject(pod, "NodeAffinity",
		       "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
		return false;
	}
	std::string what;
	if (const std::string why = lacking(pod, pod.requests, &what); !why.empty()) {
		reject(pod, "OutOf" + what, why);
		return false;
	}
	return true;
}

// Of what there is not enough for these requests beside what other pods have, as a sentence; empty: there is.
std::string Kubelet::lacking(const Pod &pod, const std::map<std::string, std::int64_t> &requests, std::string *what) const
{
	for (const char *first : {"pods", "cpu", "memory", ""})
		for (const auto &[name, requested] : requests) {
			bool named = name == "pods" || name == "cpu" || name == "memory";
			if (named ? name != first : *first != '\0')
				continue;
			std::int64_t used = 0;
			for (const auto &uid : pod.node->pods) {
				const Pod &other = pods_.at(uid);
				if (auto it = other.requests.find(name); &other != &pod && it != other.requests.end())
					used += it->second;
			}
			auto it = pod.node->allocatable.find(name);
			std::int64_t capacity = it == pod.node->allocatable.end() ? 0 : it->second;
			// Of extended resources the Node object tells; one that it lacks is not the kubelet's to judge.
			if (!named && name.find('/') != name.npos) {
				auto stored = api_.store().find(kind_of("nodes").storage, "", pod.node->name);
				auto amount = parse_quantity(stored ? stored->json().path("status.allocatable")[name].str() : "");
				if (!amount)
					continue;
				capacity = amount->whole();
			}
			if (requested == 0 || used + requested <= capacity)
				continue;
			*what = name;
			return "Node didn't have enough resource: " + name + ", requested: " + std::to_string(requested) +
			       ", used: " + std::to_string(used) + ", capacity: " + std::to_string(capacity);
		}
	return {};
}

void Kubelet::reject(Pod &pod, const std::string &reason, const std::string &message)
{
	pod.fail_reason = reason;
	pod.fail_message = "Pod was rejected: " + message;
	pod.finished = true;
	write_event(pod, "Warning", reason, message);
	write_status(pod);
}

void Kubelet::synced()
{
	synced_ = true;
	for (auto &[uid, pod] : pods_)
		if (pod.finished && !pod.fail_reason.empty() && !pod.start_time)
			write_status(pod);
}

void Kubelet::heartbeat()
{
	for (const auto &[name, node] : nodes_) {
		if (node.fake)
			continue;
		J spec = J::make("holderIdentity", name, "leaseDurationSeconds", 40, "renewTime", rfc3339_micro(now_us()));
		const std::string path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
		Reply r = call(node, "PATCH", path + "/" + name, J::make("spec", spec), "application/merge-patch+json");
		if (r.code == 404)
			call(node, "POST", path, J::make("metadata", J::make("name", name), "spec", spec));
		J ready = J::array();
		ready.append(J::make("type", "Ready", "lastHeartbeatTime", rfc3339(now_s())));
		call(node, "PATCH", "/api/v1/nodes/" + name + "/status", J::make("status", J::make("conditions", ready)),
		     "application/strategic-merge-patch+json");
	}
	loop_.after_us(10000000, [this] { heartbeat(); });
}

Reply Kubelet::logs(const Object &object, const Request &r)
{
	auto it = pods_.find(object.uid);
	const std::string wanted = r.arg("container");
	if (it != pods_.end())
		for (const auto &run : it->second.runs) {
			if (!wanted.empty() && run.spec["name"].str() != wanted)
				continue;
			std::ifstream in(options_.runtime_dir + "/" + run.id + "/log", std::ios::binary);
			if (!run.id.empty() && in)
				return Reply::text(200, std::string(std::istreambuf_iterator<char>(in), {}));
		}
	return Reply::refuse(bad_request("container \"" + wanted + "\" in pod \"" + object.name +
					 "\" is waiting to start or does not run here"));
}

void Kubelet::find_left_containers()
{
	DIR *dir = options_.runtime_dir.empty() ? nullptr : opendir(options_.runtime_dir.c_str());
	if (!dir)
		return;
	while (dirent *entry = readdir(dir)) {
		const std::string path = options_.runtime_dir + "/" + entry->d_name;
		if (J about = read_about(path))
			left_[about["uid"].str()].push_back(path);
	}
	closedir(dir);
}

// A pod that an earlier kubesim may have started.
void Kubelet::adopt(const ObjectPtr &object)
{
	J json = object->json();
	const std::string phase = json.path("status.phase").str();
	const bool begun = !json.path("status.startTime").str().empty();
	auto folders = left_.find(object->uid);
	const bool fake = nodes_.at(json.path("spec.nodeName").str()).fake;
	if (!begun || phase == "Succeeded" || phase == "Failed" || (!fake && folders == left_.end())) {
		take(object);
		return;
	}
	Pod &pod = pods_[object->uid] = described(*object, json);
	pod.start_time = parse_rfc3339(json.path("status.startTime").str());
	restore_allocated(pod, json);
	pod.node->pods.insert(pod.uid);
	for (auto &run : pod.runs) {
		const std::string name = run.spec["name"].str();
		J status;
		json.path("status.containerStatuses").each_item([&](const J &s) {
			if (s["name"].str() == name)
				status = s;
		});
		run.restarts = static_cast<int>(status["restartCount"].num());
		if (fake) {
			run.started_us = parse_rfc3339(status.path("state.running.startedAt").str()) * 1000000;
			start_run(pod, run);
			continue;
		}
		for (const auto &dir : folders->second) {
			J about = read_about(dir);
			if (about["container"].str() != name || about["restarts"].num() < run.restarts)
				continue;
			run.restarts = static_cast<int>(about["restarts"].num());
			run.id = dir.substr(dir.rfind('/') + 1);
			run.container = adopt_process(loop_, dir);
		}
		if (run.container)
			follow(pod, run);
		else
			start_run(pod, run);
	}
	if (!fake)
		left_.erase(folders);
	watch_deadline(pod);
	sync(pod.uid);
}

} // namespace kubesim
