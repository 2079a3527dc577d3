# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurmctld and the API server are killed, stopped and paused at any moment: nothing is lost, nothing happens twice."""
import os
import threading
import time

import pytest
from command import tool
from foreign import allocated
from node import Node
from outage import converge, in_every_state, saved, stand_job
from stands.api import Api
from stands.replays import once_only
from stands.waiting import wait_for

ADOPTED = "SlurmAdopted"


def test_slurmctld_killed_and_restarted_while_pods_wait_start_run_and_end(stand):
	made = in_every_state(stand, "ctld")
	stand.restart_slurmctld()
	converge(stand, made, forgotten=["starts"])


def test_api_server_killed_and_restarted_while_pods_wait_start_run_and_end(stand):
	made = in_every_state(stand, "api")
	stand.cluster("restart", "apiserver", "--kill")
	converge(stand, made, audit_may_lack=True)


def test_both_killed_and_the_api_server_comes_back_last(stand):
	made = in_every_state(stand, "both")
	stand.cluster("stop", "apiserver", "--kill")
	stand.restart_slurmctld()
	stand.cluster("start", "apiserver")
	converge(stand, made, audit_may_lack=True, forgotten=["starts"])


def test_reconfigure_changes_nothing_for_pods(stand):
	made = in_every_state(stand, "reconf")
	before = {name: pod.job_id for name, (pod, _) in made.items()}
	for _ in range(3):
		stand.reconfigure()
	converge(stand, made)
	assert {name: [int(job["JobId"]) for job in pod.jobs()] for name, (pod, _) in made.items()} == \
		{name: [job] for name, job in before.items()}


def kept_out(stand):
	"""A job of three cores that waits, while one of two, which came later, starts in what pods leave free."""
	# short: when pods end is not known, so a long job could delay the wide one
	wide, narrow = stand.batch(3), stand.batch(2, seconds=20, options=["-t", "1"])
	narrow.wait_started()
	stand.scheduled()
	assert wide.state == "PENDING"
	return wide


@once_only
def test_nothing_that_pods_hold_is_given_away_when_slurmctld_starts_without_an_api_server(stand):
	"""Of eight cores three are a running pod's, three a pod's whose job was cancelled, two are free."""
	runs = stand.pod("runs", "sleep 600", cpu="3", node="n1", grace=1).wait_running()
	leaves = stand.pod("leaves", "sleep 600", cpu="3", node="n1", grace=1).wait_running()
	stand.cluster("stop", "apiserver", "--kill")
	stand.run("scancel", stand_job(stand, leaves))
	wait_for("the cancelled job", lambda: stand.job(stand_job(stand, leaves))["JobState"] == "CANCELLED", 20)
	saved(stand)
	stand.restart_slurmctld()
	wide = kept_out(stand)
	stand.restart_slurmctld()
	stand.scheduled()
	assert wide.state == "PENDING"
	stand.cluster("start", "apiserver")
	# A kubelet's watch comes back within a minute (client-go: 30 s and as much by chance, reset after two minutes).
	began = wide.wait_started(seconds=150)
	run, = leaves.runs()
	assert run.stop < stand.allocated_at(wide.id) < began
	assert runs.phase == "Running" and runs.job()["JobState"] == "RUNNING" and len(runs.runs()) == 1
	leaves.wait_gone()


@once_only
def test_the_same_with_an_api_server_that_accepts_and_never_answers(stand):
	runs = stand.pod("runs", "sleep 600", cpu="6", node="n1", grace=1).wait_running()
	with stand.paused("apiserver"):
		stand.run("scancel", stand_job(stand, runs))
		saved(stand)
		stand.restart_slurmctld()
		wide = kept_out(stand)
	wide.wait_started()
	assert runs.runs()[0].stop < stand.allocated_at(wide.id)


