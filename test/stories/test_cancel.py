# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Ends that somebody wants: scancel and kubectl delete. What a pod holds is free only when its processes are gone."""
import time

import pytest
from stands.replays import once_only
from world import POLITE, STUBBORN

GRACE = 4


def test_cancelled_job_deletes_its_running_pod_and_the_event_says_who(stand):
	mine, admins = (stand.pod(name, POLITE) for name in ("mine", "admins"))
	mine.wait_running()
	admins.wait_running()
	stand.run("scancel", str(mine.job_id), user="daemon")
	stand.run("scancel", str(admins.job_id))
	for pod, who in ((mine, "daemon (uid 1)"), (admins, "root (uid 0)")):
		event = pod.wait_event("SlurmJobEnded")
		assert event[:2] == ("Warning", "SlurmJobEnded")
		assert f"Slurm job {pod.job_id} ended: CANCELLED by {who}" in event[2] and "the pod is deleted" in event[2]
	for pod in (mine, admins):
		pod.wait_gone()
		assert [run.stop is not None for run in pod.runs()] == [True]
		assert pod.job()["JobState"] == "CANCELLED"


def test_cancelled_job_deletes_its_pending_pod_and_the_event_says_who(stand):
	blocker = stand.batch(8)
	blocker.wait("RUNNING")
	pod = stand.pod("pending", node="n1")
	job = pod.wait_job("PENDING")
	stand.run("scancel", job["JobId"], user="daemon")
	event = pod.wait_event("SlurmJobEnded")
	assert f"Slurm job {job['JobId']} ended: CANCELLED by daemon (uid 1)" in event[2]
	pod.wait_gone()
	assert not pod.runs() and not stand.bindings().get(pod.uid)
	assert [j["JobState"] for j in pod.jobs()] == ["CANCELLED"]


def test_deleting_a_pending_pod_cancels_its_job(stand):
	blocker = stand.batch(8)
	blocker.wait("RUNNING")
	pod = stand.pod("pending", node="n1")
	pod.wait_job("PENDING")
	pod.delete()
	pod.wait_gone()
	pod.wait_job("CANCELLED")
	assert "the pod was deleted" in pod.job()["SystemComment"]
	assert not pod.runs()
	assert blocker.state == "RUNNING"


def delete(pod):
	pod.delete()


def force(pod):
	"""kubectl delete --force --grace-period=0"""
	pod.delete(now=True)


def scancel(pod):
	pod.stand.run("scancel", str(pod.job_id))


@once_only
@pytest.mark.parametrize("end", [delete, force, scancel])
def test_cores_are_free_only_when_the_container_is_gone(stand, end):
	pods = {"n1": stand.pod("polite", POLITE, cpu="8", node="n1", grace=GRACE),
		"n2": stand.pod("stubborn", STUBBORN, cpu="8", node="n2", grace=GRACE)}
	for pod in pods.values():
		pod.wait_running()
	rivals = {node: stand.batch(8, node=node) for node in pods}
	stand.scheduled()
	assert [rival.state for rival in rivals.values()] == ["PENDING"] * 2
	asked = time.time()
	for pod in pods.values():
		end(pod)
	for node, rival in rivals.items():
		pod = pods[node]
		began = rival.wait_started()
		run, = pod.runs()
		given = stand.allocated_at(rival.id)
		assert run.stop and given, pod.about()
		print(f"{end.__name__} {pod.name}: container ended after {run.stop - asked:.3f} s, "
			f"its cores went to the next job {given - run.stop:.3f} s later")
		assert run.stop < given < began
		job = pod.wait_job("CANCELLED")
		assert job["NodeList"] == node
		if end is not force:
			# it had its time to end by itself
			assert pod.name == "polite" or run.stop - asked > GRACE - 1
		pod.wait_gone()
	assert all(len(where) == 1 for where in stand.bindings().values())


def test_part_of_a_node_is_free_only_when_the_container_is_gone(stand):
	"""Other cores of the node are used meanwhile."""
	pod = stand.pod("stubborn", STUBBORN, cpu="6", node="n1", grace=6)
	pod.wait_running()
	wide, narrow = stand.batch(4, node="n1"), stand.batch(1, node="n1")
	narrow.wait_started()
	assert wide.state == "PENDING"
	pod.delete(grace=6)
	other = stand.batch(1, node="n1")
	other.wait_started()
	assert pod.runs()[0].stop is None, "the other job had to wait for the pod"
	began = wide.wait_started()
	assert pod.runs()[0].stop < stand.allocated_at(wide.id) < began


@pytest.mark.apis("real")  # kubesim's kubelets have no sandboxes
def test_cores_of_a_deleted_pod_are_free_only_when_its_kubelet_admits_another_in_its_place(stand):
	"""It tells of the end of the containers first. Until their sandbox is gone too, the pod counts, and another is OutOfcpu."""
	first = stand.pod("first", "sleep 2", node="n1").wait_running()
	with stand.paused("kubelet-n1"):  # else a deletion is hardly ever seen together with the end
		first.wait("its end", lambda: first.runs()[0].stop)
		first.delete()
	first.wait_gone()
	patches = [(event["user"]["username"], event["objectRef"].get("subresource"), event.get("requestObject") or {})
		for event in stand.audit() if event["verb"] == "patch" and event["objectRef"].get("name") == first.name]
	released = max(n for n, (who, part, _) in enumerate(patches) if who == "slurm-k8s" and not part)
	assert [body for _, part, body in patches[:released] if part and body["status"].get("phase") == "Succeeded"], patches
