# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import pytest
from kube import TABLE, pod


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_health_is_ok(kube, path):
	answer = kube.get(path)
	assert answer.code == 200 and answer.body == "ok"


def test_version_names_a_release(kube):
	version = kube.get("/version").body
	assert version["major"] == "1" and version["gitVersion"].startswith("v1.35")


def test_unknown_path_is_not_found(kube):
	answer = kube.get("/nothing")
	assert answer.code == 404


CORE = {
	"pods": (True, "Pod", ["po"]), "pods/status": (True, "Pod", None), "pods/binding": (True, "Binding", None),
	"pods/log": (True, "Pod", None), "pods/resize": (True, "Pod", None), "nodes": (False, "Node", ["no"]), "nodes/status": (False, "Node", None),
	"events": (True, "Event", ["ev"]), "namespaces": (False, "Namespace", ["ns"]),
	"configmaps": (True, "ConfigMap", ["cm"]), "persistentvolumeclaims": (True, "PersistentVolumeClaim", ["pvc"]),
	"persistentvolumes": (False, "PersistentVolume", ["pv"]), "serviceaccounts": (True, "ServiceAccount", ["sa"]),
	"secrets": (True, "Secret", None),
}


def test_core_resources_are_listed(kube):
	answer = kube.get("/api/v1")
	assert answer["kind"] == "APIResourceList" and answer["groupVersion"] == "v1"
	found = {r["name"]: r for r in answer["resources"]}
	for name, (namespaced, kind, short) in CORE.items():
		assert (found[name]["namespaced"], found[name]["kind"], found[name].get("shortNames")) == (namespaced, kind, short)
	everything = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
	assert found["pods"]["verbs"] == everything
	assert found["pods/binding"]["verbs"] == ["create"]
	assert found["pods/status"]["verbs"] == ["get", "patch", "update"]
	assert found["pods"]["singularName"] == "pod" and found["pods"]["categories"] == ["all"]


