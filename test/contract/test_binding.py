# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
from kube import binding, failure, pod


def bind(kube, ns, name, *args, **meta):
	return kube.post(ns.path(name=name, sub="binding"), binding(name, *args, **meta))


def refused(answer, name, why):
	failure(answer, 409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
		name=name, kind="pods/binding")


def test_binding_sets_node_condition_annotations_and_labels(kube, ns):
	made = ns.add(pod("a", meta={"annotations": {"kept": "1", "changed": "old"}}))
	answer = bind(kube, ns, "a", uid=made["metadata"]["uid"], annotations={"changed": "new", "job": "7"}, labels={"l": "m"})
	assert answer.code == 201
	assert answer.body == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
	bound = kube.get(ns.path(name="a")).body
	assert bound["spec"]["nodeName"] == "contract-node"
	assert bound["metadata"]["annotations"] == {"kept": "1", "changed": "new", "job": "7"}
	assert bound["metadata"]["labels"] == {"l": "m"}
	condition, = bound["status"]["conditions"]
	assert condition.pop("lastTransitionTime")
	assert condition == {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
	assert bound["metadata"]["generation"] == made["metadata"]["generation"]


def test_binding_again_is_refused_also_for_the_same_node(kube, ns):
	ns.add(pod("a"))
	assert bind(kube, ns, "a", "one").code == 201
	refused(bind(kube, ns, "a", "one"), "a", 'pod a is already assigned to node "one"')
	refused(bind(kube, ns, "a", "two"), "a", 'pod a is already assigned to node "one"')


def test_binding_with_another_uid_is_refused(kube, ns):
	uid = ns.add(pod("a"))["metadata"]["uid"]
	failure(bind(kube, ns, "a", uid="other"), 409, "Conflict",
		'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
		f"Key: /registry/pods/{ns.name}/a, ResourceVersion: 0, AdditionalErrorMsg: "
		f"Precondition failed: UID in precondition: other, UID in object meta: {uid}", name="a", kind="pods")
	assert "nodeName" not in kube.get(ns.path(name="a"))["spec"]


def test_wrong_uid_is_said_before_already_bound(kube, ns):
	ns.add(pod("a"))
	bind(kube, ns, "a")
	assert "Precondition failed: UID" in bind(kube, ns, "a", uid="other")["message"]


def test_binding_with_an_older_version_is_refused(kube, ns):
	old = ns.add(pod("a"))["metadata"]["resourceVersion"]
	kube.patch(ns.path(name="a"), {"metadata": {"labels": {"x": "y"}}})
	answer = bind(kube, ns, "a", resourceVersion=old)
	assert answer.code == 409 and "Precondition failed: ResourceVersion in precondition: " + old in answer["message"]


def test_binding_of_a_missing_pod_is_not_found(kube, ns):
	failure(bind(kube, ns, "none"), 404, "NotFound", 'pods "none" not found', name="none", kind="pods")


def test_binding_of_a_pod_that_is_being_deleted_is_refused(kube, ns):
	ns.add(pod("a", meta={"finalizers": ["contract.test/x"]}))
	kube.delete(ns.path(name="a"))
	refused(bind(kube, ns, "a"), "a", "pod a is being deleted, cannot be assigned to a host")


def test_binding_of_a_gated_pod_is_refused(kube, ns):
	made = ns.add(pod("a", schedulingGates=[{"name": "contract.test/gate"}]))
	condition, = made["status"]["conditions"]
	assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")
	refused(bind(kube, ns, "a"), "a", "pod a has non-empty .spec.schedulingGates")
	assert kube.patch(ns.path(name="a"), {"spec": {"schedulingGates": None}}).code == 200
	assert bind(kube, ns, "a").code == 201


def test_binding_needs_a_target_and_the_same_name(kube, ns):
	ns.add(pod("a"))
	failure(bind(kube, ns, "a", ""), 500, "", "target.name: Required value")
	failure(kube.post(ns.path(name="a", sub="binding"), binding("b")), 400, "BadRequest",
		"name in URL does not match name in Binding object")


def test_binding_replaces_the_condition_of_a_waiting_pod(kube, ns):
	ns.add(pod("a"))
	waiting = {"type": "PodScheduled", "status": "False", "reason": "SlurmPending", "message": "Priority"}
	kube.patch(ns.path(name="a", sub="status"), {"status": {"conditions": [waiting]}},
		"application/strategic-merge-patch+json")
	bind(kube, ns, "a")
	condition, = kube.get(ns.path(name="a"))["status"]["conditions"]
	assert condition["status"] == "True" and "reason" not in condition and "message" not in condition


def test_node_name_cannot_be_set_by_a_patch(kube, ns):
	ns.add(pod("a"))
	answer = kube.patch(ns.path(name="a"), {"spec": {"nodeName": "n"}})
	assert answer.code == 422 and answer["reason"] == "Invalid"
