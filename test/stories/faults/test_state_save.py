# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What slurmctld and slurm-k8s keep in StateSaveLocation is lost, old, damaged, or cannot be written."""
import contextlib
import os
import re
import shutil

import pytest
from command import status, tool
from foreign import foreign
from outage import restart_without, saved, stand_job
from stands.process import run
from stands.replays import once_only
from stands.waiting import wait_for
from world import POLITE

pytestmark = pytest.mark.apis("sim")


def folder(stand):
	return os.path.join(stand.folder, "slurm", "state")


def ledger(stand):
	return os.path.join(folder(stand), "slurm-k8s.stand.ledger")


def our_errors(stand, since):
	"""Of the ledger itself. A pod that cannot be bound for it is told of once more when it has waited for 10 s."""
	return [line for line in stand.log(since).splitlines() if "error: slurm-k8s" in line and "saved ledger" in line and "slurm-k8s: warning" not in line]


def damage(stand, how):
	with open(ledger(stand), encoding="utf-8") as file:
		lines = file.read().splitlines(keepends=True)
	text = {"empty": "", "partial": '{"v":1,"partial":true}\n', "newer": '{"v":2}\n' + "".join(lines[1:]), "garbage": lines[0] + "\0\0\0\n" + "".join(lines[1:])}[how]
	with open(ledger(stand), "w", encoding="utf-8") as file:
		file.write(text)


@pytest.mark.parametrize("how", ["garbage", "empty", "newer", "partial"])
def test_damaged_ledger_closes_all_nodes_until_kubernetes_has_told_what_runs(stand, how):
	runs = stand.pod("runs", POLITE, cpu="6", node="n1", grace=1).wait_running()
	job = runs.job_id
	saved(stand)
	stand.cluster("stop", "apiserver")
	stand.cluster("stop", "slurmctld")
	damage(stand, how)
	size = stand.log_size()
	stand.cluster("start", "slurmctld")
	assert len(our_errors(stand, size)) == 1 and ledger(stand) in our_errors(stand, size)[0]
	small = stand.batch(1, node="n2", seconds=1)
	stand.scheduled()
	if how == "garbage":
		stand.restart_slurmctld()  # it must not have been replaced by an empty one meanwhile
		stand.scheduled()
	assert small.state == "PENDING"
	stand.cluster("start", "apiserver")
	small.wait_started()
	# what it holds is written down again, and counts when its job ends first
	wait_for("the new ledger", lambda: runs.uid in _text(ledger(stand)), 20)
	assert runs.job_id == job and len(runs.jobs()) == 1 and runs.phase == "Running"
	with stand.paused("apiserver"):
		stand.run("scancel", str(job))
		wide = stand.batch(3, seconds=1)
		stand.scheduled()
		assert wide.state == "PENDING"
	wide.wait_started()
	assert runs.runs()[0].stop < stand.allocated_at(wide.id)


def _text(path):
	try:
		with open(path, encoding="utf-8") as file:
			return file.read()
	except FileNotFoundError:
		return ""


@pytest.mark.parametrize("what", ["jobs", "everything"])
def test_lost_state_of_slurm_adopts_what_runs_queues_what_waits_and_confuses_no_reused_id(stand, what):
	restart_without(stand, "jobs")
	stand.run("sbatch", "--hold", "--wrap", "true") # has the id that will be the first pod's
	runs = [stand.pod(f"runs{i}", POLITE, cpu="4", node="n1", grace=1).wait_running() for i in range(2)]
	waits = [stand.pod(f"waits{i}", "exit 0", cpu="2", node="n1") for i in range(3)]
	for pod in waits:
		pod.wait_job("PENDING")
	old = {pod.job_id: pod.uid for pod in runs + waits}
	restart_without(stand, what)
	for pod in runs:
		pod.wait_job("RUNNING")
		pod.wait_event("SlurmAdopted")
		pod.wait("its new job's number on it", lambda: pod.annotation("slurm-k8s.io/job-id") == str(pod.job_id), 20)
	for pod in waits:
		pod.wait_job("PENDING")
	new = {int(job["JobId"]): job.get("AdminComment", "").rsplit("/", 1)[-1] for job in stand.jobs()}
	assert [job_id for job_id, uid in old.items() if new.get(job_id, uid) != uid], f"{old} {new}"
	runs[0].delete()
	runs[0].wait_job("CANCELLED")
	for pod in waits:
		pod.wait_phase("Succeeded")
		pod.wait_job("COMPLETED") # which is COMPLETING before
		assert len(pod.jobs()) == 1
	assert runs[1].phase == "Running" and len(runs[1].runs()) == 1
	assert all(len(stand.bindings()[pod.uid]) == 1 for pod in runs + waits)


