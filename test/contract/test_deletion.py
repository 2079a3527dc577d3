# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import datetime

import pytest
from kube import STRATEGIC, failure, pod
from stands.waiting import wait_for

FINALIZER = "contract.test/x"


def bound(ns, name, **spec):
	return ns.add(pod(name, nodeName="contract-node", **spec))


def now():
	return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text):
	return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").timestamp()


def test_unbound_pod_goes_at_once(kube, ns):
	made = ns.add(pod("a"))
	answer = kube.delete(ns.path(name="a"))
	assert answer.code == 200 and answer["kind"] == "Pod"
	meta = answer["metadata"]
	assert meta["uid"] == made["metadata"]["uid"] and meta["deletionGracePeriodSeconds"] == 0
	assert meta["generation"] == made["metadata"]["generation"] + 1
	assert kube.get(ns.path(name="a")).code == 404


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_bound_pod_that_has_ended_goes_at_once(kube, ns, phase):
	bound(ns, "a")
	kube.patch(ns.path(name="a", sub="status"), {"status": {"phase": phase}})
	assert kube.delete(ns.path(name="a")).code == 200
	assert kube.get(ns.path(name="a")).code == 404


def test_bound_pod_gets_its_grace(kube, ns):
	bound(ns, "a")
	answer = kube.delete(ns.path(name="a"))
	meta = answer["metadata"]
	assert answer.code == 200 and meta["deletionGracePeriodSeconds"] == 30
	again = kube.get(ns.path(name="a")).body
	assert again["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
	assert again["metadata"]["resourceVersion"] == meta["resourceVersion"]


@pytest.mark.parametrize("own,asked,expected", [(5, None, 5), (5, 2, 2), (5, 60, 60), (5, -1, 1), (1, None, 1)])
def test_grace_is_what_is_asked_or_the_pods_own(kube, ns, own, asked, expected):
	bound(ns, "a", terminationGracePeriodSeconds=own)
	body = {} if asked is None else {"gracePeriodSeconds": asked}
	assert kube.delete(ns.path(name="a"), body)["metadata"]["deletionGracePeriodSeconds"] == expected


def test_second_delete_may_only_shorten_the_grace(kube, ns):
	bound(ns, "a")
	first = kube.delete(ns.path(name="a")).body["metadata"]
	for body in ({}, {"gracePeriodSeconds": 40}, {"gracePeriodSeconds": 30}):
		same = kube.delete(ns.path(name="a"), body).body["metadata"]
		assert same["deletionGracePeriodSeconds"] == 30
		assert same["resourceVersion"] == first["resourceVersion"]
	shorter = kube.delete(ns.path(name="a"), {"gracePeriodSeconds": 5}).body["metadata"]
	assert shorter["deletionGracePeriodSeconds"] == 5
	assert seconds(first["deletionTimestamp"]) - seconds(shorter["deletionTimestamp"]) == 25
	assert shorter["generation"] == first["generation"]


def test_grace_in_the_query_counts(kube, ns):
	bound(ns, "a")
	assert kube.delete(ns.path(name="a"), gracePeriodSeconds=3)["metadata"]["deletionGracePeriodSeconds"] == 3


def test_kubelet_ends_a_deletion_with_grace_zero_and_uid(kube, ns):
	uid = bound(ns, "a")["metadata"]["uid"]
	kube.delete(ns.path(name="a"))
	assert kube.delete(ns.path(name="a"), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}).code == 200
	assert kube.get(ns.path(name="a")).code == 404


def test_forced_deletion_of_a_running_pod_forgets_it_at_once(kube, ns):
	bound(ns, "a")
	kube.patch(ns.path(name="a", sub="status"), {"status": {"phase": "Running"}})
	assert kube.delete(ns.path(name="a"), {"gracePeriodSeconds": 0}).code == 200
	assert kube.get(ns.path(name="a")).code == 404


def test_finalizer_keeps_an_unbound_pod_until_it_is_removed(kube, ns):
	ns.add(pod("a", meta={"finalizers": [FINALIZER]}))
	marked = kube.delete(ns.path(name="a")).body
	assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
	again = kube.delete(ns.path(name="a")).body
	assert again["metadata"]["resourceVersion"] == marked["metadata"]["resourceVersion"]
	patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
	answer = kube.patch(ns.path(name="a"), patch, STRATEGIC)
	assert answer.code == 200 and "finalizers" not in answer["metadata"]
	assert kube.get(ns.path(name="a")).code == 404


def test_removing_the_finalizer_does_not_end_a_grace_that_runs(kube, ns):
	bound(ns, "a", meta={"finalizers": [FINALIZER]})
	kube.delete(ns.path(name="a"))
	assert kube.patch(ns.path(name="a"), {"metadata": {"finalizers": None}}).code == 200
	still = kube.get(ns.path(name="a")).body
	assert still["metadata"]["deletionGracePeriodSeconds"] == 30 and "finalizers" not in still["metadata"]
	kube.delete(ns.path(name="a"), {"gracePeriodSeconds": 0})
	assert kube.get(ns.path(name="a")).code == 404


