# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The gate of prep/k8s: jobs of Slurm's own are CONFIGURING until somebody answers, whose word may come late."""
import contextlib
import subprocess
import time

import pytest
from conftest import CONF as PREEMPTING, Cluster, words
from stands.replays import once_only
from stands.waiting import wait_for

CONF = "PartitionName=all Nodes=n1 Default=YES\nPrEpPlugins=prep/script,prep/k8s\n"


@pytest.fixture(scope="module", name="gate_of_module")
def gate_of_module_fixture():
	cluster = Cluster(conf=CONF.replace("Nodes=n1", "Nodes=n1,n2"))  # the components of a heterogeneous job have nodes of their own
	yield cluster
	cluster.down()


@pytest.fixture(name="gate")
def gate_fixture(gate_of_module):
	gate_of_module.tell("gate", "keeps")
	yield gate_of_module
	gate_of_module.tell("gate", "opens")
	gate_of_module.clean()


def kept(cluster, *options, components=1):
	"""A job in the gate, with all its components."""
	before = cluster.events().count("gate")
	job = cluster.batch(*options)
	wait_for("the job in the gate", lambda: cluster.events().count("gate") == before + components, 30,
		lambda: cluster.run("scontrol", "show", "job"))
	assert set(state(cluster, job).split()) == {"CONFIGURING"}
	return job


def state(cluster, job):
	return cluster.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").strip()


def reason(cluster, job):
	return cluster.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%r").strip().replace("_", " ")


def test_job_is_launched_when_it_is_let_out(gate):
	job = kept(gate)
	assert reason(gate, job) == "Kubelets of its nodes are asked"
	gate.tell("answer", job, "open")
	wait_for("its run", lambda: state(gate, job) == "RUNNING", 30)
	wait_for("no reason any more", lambda: reason(gate, job) == "None", 30, lambda: reason(gate, job))


def test_batch_job_that_is_refused_is_queued_again_and_starts_without_two_minutes(gate):
	job = kept(gate)
	gate.tell("gate", "opens")
	gate.tell("answer", job, "refuse", "why=no room")
	wait_for("its run", lambda: state(gate, job) == "RUNNING", 60)
	assert reason(gate, job) == "None"


def comments(cluster, job):
	shown = dict(line.strip().partition("=")[::2] for line in cluster.run("scontrol", "show", "job", str(job)).splitlines())
	return shown.get("SystemComment"), shown.get("Comment")


@pytest.mark.parametrize("words, own", [((), None), (("--comment=mine",), "mine")])
def test_user_of_a_batch_job_reads_why_it_was_not_started_until_it_is(gate, words, own):
	job, says = kept(gate, *words), "slurm-k8s: the job was not started: "
	assert comments(gate, job) == (None, own)
	for why in ("no room", "no quota"):
		in_gate_again(gate, job, 0, why=why)
		assert comments(gate, job) == (says + why, own or says + why)
	gate.tell("answer", job, "open")
	wait_for("its run", lambda: state(gate, job) == "RUNNING", 30)
	wait_for("no word of it", lambda: comments(gate, job) == (None, own), 10, lambda: str(comments(gate, job)))


@contextlib.contextmanager
def srun_in_gate(gate):
	with subprocess.Popen(["srun", "-n1", "--mem=10", "true"], env=gate.slurm.env, text=True, stderr=subprocess.PIPE) as run:
		yield run, wait_for("a job in the gate", lambda: gate.run("squeue", "-h", "-t", "CONFIGURING", "-o", "%i").split(), 30)[0]


def test_job_that_ends_where_it_was_not_started_says_so(gate):
	with srun_in_gate(gate) as (run, job):
		assert gate.tell("tell_refusal", job, "why=no room") == "told=1"
		text = "slurm-k8s: the job was not started: no room"
		assert f"{text}; submit it again later" in run.stderr.readline() and state(gate, job) == "CONFIGURING"
		gate.tell("answer", job, "refuse", "why=no room")
		_, err = run.communicate(timeout=60)
	assert run.returncode and "no room" not in err, err
	assert comments(gate, job) == (text, text)


def test_job_that_is_ended_in_the_gate_is_still_there_when_its_srun_is_told(gate):
	says = "no such image"
	with srun_in_gate(gate) as (run, job):
		assert words(gate.tell("end_native", job, f"comment={says}"))["told"] == "1"
		assert f"slurm-k8s: the job is ended: {says}" in run.stderr.readline() and state(gate, job) == "CONFIGURING"
		assert words(gate.tell("end_native", job, "told=1", f"comment={says}"))["told"] == "0"
		_, err = run.communicate(timeout=60)
	assert run.returncode and says not in err, err
	wait_for("its end", lambda: state(gate, job) == "CANCELLED", 30, lambda: state(gate, job))
	assert comments(gate, job)[0] == f"slurm-k8s: {says}"


def ages(cluster, job, components):
	"""Since when they gain it; of a heterogeneous job scontrol shows all when it is asked for the first."""
	lines = cluster.run("squeue", "-h", "-t", "all", "-O", "JobID:12,AccrueTime:30").splitlines()
	shown = dict(line.split() for line in lines)
	return [shown[str(job + k)] for k in range(components)]


