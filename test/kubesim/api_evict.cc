// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// pods/eviction, as EvictionREST of Kubernetes does it. Nobody here is the disruption
// controller: what a PodDisruptionBudget allows is in its status, which whoever made it writes.
#include "test/kubesim/api.h"
#include "test/kubesim/pod.h"
#include "test/kubesim/times.h"

namespace kubesim {

static Failure forbidden(const std::string &why)
{
	J causes = J::array();
	causes.append(J::make("reason", "DisruptionBudget", "message", why));
	return {429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
		J::make("causes", causes)};
}

// Of matchExpressions nothing is known.
static bool covers(const J &budget, const Object &pod)
{
	Selector selector{pod.ns, {}, {}};
	budget.path("spec.selector.matchLabels").each_member([&](const std::string &key, const J &value) {
		selector.labels.push_back({Requirement::in, key, {value.str()}});
	});
	return budget.path("spec.selector").is_object() && selector.matches(pod);
}

// A budget counts pods that run; what has not begun, has ended or is leaving is not in it.
static bool is_counted(const J &pod)
{
	return pod.path("status.phase").str() == "Running" && !pod.path("metadata.deletionTimestamp");
}

Refusal Api::count_disruption(const Object &pod)
{
	const Kind &kind = kind_of("poddisruptionbudgets");
	std::vector<ObjectPtr> of_pod;
	auto all = store_.list(kind.storage, pod.ns, "", 0);
	for (const auto &budget : *all)
		if (covers(budget->json(), pod))
			of_pod.push_back(budget);
	if (of_pod.empty())
		return {};
	if (of_pod.size() > 1)
		return Failure{500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.", {}};
	J json = of_pod[0]->json();
	const std::string about = "The disruption budget " + of_pod[0]->name;
	if (json.path("status.observedGeneration").num() < json.path("metadata.generation").num())
		return forbidden(about + " is still being processed by the server.");
	const std::int64_t allowed = json.path("status.disruptionsAllowed").num();
	if (allowed <= 0)
		return forbidden(about + " needs " + std::to_string(json.path("status.desiredHealthy").num()) +
				 " healthy pods and has " + std::to_string(json.path("status.currentHealthy").num()) + " currently");
	J status = json.child("status");
	status.set("disruptionsAllowed", allowed - 1);
	status.child("disruptedPods").set(pod.name, rfc3339(now_s()));
	store_.put(kind.storage, json);
	return {};
}

Reply Api::evict(Request &r)
{
	std::string problem;
	const J eviction = J::parse(r.body, &problem);
	if (!eviction.is_object())
		return Reply::refuse(bad_request("couldn't get version/kind; json parse error: " + problem));
	if (eviction.path("metadata.name").str() != r.name)
		return Reply::refuse(bad_request("name in URL does not match name in Eviction object"));
	ObjectPtr pod = store_.find(r.kind->storage, r.ns, r.name);
	if (!pod)
		return Reply::refuse(not_found(*r.kind, r.name));
	r.object_uid = pod->uid;
	J options = eviction["deleteOptions"].is_object() ? eviction["deleteOptions"].copy() : J::object();
	if (auto checked = remove_object(*r.kind, pod, options.copy(), true); !checked)
		return Reply::refuse(checked.failure()); // its preconditions
	if (is_counted(pod->json())) {
		if (auto refused = count_disruption(*pod))
			return Reply::refuse(*refused);
		J json = pod->json();
		set_condition(json.child("status"), "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting");
		pod = store_.put(r.kind->storage, json);
	}
	if (auto done = remove_object(*r.kind, pod, options, false); !done)
		return Reply::refuse(done.failure());
	return Reply::json(201, J::make("kind", "Status", "apiVersion", "v1", "metadata", J::object(), "status", "Success",
					"code", 201).dump());
}

} // namespace kubesim
