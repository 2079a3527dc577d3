# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import re

from kube import TABLE, brief, failure, pod


def test_watch_from_a_list_sees_each_change_once(kube, ns):
	rv = ns.list_rv()
	with kube.watch(ns.path(), resourceVersion=rv) as watch:
		assert watch.code == 200 and watch.answer.headers["Content-Type"] == "application/json"
		made = ns.add(pod("a"))
		changed = kube.patch(ns.path(name="a"), {"metadata": {"labels": {"x": "y"}}}).body
		kube.delete(ns.path(name="a"))
		added, modified, marked, deleted = (next(watch) for _ in range(4))
	assert [e["type"] for e in (added, modified, marked, deleted)] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
	assert added["object"]["kind"] == "Pod" and added["object"]["apiVersion"] == "v1"
	assert added["object"]["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
	assert modified["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
	# Even a deletion without grace is first marked, then carried out.
	assert marked["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
	versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in (added, modified, marked, deleted)]
	assert versions == sorted(set(versions))
	assert deleted["object"]["metadata"]["labels"] == {"x": "y"}


def test_watch_replays_what_came_after_its_version(kube, ns):
	ns.add(pod("a"))
	rv = ns.list_rv()
	ns.add(pod("b"))
	ns.add(pod("c"))
	with kube.watch(ns.path(), resourceVersion=rv) as watch:
		assert watch.next(2) == [("ADDED", "b"), ("ADDED", "c")]


def test_watch_without_version_starts_with_what_is_there(kube, ns):
	ns.add(pod("a"))
	ns.add(pod("b"))
	for query in ({}, {"resourceVersion": "0"}):
		with kube.watch(ns.path(), **query) as watch:
			assert sorted(watch.next(2)) == [("ADDED", "a"), ("ADDED", "b")]
			ns.add(pod("c"))
			assert watch.next(1) == [("ADDED", "c")]
			kube.delete(ns.path(name="c"))


def test_watch_sees_only_its_namespace(kube, ns):
	with kube.watch(ns.path(), resourceVersion=ns.list_rv()) as watch:
		kube.post("/api/v1/namespaces/default/pods", pod("elsewhere-" + ns.name))
		kube.delete("/api/v1/namespaces/default/pods/elsewhere-" + ns.name)
		ns.add(pod("here"))
		assert watch.next(1) == [("ADDED", "here")]


def test_object_that_leaves_a_label_selector_is_deleted_and_added_when_it_returns(kube, ns):
	rv = ns.list_rv()
	with kube.watch(ns.path(), resourceVersion=rv, labelSelector="k=v") as watch:
		ns.add(pod("other"))
		ns.add(pod("a", meta={"labels": {"k": "v"}}))
		left = kube.patch(ns.path(name="a"), {"metadata": {"labels": {"k": "w"}}}).body
		kube.patch(ns.path(name="a"), {"metadata": {"labels": {"k": "v"}}})
		events = [next(watch) for _ in range(3)]
	assert [brief(e) for e in events] == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
	gone = events[1]["object"]["metadata"]
	assert gone["labels"] == {"k": "v"}, "the last state that matched"
	assert gone["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_bound_pod_leaves_the_selector_of_unbound_ones(kube, ns):
	rv = ns.list_rv()
	with kube.watch(ns.path(), resourceVersion=rv, fieldSelector="spec.schedulerName=slurm,spec.nodeName=") as watch:
		ns.add(pod("foreign"))
		ns.add(pod("a", schedulerName="slurm"))
		body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
		assert kube.post(ns.path(name="a", sub="binding"), body).code == 201
		events = [next(watch) for _ in range(2)]
	assert [brief(e) for e in events] == [("ADDED", "a"), ("DELETED", "a")]
	assert "nodeName" not in events[1]["object"]["spec"]


def test_scheduler_name_selects_in_a_watch(kube, ns):
	with kube.watch(ns.path(), resourceVersion=ns.list_rv(), fieldSelector="spec.schedulerName=slurm") as watch:
		ns.add(pod("foreign"))
		ns.add(pod("ours", schedulerName="slurm"))
		kube.patch(ns.path(name="ours", sub="status"), {"status": {"phase": "Running"}})
		kube.delete(ns.path(name="ours"), {"gracePeriodSeconds": 0})
		assert watch.next(4) == [("ADDED", "ours"), ("MODIFIED", "ours"), ("MODIFIED", "ours"), ("DELETED", "ours")]


def test_watch_ends_at_its_timeout_after_a_bookmark(kube, ns):
	watch = kube.watch(ns.path(), resourceVersion=ns.list_rv(), timeoutSeconds=4, allowWatchBookmarks="true")
	made = ns.add(pod("a"))
	first, *_, last = list(watch)
	assert brief(first) == ("ADDED", "a")
	assert last["type"] == "BOOKMARK" and last["object"]["kind"] == "Pod"
	assert int(last["object"]["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
	assert "name" not in last["object"]["metadata"]


def test_watch_without_bookmarks_gets_none(kube, ns):
	assert list(kube.watch(ns.path(), resourceVersion=ns.list_rv(), timeoutSeconds=1)) == []


def test_initial_events_end_with_a_bookmark_that_says_so(kube, ns):
	ns.add(pod("a"))
	with kube.watch(ns.path(), sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
			allowWatchBookmarks="true") as watch:
		assert watch.next(1) == [("ADDED", "a")]
		bookmark = next(watch)
		assert bookmark["type"] == "BOOKMARK"
		assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
		ns.add(pod("b"))
		assert watch.next(1) == [("ADDED", "b")]


def test_initial_events_need_a_match(kube, ns):
	message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
	answer = kube.get(ns.path(), watch="1", sendInitialEvents="true")
	failure(answer, 422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {message}')


def test_watch_from_a_forgotten_version_gets_410_in_the_stream(kube, ns, forget):
	forget()
	watch = kube.watch(ns.path(), resourceVersion="1")
	assert watch.code == 200
	events = list(watch)
	assert len(events) == 1 and events[0]["type"] == "ERROR"
	status = events[0]["object"]
	assert status["kind"] == "Status" and status["code"] == 410 and status["reason"] == "Expired"
	assert re.fullmatch(r"too old resource version: 1 \(\d+\)", status["message"])


def test_watch_from_a_version_of_the_future_is_accepted_and_silent_until_that_version_has_come(kube, ns):
	# What a client sees that goes on with a version from before etcd was restored from a backup.
	future = int(ns.list_rv()) + 40
	with kube.watch(ns.path(), resourceVersion=str(future), timeoutSeconds="5", allowWatchBookmarks="true") as watch:
		assert watch.code == 200
		before = ns.add(pod("unseen"))["metadata"]["resourceVersion"]
		assert int(before) <= future
		n = 0
		while int(made := ns.add(pod(f"p{n}"))["metadata"]["resourceVersion"]) <= future:
			n += 1
		events = [e for e in watch if e["type"] != "BOOKMARK"]
	assert [(brief(e), e["object"]["metadata"]["resourceVersion"]) for e in events] == [(("ADDED", f"p{n}"), made)]


def test_bad_version_of_a_watch_is_refused(kube, ns):
	answer = kube.get(ns.path(), watch="1", resourceVersion="abc")
	assert answer.code in (400, 422, 500) and answer["kind"] == "Status"


def test_deletion_by_the_last_finalizer_shows_the_state_before(kube, ns):
	ns.add(pod("a", meta={"finalizers": ["contract.test/x"]}))
	with kube.watch(ns.path(), resourceVersion=ns.list_rv()) as watch:
		kube.delete(ns.path(name="a"))
		kube.patch(ns.path(name="a"), {"metadata": {"finalizers": None}})
		marked, gone = next(watch), next(watch)
	assert (marked["type"], gone["type"]) == ("MODIFIED", "DELETED")
	assert gone["object"]["metadata"]["finalizers"] == ["contract.test/x"]
	assert int(gone["object"]["metadata"]["resourceVersion"]) > int(marked["object"]["metadata"]["resourceVersion"])


def test_no_event_for_a_change_that_changes_nothing(kube, ns):
	made = ns.add(pod("a", meta={"labels": {"k": "v"}}))
	with kube.watch(ns.path(), resourceVersion=ns.list_rv()) as watch:
		same = kube.patch(ns.path(name="a"), {"metadata": {"labels": {"k": "v"}}})
		assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
		ns.add(pod("b"))
		assert watch.next(1) == [("ADDED", "b")]


def test_watch_of_a_table_names_columns_once(kube, ns):
	ns.add(pod("a"))
	with kube.watch(ns.path(), accept=TABLE) as watch:
		first = next(watch)
		ns.add(pod("b"))
		second = next(watch)
	assert first["object"]["kind"] == second["object"]["kind"] == "Table"
	assert first["object"]["columnDefinitions"] and not second["object"].get("columnDefinitions")
	assert second["object"]["rows"][0]["cells"][0] == "b"