@pytest.mark.parametrize("group,resource,kind", [
	("coordination.k8s.io", "leases", "Lease"), ("storage.k8s.io", "storageclasses", "StorageClass"),
	("events.k8s.io", "events", "Event"), ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
	("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
	("scheduling.k8s.io", "priorityclasses", "PriorityClass")])
def test_groups_are_listed(kube, group, resource, kind):
	version = {"groupVersion": f"{group}/v1", "version": "v1"}
	entry = {g["name"]: g for g in kube.get("/apis")["groups"]}[group]
	assert version in entry["versions"] and entry["preferredVersion"] == version
	listed = kube.get(f"/apis/{group}/v1")
	assert listed["groupVersion"] == f"{group}/v1"
	assert {r["name"]: r["kind"] for r in listed["resources"]}[resource] == kind
	alone = kube.get(f"/apis/{group}")
	assert alone["kind"] == "APIGroup" and alone["name"] == group


def table(kube, path, **query):
	answer = kube.call("GET", path, accept=TABLE, **query)
	assert answer.code == 200 and answer["kind"] == "Table" and answer["apiVersion"] == "meta.k8s.io/v1"
	assert answer["metadata"]["resourceVersion"]
	columns = [(c["name"], c["type"], c["format"], c["priority"]) for c in answer["columnDefinitions"]]
	assert all(len(r["cells"]) == len(columns) for r in answer["rows"])
	return columns, answer["rows"]


def plain(*names, wide=()):
	first = [(n, "string", "name" if n == "Name" else "", 0) for n in names]
	return first + [(n, "string", "", 1) for n in wide]


def test_table_of_pods(kube, ns):
	ns.add(pod("a"))
	ns.add(pod("b", nodeName="n1"))
	state = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 2,
		"state": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-02T03:04:05Z"}}}
	kube.patch(ns.path(name="b", sub="status"), {"status": {"phase": "Failed", "containerStatuses": [state]}})
	ns.add(pod("c", schedulingGates=[{"name": "contract.test/gate"}]))
	ns.add(pod("d", nodeName="n1"))
	kube.delete(ns.path(name="d"))
	columns, rows = table(kube, ns.path())
	assert columns == plain("Name", "Ready", "Status", "Restarts", "Age",
		wide=("IP", "Node", "Nominated Node", "Readiness Gates"))
	cells = [row["cells"][:4] + row["cells"][5:] for row in rows]
	assert cells == [
		["a", "0/1", "Pending", "0", "<none>", "<none>", "<none>", "<none>"],
		["b", "0/1", "Error", "2", "<none>", "n1", "<none>", "<none>"],
		["c", "0/1", "SchedulingGated", "0", "<none>", "<none>", "<none>", "<none>"],
		["d", "0/1", "Terminating", "0", "<none>", "n1", "<none>", "<none>"]]
	assert rows[0]["object"]["kind"] == "PartialObjectMetadata" and rows[0]["object"]["metadata"]["name"] == "a"


def test_table_shows_running_and_rejected_pods(kube, ns):
	ns.add(pod("a", nodeName="n1"))
	running = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
		"state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}
	kube.patch(ns.path(name="a", sub="status"), {"status": {"phase": "Running", "containerStatuses": [running]}})
	ns.add(pod("b", nodeName="n1"))
	kube.patch(ns.path(name="b", sub="status"), {"status": {"phase": "Failed", "reason": "OutOfcpu"}})
	_, rows = table(kube, ns.path())
	assert [r["cells"][:3] for r in rows] == [["a", "1/1", "Running"], ["b", "0/1", "OutOfcpu"]]


def test_table_of_one_object_and_of_whole_objects(kube, ns):
	ns.add(pod("a"))
	_, rows = table(kube, ns.path(name="a"))
	assert [r["cells"][0] for r in rows] == ["a"]
	_, rows = table(kube, ns.path(), includeObject="Object")
	assert rows[0]["object"]["kind"] == "Pod" and rows[0]["object"]["spec"]
	_, rows = table(kube, ns.path(), includeObject="None")
	assert not rows[0].get("object")


def test_table_of_nodes(kube, node):
	kube.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True},
		"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}})
	kube.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
	columns, rows = table(kube, f"/api/v1/nodes/{node}")
	assert columns == plain("Name", "Status", "Roles", "Age", "Version",
		wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"))
	cells = rows[0]["cells"]
	assert cells[:3] + cells[4:] == [node, "Ready,SchedulingDisabled", "worker", "", "<none>", "<none>", "<unknown>",
		"<unknown>", "<unknown>"]


def test_table_of_events(kube, ns):
	ns.add({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": ns.name, "name": "a"},
		"reason": "R", "message": "words", "type": "Normal", "count": 3, "source": {"component": "slurm"},
		"firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z"}, "events")
	columns, rows = table(kube, ns.path("events"))
	assert [(c[0], c[3]) for c in columns] == [("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0),
		("Subobject", 1), ("Source", 1), ("Message", 0), ("First Seen", 1), ("Count", 1), ("Name", 1)]
	cells = rows[0]["cells"]
	assert cells[1:7] == ["Normal", "R", "pod/a", "", "slurm", "words"] and cells[8:] == [3, "e"]
	assert cells[0] == cells[7]


@pytest.mark.parametrize("path,names", [
	("/api/v1/namespaces", ["Name", "Status", "Age"]), ("/api/v1/configmaps", ["Name", "Data", "Age"]),
	("/apis/coordination.k8s.io/v1/leases", ["Name", "Holder", "Age"]),
	("/apis/rbac.authorization.k8s.io/v1/clusterroles", ["Name", "Created At"]),
	("/api/v1/persistentvolumeclaims", ["Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass",
		"VolumeAttributesClass", "Age", "VolumeMode"]),
	("/api/v1/persistentvolumes", ["Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim",
		"StorageClass", "VolumeAttributesClass", "Reason", "Age", "VolumeMode"]),
	("/apis/storage.k8s.io/v1/storageclasses", ["Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode",
		"AllowVolumeExpansion", "Age"]),
	("/apis/scheduling.k8s.io/v1/priorityclasses", ["Name", "Value", "Global-Default", "Age", "PreemptionPolicy"]),
	("/api/v1/secrets", ["Name", "Type", "Data", "Age"]),
	("/api/v1/serviceaccounts", ["Name", "Age"]),
	("/apis/rbac.authorization.k8s.io/v1/rolebindings", ["Name", "Role", "Age", "Users", "Groups", "ServiceAccounts"]),
])
def test_columns_of_other_tables(kube, path, names):
	columns, _ = table(kube, path)
	assert [c[0] for c in columns] == names


def test_metadata_only_lists(kube, ns):
	ns.add(pod("a"))
	answer = kube.call("GET", ns.path(), accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	assert answer.code == 200 and answer["kind"] == "PartialObjectMetadataList"
	assert set(answer["items"][0]) <= {"metadata", "kind", "apiVersion"}
