# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Slurm preempts: jobs make room for pods, and pods for jobs and pods. Whoever must go has the grace that its partition
gives, a pod from its very start, and what it holds is free only when its last process is gone."""
import contextlib
import os
import re
import time
from collections import namedtuple

import pytest
from stands.replays import once_only
from world import POLITE, STUBBORN, seconds_of

from stands.waiting import wait_for

LOW = {"slurm-k8s.io/partition": "low"}
GRACE = 12

Deletion = namedtuple("Deletion", "when grace")


@contextlib.contextmanager
def partition(stand, name, **settings):
	"""The partition has these settings meanwhile."""
	def put(values):
		stand.scontrol("update", f"PartitionName={name}", *(f"{key}={value}" for key, value in values.items()))
	put(settings)
	try:
		yield
	finally:
		put({"GraceTime": 0, "PreemptMode": "CANCEL"})


@contextlib.contextmanager
def kill_grace(stand, seconds):
	"""Pods whose jobs have ended may have so long."""
	path = os.path.join(stand.folder, "etc", "slurm-k8s.yaml")
	with open(path, encoding="utf-8") as file:
		before = file.read()

	def put(text):
		with open(path, "w", encoding="utf-8") as file:
			file.write(text)
		stand.reconfigure()
	put(before.replace("killGrace: 8s", f"killGrace: {seconds}s"))
	try:
		yield
	finally:
		put(before)


def deletions(pod):
	"""Deletions that slurm-k8s has asked for, by the audit log."""
	return [Deletion(seconds_of(event["requestReceivedTimestamp"]), (event.get("requestObject") or {}).get("gracePeriodSeconds"))
		for event in pod.stand.audit() if event.get("verb") == "delete" and event["objectRef"].get("name") == pod.name
		and "slurm-k8s" in event["user"]["username"] and event.get("responseStatus", {}).get("code") == 200
		and (event.get("requestObject") or {}).get("preconditions", {}).get("uid") == pod.uid]


def deletion(pod):
	return wait_for(f"a DELETE of pod {pod.name}", lambda: deletions(pod), 20, pod.about)[0]


def local(text):
	"""A time as scontrol shows it."""
	return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def stop_of(pod):
	"""When its one container ended."""
	run, = pod.runs()
	return run.stop


def killed_by_slurm(pod):
	return re.search(rf"preempted JobId={pod.job_id} (has been (killed|requeued)|had to be killed)", pod.stand.log(pod.stand.log_began))


@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_pod_of_a_preempted_job_is_deleted_at_the_start_of_the_grace_and_has_all_of_it(preempting, mode):
	with partition(preempting, "low", GraceTime=GRACE, PreemptMode=mode):
		pod = preempting.pod("victim", STUBBORN, cpu="8", node="n1", annotations=LOW).wait_running()
		batch = preempting.batch(4)
		deleted = deletion(pod)
		assert GRACE - 1 <= deleted.grace <= GRACE  # far more than the pod asks for itself
		began = local(pod.job()["PreemptTime"])
		assert deleted.when - began < 2  # whole seconds
		event = pod.wait_event("SlurmPreempted")
		assert event[0] == "Warning" and f"Slurm job {pod.job_id} is preempted; the pod is deleted and has {deleted.grace} s" in event[2]
		job = pod.wait_job("PREEMPTED")
		assert stop_of(pod) - deleted.when > deleted.grace - 1
		assert local(job["EndTime"]) >= int(stop_of(pod)) and not killed_by_slurm(pod)
		assert batch.wait_started() > stop_of(pod)
		pod.wait_gone()
		assert len(deletions(pod)) == 1 and len(pod.jobs()) == 1


def test_pod_that_ends_early_in_its_grace_makes_room_at_once(preempting):
	with partition(preempting, "low", GraceTime=300):
		pod = preempting.pod("polite", POLITE, cpu="8", node="n1", annotations=LOW).wait_running()
		batch = preempting.batch(8)
		deleted = deletion(pod)
		assert batch.wait_started(20) > stop_of(pod) >= deleted.when
		pod.wait_job("PREEMPTED")


def test_without_a_grace_what_a_preempted_pod_holds_is_free_when_its_process_is_gone(preempting):
	pod = preempting.pod("victim", STUBBORN, cpu="8", node="n1", grace=4, annotations=LOW).wait_running()
	batch = preempting.batch(8)
	pod.wait_job("PREEMPTED")
	assert deletion(pod).grace == 4
	assert batch.wait_started() > stop_of(pod)
	assert "PREEMPTED" in pod.wait_event("SlurmJobEnded")[2]


def test_pods_preempt_jobs_and_pods(preempting):
	with partition(preempting, "low", GraceTime=GRACE):
		victim = preempting.pod("victim", POLITE, cpu="8", node="n1", annotations=LOW).wait_running()
		batch = preempting.batch(8, node="n2", options=("-p", "low"))
		batch.wait_started()
		over_pod, over_job = (preempting.pod(f"wins-{node}", POLITE, cpu="8", node=node) for node in ("n1", "n2"))
		for pod in over_pod, over_job:
			pod.wait_running()
		assert over_pod.runs()[0].start > stop_of(victim)
		assert over_job.runs()[0].start > batch.stamps()[1]
		victim.wait_job("PREEMPTED")


def by_qos(stand):
	"""QOS high preempts normal, which has a grace."""
	stand.run("sacctmgr", "-i", "modify", "qos", "high", "set", "preempt=normal")
	stand.run("sacctmgr", "-i", "modify", "qos", "normal", "set", f"gracetime={GRACE}")
	return stand


def test_qos_preempts_as_partitions_do_and_accounting_has_it(preempting_qos):
	stand = by_qos(preempting_qos)
	pod = stand.pod("victim", STUBBORN, cpu="8", node="n1").wait_running()
	wins = stand.pod("wins", POLITE, cpu="8", node="n1", annotations={"slurm-k8s.io/qos": "high"})
	assert GRACE - 1 <= deletion(pod).grace <= GRACE
	wins.wait_running()
	assert wins.runs()[0].start > stop_of(pod)
	job = pod.wait_job("PREEMPTED")
	wait_for("sacct", lambda: stand.run("sacct", "-n", "-X", "-j", job["JobId"], "-o", "State").strip() == "PREEMPTED", 60)


@pytest.mark.apis("sim")
def test_by_qos_a_job_preempts_a_pod_and_a_pod_a_job(preempting_qos):
	stand = by_qos(preempting_qos)
	pod = stand.pod("victim", STUBBORN, cpu="8", node="n1").wait_running()
	job = stand.batch(8, node="n2", options=["--qos", "normal"])
	job.wait_started()
	over_pod = stand.batch(8, node="n1", options=["--qos", "high"])
	over_job = stand.pod("wins", POLITE, cpu="8", node="n2", annotations={"slurm-k8s.io/qos": "high"})
	assert GRACE - 1 <= deletion(pod).grace <= GRACE
	over_job.wait_running()
	assert over_job.runs()[0].start > job.stamps()[1] and job.state == "PREEMPTED"
	assert over_pod.wait_started() > stop_of(pod)
	assert stop_of(pod) - deletion(pod).when > deletion(pod).grace - 1
	pod.wait_job("PREEMPTED")


@once_only
@pytest.mark.apis("sim")
@pytest.mark.slow
@pytest.mark.parametrize("whose", ["Slurm's", "the pod's"])
def test_preemptor_whose_victim_leaves_slowly_takes_no_other_one(preempting, whose):
	# Slurm would choose again KillWait + MessageTimeout = 11 s after it has chosen
	with partition(preempting, "low", GraceTime=25 if whose == "Slurm's" else 0), kill_grace(preempting, 25):
		pods = [preempting.pod(f"candidate-{i}", STUBBORN, cpu="1", node="n1", grace=25, annotations=LOW) for i in range(8)]
		for pod in pods:
			pod.wait_running()
		batch = preempting.batch(1)
		started = batch.wait_started()
		victims = [pod for pod in pods if pod.job()["JobState"] != "RUNNING"]
		assert [pod.job()["JobState"] for pod in victims] == ["PREEMPTED"], [pod.about() for pod in victims]
		assert deletion(victims[0]).when + 23 < stop_of(victims[0]) < started


@once_only
@pytest.mark.apis("sim")
@pytest.mark.slow
def test_preemptor_takes_one_of_eight_pods_though_that_leaves_for_many_times_what_slurm_waits(preempting_by_clock, slurm_clock):
	"""Of the 90 s most pass on slurmctld's clock alone, in steps; the victim's kubelet has the host's."""
	stand, grace, end = preempting_by_clock, 90, os.path.join(preempting_by_clock.spare, "end-")
	slurm_clock.begin(stand, 0)
	with partition(stand, "low", GraceTime=grace), kill_grace(stand, grace):
		pods = [stand.pod(f"candidate-{i}", f"trap '' TERM; until [ -e {end}candidate-{i} ]; do sleep 0.2; done",
			cpu="1", node="n1", grace=grace, annotations=LOW) for i in range(8)]
		for pod in pods:
			pod.wait_running()
		batch = stand.batch(1)
		victim = wait_for("a victim", lambda: next((pod for pod in pods if deletions(pod)), None), 20, batch.why)
		assert grace - 1 <= deletion(victim).grace <= grace

		def taken():
			jobs = [pod.job() for pod in pods]
			return [pod.name for pod, job in zip(pods, jobs) if job["JobState"] != "RUNNING" or job["PreemptTime"] != "None"]
		# Slurm would choose again KillWait + MessageTimeout = 11 s after it has chosen; it ends a victim itself 15 s after the grace at most
		for passed in (*range(12, 80, 12), grace + 2, grace + 18):
			slurm_clock.set(stand, passed)
			stand.scheduled()
			assert taken() == [victim.name] and batch.state == "PENDING", passed
		with open(end + victim.name, "w", encoding="ascii"):
			pass
		assert batch.wait_started() > stop_of(victim)
		victim.wait_job("PREEMPTED")
		assert taken() == [victim.name]
		assert [len(deletions(pod)) for pod in pods] == [int(pod == victim) for pod in pods]


@pytest.mark.apis("sim")
def test_pod_cannot_be_suspended_so_nobody_gets_its_cores_by_gang_scheduling(suspending):
	pod = suspending.pod("goes-on", POLITE, cpu="8", node="n1", annotations=LOW).wait_running()
	job = suspending.batch(8, node="n2", options=("-p", "low"))
	job.wait_started()
	over_pod, over_job = suspending.batch(8, seconds=1), suspending.batch(8, seconds=1, node="n2")
	over_job.wait_started()  # as without us: the job was suspended for it
	assert job.state == "SUSPENDED"
	suspending.scheduled()
	assert over_pod.state == "PENDING" and pod.phase == "Running" and pod.job()["JobState"] == "RUNNING"
	pod.delete()
	assert over_pod.wait_started() > stop_of(pod)
