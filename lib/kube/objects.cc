// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/objects.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/log_limit.h"
#include "lib/kube/decode.h"
#include "lib/kube/requests.h"
#include "lib/kube/resize.h"

namespace sk8::kube {

namespace {

// --- where the pod may run --------------------------------------------------

NodeRequirement decode_requirement(const Json &from, bool field, std::string &problem)
{
	static constexpr std::array<std::string_view, 6> known = {"In",	    "NotIn",	    "Exists",
								  "DoesNotExist", "Gt", "Lt"};
	NodeRequirement out;
	out.field = field;
	out.key = word(from["key"], max_key, "a key of its node affinity", problem);
	out.op = word(from["operator"], 16, "an operator of its node affinity", problem);
	if (std::find(known.begin(), known.end(), out.op) == known.end())
		complain(problem, "its node affinity uses an operator that is not known");
	if (countable(from["values"], max_listed, "values in its node affinity", problem))
		from["values"].each_item([&](const Json &v) {
			out.values.push_back(
				word(v, max_name, "a value of its node affinity", problem));
		});
	return out;
}

void decode_node_affinity(const Json &affinity, Pod &pod)
{
	Json required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
	if (!required.is_object())
		return;
	pod.has_required_node_affinity = true;
	pod.required_node_terms = decode_node_terms(required["nodeSelectorTerms"], pod.problem);
	if (pod.problem.empty() && pod.required_node_terms.empty())
		complain(pod.problem, "its node affinity matches no node");
}

bool has_required(const Json &affinity)
{
	return affinity["requiredDuringSchedulingIgnoredDuringExecution"].size() > 0;
}

TaintEffect taint_effect(std::string_view text)
{
	using enum TaintEffect;
	static constexpr std::pair<std::string_view, TaintEffect> table[] = {
		{"", all}, {"NoSchedule", no_schedule}, {"PreferNoSchedule", prefer_no_schedule}, {"NoExecute", no_execute},
	};
	for (const auto &[name, effect] : table)
		if (text == name)
			return effect;
	return other;
}

TolerationOperator toleration_operator(std::string_view text)
{
	using enum TolerationOperator;
	return text.empty() || text == "Equal" ? equal : text == "Exists" ? exists : other;
}

void decode_constraints(const Json &spec, Pod &pod)
{
	pod.node_selector = decode_labels(spec["nodeSelector"], pod.problem);
	Json affinity = spec["affinity"];
	decode_node_affinity(affinity["nodeAffinity"], pod);
	pod.has_required_pod_affinity =
		has_required(affinity["podAffinity"]) || has_required(affinity["podAntiAffinity"]);
	spec["topologySpreadConstraints"].each_item([&](const Json &c) {
		// DoNotSchedule is the default of whenUnsatisfiable
		if (c["whenUnsatisfiable"].str("DoNotSchedule") != "ScheduleAnyway")
			pod.has_topology_spread = true;
	});
	if (!countable(spec["tolerations"], max_listed, "tolerations", pod.problem))
		return;
	spec["tolerations"].each_item([&](const Json &t) {
		Toleration out;
		out.key = word(t["key"], max_key, "a toleration's key", pod.problem);
		out.op = toleration_operator(word(t["operator"], 16, "a toleration's operator", pod.problem));
		out.value = word(t["value"], max_name, "a toleration's value", pod.problem);
		out.effect = taint_effect(word(t["effect"], 32, "a toleration's effect", pod.problem));
		pod.tolerations.push_back(std::move(out));
	});
}

void decode_ports(const Json &spec, Pod &pod)
{
	bool host_network = spec["hostNetwork"].boolean_or(false);
	auto of_container = [&](const Json &c) {
		c["ports"].each_item([&](const Json &p) {
			std::int64_t port = p["hostPort"].integer_or(0);
			if (port == 0 && host_network)
				port = p["containerPort"].integer_or(0);
			if (port == 0)
				return;
			if (port < 0 || port > 65535)
				return complain(pod.problem, "a host port is not between 1 and 65535");
			if (pod.host_ports.size() >= max_listed)
				return complain(pod.problem, "the pod has more host ports than allowed");
			pod.host_ports.push_back(
				{word(p["hostIP"], 64, "a host port's address", pod.problem),
				 word(p["protocol"], 16, "a host port's protocol", pod.problem),
				 static_cast<std::int32_t>(port)});
			if (pod.host_ports.back().protocol.empty())
				pod.host_ports.back().protocol = "TCP";
		});
	};
	spec["containers"].each_item(of_container);
	spec["initContainers"].each_item([&](const Json &c) {
		if (c["restartPolicy"].str() == "Always")
			of_container(c);
	});
}

void decode_volumes(const Json &spec, Pod &pod)
{
	if (!countable(spec["volumes"], max_listed, "volumes", pod.problem))
		return;
	spec["volumes"].each_item([&](const Json &v) {
		if (Json claim = v["persistentVolumeClaim"]; claim.is_object())
			pod.claims.push_back(
				word(claim["claimName"], max_name, "a claim's name", pod.problem));
		else if (v["ephemeral"].is_object())
			pod.claims.push_back(pod.meta.name + "-" +
					     word(v["name"], max_name, "a volume's name", pod.problem));
	});
}

// Whoever carries one of these expects all pods of its group to start together.
bool is_gang_member(const Json &spec, const Meta &meta)
{
	static constexpr std::array<std::string_view, 9> marks = {
		"scheduling.x-k8s.io/pod-group",         // scheduler-plugins, slurm-bridge
		"pod-group.scheduling.sigs.k8s.io",      // its older name
		"pod-group.scheduling.sigs.k8s.io/name", // and the one before
		"scheduling.k8s.io/group-name",          // volcano
		"kueue.x-k8s.io/pod-group-name",
		"yunikorn.apache.org/task-group-name",
		"leaderworkerset.sigs.k8s.io/name",
		"jobset.sigs.k8s.io/jobset-name",
		"kai.scheduler/subgroup-name",
	};
	auto carries = [&](std::string_view mark) {
		return meta.labels.contains(std::string(mark)) ||
		       meta.annotations.contains(std::string(mark));
	};
	return std::any_of(marks.begin(), marks.end(), carries) ||
	       spec["workloadRef"].is_object() || spec["schedulingGroup"].is_object();
}

// --- what the kubelet says ----------------------------------------------------

// "containerd://0123abc": what a cgroup is named by, so it must not lead anywhere else.
std::string runtime_id(std::string_view text)
{
	static constexpr std::string_view scheme_ends = "://";
	static constexpr std::size_t longest = 128;
	const auto at = text.find(scheme_ends);
	const auto id = at == text.npos ? text : text.substr(at + scheme_ends.size());
	const auto good = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
	return id.size() <= longest && std::all_of(id.begin(), id.end(), good) ? std::string(id) : "";
}

ContainerStatus decode_container(const Json &from, bool init, std::string &problem)
{
	ContainerStatus out;
	out.name = word(from["name"], max_name, "a container's name", problem);
	out.init = init;
	out.id = runtime_id(from["containerID"].str());
	out.started_ever = !from["containerID"].str().empty() ||
			   from["restartCount"].integer_or(0) > 0 ||
			   from["lastState"]["terminated"].is_object();
	Json state = from["state"];
	if (Json ended = state["terminated"]; ended.is_object()) {
		out.state = ContainerStatus::State::terminated;
		out.reason = shown(ended["reason"]);
		out.message = shown(ended["message"]);
		out.exit_code = small(ended["exitCode"]);
		out.signal = small(ended["signal"]);
		out.finished_at = seconds(ended["finishedAt"]);
		out.started_ever = out.started_ever || !ended["containerID"].str().empty();
	} else if (state["running"].is_object()) {
		out.state = ContainerStatus::State::running;
		out.started_ever = true;
	} else {
		out.reason = shown(state["waiting"]["reason"]);
		out.message = shown(state["waiting"]["message"]);
	}
	return out;
}

Disruption disruption_of(std::string_view reason)
{
	static constexpr std::pair<std::string_view, Disruption> known[] = {
		{"EvictionByEvictionAPI", Disruption::eviction},  {"PreemptionByScheduler", Disruption::preemption},
		{"DeletionByTaintManager", Disruption::taint},    {"DeletionByPodGC", Disruption::garbage},
		{"TerminationByKubelet", Disruption::kubelet},
	};
	for (const auto &[word, disruption] : known)
		if (word == reason)
			return disruption;
	return Disruption::other;
}

void decode_status(const Json &status, Pod &pod)
{
	pod.phase = word(status["phase"], 32, "its phase", pod.problem);
	pod.reason = shown(status["reason"]);
	pod.message = shown(status["message"]);
	pod.started_at = seconds(status["startTime"]);
	pod.admitted = is_admitted(status);
	for (const char *list :
	     {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
		Json all = status[list];
		bool init = list[0] == 'i';
		// Of too many one in each state says what there is: the pod holds what it has until
		// the last of them is gone.
		const bool keep_all = countable(all, max_containers, list, pod.problem);
		std::set<std::pair<ContainerStatus::State, bool>> kept;
		all.each_item([&](const Json &c) {
			ContainerStatus status = decode_container(c, init, pod.problem);
			if (keep_all || kept.emplace(status.state, status.started_ever).second)
				pod.containers.push_back(std::move(status));
		});
	}
	status["conditions"].each_item([&](const Json &c) {
		if (c["type"].str() == "DisruptionTarget" && c["status"].str() == "True") {
			pod.disruption = disruption_of(c["reason"].str());
			pod.garbage_collected |= pod.disruption == Disruption::garbage;
		}
		pod.gets_final_phase |= c["type"].str() == "PodReadyToStartContainers";
		if (c["type"].str() != "PodScheduled")
			return;
		pod.scheduled_condition_true = c["status"].str() == "True";
		pod.scheduled_reason = shown(c["reason"]);
		pod.scheduled_message = shown(c["message"]);
	});
}

// A template's claim is made by kube-controller-manager, which says its name in the pod's status, and makes none if that says so
// without a name.
void decode_resource_claims(const Json &spec, const Json &status, Pod &pod)
{
	(void) countable(spec["resourceClaims"], max_pod_claims, "resource claims", pod.problem); // what it has counts all the same
	spec["resourceClaims"].each_item([&](const Json &c) {
		PodResourceClaim out{word(c["name"], max_name, "the name of a resource claim", pod.problem),
				     word(c["resourceClaimName"], max_name, "a resource claim", pod.problem)};
		bool needless = false;
		if (out.claim.empty())
			status["resourceClaimStatuses"].each_item([&](const Json &s) {
				if (s["name"].str() != out.name)
					return;
				out.claim = word(s["resourceClaimName"], max_name, "a resource claim", pod.problem);
				needless = out.claim.empty();
			});
		if (!needless)
			pod.resource_claims.push_back(std::move(out));
	});
	// Made by kube-scheduler for extended resources that a DeviceClass stands for (KEP-5004).
	const Json extended = status["extendedResourceClaimStatus"]["resourceClaimName"];
	if (!extended.is_null())
		pod.resource_claims.push_back({"", word(extended, max_name, "a resource claim", pod.problem)});
}

void decode_spec(const Json &spec, Pod &pod)
{
	std::string &problem = pod.problem;
	pod.scheduler_name = word(spec["schedulerName"], max_name, "its schedulerName", problem);
	pod.node_name = word(spec["nodeName"], max_name, "its nodeName", problem);
	pod.scheduling_gated = spec["schedulingGates"].size() > 0;
	pod.restart_policy = word(spec["restartPolicy"], 32, "its restartPolicy", problem);
	pod.priority_class = word(spec["priorityClassName"], max_name, "its priority class", problem);
	pod.priority = small(spec["priority"]);
	pod.grace_seconds = std::clamp<std::int64_t>(
		spec["terminationGracePeriodSeconds"].integer_or(30), 0, max_seconds);
	if (Json limit = spec["activeDeadlineSeconds"]; limit.is_integer())
		pod.active_deadline_seconds =
			std::clamp<std::int64_t>(limit.integer_or(0), 0, max_seconds);
	pod.service_account = word(spec["serviceAccountName"], max_name, "its service account", problem);
}

} // namespace

bool is_admitted(const Json &status)
{
	const std::string_view phase = status["phase"].str();
	bool initialized = false; // or not yet: told at all
	status["conditions"].each_item([&](const Json &c) { initialized |= c["type"].str() == "Initialized"; });
	return initialized && !status["startTime"].str().empty() && (phase == "Pending" || phase == "Running");
}

std::vector<NodeTerm> decode_node_terms(const Json &terms, std::string &problem)
{
	std::vector<NodeTerm> out;
	if (!countable(terms, max_terms, "node selector terms", problem))
		return out;
	terms.each_item([&](const Json &t) {
		NodeTerm term;
		for (bool field : {false, true}) {
			Json list = t[field ? "matchFields" : "matchExpressions"];
			if (countable(list, max_terms, "node selector expressions", problem))
				list.each_item([&](const Json &r) {
					term.push_back(decode_requirement(r, field, problem));
				});
		}
		if (!term.empty()) // an empty term matches no node at all
			out.push_back(std::move(term));
	});
	return out;
}

Result<PodPtr> decode_pod(const Json &object)
{
	auto pod = std::make_shared<Pod>();
	Result<Meta> meta = decode_meta(object, "Pod", pod->problem);
	if (!meta.ok())
		return meta.error();
	pod->meta = std::move(*meta);
	Json spec = object["spec"], status = object["status"];
	if (!spec.is_object())
		complain(pod->problem, "the API server sent the pod without its spec");
	decode_spec(spec, *pod);
	PodRequest asked = effective_request(spec, status);
	pod->request = std::move(asked.total);
	pod->has_cpu_request = asked.has_cpu;
	pod->has_memory_request = asked.has_memory;
	if (!asked.problem.empty())
		complain(pod->problem, asked.problem);
	decode_constraints(spec, *pod);
	decode_ports(spec, *pod);
	decode_volumes(spec, *pod);
	pod->in_pod_group = is_gang_member(spec, pod->meta);
	decode_resource_claims(spec, status, *pod);
	decode_status(status, *pod);
	pod->resize_unheard = is_resize_unheard(object);
	return PodPtr(std::move(pod));
}

// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
static std::string manager_of_cordon(const Json &meta, std::string &problem)
{
	std::string found;
	if (countable(meta["managedFields"], max_listed, "managed fields", problem))
		meta["managedFields"].each_item([&](const Json &m) {
			if (m["fieldsV1"]["f:spec"]["f:unschedulable"].is_object())
				found = word(m["manager"], max_name, "a field manager", problem);
		});
	return found;
}

Result<NodePtr> decode_node(const Json &object)
{
	auto node = std::make_shared<Node>();
	std::string problem;
	Result<Meta> meta = decode_meta(object, "Node", problem);
	if (!meta.ok())
		return meta.error();
	node->meta = std::move(*meta);
	Json spec = object["spec"], status = object["status"];
	node->unschedulable = spec["unschedulable"].boolean_or(false);
	if (node->unschedulable)
		node->cordoned_by = manager_of_cordon(object["metadata"], problem);
	spec["taints"].each_item([&](const Json &t) {
		node->taints.push_back({word(t["key"], max_key, "a taint's key", problem),
					word(t["value"], max_name, "a taint's value", problem),
					taint_effect(word(t["effect"], 32, "a taint's effect", problem))});
	});
	if (countable(status["conditions"], max_conditions, "conditions", problem))
		status["conditions"].each_item([&](const Json &c) {
			node->conditions.push_back({word(c["type"], max_key, "a condition's type", problem),
						    word(c["status"], 32, "a condition's status", problem),
						    word(c["reason"], 1024, "a condition's reason", problem),
						    shown(c["message"])});
			if (node->conditions.back().type != "Ready")
				return;
			node->ready = node->conditions.back().status == "True";
			node->heartbeat = seconds(c["lastHeartbeatTime"]);
		});
	node->strict_groups = status["features"]["supplementalGroupsPolicy"].boolean_or(false);
	node->allocatable = decode_resources(status["allocatable"], problem);
	if (auto pods = node->allocatable.extended.find("pods");
	    pods != node->allocatable.extended.end()) {
		node->allocatable_pods = pods->second;
		node->allocatable.extended.erase(pods);
	}
	for (const auto &[name, count] : decode_resources(status["capacity"], problem).extended)
		if (name.find('/') != name.npos)
			node->capacity.emplace(name, count);
	if (!problem.empty())
		log_limited(LogLevel::warning, node->meta.name, "kube: node=%s: %s", node->meta.name.c_str(),
			    problem.c_str());
	return NodePtr(std::move(node));
}

} // namespace sk8::kube
