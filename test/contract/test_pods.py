# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import pytest
from kube import STRATEGIC, failure, pod


def resources(ns, name="a", **values):
	return pod(name, containers=[{"name": "c", "image": "i", "resources": values}])


def test_new_pod_has_the_defaults_we_rely_on(kube, ns):
	made = ns.add(pod("a"))
	spec, meta = made["spec"], made["metadata"]
	assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
	assert meta["generation"] == 1 and meta["uid"] and meta["namespace"] == ns.name
	container, = spec.pop("containers")
	assert container["terminationMessagePath"] == "/dev/termination-log"
	assert container["terminationMessagePolicy"] == "File" and container["resources"] == {}
	tolerations = spec.pop("tolerations")
	assert [(t["key"], t["operator"], t["effect"], t["tolerationSeconds"]) for t in tolerations] == [
		("node.kubernetes.io/not-ready", "Exists", "NoExecute", 300),
		("node.kubernetes.io/unreachable", "Exists", "NoExecute", 300)]
	assert spec == {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
		"securityContext": {}, "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": True,
		"preemptionPolicy": "PreemptLowerPriority"}


@pytest.mark.parametrize("image,policy", [
	("busybox", "Always"), ("busybox:latest", "Always"), ("busybox:1", "IfNotPresent"),
	("host:5000/busybox", "Always"), ("busybox@sha256:" + "0" * 64, "IfNotPresent")])
def test_pull_policy_follows_the_image(kube, ns, image, policy):
	made = ns.add(pod("a", containers=[{"name": "c", "image": image}]))
	assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize("given,stored", [
	("0.5", "500m"), ("1000m", "1"), ("0.1", "100m"), (2, "2"), (0.25, "250m"), ("1500m", "1500m"), ("1e3", "1e3"),
	("0", "0"), ("2000", "2k"), ("100u", "1m"), ("1E2", "100")])
def test_cpu_quantities_are_stored_canonically(kube, ns, given, stored):
	made = ns.add(resources(ns, requests={"cpu": given}))
	assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == stored


@pytest.mark.parametrize("given,stored", [
	("1024Mi", "1Gi"), ("1500M", "1500M"), ("1G", "1G"), ("1.5Gi", "1536Mi"), ("512", "512"), ("1000", "1k"),
	("1048576", "1048576"), ("1000Ki", "1000Ki"), ("0.5Ki", "512"),
	("7Ei", "7Ei")])
def test_memory_quantities_are_stored_canonically(kube, ns, given, stored):
	made = ns.add(resources(ns, requests={"memory": given}))
	assert made["spec"]["containers"][0]["resources"]["requests"]["memory"] == stored


def test_requests_come_from_limits(kube, ns):
	made = ns.add(resources(ns, limits={"cpu": "2", "memory": "1Gi"}, requests={"memory": "1Mi"}))
	assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Mi"}


