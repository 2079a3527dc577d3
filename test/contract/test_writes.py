# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
from kube import JSON_PATCH, MERGE, STRATEGIC, failure, pod

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def modified(answer, resource, name):
	failure(answer, 409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {MODIFIED}',
		name=name, kind=resource.split(".")[0], **({"group": resource.split(".", 1)[1]} if "." in resource else {}))


def test_every_write_raises_the_version(kube, ns):
	made = ns.add(pod("a"))
	versions = [int(made["metadata"]["resourceVersion"])]
	for i in range(3):
		answer = kube.patch(ns.path(name="a"), {"metadata": {"labels": {"i": str(i)}}})
		versions.append(int(answer["metadata"]["resourceVersion"]))
	assert versions == sorted(set(versions))


def test_second_create_already_exists(kube, ns):
	ns.add(pod("a"))
	failure(kube.post(ns.path(), pod("a")), 409, "AlreadyExists", 'pods "a" already exists', name="a", kind="pods")


def test_annotations_have_a_limit(kube, ns):
	def annotated(size):
		return {"annotations": {"example.com/a": "x" * (size - len("example.com/a"))}}
	ns.add(pod("largest", meta=annotated(256 << 10)))
	for answer in (kube.post(ns.path(), pod("a", meta=annotated((256 << 10) + 1))),
			kube.patch(ns.path(name="largest"), {"metadata": annotated((256 << 10) + 1)})):
		assert answer.code == 422 and answer["reason"] == "Invalid"
		assert answer["message"].endswith(" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes")


def test_create_in_a_missing_namespace_is_not_found(kube):
	failure(kube.post("/api/v1/namespaces/never-made/pods", pod("a")), 404, "NotFound",
		'namespaces "never-made" not found', name="never-made", kind="namespaces")


def test_create_with_another_namespace_is_a_bad_request(kube, ns):
	failure(kube.post(ns.path(), pod("a", meta={"namespace": "default"})), 400, "BadRequest",
		"the namespace of the provided object does not match the namespace sent on the request")


def test_create_of_another_kind_is_a_bad_request(kube, ns):
	answer = kube.post(ns.path(), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
	failure(answer, 400, "BadRequest", 'Node in version "v1" cannot be handled as a Pod: converting (v1.Node) to '
		"(core.Pod): unknown conversion")


def test_generated_name_has_five_more_letters(kube, ns):
	body = pod("")
	body["metadata"] = {"generateName": "job-"}
	name = ns.add(body)["metadata"]["name"]
	assert name.startswith("job-") and len(name) == 9


def test_dry_run_creates_nothing(kube, ns):
	answer = kube.post(ns.path(), pod("a"), dryRun="All")
	assert answer.code == 201 and answer["status"]["phase"] == "Pending"
	assert kube.get(ns.path(name="a")).code == 404


def test_put_with_an_old_version_conflicts(kube, ns):
	made = ns.add(pod("a"))
	kube.patch(ns.path(name="a"), {"metadata": {"labels": {"x": "y"}}})
	modified(kube.put(ns.path(name="a"), made), "pods", "a")
	fresh = kube.get(ns.path(name="a")).body
	fresh["metadata"]["labels"]["z"] = "1"
	answer = kube.put(ns.path(name="a"), fresh)
	assert answer.code == 200 and answer["metadata"]["labels"] == {"x": "y", "z": "1"}


def test_put_with_another_uid_conflicts(kube, ns):
	made = ns.add(pod("a"))
	uid = made["metadata"]["uid"]
	made["metadata"].update(uid="other")
	answer = kube.put(ns.path(name="a"), made)
	assert answer.code == 409 and answer["reason"] == "Conflict"
	assert f"Precondition failed: UID in precondition: other, UID in object meta: {uid}" in answer["message"]


def test_put_needs_the_name_of_the_path(kube, ns):
	ns.add(pod("a"))
	failure(kube.put(ns.path(name="a"), pod("b")), 400, "BadRequest",
		"the name of the object (b) does not match the name on the URL (a)")
	failure(kube.put(ns.path(name="none"), pod("none")), 404, "NotFound", 'pods "none" not found')


def test_patch_with_an_old_version_conflicts(kube, ns):
	old = ns.add(pod("a"))["metadata"]["resourceVersion"]
	kube.patch(ns.path(name="a"), {"metadata": {"labels": {"x": "y"}}})
	for kind in (MERGE, STRATEGIC):
		modified(kube.patch(ns.path(name="a"), {"metadata": {"resourceVersion": old, "labels": {"z": "1"}}}, kind), "pods", "a")
	now = kube.get(ns.path(name="a"))["metadata"]["resourceVersion"]
	answer = kube.patch(ns.path(name="a"), {"metadata": {"resourceVersion": now, "labels": {"z": "1"}}})
	assert answer.code == 200 and answer["metadata"]["labels"] == {"x": "y", "z": "1"}


def test_patch_with_another_uid_is_invalid_not_a_conflict(kube, ns):
	uid = ns.add(pod("a"))["metadata"]["uid"]
	for kind in (MERGE, STRATEGIC):
		for sub in (None, "status"):
			body = {"metadata": {"uid": "other", "labels": {"x": "y"}}}
			answer = kube.patch(ns.path(name="a", sub=sub), body, kind)
			cause = {"reason": "FieldValueInvalid", "message": 'Invalid value: "other": field is immutable',
				"field": "metadata.uid"}
			assert answer.code == 422 and answer["reason"] == "Invalid"
			assert 'metadata.uid: Invalid value: "other": field is immutable' in answer["message"]
			assert cause in answer["details"]["causes"]
	answer = kube.patch(ns.path(name="a"), {"metadata": {"uid": uid, "labels": {"x": "y"}}})
	assert answer.code == 200 and answer["metadata"]["labels"] == {"x": "y"}


def test_merge_patch_deletes_by_null_and_replaces_lists(kube, ns):
	ns.add(pod("a", meta={"labels": {"k": "v", "l": "w"}, "finalizers": ["contract.test/x", "contract.test/y"]}))
	body = {"metadata": {"labels": {"k": None}, "finalizers": ["contract.test/z"]}}
	answer = kube.patch(ns.path(name="a"), body)
	assert answer["metadata"]["labels"] == {"l": "w"} and answer["metadata"]["finalizers"] == ["contract.test/z"]
	assert "labels" not in kube.patch(ns.path(name="a"), {"metadata": {"labels": None}})["metadata"]


def test_strategic_patch_merges_finalizers_as_a_set(kube, ns):
	ns.add(pod("a", meta={"finalizers": ["contract.test/x"]}))
	answer = kube.patch(ns.path(name="a"), {"metadata": {"finalizers": ["contract.test/x", "contract.test/y"]}}, STRATEGIC)
	assert sorted(answer["metadata"]["finalizers"]) == ["contract.test/x", "contract.test/y"]
	body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["contract.test/x"]}}
	assert kube.patch(ns.path(name="a"), body, STRATEGIC)["metadata"]["finalizers"] == ["contract.test/y"]


