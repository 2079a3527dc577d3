# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import base64
import json

import pytest
from kube import failure, pod


def names(answer):
	assert answer.code == 200, answer
	return [item["metadata"]["name"] for item in answer["items"]]


def test_list_has_envelope_and_items_without_kind(kube, ns):
	ns.add(pod("a"))
	answer = kube.get(ns.path())
	assert answer["kind"] == "PodList" and answer["apiVersion"] == "v1"
	assert int(answer["metadata"]["resourceVersion"]) > 0
	assert set(answer["metadata"]) == {"resourceVersion"}
	assert "kind" not in answer["items"][0] and "apiVersion" not in answer["items"][0]
	assert answer.headers["Content-Type"] == "application/json"


def test_empty_list_has_an_empty_array(kube, ns):
	assert kube.get(ns.path())["items"] == []
	assert kube.get("/api/v1/namespaces/never-made/pods")["items"] == []


def test_object_has_kind_and_its_own_version(kube, ns):
	made = ns.add(pod("a"))
	answer = kube.get(ns.path(name="a"))
	assert answer["kind"] == "Pod" and answer["apiVersion"] == "v1"
	assert answer["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
	assert int(ns.list_rv()) >= int(made["metadata"]["resourceVersion"])


def test_missing_object_is_not_found(kube, ns):
	failure(kube.get(ns.path(name="none")), 404, "NotFound", 'pods "none" not found', name="none", kind="pods")
	failure(kube.get(ns.path("leases", "none", group="coordination.k8s.io")), 404, "NotFound",
		'leases.coordination.k8s.io "none" not found', name="none", group="coordination.k8s.io", kind="leases")


def test_unknown_resources_are_not_found(kube, ns):
	failure(kube.get("/api/v1/nothings"), 404, "NotFound", "the server could not find the requested resource")
	answer = kube.get("/apis/no.such.group/v1/things")
	assert answer.code == 404 and answer.body == "404 page not found\n"


def test_any_version_and_older_versions_are_served_from_what_is_there(kube, ns):
	old = ns.list_rv()
	ns.add(pod("a"))
	assert names(kube.get(ns.path(), resourceVersion="0")) in ([], ["a"])
	assert names(kube.get(ns.path(), resourceVersion=old)) == ["a"]
	assert names(kube.get(ns.path(), resourceVersion=old, resourceVersionMatch="NotOlderThan")) == ["a"]
	assert names(kube.get(ns.path())) == ["a"]


def test_exact_version_shows_the_past(kube, ns):
	ns.add(pod("a"))
	old = ns.list_rv()
	ns.add(pod("b"))
	kube.patch(ns.path(name="a"), {"metadata": {"labels": {"new": "yes"}}})
	answer = kube.get(ns.path(), resourceVersion=old, resourceVersionMatch="Exact")
	assert names(answer) == ["a"] and "labels" not in answer["items"][0]["metadata"]
	assert answer["metadata"]["resourceVersion"] == old


def test_version_of_the_future_is_too_large(kube, ns):
	answer = kube.get(ns.path(), resourceVersion="999999999")
	status = answer.body
	assert answer.code == 504 and status["reason"] == "Timeout"
	assert status["message"].startswith("Timeout: Too large resource version: 999999999, current: ")
	assert status["details"] == {"retryAfterSeconds": 1, "causes": [
		{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
	assert answer.headers["Retry-After"] == "1"


def test_match_without_version_is_invalid(kube, ns):
	message = "resourceVersionMatch is forbidden unless resourceVersion is provided"
	failure(kube.get(ns.path(), resourceVersionMatch="Exact"), 422, "Invalid",
		f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {message}',
		group="meta.k8s.io", kind="ListOptions",
		causes=[{"reason": "FieldValueForbidden", "message": f"Forbidden: {message}", "field": "resourceVersionMatch"}])


def test_pages_follow_each_other_and_show_one_moment(kube, ns):
	for name in "abcde":
		ns.add(pod(name))
	first = kube.get(ns.path(), limit=2)
	assert names(first) == ["a", "b"] and first["metadata"]["remainingItemCount"] == 3
	ns.add(pod("bb"))
	kube.delete(ns.path(name="c"))
	second = kube.get(ns.path(), limit=2, **{"continue": first["metadata"]["continue"]})
	assert names(second) == ["c", "d"] and second["metadata"]["remainingItemCount"] == 1
	assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
	third = kube.get(ns.path(), limit=2, **{"continue": second["metadata"]["continue"]})
	assert names(third) == ["e"]
	assert "continue" not in third["metadata"] and "remainingItemCount" not in third["metadata"]


def test_pages_with_a_selector_do_not_count_what_remains(kube, ns):
	for name in "abc":
		ns.add(pod(name, meta={"labels": {"k": "v"}}))
	answer = kube.get(ns.path(), limit=1, labelSelector="k=v")
	assert names(answer) == ["a"] and answer["metadata"]["continue"]
	assert "remainingItemCount" not in answer["metadata"]


def test_continue_after_the_past_was_forgotten_is_gone(kube, ns, forget):
	for name in "abc":
		ns.add(pod(name))
	token = kube.get(ns.path(), limit=1)["metadata"]["continue"]
	ns.add(pod("d"))
	forget()
	answer = kube.get(ns.path(), limit=1, **{"continue": token})
	assert answer.code == 410 and answer["reason"] == "Expired"
	assert answer["message"].startswith("The provided continue parameter is too old to display a consistent list result.")
	again = kube.get(ns.path(), limit=1, **{"continue": answer["metadata"]["continue"]})
	assert names(again) == ["b"]


def test_exact_version_that_was_forgotten_is_gone(kube, ns, forget):
	old = ns.list_rv()
	ns.add(pod("a"))
	forget()
	answer = kube.get(ns.path(), resourceVersion=old, resourceVersionMatch="Exact")
	assert answer.code == 410 and answer["reason"] == "Expired"
	assert answer["message"] == "The resourceVersion for the provided list is too old."


def test_broken_continue_is_a_bad_request(kube, ns):
	answer = kube.get(ns.path(), limit=1, **{"continue": "xxx"})
	assert answer.code == 400 and answer["reason"] == "BadRequest"
	assert answer["message"].startswith("invalid continue token: continue key is not valid")


def test_continue_token_is_readable(kube, ns):
	ns.add(pod("a"))
	ns.add(pod("b"))
	answer = kube.get(ns.path(), limit=1)
	token = answer["metadata"]["continue"]
	inside = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
	assert inside == {"v": "meta.k8s.io/v1", "rv": int(answer["metadata"]["resourceVersion"]), "start": "/a\0"}


@pytest.mark.parametrize("selector,expected", [
	("k=v", ["a"]), ("k==v", ["a"]), ("k!=v", ["b", "c"]), ("k", ["a", "b"]), ("!k", ["c"]),
	("k in (v,w)", ["a", "b"]), ("k notin (v)", ["b", "c"]), ("k=v,other=x", ["a"]), ("k=", []), ("", ["a", "b", "c"]),
	("k in (v),other", ["a"]),
])
def test_label_selectors(kube, ns, selector, expected):
	ns.add(pod("a", meta={"labels": {"k": "v", "other": "x"}}))
	ns.add(pod("b", meta={"labels": {"k": "w"}}))
	ns.add(pod("c"))
	assert names(kube.get(ns.path(), labelSelector=selector)) == expected


def test_broken_label_selector_is_a_bad_request(kube, ns):
	failure(kube.get(ns.path(), labelSelector="a=b=c"), 400, "BadRequest", "found '=', expected: ',' or 'end of string'")


@pytest.mark.parametrize("selector,expected", [
	("metadata.name=a", ["a"]), ("metadata.name!=a", ["b"]), ("spec.schedulerName=slurm", ["b"]),
	("spec.schedulerName!=slurm", ["a"]), ("spec.nodeName=", ["a"]), ("spec.nodeName=there", ["b"]),
	("status.phase=Pending", ["a", "b"]), ("status.phase!=Pending", []), ("spec.schedulerName=slurm,spec.nodeName=", []),
	("spec.restartPolicy=Always", ["a", "b"]), ("metadata.namespace=elsewhere", []),
])
def test_field_selectors_of_pods(kube, ns, selector, expected):
	ns.add(pod("a"))
	ns.add(pod("b", schedulerName="slurm", nodeName="there"))
	assert names(kube.get(ns.path(), fieldSelector=selector)) == expected


def test_unknown_field_of_a_selector_is_a_bad_request(kube, ns):
	failure(kube.get(ns.path(), fieldSelector="spec.foo=x"), 400, "BadRequest", "field label not supported: spec.foo")


def test_field_selector_of_nodes(kube, node):
	other = kube.get("/api/v1/nodes", fieldSelector=f"spec.unschedulable=true,metadata.name={node}")
	assert names(other) == []
	kube.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
	assert names(kube.get("/api/v1/nodes", fieldSelector=f"spec.unschedulable=true,metadata.name={node}")) == [node]


def test_pods_of_all_namespaces_are_listed_at_the_root(kube, ns):
	ns.add(pod("a", meta={"labels": {"in": ns.name}}))
	answer = kube.get("/api/v1/pods", labelSelector=f"in={ns.name}")
	assert names(answer) == ["a"]