def test_running_pod_whose_job_slurm_has_forgotten_is_adopted_not_killed(stand):
	"""slurmctld saves its state up to five seconds late; a job younger than that can be lost by a crash."""
	rival = None
	state = os.path.join(stand.folder, "slurm", "state", "job_state")
	for attempt in range(6):
		# Slurm saves now, with the ends of what other stories ran, and not in the next seconds
		before = time.time()
		stand.batch(1, seconds=0, node="n2")
		wait_for("Slurm's saved jobs", lambda before=before: os.stat(state).st_mtime > before, 30)
		pod = stand.pod(f"young{attempt}", "sleep 600", cpu="6", node="n1", grace=1)
		pod.wait("a node", lambda pod=pod: pod.node)
		first = pod.seen["metadata"]["annotations"]["slurm-k8s.io/job-id"]
		stand.cluster("stop", "slurmctld", "--kill")
		size = stand.log_size()
		rival = stand_rival(stand)
		if f"Recovered JobId={first} " not in stand.log(size):
			pod.wait_event(ADOPTED)  # as soon as the node has registered again
			break
		pod.delete()
		pod.wait_gone()
		rival.cancel()
	else:
		pytest.fail("slurmctld had saved each job in time; nothing was adopted")
	pod.wait_running()
	job = pod.wait_job("RUNNING")
	assert job["NodeList"] == "n1" and len(stand.bindings()[pod.uid]) == 1 and len(pod.runs()) == 1
	assert rival.state == "PENDING"
	pod.delete()
	rival.wait_started()
	assert pod.runs()[0].stop < stand.allocated_at(rival.id)
	pod.wait_job("CANCELLED")


def forgotten_start(stand, command):
	"""A pod whose job Slurm has saved as pending, and that runs all the same. slurmctld is dead."""
	state = os.path.join(stand.folder, "slurm", "state", "job_state")
	for attempt in range(6):
		stand.scontrol("update", "PartitionName=batch", "State=DOWN")
		pod = stand.pod(f"forgotten{attempt}", command, cpu="6", node="n1", grace=1)
		pod.wait_job("PENDING")
		saved(stand)
		before = os.path.getmtime(state)
		stand.scontrol("update", "PartitionName=batch", "State=UP")
		pod.wait_running()
		stand.cluster("stop", "slurmctld", "--kill")
		if os.path.getmtime(state) == before:
			return pod
		stand.cluster("start", "slurmctld")
		pod.delete()
		pod.wait_gone()
	return pytest.fail("Slurm had saved each start in time")


def its_only_job(stand, pod, *states):
	"""The job with which the pod was bound."""
	job = pod.wait_job(*states)
	assert [found["JobId"] for found in pod.jobs()] == [pod.seen["metadata"]["annotations"]["slurm-k8s.io/job-id"]]
	assert job["NodeList"] == "n1" and len(stand.bindings()[pod.uid]) == 1 and len(pod.runs()) == 1
	return job


def test_running_pod_goes_on_with_its_job_though_slurm_has_forgotten_that_it_started(stand):
	pod = forgotten_start(stand, "sleep 600")
	stand.cluster("start", "slurmctld")
	pod.wait_event(ADOPTED)
	its_only_job(stand, pod, "RUNNING")
	assert pod.phase == "Running"
	stand.run("scancel", str(pod.job_id))
	pod.wait_gone()


def test_exit_code_of_pod_that_ended_while_slurmctld_was_dead_is_its_jobs_though_its_start_was_forgotten(stand):
	pod = forgotten_start(stand, "sleep 5; exit 7")
	pod.wait_phase("Failed")
	stand.cluster("start", "slurmctld")
	assert its_only_job(stand, pod, "FAILED")["ExitCode"] == "7:0"


def stand_rival(stand):
	stand.cluster("start", "slurmctld")
	return stand.batch(3)


def test_pods_created_while_slurmctld_is_down_are_placed_when_it_is_back(stand):
	stand.cluster("stop", "slurmctld")
	pods = [stand.pod(f"early{i}", "exit 0") for i in range(5)]
	stand.cluster("start", "slurmctld")
	for pod in pods:
		pod.wait_phase("Succeeded")
		assert len(pod.jobs()) == 1
	bindings = stand.bindings()
	assert [len(bindings[pod.uid]) for pod in pods] == [1] * 5


def test_pod_that_ends_or_is_deleted_while_slurmctld_is_down_ends_its_job(stand):
	ends, deleted = stand.pod("ends", "sleep 9; exit 6", node="n1"), stand.pod("deleted", "sleep 600", grace=1)
	never = stand.pod("never", cpu="8", node="n1")
	for pod in (ends, deleted):
		pod.wait_running()
	never.wait_job("PENDING")
	saved(stand)
	stand.cluster("stop", "slurmctld", "--kill")
	deleted.delete()
	never.delete()
	ends.wait_phase("Failed")
	stand.cluster("start", "slurmctld")
	job = ends.wait_job("FAILED")
	assert job["ExitCode"] == "6:0"
	for pod in (deleted, never):
		pod.wait_job("CANCELLED")
		pod.wait_gone()