def test_strategic_patch_merges_containers_by_name(kube, ns):
	ns.add(pod("a", containers=[{"name": "x", "image": "i:1"}, {"name": "y", "image": "i:2"}]))
	answer = kube.patch(ns.path(name="a"), {"spec": {"containers": [{"name": "y", "image": "i:3"}]}}, STRATEGIC)
	assert answer.code == 200 and answer["metadata"]["generation"] == 2
	assert [(c["name"], c["image"]) for c in answer["spec"]["containers"]] == [("x", "i:1"), ("y", "i:3")]


def test_json_patch_tests_and_changes(kube, ns):
	ns.add(pod("a", meta={"labels": {"k": "v"}}))
	operations = [{"op": "test", "path": "/metadata/labels/k", "value": "v"},
		{"op": "replace", "path": "/metadata/labels/k", "value": "w"},
		{"op": "add", "path": "/metadata/annotations", "value": {"a.b/c~d": "1"}},
		{"op": "remove", "path": "/metadata/annotations/a.b~1c~0d"}]
	answer = kube.patch(ns.path(name="a"), operations, JSON_PATCH)
	assert answer.code == 200 and answer["metadata"]["labels"] == {"k": "w"}
	for operation in ({"op": "test", "path": "/metadata/labels/k", "value": "v"},
			{"op": "remove", "path": "/metadata/labels/none"}):
		failure(kube.patch(ns.path(name="a"), [operation], JSON_PATCH), 422, "Invalid",
			"the server rejected our request due to an error in our request")


def test_unknown_patch_type_and_broken_patch_are_refused(kube, ns):
	ns.add(pod("a"))
	failure(kube.patch(ns.path(name="a"), {}, "application/foo"), 415, "UnsupportedMediaType", "415: Unsupported Media Type")
	answer = kube.patch(ns.path(name="a"), '{"metadata":{')
	assert answer.code == 400 and answer["reason"] == "BadRequest"
	failure(kube.patch(ns.path(name="none"), {}), 404, "NotFound", 'pods "none" not found')


