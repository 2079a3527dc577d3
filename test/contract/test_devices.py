# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Claims for devices (resource.k8s.io/v1), as whoever schedules writes into them."""
from kube import MERGE, failure

API = "/apis/resource.k8s.io/v1"
ALLOCATION = {"devices": {"results": [{"request": "gpus", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-1"}], "config": []},
	"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}
FINALIZER = "resource.kubernetes.io/delete-protection"


def claim(kube, ns, name="c"):
	path = f"{API}/namespaces/{ns.name}/resourceclaims"
	made = kube.post(path, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
		"spec": {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
		"status": {"allocation": ALLOCATION}})
	assert made.code == 201, made
	return f"{path}/{name}", made.body


def versioned(made, **more):
	return {"metadata": {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}, **more}


def allocated(made, uid="u1"):
	return versioned(made, status={"allocation": ALLOCATION, "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}]})


def test_claim_is_made_without_status_and_with_its_defaults(kube, ns):
	_, made = claim(kube, ns)
	assert not made.get("status")
	assert made["spec"]["devices"]["requests"][0]["exactly"] == {
		"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}


def test_devices_are_written_by_a_patch_of_the_status_that_names_the_version(kube, ns):
	path, made = claim(kube, ns)
	answer = kube.patch(path + "/status", allocated(made), MERGE)
	assert answer.code == 200, answer
	assert answer["status"]["allocation"]["devices"]["results"] == ALLOCATION["devices"]["results"]
	assert answer["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "u1"}]
	failure(kube.patch(path + "/status", allocated(made, "u2"), MERGE), 409, "Conflict", 'Operation cannot be fulfilled on '
		'resourceclaims.resource.k8s.io "c": the object has been modified; please apply your changes to the latest version and try again',
		name="c", group="resource.k8s.io", kind="resourceclaims")


def test_devices_that_are_allocated_are_freed_before_they_are_others(kube, ns):
	path, made = claim(kube, ns)
	made = kube.patch(path + "/status", allocated(made), MERGE).body
	other = allocated(made)
	other["status"]["allocation"] = {"devices": {"results": [{**ALLOCATION["devices"]["results"][0], "device": "gpu-2"}]}}
	answer = kube.patch(path + "/status", other, MERGE)
	assert answer.code == 422 and "status.allocation" in answer["message"] and "immutable" in answer["message"], answer
	free = kube.patch(path + "/status", versioned(made, status={"allocation": None, "reservedFor": None, "devices": None}), MERGE)
	assert free.code == 200 and not free["status"].get("allocation"), free
	other["metadata"]["resourceVersion"] = free["metadata"]["resourceVersion"]
	assert kube.patch(path + "/status", other, MERGE)["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-2"


def test_nobody_has_a_claim_that_has_nothing(kube, ns):
	path, made = claim(kube, ns)
	answer = kube.patch(path + "/status", versioned(made, status={"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}), MERGE)
	assert answer.code == 422 and "status.reservedFor" in answer["message"], answer


def test_what_a_claim_wants_stays(kube, ns):
	path, made = claim(kube, ns)
	answer = kube.patch(path, versioned(made, spec={"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "y"}}]}}), MERGE)
	assert answer.code == 422 and "immutable" in answer["message"], answer


def test_protected_claim_stays_until_its_finalizer_is_gone(kube, ns):
	path, made = claim(kube, ns)
	made = kube.patch(path, {"metadata": {**versioned(made)["metadata"], "finalizers": [FINALIZER]}}, MERGE).body
	assert made["metadata"]["finalizers"] == [FINALIZER]
	assert kube.delete(path).code == 200
	assert kube.get(path)["metadata"]["deletionTimestamp"]
	assert kube.patch(path, {"metadata": {"finalizers": None}}, MERGE).code == 200
	assert kube.get(path).code == 404


def test_drivers_and_classes_are_there(kube):
	slices, classes = f"{API}/resourceslices", f"{API}/deviceclasses"
	made = kube.post(slices, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "contract-1"}, "spec": {
		"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
		"devices": [{"name": "gpu-0", "attributes": {"index": {"int": 0}}}]}})
	assert made.code == 201, made
	assert made["spec"]["devices"][0]["attributes"]["index"] == {"int": 0}
	made = kube.post(classes, {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "contract.example.com"},
		"spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}})
	assert made.code == 201, made
	for path in (f"{slices}/contract-1", f"{classes}/contract.example.com"):
		assert kube.delete(path).code == 200
		assert kube.get(path).code == 404