def test_pods_that_have_the_names_of_pods_that_went_while_slurmctld_was_down_are_others(stand):
	former = [stand.pod(name, "sleep 600", cpu=cpu, node="n1", grace=1) for name, cpu in (("runs", "2"), ("waits", "8"))]
	former[0].wait_running()
	former[1].wait_job("PENDING")
	saved(stand)
	stand.cluster("stop", "slurmctld")
	for pod in former:
		pod.delete()
	former[0].wait("its end", lambda: former[0].runs()[0].stop)
	stand.api.patch(former[0].path, {"metadata": {"finalizers": None}})  # else its name is not free yet
	for pod in former:
		pod.wait_gone()
	later = [stand.pod(pod.name, "exit 4", cpu="1", node="n1") for pod in former]
	stand.cluster("start", "slurmctld")
	for pod in former:
		pod.wait_job("CANCELLED")
	for pod in later:
		pod.wait_phase("Failed")
		pod.wait("the true end of its job", lambda pod=pod: [(job["JobState"], job["ExitCode"]) for job in pod.jobs()] == [("FAILED", "4:0")])
	bindings = stand.bindings()
	assert [len(bindings.get(pod.uid, ())) for pod in (*former, *later)] == [1, 0, 1, 1]
	assert allocated(stand)[0] == 2  # what the former one holds is none of the later one's
	assert "is free" in tool(stand, "release", former[0].uid)


def test_node_that_is_deleted_while_slurmctld_is_down_keeps_its_pod_and_is_drained_until_it_is_there_again(stand):
	node = Node(stand)
	pod = stand.pod("stays", "sleep 600", cpu="3", node="n1", grace=1).wait_running()
	saved(stand)
	stand.cluster("stop", "slurmctld")
	try:
		with node.deleted():
			stand.cluster("start", "slurmctld")
			node.wait("drained", lambda: node.drained, 30)
			assert node.reason == "k8s: deleted: Kubernetes has no such node"
			waits = stand.batch(3)
			stand.scheduled()
			assert waits.state == "PENDING" and allocated(stand)[0] == 3
			assert pod.phase == "Running" and pod.job()["JobState"] == "RUNNING" and len(pod.jobs()) == 1
		waits.wait_started()
		assert pod.job()["JobState"] == "RUNNING" and len(pod.runs()) == 1
		pod.delete()
		pod.wait_job("CANCELLED")
	finally:
		node.settle()


def test_job_cancelled_while_the_api_server_is_down_deletes_its_pod_later(stand):
	pod = stand.pod("later", "sleep 600", grace=1).wait_running()
	stand.cluster("stop", "apiserver", "--kill")
	stand.run("scancel", stand_job(stand, pod))
	stand.scheduled()
	stand.cluster("start", "apiserver")
	pod.wait("our DELETE", lambda: "deletionTimestamp" in (pod.get() or {"metadata": {"deletionTimestamp": ""}})["metadata"], 20)
	pod.wait_gone(seconds=180)  # a kubelet can take a minute and a half to look for a server that was killed
	assert pod.job()["JobState"] == "CANCELLED" and len(pod.jobs()) == 1


@pytest.mark.slow
def test_many_kills_while_pods_flow_through(stand):
	"""Forty short pods; slurmctld and the API server are killed in turn while they are placed."""
	pods = []

	def create():
		api = Api(stand.env["KUBECONFIG"])
		for i in range(40):
			def made(i=i):
				from world import Pod, pod_object  # pylint: disable=import-outside-toplevel
				return Pod(stand, api.post("/api/v1/namespaces/default/pods",
					pod_object(f"flow{i}", f"sleep {i % 3}; exit {i % 5}")))
			pods.append(wait_for(f"pod {i}", made, 60))
	creator = threading.Thread(target=create)
	creator.start()
	for victim in ("slurmctld", "apiserver", "slurmctld"):
		stand.cluster("restart", victim, "--kill")
	creator.join()
	converge(stand, {pod.name: (pod, int(pod.name[4:]) % 5) for pod in pods}, audit_may_lack=True,
		forgotten=[pod.name for pod in pods])
