# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""pods/eviction, and PodDisruptionBudgets whose status says what is allowed (no disruption controller runs)."""
import pytest
from kube import failure, pod

BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"


def running(kube, ns, name, **labels):
	made = ns.add(pod(name, nodeName="contract-node", meta={"labels": labels}))
	kube.patch(ns.path(name=name, sub="status"), {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
	return made


def eviction(name, uid=None):
	body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
	return {**body, "deleteOptions": {"preconditions": {"uid": uid}}} if uid else body


def evict(kube, ns, name, uid=None):
	return kube.post(ns.path(name=name, sub="eviction"), eviction(name, uid))


@pytest.fixture(name="budget")
def budget_fixture(kube, ns):
	"""Makes one for app=a with a status; allowed None: nobody has looked at it yet."""
	def make(name, allowed):
		path = BUDGETS.format(ns.name)
		made = kube.post(path, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
			"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}})
		assert made.code == 201, made
		if allowed is not None:
			counts = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": allowed, "currentHealthy": 1,
				"desiredHealthy": 1, "expectedPods": 1}
			assert kube.patch(f"{path}/{name}/status", {"status": counts}).code == 200
		return f"{path}/{name}"
	return make


def refused(answer, why):
	failure(answer, 429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
	cause = answer["details"]["causes"][0]
	assert cause["reason"] == "DisruptionBudget" and cause["message"] == why


def test_pod_without_a_budget_is_marked_and_deleted_with_its_grace(kube, ns):
	made = running(kube, ns, "a")
	answer = evict(kube, ns, "a", made["metadata"]["uid"])
	assert answer.code == 201 and answer["kind"] == "Status" and answer["status"] == "Success"
	now = kube.get(ns.path(name="a")).body
	assert now["metadata"]["deletionGracePeriodSeconds"] == 30
	target = next(c for c in now["status"]["conditions"] if c["type"] == "DisruptionTarget")
	assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
	assert evict(kube, ns, "a").code == 201, "again, while it goes"


def test_eviction_of_another_uid_or_name_is_refused(kube, ns):
	running(kube, ns, "a")
	answer = evict(kube, ns, "a", "another")
	assert answer.code == 409 and answer["reason"] == "Conflict"
	assert "deletionTimestamp" not in kube.get(ns.path(name="a"))["metadata"]
	failure(kube.post(ns.path(name="a", sub="eviction"), eviction("b")), 400, "BadRequest",
		"name in URL does not match name in Eviction object")
	failure(evict(kube, ns, "b"), 404, "NotFound", 'pods "b" not found')


def test_budget_allows_what_its_status_says_and_counts(kube, ns, budget):
	for name in ("a", "b"):
		running(kube, ns, name, app="a")
	running(kube, ns, "c")
	path = budget("budget", 1)
	assert evict(kube, ns, "a").code == 201
	left = kube.get(path).body["status"]
	assert left.get("disruptionsAllowed", 0) == 0 and list(left["disruptedPods"]) == ["a"]
	refused(evict(kube, ns, "b"), "The disruption budget budget needs 1 healthy pods and has 1 currently")
	assert "deletionTimestamp" not in kube.get(ns.path(name="b"))["metadata"]
	assert evict(kube, ns, "c").code == 201, "not one of the budget's"


def test_budget_that_nobody_has_looked_at_allows_nothing(kube, ns, budget):
	running(kube, ns, "a", app="a")
	budget("budget", None)
	refused(evict(kube, ns, "a"), "The disruption budget budget is still being processed by the server.")


def test_pod_that_does_not_run_is_in_no_budget(kube, ns, budget):
	ns.add(pod("a", nodeName="contract-node", meta={"labels": {"app": "a"}}))
	budget("budget", 0)
	assert evict(kube, ns, "a").code == 201


def test_pod_of_two_budgets_is_not_evicted(kube, ns, budget):
	running(kube, ns, "a", app="a")
	for name in ("one", "two"):
		budget(name, 1)
	answer = evict(kube, ns, "a")
	assert answer.code == 500
	assert answer["message"] == "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