def in_gate_again(cluster, job, delay, components=1, why="no room"):
	"""Refused at another second than the one since which it gains age, and back in the gate."""
	since = ages(cluster, job, components)
	wait_for("a later second", lambda: time.strftime("%Y-%m-%dT%H:%M:%S") > max(since), 30)
	before = cluster.events().count("gate")
	cluster.tell("answer", job, "refuse", f"why={why}", f"delay={delay}")
	for k in range(1, components):
		cluster.tell("answer", job + k, "open")
	wait_for("the job in the gate again", lambda: cluster.events().count("gate") == before + components, 60,
		lambda: cluster.run("scontrol", "show", "job"))
	return since


@pytest.mark.parametrize("delay", (0, 3))
def test_job_that_is_refused_keeps_its_age(gate, delay):
	job = kept(gate, "--begin=now+1")
	first = gate.show(job)
	since, = in_gate_again(gate, job, delay)
	again = gate.show(job)
	assert again["AccrueTime"] == since == first["EligibleTime"] and again["Priority"] == first["Priority"]
	assert again["Restarts"] == "1" and again["SubmitTime"] > first["SubmitTime"]  # Slurm has queued it again


def test_each_component_of_a_heterogeneous_job_that_is_refused_keeps_its_age(gate):
	job = kept(gate, "--begin=now+1", "-n1", "--mem=10", ":", "--begin=now+1", "-n2", "--mem=10", components=2)
	since = in_gate_again(gate, job, 0, components=2)
	assert ages(gate, job, 2) == since


def test_priority_that_an_administrator_gave_stays_with_a_job_that_is_refused(gate):
	job = kept(gate, "--begin=now+1", "--priority=4711")
	in_gate_again(gate, job, 0)
	assert gate.show(job)["Priority"] == "4711"


@pytest.mark.parametrize("which", (0, 1))
def test_heterogeneous_job_that_is_refused_is_queued_again_and_starts_without_two_minutes(gate, which):
	job = kept(gate, "-n1", "--mem=10", ":", "-n2", "--mem=10", components=2)
	gate.tell("gate", "opens")
	gate.tell("answer", job + which, "refuse", "why=no room")
	gate.tell("answer", job + 1 - which, "open")  # as the engine does when it has ended: here by that
	for component in (job, job + 1):
		wait_for(f"the run of {component}", lambda component=component: state(gate, component).split()[-1] == "RUNNING", 60,
			lambda: gate.run("scontrol", "show", "job"))


def test_job_that_its_user_has_cancelled_is_not_queued_again_by_a_refusal_that_comes_late(gate):
	job = kept(gate, "--requeue")
	gate.run("scancel", str(job))
	gate.tell("answer", job, "refuse", "why=no room")
	wait_for("its end", lambda: state(gate, job) == "CANCELLED", 30, lambda: state(gate, job))


def test_answer_for_a_job_that_slurm_does_not_know_harms_nobody(gate):
	for word in ("open", "refuse"):
		assert gate.tell("answer", 999999, word) == "done"
	assert gate.run("scontrol", "ping")


# -- preemption

@pytest.fixture(scope="module", name="preempting")
def preempting_fixture(tmp_path_factory):
	epilog = tmp_path_factory.mktemp("epilog") / "epilog"  # a victim is COMPLETING until the test has masked its pod
	epilog.write_text("#!/bin/sh\nsleep 3\n", encoding="ascii")
	epilog.chmod(0o755)
	cluster = Cluster(nodes=["n1"], conf=PREEMPTING + f"PrEpPlugins=prep/script,prep/k8s\nKillWait=1\nEpilog={epilog}\n")
	yield cluster
	cluster.down()


@once_only
@pytest.mark.parametrize("told", ["job", "some_jobs"])
def test_preemptor_takes_no_other_job_while_the_reservation_pod_of_the_first_one_leaves(preempting, told):
	cluster = preempting
	low = [cluster.batch("-p", "lowone", "-n", "1") for _ in range(8)]
	for job in low:
		cluster.becomes(job, "RUNNING")

	def taken():
		return [job for job in low if cluster.show(job)["JobState"] != "RUNNING"]
	high = cluster.batch("-p", "one", "-n", "1")
	victim, = wait_for("a victim", taken, 20)
	cluster.tell("mask", "n1", "more=1", f"job={victim}" if told == "job" else "some_jobs=1")
	ends = time.monotonic() + 25  # Slurm would choose again each KillWait + MessageTimeout = 11 s
	while time.monotonic() < ends:
		cluster.scheduled()
		assert taken() == [victim] and cluster.show(high)["JobState"] == "PENDING"
	cluster.tell("unmask")
	cluster.becomes(high, "RUNNING")
	assert taken() == [victim]
	cluster.clean()


def test_preemptor_takes_another_job_while_somebody_elses_pod_is_in_the_way(preempting):
	cluster = preempting
	low = [cluster.batch("-p", "lowone", "-n", "1") for _ in range(8)]
	for job in low:
		cluster.becomes(job, "RUNNING")
	high = cluster.batch("-p", "one", "-n", "1")
	wait_for("a victim", lambda: [job for job in low if cluster.show(job)["JobState"] != "RUNNING"], 20)
	cluster.tell("mask", "n1", "more=1", f"job={high + 1}")
	cluster.becomes(high, "RUNNING", 40)
	assert len([job for job in low if cluster.show(job)["JobState"] != "RUNNING"]) == 2
	cluster.clean()
