# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Jobs of pods that run already: they start where the pod is, whoever waits, or leave no trace."""
import contextlib
import os
import re
import signal

import pytest
from stands.waiting import wait_for

NOBODY = 65534


@contextlib.contextmanager
def configured(cluster, key, value):
	"""Slurm with this, too, until the end."""
	with open(cluster.slurm.conf, encoding="utf-8") as file:
		before = file.read()

	def write(text):
		with open(cluster.slurm.conf, "w", encoding="utf-8") as file:
			file.write(text)
		cluster.reconfigure()
	if key + "=" in before:
		write(re.sub(rf"(?m)^({key}=.*)$", rf"\1,{value}", before))
	else:
		write(f"{before}{key}={value}\n")
	try:
		yield
	finally:
		write(before)


@contextlib.contextmanager
def completing(cluster, node):
	"""A job that cannot complete: the node's slurmd does not answer meanwhile."""
	job = cluster.batch("-p", "batch", "-w", node, "-n", "1")
	cluster.becomes(job, "RUNNING")
	pid = cluster.slurm.daemon(f"slurmd-{node}").pid
	os.kill(pid, signal.SIGSTOP)
	try:
		cluster.run("scancel", str(job))
		wait_for("a job that completes", lambda: "COMPLETING" in cluster.node(node)["State"], 20)
		yield
		assert "COMPLETING" in cluster.node(node)["State"]
	finally:
		os.kill(pid, signal.SIGCONT)
	wait_for("the job to be complete", lambda: "COMPLETING" not in cluster.node(node)["State"], 60)


@contextlib.contextmanager
def changed(cluster, change, back):
	cluster.run("scontrol", *change)
	try:
		yield
	finally:
		cluster.run("scontrol", *back)


def adopt(cluster, **more):
	more.setdefault("partition", "batch")
	return cluster.submit(node="n1", cpus=3, uid=NOBODY, gid=NOBODY, **more)


def adopted(cluster, **more):
	job = adopt(cluster, **more)
	assert (job["rc"], job["running"]) == ("0", "1"), job
	shown = cluster.show(job["job"])
	assert (shown["JobState"], shown["NodeList"], shown["NumCPUs"]) == ("RUNNING", "n1", "3")
	return job["job"]


def busy(cluster, cpus):
	"""A job that has so many cores of n1."""
	job = cluster.submit(cpus=cpus)["job"]
	cluster.becomes(job, "RUNNING")
	return job


def responds(cluster):
	"""n1 is usable again: after a change of its state Slurm waits until it has registered."""
	wait_for("the node", lambda: cluster.node("n1")["State"] in ("IDLE", "MIXED"), 30, lambda: str(cluster.node("n1")))


def records(cluster):
	return set(re.findall(r"JobId=(\d+)", cluster.run("scontrol", "show", "jobs")))


def test_it_starts_on_its_pods_node_with_a_usual_priority(cluster):
	job = adopted(cluster)
	usual = cluster.submit(partition="batch")
	assert abs(int(cluster.show(job)["Priority"]) - int(cluster.show(usual["job"])["Priority"])) <= 1
	assert [event.split()[0] for event in cluster.events() if f" job={job} " in event] == ["job_start"]


def test_defer_does_not_keep_it_from_starting(cluster):
	with configured(cluster, "SchedulerParameters", "defer"):
		adopted(cluster)


@pytest.mark.parametrize("waits_in", ["one", "batch"])
def test_jobs_of_a_higher_tier_or_priority_that_wait_do_not_keep_it_from_starting(cluster, waits_in):
	cluster.becomes(cluster.batch("-p", "one", "-n", "2"), "RUNNING")
	waiting = cluster.batch("-p", waits_in, "-w", "n1", "-N1", "-n8")
	cluster.scheduled()
	assert cluster.show(waiting)["JobState"] == "PENDING"
	adopted(cluster, partition="lowone")
	assert cluster.show(waiting)["JobState"] == "PENDING"


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_completing_job_does_not_keep_it_from_starting(cluster, node):
	with configured(cluster, "CompleteWait", 60), completing(cluster, node):
		adopted(cluster)


def test_it_makes_a_draining_node_wait_for_its_pod(cluster):
	with changed(cluster, ("update", "NodeName=n1", "State=DRAIN", "Reason=new_disk"),
			("update", "NodeName=n1", "State=UNDRAIN")):
		assert cluster.node("n1")["State"] == "IDLE+DRAIN"
		job = adopted(cluster)
		assert cluster.node("n1")["State"] in ("MIXED+DRAIN", "ALLOCATED+DRAIN")
		assert cluster.node("n1")["Reason"] == "new_disk"
		other = cluster.batch("-p", "one", "-n", "1")
		cluster.scheduled()
		assert cluster.show(other)["JobState"] == "PENDING"
		cluster.ask("end", job, "COMPLETED")
		wait_for("a drained node", lambda: cluster.node("n1")["State"] == "IDLE+DRAIN", 20)
	responds(cluster)


def test_a_partition_that_is_down_starts_it(cluster):
	with changed(cluster, ("update", "PartitionName=one", "State=DOWN"), ("update", "PartitionName=one", "State=UP")):
		adopted(cluster, partition="one")