def test_lost_state_starts_no_job_beside_pods_of_which_nobody_has_told_yet(stand):
	"""Neither a ledger nor nodes.names says that there are pods: Slurm waits for a while, which is longer than this outage."""
	ours = stand.pod("ours", POLITE, cpu="6", node="n1", grace=1).wait_running()
	others = foreign(stand, "others", cpu="6", node="n2", grace=1).wait_running()
	with stand.paused("apiserver"):
		size = stand.log_size()
		restart_without(stand, "everything")
		small = [stand.batch(1, node=node, seconds=1) for node in ("n1", "n2")] # first: for a better one Slurm keeps the node
		wide = [stand.batch(4, node=node, seconds=1) for node in ("n1", "n2")]
		stand.scheduled()
		assert [job.state for job in wide + small] == ["PENDING"] * 4
		assert {mask["node"]: mask["for_a_while"] for mask in status(stand)["masks"]} == {"n1": True, "n2": True}
		assert "no saved ledger says that there are pods" in tool(stand, "status")
		assert "neither a saved ledger nor nodes.names says where its pods may run" in stand.log(size)
	for job in small:
		job.wait_started()
	stand.scheduled()
	assert [job.state for job in wide] == ["PENDING"] * 2
	assert "has told what runs where" in stand.log(size) and "has not told within" not in stand.log(size)
	for pod in (ours, others):
		pod.delete()
	for pod, job in zip((ours, others), wide):
		job.wait_started()
		assert pod.runs()[0].stop < stand.allocated_at(job.id)


@once_only
def test_old_state_of_slurm_ends_jobs_of_pods_that_are_gone_and_starts_none_twice(stand):
	long = stand.pod("long", POLITE, cpu="2", node="n2", grace=1).wait_running()
	stand.scontrol("update", "PartitionName=batch", "State=DOWN")
	waits = stand.pod("waits", POLITE, cpu="2", node="n1", grace=1)
	waits.wait_job("PENDING")
	saved(stand, "-p", "low")
	shutil.copy(os.path.join(folder(stand), "job_state"), stand.spare)
	long.delete()
	long.wait_gone()
	stand.scontrol("update", "PartitionName=batch", "State=UP")
	waits.wait_running()
	stand.cluster("stop", "slurmctld")
	for name in ("job_state", "job_state.old"):
		shutil.copy(os.path.join(stand.spare, "job_state"), os.path.join(folder(stand), name))
	stand.cluster("start", "slurmctld")
	# Slurm believes that one waits and that the other runs
	wait_for("the end of the job of a pod that is gone", lambda: stand.job(stand_job(stand, long))["JobState"] == "CANCELLED", 30)
	waits.wait("a job that runs where the pod does", lambda: waits.job().get("JobState") == "RUNNING" and
		waits.job()["NodeList"] == "n1")
	assert len(stand.bindings()[waits.uid]) == 1 and len(waits.runs()) == 1 and waits.phase == "Running"


@contextlib.contextmanager
def small_disk(stand):
	"""StateSaveLocation on a disk of its own, of 2 MiB. slurmctld is restarted before and after."""
	state, kept = folder(stand), stand.spare + "/state"
	no_files = shutil.ignore_patterns("filler")
	stand.cluster("stop", "slurmctld")
	shutil.rmtree(kept, ignore_errors=True)
	shutil.copytree(state, kept, ignore=no_files)
	run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0755", "tmpfs", state])
	try:
		shutil.copytree(kept, state, dirs_exist_ok=True)
		stand.cluster("start", "slurmctld")
		yield os.path.join(state, "filler")
	finally:
		stand.cluster("stop", "slurmctld")
		shutil.rmtree(kept, ignore_errors=True)
		shutil.copytree(state, kept, ignore=no_files)
		run(["umount", state])
		shutil.copytree(kept, state, dirs_exist_ok=True)
		stand.cluster("start", "slurmctld")


def fill(path):
	with open(path, "ab", buffering=0) as file:
		try:
			while True:
				file.write(b"x" * 4096)
		except OSError:
			pass


def test_full_disk_in_state_save_location_binds_nothing_says_so_once_and_goes_on_with_space(stand):
	with small_disk(stand) as filler:
		stand.pod("before").wait_phase("Succeeded")
		fill(filler)
		size = stand.log_size()
		# Names of 240 characters, and one pod for each core of both nodes: the rest of the ledger's last block, 4 KiB at
		# most, does not take them all. Eight fit into it now and then.
		pods = [stand.pod(f"full{i}-".ljust(240, "x"), "exit 0", cpu="1") for i in range(16)]
		wait_for("our error", lambda: our_errors(stand, size), 30)
		stuck = [pod for pod in pods if pod.wait_job("RUNNING", "COMPLETED")["JobState"] == "RUNNING" and not pod.node]
		assert stuck and not [pod for pod in stuck if pod.uid in stand.bindings()]
		assert len(our_errors(stand, size)) == 1 and re.search("No space left on device", our_errors(stand, size)[0])
		os.unlink(filler)
		for pod in pods:
			pod.wait_phase("Succeeded")
			assert len(stand.bindings()[pod.uid]) == 1 and len(pod.runs()) == 1
		assert "can be written again" in stand.log(size)