@pytest.mark.parametrize("values,qos", [
	({}, "BestEffort"), ({"requests": {"cpu": "1"}}, "Burstable"), ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
	({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable")])
def test_quality_of_service_class(kube, ns, values, qos):
	assert ns.add(resources(ns, **values))["status"]["qosClass"] == qos


def causes(answer):
	assert answer.code == 422 and answer["reason"] == "Invalid" and answer["details"]["kind"] == "Pod"
	return [(c["field"], c["reason"], c["message"]) for c in answer["details"]["causes"]]


def test_pod_without_name_or_containers_is_invalid(kube, ns):
	answer = kube.post(ns.path(), {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}})
	failure(answer, 422, "Invalid", 'Pod "" is invalid: [metadata.name: Required value: name or generateName is required, '
		"spec.containers: Required value]")


def test_wrong_names_and_policies_are_invalid(kube, ns):
	answer = kube.post(ns.path(), pod("x_", restartPolicy="foo", containers=[{"name": "a"}]))
	found = causes(answer)
	assert [f[:2] for f in found] == [("metadata.name", "FieldValueInvalid"),
		("spec.containers[0].image", "FieldValueRequired"), ("spec.restartPolicy", "FieldValueNotSupported")]
	assert found[0][2].startswith('Invalid value: "x_": a lowercase RFC 1123 subdomain must consist of lower case')
	assert found[2][2] == 'Unsupported value: "foo": supported values: "Always", "OnFailure", "Never"'


def test_wrong_resources_are_invalid(kube, ns):
	answer = kube.post(ns.path(), pod("x", containers=[
		{"name": "a", "image": "i", "resources": {"requests": {"cpu": "-1"}}},
		{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]))
	assert causes(answer) == [
		("spec.containers[0].resources.requests[cpu]", "FieldValueInvalid",
			'Invalid value: "-1": must be greater than or equal to 0'),
		("spec.containers[1].resources.requests", "FieldValueInvalid",
			'Invalid value: "2": must be less than or equal to cpu limit of 1'),
		("spec.containers[1].name", "FieldValueDuplicate", 'Duplicate value: "a"')]


def test_what_is_no_quantity_is_a_bad_request(kube, ns):
	failure(kube.post(ns.path(), resources(ns, requests={"cpu": "1x"})), 400, "BadRequest",
		'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '
		"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")


def test_spec_of_a_pod_is_immutable(kube, ns):
	ns.add(pod("a"))
	for spec in ({"nodeName": "n"}, {"schedulerName": "slurm"}, {"restartPolicy": "Never"}, {"nodeSelector": {"k": "v"}}):
		answer = kube.patch(ns.path(name="a"), {"spec": spec})
		found = causes(answer)
		assert found[0][:2] == ("spec", "FieldValueForbidden")
		assert found[0][2].startswith("Forbidden: pod updates may not change fields other than `spec.containers[*].image`")


def test_what_may_change_in_a_spec_changes(kube, ns):
	ns.add(pod("a", activeDeadlineSeconds=100))
	path = ns.path(name="a")
	assert kube.patch(path, {"spec": {"activeDeadlineSeconds": 50}})["spec"]["activeDeadlineSeconds"] == 50
	assert kube.patch(path, {"spec": {"activeDeadlineSeconds": 60}}).code == 422
	tolerations = kube.get(path)["spec"]["tolerations"]
	more = tolerations + [{"key": "slurm", "operator": "Exists"}]
	assert kube.patch(path, {"spec": {"tolerations": more}}).code == 200
	assert kube.patch(path, {"spec": {"tolerations": tolerations[:1]}}).code == 422


def test_gated_pod_may_be_narrowed(kube, ns):
	ns.add(pod("a", schedulingGates=[{"name": "contract.test/gate"}]))
	answer = kube.patch(ns.path(name="a"), {"spec": {"nodeSelector": {"k": "v"}}})
	assert answer.code == 200 and answer["metadata"]["generation"] == 2


def test_unknown_priority_class_is_forbidden(kube, ns):
	failure(kube.post(ns.path(), pod("a", priorityClassName="never-made")), 403, "Forbidden",
		'pods "a" is forbidden: no PriorityClass with name never-made was found', name="a", kind="pods")
	made = ns.add(pod("b", priorityClassName="system-node-critical"))
	assert made["spec"]["priority"] == 2000001000


def test_priority_comes_from_its_class(kube, ns):
	name = ns.name
	made = kube.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 700})
	assert made.code == 201
	assert ns.add(pod("a", priorityClassName=name))["spec"]["priority"] == 700
	kube.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")


def test_status_is_written_only_through_its_subresource(kube, ns):
	ns.add(pod("a"))
	kube.patch(ns.path(name="a"), {"status": {"phase": "Running"}})
	assert kube.get(ns.path(name="a"))["status"]["phase"] == "Pending"
	answer = kube.patch(ns.path(name="a", sub="status"), {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}})
	assert answer.code == 200 and answer["status"]["phase"] == "Running" and "nodeName" not in answer["spec"]
	assert answer["metadata"]["generation"] == 1
	assert kube.get(ns.path(name="a", sub="status"))["status"]["phase"] == "Running"


def test_status_subresource_writes_metadata_too(kube, ns):
	ns.add(pod("a"))
	body = {"metadata": {"annotations": {"x": "y"}, "labels": {"l": "m"}}, "status": {"reason": "R"}}
	meta = kube.patch(ns.path(name="a", sub="status"), body)["metadata"]
	assert meta["annotations"] == {"x": "y"} and meta["labels"] == {"l": "m"}


def condition(reason, status="False", kind="PodScheduled"):
	return {"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}


def test_conditions_merge_by_type(kube, ns):
	ns.add(pod("a"))
	path = ns.path(name="a", sub="status")
	kube.patch(path, {"status": {"conditions": [condition("SlurmPending"), condition("Other", kind="contract.test/c")]}},
		STRATEGIC)
	answer = kube.patch(path, {"status": {"conditions": [{"type": "PodScheduled", "reason": "SlurmHeld"}]}}, STRATEGIC)
	found = {c["type"]: c for c in answer["status"]["conditions"]}
	assert len(found) == 2 and found["PodScheduled"]["reason"] == "SlurmHeld"
	assert found["PodScheduled"]["message"] == "m" and found["PodScheduled"]["lastProbeTime"] is None
	answer = kube.patch(path, {"status": {"conditions": [{"type": "contract.test/c", "$patch": "delete"}]}}, STRATEGIC)
	assert [c["type"] for c in answer["status"]["conditions"]] == ["PodScheduled"]


def test_condition_patch_with_an_old_version_conflicts(kube, ns):
	old = ns.add(pod("a"))["metadata"]["resourceVersion"]
	path = ns.path(name="a", sub="status")
	body = {"metadata": {"resourceVersion": old}, "status": {"conditions": [condition("SlurmPending")]}}
	assert kube.patch(path, body, STRATEGIC).code == 200
	answer = kube.patch(path, body, STRATEGIC)
	assert answer.code == 409 and answer["reason"] == "Conflict"


def test_terminated_container_is_reported(kube, ns):
	ns.add(pod("a", nodeName="n"))
	state = {"terminated": {"exitCode": 7, "reason": "Error", "startedAt": "2026-01-02T03:04:05Z",
		"finishedAt": "2026-01-02T03:04:06Z", "containerID": "x://1"}}
	status = {"phase": "Failed", "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": False,
		"restartCount": 0, "state": state}]}
	answer = kube.patch(ns.path(name="a", sub="status"), {"status": status}, STRATEGIC)
	assert answer.code == 200 and answer["status"]["containerStatuses"][0]["state"] == state
	assert answer["status"]["qosClass"] == "BestEffort"


def test_node_status_and_cordon(kube, node):
	path = f"/api/v1/nodes/{node}"
	status = {"capacity": {"cpu": "8", "memory": "16384Mi"}, "allocatable": {"cpu": "7500m", "memory": "15Gi"},
		"conditions": [condition("KubeletReady", "True", "Ready")]}
	answer = kube.patch(path + "/status", {"status": status}, STRATEGIC)
	assert answer.code == 200 and answer["status"]["capacity"]["memory"] == "16Gi"
	assert answer["status"]["allocatable"]["cpu"] == "7500m"
	kube.patch(path, {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "1"}}})
	now = kube.get(path).body
	assert now["spec"]["unschedulable"] is True and now["status"]["capacity"]["cpu"] == "8"
	assert "generation" not in now["metadata"]
