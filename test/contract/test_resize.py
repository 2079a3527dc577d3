# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Requests of a pod that change in place: the subresource pods/resize."""
import pytest
from kube import MERGE, STRATEGIC, failure, pod


def sized(name="a", **resources):
	resources = resources or {"requests": {"cpu": "1", "memory": "100Mi"}}
	return pod(name, containers=[{"name": "c", "image": "i", "resources": resources}])


def requesting(meta=None, **requests):
	patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
	if meta:
		patch["metadata"] = meta
	return patch


def resize(kube, ns, patch, kind=STRATEGIC):
	return kube.patch(ns.path(name="a", sub="resize"), patch, kind)


def test_requests_change_and_nothing_else(kube, ns):
	made = ns.add(sized())
	answer = resize(kube, ns, requesting({"labels": {"x": "y"}, "annotations": {"x": "y"}}, cpu="3", memory="300Mi"))
	assert answer.code == 200, answer
	container, = answer["spec"]["containers"]
	assert container["resources"] == {"requests": {"cpu": "3", "memory": "300Mi"}} and container["image"] == "i"
	assert answer["metadata"]["generation"] == made["metadata"]["generation"] + 1
	assert "labels" not in answer["metadata"] and "annotations" not in answer["metadata"]
	assert answer["status"] == made["status"]


def test_same_requests_are_no_change(kube, ns):
	made = ns.add(sized())
	answer = resize(kube, ns, requesting(cpu="1000m"))
	assert answer.code == 200 and answer["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_requests_may_come_down_to_a_byte(kube, ns):
	ns.add(sized())
	answer = resize(kube, ns, requesting(cpu="0", memory="1"))
	assert answer.code == 200, answer
	assert answer["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "0", "memory": "1"}


def test_an_older_version_is_a_conflict(kube, ns):
	made = ns.add(sized())
	assert kube.patch(ns.path(name="a"), {"metadata": {"annotations": {"x": "y"}}}).code == 200
	version = made["metadata"]["resourceVersion"]
	answer = resize(kube, ns, requesting({"resourceVersion": version}, cpu="2"))
	failure(answer, 409, "Conflict", 'Operation cannot be fulfilled on pods "a": the object has been modified; '
		"please apply your changes to the latest version and try again")


def test_class_of_quality_of_service_stays(kube, ns):
	ns.add(sized())
	answer = resize(kube, ns, requesting(cpu="0", memory="0"))
	assert answer.code == 422 and answer["reason"] == "Invalid"
	assert [(c["field"], c["message"]) for c in answer["details"]["causes"]] == [
		("spec", 'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing')]


def test_requests_are_not_removed(kube, ns):
	ns.add(sized())
	answer = resize(kube, ns, requesting(memory=None))
	assert answer.code == 422
	assert [(c["field"], c["message"]) for c in answer["details"]["causes"]] == [
		("spec.containers[0].resources.requests", "Forbidden: resource requests cannot be removed")]


def test_only_cpu_and_memory_change(kube, ns):
	ns.add(sized())
	answer = resize(kube, ns, requesting(**{"ephemeral-storage": "1Gi"}))
	assert answer.code == 422
	assert ("spec", "Forbidden: only cpu and memory resources are mutable") in [
		(c["field"], c["message"]) for c in answer["details"]["causes"]]


def test_containers_are_not_added(kube, ns):
	ns.add(sized())
	answer = resize(kube, ns, {"spec": {"containers": [{"name": "d", "image": "i"}]}})
	assert answer.code == 422
	assert ("spec.containers", "Forbidden: containers may not be added or removed on resize") in [
		(c["field"], c["message"]) for c in answer["details"]["causes"]]


def test_kubelet_that_reports_no_resources_cannot_resize(kube, ns):
	ns.add(sized())
	status = {"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
		"state": {"running": {"startedAt": "2026-11-21T07:00:00Z"}}}]}
	assert kube.patch(ns.path(name="a", sub="status"), {"status": status}).code == 200
	answer = resize(kube, ns, requesting(cpu="2"))
	assert answer.code == 422
	assert [(c["field"], c["message"]) for c in answer["details"]["causes"]] == [
		("spec", "Forbidden: Pod running on node without support for resize")]
	status["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1", "memory": "100Mi"}}
	assert kube.patch(ns.path(name="a", sub="status"), {"status": status}).code == 200
	assert resize(kube, ns, requesting(cpu="2")).code == 200


def test_pod_that_is_not_there_is_named(kube, ns):
	answer = resize(kube, ns, requesting(cpu="2"))
	assert answer.code == 404 and answer["details"]["name"] == "a"


def test_unknown_subresource_names_nothing(kube, ns):
	"""How a server that knows no pods/resize is told from a pod that is gone."""
	ns.add(sized())
	answer = kube.patch(ns.path(name="a", sub="nothing"), requesting(cpu="2"), STRATEGIC)
	assert answer.code == 404 and not (answer["details"] or {}).get("name")


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_pods_own_requests_are_not_changed_without_the_subresource(kube, ns, kind):
	made = ns.add(sized())
	patch = requesting(cpu="2", memory="100Mi") if kind == STRATEGIC else {
		"spec": {"containers": [{**made["spec"]["containers"][0], "resources": {"requests": {"cpu": "2", "memory": "100Mi"}}}]}}
	answer = kube.patch(ns.path(name="a"), patch, kind)
	assert answer.code == 422 and answer["details"]["causes"][0]["field"] == "spec"