def test_names_and_creation_cannot_be_patched(kube, ns):
	made = ns.add(pod("a"))
	assert kube.patch(ns.path(name="a"), {"metadata": {"name": "b"}}).code == 400
	answer = kube.patch(ns.path(name="a"), {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})
	assert answer.code in (200, 422)
	assert "deletionTimestamp" not in kube.get(ns.path(name="a"))["metadata"]
	assert kube.get(ns.path(name="a"))["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


def test_lease_is_taken_by_optimistic_concurrency(kube, ns):
	group = "coordination.k8s.io"
	spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}
	made = ns.add({"metadata": {"name": "l"}, "spec": spec}, "leases", group)
	assert made["kind"] == "Lease" and made["spec"] == spec
	path = ns.path("leases", "l", group=group)
	second = dict(made, spec=dict(spec, holderIdentity="two"))
	answer = kube.put(path, second)
	assert answer.code == 200 and answer["spec"]["holderIdentity"] == "two"
	modified(kube.put(path, dict(made, spec=dict(spec, holderIdentity="three"))), f"leases.{group}", "l")
	blind = {"metadata": {"name": "l"}, "spec": spec}
	answer = kube.put(path, blind)
	assert answer.code == 422 and "metadata.resourceVersion: Invalid value" in answer["message"]
	assert "must be specified for an update" in answer["message"]


def test_lease_put_creates(kube, ns):
	path = ns.path("leases", "new", group="coordination.k8s.io")
	assert kube.put(path, {"metadata": {"name": "new"}, "spec": {"holderIdentity": "me"}}).code == 201


def test_event_is_stored_once_for_both_groups(kube, ns):
	about = {"kind": "Pod", "namespace": ns.name, "name": "a", "uid": "u"}
	ns.add({"metadata": {"name": "e"}, "involvedObject": about, "reason": "SlurmPending", "message": "waits",
		"type": "Normal", "count": 2, "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z",
		"source": {"component": "slurm"}}, "events")
	modern = kube.get(ns.path("events", "e", group="events.k8s.io")).body
	assert modern["apiVersion"] == "events.k8s.io/v1" and modern["note"] == "waits"
	assert modern["regarding"] == about and modern["deprecatedCount"] == 2
	listed = kube.get(ns.path("events"), fieldSelector="involvedObject.name=a,involvedObject.uid=u")
	assert [e["message"] for e in listed["items"]] == ["waits"]
	assert kube.get(ns.path("events"), fieldSelector="involvedObject.name=b")["items"] == []
	assert listed["items"][0]["eventTime"] is None
	count = kube.patch(ns.path("events", "e"), {"count": 3})
	assert count.code == 200 and count["count"] == 3


def test_new_event_group_creates_too(kube, ns):
	about = {"kind": "Pod", "namespace": ns.name, "name": "a"}
	ns.add({"metadata": {"name": "e"}, "regarding": about, "reason": "Placed", "note": "on n1", "type": "Normal",
		"action": "Binding", "reportingController": "slurm-k8s.io/engine", "reportingInstance": "ctl",
		"eventTime": "2026-01-02T03:04:05.000006Z"}, "events", "events.k8s.io")
	core = kube.get(ns.path("events", "e")).body
	assert core["message"] == "on n1" and core["involvedObject"] == about
	assert core["reportingComponent"] == "slurm-k8s.io/engine" and core["eventTime"] == "2026-01-02T03:04:05.000006Z"


def test_event_must_be_where_its_object_is(kube, ns):
	answer = kube.post(ns.path("events"), {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})
	assert answer.code == 422
	assert 'involvedObject.namespace: Invalid value: "default": does not match event.namespace' in answer["message"]


def test_node_is_patched_with_uid_and_version_and_not_when_another_was_faster(kube, node):
	path = f"/api/v1/nodes/{node}"
	made = kube.get(path)

	def patch(version, cordon):
		return kube.patch(path, {"metadata": {"uid": made["metadata"]["uid"], "resourceVersion": version,
			"annotations": {"example.com/owner": "me" if cordon else None}}, "spec": {"unschedulable": cordon}})
	version = made["metadata"]["resourceVersion"]
	cordoned = patch(version, True)
	assert cordoned["spec"]["unschedulable"] is True and cordoned["metadata"]["annotations"]["example.com/owner"] == "me"
	modified(patch(version, None), "nodes", node)
	back = patch(cordoned["metadata"]["resourceVersion"], None)
	assert "unschedulable" not in back["spec"] and "annotations" not in back["metadata"]


def test_condition_of_a_node_is_joined_by_its_type_and_leaves_the_others(kube, node):
	path = f"/api/v1/nodes/{node}"

	def say(kind, status):
		meta = kube.get(path)["metadata"]
		answer = kube.patch(path + "/status", {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
			"status": {"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m"}]}}, STRATEGIC)
		return {c["type"]: c["status"] for c in answer["status"]["conditions"]}
	say("Ready", "True")
	assert say("Mine", "False") == {"Ready": "True", "Mine": "False"}
	assert say("Mine", "True") == {"Ready": "True", "Mine": "True"}