@pytest.mark.parametrize("flags,what", [
	("ignore_jobs", ("Nodes=n1",)), ("maint,ignore_jobs", ("Nodes=n1",)), ("maint,ignore_jobs", ("Nodes=n1", "CoreCnt=6")),
])
def test_a_reservation_of_others_does_not_keep_it_from_starting(cluster, flags, what):
	with changed(cluster, ("create", "reservation", "ReservationName=theirs", "Users=root", "StartTime=now", "Duration=60",
			f"Flags={flags}", *what), ("delete", "ReservationName=theirs")):
		adopted(cluster)


@pytest.mark.parametrize("why", ["busy", "down", "inactive"])
def test_what_cannot_start_leaves_no_trace_and_may_be_tried_again(cluster, why):
	with contextlib.ExitStack() as stack:
		if why == "busy":
			busy(cluster, 6)
		elif why == "down":
			stack.enter_context(changed(cluster, ("update", "NodeName=n1", "State=DOWN", "Reason=test"),
				("update", "NodeName=n1", "State=IDLE")))  # it may have returned by itself
		else:
			stack.enter_context(changed(cluster, ("update", "PartitionName=one", "State=INACTIVE"),
				("update", "PartitionName=one", "State=UP")))
		before, told = records(cluster), len(cluster.events())
		outcome = adopt(cluster, partition="one")
		assert (outcome["job"], outcome["fatal"], outcome["running"]) == ("0", "0", "0") and outcome["text"]
		assert records(cluster) == before and len(cluster.events()) == told
		assert not cluster.run("squeue", "-h", "-t", "PD")
	cluster.cancel_all()
	responds(cluster)
	adopted(cluster, partition="one")


@pytest.mark.parametrize("made_with", [{"held": 1}, {"begin": 4000000000}, {"held": 1, "exclude": "n1"}])
def test_the_pods_pending_job_starts_where_the_pod_is(cluster, made_with):
	"""A crash can make Slurm forget that it had started."""
	job = cluster.submit(partition="batch", **made_with)["job"]
	assert cluster.show(job)["JobState"] == "PENDING"
	outcome = cluster.ask("start", job, "n1")
	assert (outcome["rc"], outcome["running"]) == ("0", "1"), outcome
	shown = cluster.show(job)
	assert (shown["JobState"], shown["NodeList"], shown["Reason"]) == ("RUNNING", "n1", "None")
	assert int(shown["Priority"]) > 0


def test_a_pending_job_that_cannot_start_there_waits_for_that_node_only(cluster):
	first = busy(cluster, 8)
	job = cluster.submit(partition="batch", held=1, exclude="n1")["job"]
	outcome = cluster.ask("start", job, "n1")
	assert (outcome["rc"] != "0", outcome["fatal"], outcome["running"]) == (True, "0", "0")
	shown = cluster.show(job)
	assert (shown["JobState"], shown["Reason"], shown["Priority"]) == ("PENDING", "JobHeldUser", "0")
	assert (shown["ReqNodeList"], shown["ExcNodeList"]) == ("n1", "(null)")
	cluster.run("scontrol", "release", job)
	cluster.scheduled()
	assert cluster.show(job)["JobState"] == "PENDING"  # though n2 is free
	cluster.ask("end", first, "COMPLETED")
	cluster.becomes(job, "RUNNING", 5)
	assert cluster.show(job)["NodeList"] == "n1"


@pytest.mark.parametrize("wrong", ["mark=k8s:prod/ns/other/uid", "submit_time=3"])
def test_no_other_job_is_started(cluster, wrong):
	job = cluster.submit(held=1)["job"]
	assert cluster.ask("start", job, "n1", wrong)["fatal"] == "1"
	assert cluster.show(job)["JobState"] == "PENDING"


@pytest.mark.parametrize("state,status,shown,code", [
	("COMPLETED", 0, "COMPLETED", "0:0"),
	("FAILED", 7 << 8, "FAILED", "7:0"),
	("OUT_OF_MEMORY", 9, "OUT_OF_MEMORY", "0:125"),
	("TIMEOUT", 0, "TIMEOUT", "0:0"),
])
def test_the_end_of_a_pod_whose_start_slurm_forgot_becomes_its_jobs_end(cluster, state, status, shown, code):
	job = cluster.submit(partition="batch", held=1)["job"]
	outcome = cluster.ask("end", job, state, f"exit={status}", "comment=it is over", "node=n1")
	assert outcome["rc"] == "0", outcome
	seen = cluster.show(job)
	assert (seen["JobState"].replace("COMPLETING", shown), seen["ExitCode"], seen["NodeList"]) == (shown, code, "n1")
	assert [event.split()[0] for event in cluster.events() if f" job={job} " in event] == ["job_start", "job_fini"]


def test_while_its_node_cannot_take_it_the_job_of_such_a_pod_does_not_end(cluster):
	busy(cluster, 8)
	job = cluster.submit(partition="batch", held=1)["job"]
	outcome = cluster.ask("end", job, "FAILED", "exit=1792", "comment=it is over", "node=n1")
	assert (outcome["rc"] != "0", outcome["fatal"]) == (True, "0")
	assert cluster.show(job)["JobState"] == "PENDING"
	assert cluster.ask("end", job, "FAILED", "exit=1792", "comment=exit code 7")["rc"] == "0"
	shown = cluster.run("scontrol", "show", "job", job)
	assert "JobState=CANCELLED" in shown and "Comment=slurm-k8s: exit code 7" in shown
