// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Objects of Kubernetes: what is decoded keeps its limits, goes through every decision
// of the engine, and what comes out for Slurm and for logs forges nothing. What is
// saved of a broken object is that object's identity and no other's.
//
// Input: one byte that says where the object is cut for its rescue, then JSON.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/job_request.h"
#include "lib/core/lifecycle.h"
#include "lib/core/placement.h"
#include "lib/core/pod_end.h"
#include "lib/kube/objects.h"
#include "lib/kube/requests.h"
#include "lib/kube/rescue.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::core;

namespace {

ClusterSettings mapping()
{
	ClusterSettings s;
	s.name = "c";
	NamespaceSettings all;
	all.match = "*";
	all.user = "mlsvc";
	s.namespaces = {all};
	return s;
}

void check_name(const std::string &name)
{
	expect(name.size() <= kube::max_name && name.find_first_of("/\\%?# \n\"'") == name.npos && name != "." && name != "..",
	       "a name is a name", name);
}

void check_meta(const kube::Meta &m)
{
	expect(!m.name.empty() && !m.uid.empty(), "an object has a name and a uid");
	for (const std::string *name : {&m.name, &m.uid, &m.ns})
		check_name(*name);
	std::size_t bytes = 0;
	for (const auto &[key, value] : m.annotations)
		bytes += key.size() + value.size();
	expect(bytes <= kube::max_annotation_bytes, "annotations keep their limit");
	for (const auto &[key, value] : m.labels)
		expect(value.size() <= kube::max_label_value, "labels keep their limit", value);
	expect(m.deletion_grace_seconds >= 0, "a grace is not negative");
}

void check_resources(const kube::Resources &r)
{
	expect(r.milli_cpu >= 0 && r.milli_cpu <= kube::max_milli_cpu, "CPUs keep their limit", std::to_string(r.milli_cpu));
	expect(r.memory_bytes >= 0, "memory is not negative", std::to_string(r.memory_bytes));
	for (const auto &[name, amount] : r.extended)
		expect(amount >= 0, "an amount is not negative", name);
}

void check_job_text(const std::string &text)
{
	expect(text.size() < 2048 && one_line(text, 8192) == text, "a job's text is one printable line", text);
}

// What the engine makes of a pod in each state.
void check_decisions(const kube::PodPtr &pod)
{
	static const ClusterSettings &settings = *new ClusterSettings(mapping());
	const PodKey key{"c", pod->meta.ns.empty() ? "none" : pod->meta.ns, pod->meta.name, pod->meta.uid};
	expect(PodKey::from_mark(key.mark()) == key, "a mark names one pod", key.mark());
	const auto request =
		make_request(key, *pod, settings, [](const std::string &) { return std::optional(Account{1500, 1600}); });
	if (!pod->problem.empty())
		expect(!request, "a pod with a problem gets no job", pod->problem);
	if (!request)
		expect_sentence(request.error().message, 1024);
	else
		check_job_text(request->job_name);
	PodFacts facts;
	facts.pod = pod;
	next_effect(classify(facts), JobState::none);
	for (const std::int64_t deleted_alive_at : {0, 1'000'000}) {
		const JobEnd end = end_of_pod(pod.get(), kubelet_reports_over(*pod) ? PodState::over : PodState::stray, "",
					      deleted_alive_at);
		check_job_text(end.comment);
	}
}

void check_pod(const kube::PodPtr &pod)
{
	check_meta(pod->meta);
	check_resources(pod->request);
	expect(pod->containers.size() <= 3 * kube::max_containers, "containers keep their limit");
	expect(pod->grace_seconds >= 0 && pod->active_deadline_seconds.value_or(0) >= 0, "times are not negative");
	for (const auto &port : pod->host_ports)
		expect(port.port >= 1 && port.port <= 65535, "a port is one", std::to_string(port.port));
	if (!pod->problem.empty())
		expect_sentence(pod->problem, 1024);
	check_decisions(pod);
}

void check_node(const kube::Node &node, const kube::PodPtr &pod)
{
	check_meta(node.meta);
	check_resources(node.allocatable);
	if (!pod)
		return;
	if (const std::string why = objection(*pod, {pod->required_node_terms}, node); !why.empty())
		expect_sentence(why, 2048);
}

std::string uid_of(const Json &object)
{
	return std::string(object["metadata"]["uid"].str()) + " " + std::string(object["metadata"]["name"].str());
}

void check_rescue(std::string_view text, std::size_t end, const Result<Json> &object)
{
	const auto saved = kube::rescue_object(text.substr(0, end));
	if (!saved || !object || !(*object)["metadata"].is_object())
		return;
	expect(uid_of(*saved) == uid_of(*object), "a broken object is saved as itself", uid_of(*saved));
}

// {"kind": "Pod", ...}, whatever it said before
Json as(const Json &object, const char *kind)
{
	Json out = Json::object();
	object.each_member([&](std::string_view key, const Json &value) { out.set(key, value); });
	return out.set("kind", kind);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Input input(data, size);
	const std::size_t cut = input.byte();
	const std::string_view text = input.rest();
	const Result<Json> object = Json::parse(text);
	check_rescue(text, text.size() * cut / 255, object);
	check_rescue(text, text.size(), object);
	kube::rescue_event(text);
	if (!object || !object->is_object())
		return 0;

	const auto pod = kube::decode_pod(as(*object, "Pod"));
	if (pod)
		check_pod(*pod);
	else
		expect_sentence(pod.error().message, 256);
	if (const auto node = kube::decode_node(as(*object, "Node")))
		check_node(**node, pod ? *pod : nullptr);
	std::string problem;
	kube::decode_node_terms((*object)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"], problem);
	if (!problem.empty())
		expect_sentence(problem, 1024);
	return 0;
}
