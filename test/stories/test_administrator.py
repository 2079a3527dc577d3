# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What an administrator does to a pod's job acts as on any job, and stays."""
import time

import pytest
from node import Node
from stands.replays import once_only
from stands.waiting import wait_for


def settled(stand):
	"""Several of the engine's scans (one in 250 ms) and both of Slurm's schedulers have passed."""
	until = time.monotonic() + 1.5
	stand.scheduled()
	wait_for("some scans", lambda: time.monotonic() > until, 10)


class Waiting:
	"""Pods that wait as no core of either node is free, and what the administrator does to their jobs."""

	def __init__(self, stand):
		self.stand = stand
		self.blockers = [stand.batch(8, node=node) for node in ("n1", "n2")]
		for blocker in self.blockers:
			blocker.wait("RUNNING")
		self.held, self.first, self.second = stand.pod("held"), stand.pod("first"), stand.pod("second", "sleep 2")
		held, first, second = (pod.wait_job("PENDING")["JobId"] for pod in (self.held, self.first, self.second))
		stand.scontrol("hold", held)
		stand.update(second, "Priority=4294967000", "Partition=low", "TimeLimit=17")
		stand.update(first, "Nice=100", "ExcNodeList=n2", "Comment=mine")

	def make_room(self):
		while self.blockers:
			self.blockers.pop().cancel()


@pytest.fixture(scope="module")
def waiting(shared):
	"""For the first two stories: a condition changes once in 15 seconds, so they wait for theirs at the same time."""
	return Waiting(shared)


def test_priority_partition_and_time_limit_of_a_pods_job_stay_as_the_administrator_set_them(shared, waiting):
	first, second = waiting.first, waiting.second
	pod_condition = second.wait_condition("partition low")
	assert "priority 4294967000" in pod_condition["message"]
	settled(shared)
	shown = second.job()
	assert (shown["Priority"], shown["Partition"], shown["TimeLimit"]) == ("4294967000", "low", "00:17:00")
	shown = first.job()
	assert (shown["Nice"], shown["ExcNodeList"], shown["Comment"]) == ("100", "n2", "mine")
	# a change of nodes makes the engine compute excluded nodes again
	shared.patch_node("n2", {"unschedulable": True})
	try:
		settled(shared)
		assert first.job()["ExcNodeList"] == "n2"
	finally:
		shared.patch_node("n2", {"unschedulable": None})
	settled(shared)
	assert first.job()["ExcNodeList"] == "n2"
	waiting.make_room()
	for pod in (first, second):
		pod.wait_phase("Succeeded")
	assert first.job()["NodeList"] == "n1"
	shown = second.job()
	assert (shown["Partition"], shown["TimeLimit"]) == ("low", "00:17:00")


def test_held_pod_does_not_start_until_it_is_released_and_the_condition_says_so(shared, waiting):
	pod = waiting.held
	job = pod.job()["JobId"]
	condition = pod.wait_condition("held")
	assert condition["reason"] == "SlurmPending" and f"Slurm job {job} is pending in partition batch, held: JobHeldAdmin" \
		in condition["message"]
	waiting.make_room()
	settled(shared)
	assert (pod.job()["JobState"], pod.job()["Priority"], pod.node) == ("PENDING", "0", None)
	shared.scontrol("release", job)
	pod.wait_phase("Succeeded")
	assert pod.wait_job("COMPLETED")["JobId"] == job


def test_job_with_a_better_priority_by_the_administrator_starts_first(stand):
	blocker = stand.batch(8)
	blocker.wait("RUNNING")
	pods = [stand.pod(f"wide{i}", "sleep 1", cpu="8", node="n1") for i in range(3)]
	ids = [pod.wait_job("PENDING")["JobId"] for pod in pods]
	stand.update(ids[2], "Priority=4294967000")
	stand.update(ids[1], "Priority=4294966000")
	blocker.cancel()
	for pod in pods:
		pod.wait_phase("Succeeded", seconds=90)
	starts = [pod.runs()[0].start for pod in pods]
	assert sorted(starts) == [starts[2], starts[1], starts[0]]


def test_suspended_job_keeps_its_pod_and_its_cores(stand):
	pod = stand.pod("kept", "sleep 600", cpu="8", node="n1", grace=1).wait_running()
	job = pod.job_id
	stand.scontrol("suspend", str(job))
	batch = stand.batch(1)  # Slurm gives a suspended job's cores to others, but the pod goes on using them
	stand.batch(1, seconds=1, node="n2").wait_started()  # whoever came before it has been looked at
	assert batch.state == "PENDING"
	settled(stand)
	assert pod.phase == "Running" and pod.job()["JobState"] == "SUSPENDED" and batch.state == "PENDING"
	batch.cancel()
	stand.scontrol("resume", str(job))
	settled(stand)
	assert pod.phase == "Running" and pod.job()["JobState"] == "RUNNING"
	assert len(pod.jobs()) == 1


def test_time_limit_that_the_administrator_shortens_ends_the_pod(stand):
	pod = stand.pod("shortened", "sleep 600", grace=1).wait_running()
	stand.update(pod.job_id, "EndTime=now+1")
	job = pod.wait_job("TIMEOUT", seconds=90)
	pod.wait_gone()
	assert job["JobState"] == "TIMEOUT" and pod.runs()[0].stop
	assert "ended: TIMEOUT" in pod.wait_event("SlurmJobEnded")[2]


def test_reservation_keeps_pods_out_unless_they_may_use_it_and_say_so(stand):
	stand.scontrol("create", "reservation", "ReservationName=for-pods1", "StartTime=now", "Duration=60", "Nodes=n1",
		"Users=root,games", "Flags=IGNORE_JOBS")
	try:
		outside = stand.pod("outside", node="n1")
		refused = stand.pod("refused", node="n1", annotations={"slurm-k8s.io/reservation": "for-pods1"})
		inside = stand.pod("inside", node="n1", ns="team-a", annotations={"slurm-k8s.io/reservation": "for-pods1"})
		inside.wait_phase("Succeeded")
		assert inside.job()["Reservation"] == "for-pods1"
		assert 'namespace default may not use reservation "for-pods1"' in refused.wait_event("SlurmRefused")[2]
		assert refused.jobs() == []
		settled(stand)
		assert outside.job()["JobState"] == "PENDING" and outside.node is None
		outside.wait_condition("Slurm job")
	finally:
		stand.scontrol("delete", "ReservationName=for-pods1")
	outside.wait_phase("Succeeded")


def test_drained_node_takes_no_pod_and_keeps_the_administrators_reason(stand):
	node = Node(stand)
	node.drain("broken fan")
	try:
		node.wait_condition("True", "broken fan")  # it is cordoned since
		pod = stand.pod("waits", node="n1")
		pod.wait_condition("ReqNodeNotAvail")  # Slurm says so: whom it lets use a node that it drains is its own affair
		settled(stand)
		assert pod.job()["JobState"] == "PENDING" and pod.node is None
		assert node.reason == "broken fan"
	finally:
		node.resume()
	pod.wait_phase("Succeeded")


@once_only
def test_top_and_requeue_do_not_run_a_pod_twice(stand):
	"""requeue ends the job of a running pod: the pod is bound to a node for ever, so it is deleted."""
	pod = stand.pod("requeued", "sleep 600", grace=1).wait_running()
	first = pod.job()["JobId"]
	stand.run("scontrol", "requeue", first, check=False)
	settled(stand)
	assert len(stand.bindings()[pod.uid]) == 1
	assert len(pod.runs()) == 1