def test_finalizer_outlives_the_kubelets_last_delete(kube, ns):
	uid = bound(ns, "a", meta={"finalizers": [FINALIZER]})["metadata"]["uid"]
	first = kube.delete(ns.path(name="a"))["metadata"]["deletionTimestamp"]
	kube.patch(ns.path(name="a", sub="status"), {"status": {"phase": "Failed"}})
	answer = kube.delete(ns.path(name="a"), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
	assert answer.code == 200 and answer["metadata"]["deletionGracePeriodSeconds"] == 0
	# when its 30 s began, or now if a second has passed since: never in the past
	assert seconds(first) - 30 <= seconds(answer["metadata"]["deletionTimestamp"]) <= seconds(now())
	assert kube.get(ns.path(name="a"))["status"]["phase"] == "Failed"
	kube.patch(ns.path(name="a"), {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}, STRATEGIC)
	assert kube.get(ns.path(name="a")).code == 404


@pytest.mark.parametrize("asked, expected", [(0, 0), (1, 1), (2, 1)])
def test_shorter_grace_that_is_over_already_ends_now_and_not_in_the_past(kube, ns, asked, expected):
	bound(ns, "a", meta={"finalizers": [FINALIZER]})
	began = seconds(kube.delete(ns.path(name="a"))["metadata"]["deletionTimestamp"]) - 30
	wait_for("three seconds of that grace to be over", lambda: seconds(now()) >= began + 3, 5)
	meta = kube.delete(ns.path(name="a"), {"gracePeriodSeconds": asked})["metadata"]
	assert seconds(meta["deletionTimestamp"]) >= began + 3 and meta["deletionGracePeriodSeconds"] == expected


def test_no_finalizer_is_added_to_what_is_being_deleted(kube, ns):
	ns.add(pod("a", meta={"finalizers": [FINALIZER]}))
	kube.delete(ns.path(name="a"))
	answer = kube.patch(ns.path(name="a"), {"metadata": {"finalizers": ["contract.test/y"]}}, STRATEGIC)
	assert answer.code == 422 and answer["reason"] == "Invalid"
	assert "no new finalizers can be added if the object is being deleted" in answer["message"]


def test_deletion_with_another_uid_or_version_is_refused(kube, ns):
	meta = ns.add(pod("a"))["metadata"]
	failure(kube.delete(ns.path(name="a"), {"preconditions": {"uid": "other"}}), 409, "Conflict",
		'Operation cannot be fulfilled on Pod "a": the UID in the precondition (other) does not match the UID in '
		f"record ({meta['uid']}). The object might have been deleted and then recreated", name="a", kind="Pod")
	failure(kube.delete(ns.path(name="a"), {"preconditions": {"resourceVersion": "1"}}), 409, "Conflict",
		'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match the '
		f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified",
		name="a", kind="Pod")
	body = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
	assert kube.delete(ns.path(name="a"), body).code == 200


def test_deleting_what_is_not_there_is_not_found(kube, ns):
	failure(kube.delete(ns.path(name="none")), 404, "NotFound", 'pods "none" not found', name="none", kind="pods")


def test_deletion_of_other_kinds_answers_with_a_status(kube, ns):
	made = ns.add({"metadata": {"name": "a"}}, "configmaps")
	answer = kube.delete(ns.path("configmaps", "a"))
	assert answer.code == 200 and answer.body == {"kind": "Status", "apiVersion": "v1", "metadata": {},
		"status": "Success", "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}}


def test_collection_is_deleted_by_selector(kube, ns):
	for name, label in (("a", "v"), ("b", "v"), ("c", "w")):
		ns.add(pod(name, meta={"labels": {"k": label}}))
	answer = kube.delete(ns.path(), labelSelector="k=v")
	assert answer.code == 200 and answer["kind"] == "PodList"
	assert [p["metadata"]["name"] for p in kube.get(ns.path())["items"]] == ["c"]


def test_dry_run_deletes_nothing(kube, ns):
	ns.add(pod("a"))
	assert kube.delete(ns.path(name="a"), dryRun="All").code == 200
	assert kube.get(ns.path(name="a")).code == 200


def test_namespace_that_ends_takes_no_new_objects(kube, ns):
	ns.add(pod("a", meta={"finalizers": [FINALIZER]}))
	answer = kube.delete(f"/api/v1/namespaces/{ns.name}")
	assert answer.code == 200 and answer["status"]["phase"] == "Terminating"
	failure(kube.post(ns.path(), pod("b")), 403, "Forbidden",
		f'pods "b" is forbidden: unable to create new content in namespace {ns.name} because it is being terminated',
		name="b", kind="pods", causes=[{"reason": "NamespaceTerminating",
			"message": f"namespace {ns.name} is being terminated", "field": "metadata.namespace"}])


def test_default_namespace_stays(kube):
	failure(kube.delete("/api/v1/namespaces/default"), 403, "Forbidden",
		'namespaces "default" is forbidden: this namespace may not be deleted', name="default", kind="namespaces")
