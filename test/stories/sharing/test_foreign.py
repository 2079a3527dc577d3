# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Foreign pods: what others placed on a shared node is kept away from Slurm's jobs, until its last process is gone."""
import contextlib
import glob
import json
import os
import signal
import statistics
import time

import pytest
from command import status, tool
from conftest import lent
from foreign import POLITE, allocated, foreign, masked, wait_masked
from node import Node
from stands.kubernetes import Kubernetes
from stands.replays import once_only
from stands.waiting import wait_for
from world import STUBBORN, Pod, pod_object

GRACE = 4
STARTS, MOST_START = 20, 1.25


@pytest.fixture
def stock(request, session_stands, stand):
	"""Beside the stand: the same without slurm-k8s."""
	yield from lent(request, session_stands, stand.kind, "--no-plugin")


@once_only
def test_foreign_pod_keeps_cores_and_memory_from_slurms_jobs_until_it_has_ended(stand):
	pod = foreign(stand, "monitor", "sleep 8; exit 3", cpu="2500m", memory="6Gi")
	wait_masked(stand, "monitor")
	beside = stand.batch(5)  # three of the eight cores are the pod's
	beside.wait("RUNNING")
	wide = stand.batch(6, options=("-t", "60"))
	big = stand.batch(1, options=("--mem", "12000"))
	whole = stand.batch(1, options=("--exclusive",))
	stand.scheduled()
	assert [job.state for job in (wide, big, whole)] == ["PENDING"] * 3
	assert allocated(stand) == (8, 100 + 6 * 1024)
	beside.cancel()
	pod.wait_phase("Failed")
	stopped = pod.runs()[0].stop
	wide.wait("RUNNING")
	assert wide.wait_started() > stopped
	big.wait("RUNNING")


def srun_seconds(stand):
	began = time.monotonic()
	stand.run("srun", "-w", "n1", "-n", "1", "-c", "2", "--mem=100", "true")
	return time.monotonic() - began


@pytest.mark.apis("real")
def test_job_that_fits_beside_a_foreign_pod_starts_as_fast_as_without_slurm_k8s(stand, stock):
	foreign(stand, "monitor", POLITE, cpu="2500m", memory="1Gi")
	wait_masked(stand, "monitor")
	took = {"beside": [], "stock": []}
	for _ in range(STARTS + 1):  # the first fills caches
		for whose, one in ("beside", stand), ("stock", stock):
			took[whose].append(srun_seconds(one))
	beside, alone = (statistics.median(took[whose][1:]) for whose in ("beside", "stock"))
	ratio = statistics.median(one / other for one, other in zip(took["beside"][1:], took["stock"][1:]))  # one after the other
	print(f"{STARTS} times srun beside a foreign pod: median {beside * 1000:.0f} ms, without slurm-k8s {alone * 1000:.0f} ms, ratio "
		f"of two {ratio:.2f} (median, at most {MOST_START}); slowest {max(took['beside'][1:]) * 1000:.0f} and {max(took['stock'][1:]) * 1000:.0f} ms")
	assert ratio <= MOST_START


def test_node_on_which_a_pod_comes_second_is_shown_as_overcommitted(stand):
	job = stand.batch(8, node="n1")
	job.wait("RUNNING")
	second = stand.pod("second", POLITE, cpu="1500m", schedulerName="default-scheduler", nodeName="n1")
	second.wait_running()
	wait_for("the node to be overcommitted", lambda: "overcommitted, pods and Slurm's jobs together have more than there is: 1.5 CPUs"
		in tool(stand, "status", "--node", "n1"), 60)
	assert "have more than there is of n1 (1.5 CPUs" in stand.log()
	job.cancel()
	wait_for("room for both", lambda: "overcommitted" not in tool(stand, "status", "--node", "n1"), 60)


def test_foreign_pods_of_a_node_make_whole_cores_together(stand):
	for number in range(5):
		foreign(stand, f"agent{number}", cpu="150m")
	wait_masked(stand, *(f"agent{number}" for number in range(5)))
	seven = stand.batch(7)
	seven.wait("RUNNING")
	assert allocated(stand)[0] == 8


def test_deleted_foreign_pod_gives_nothing_back_before_its_container_is_gone(stand):
	pod = foreign(stand, "stubborn", STUBBORN, cpu="8", grace=GRACE)
	pod.wait_running()
	wait_masked(stand, "stubborn")
	rival = stand.batch(8)
	stand.scheduled()
	assert rival.state == "PENDING"
	pod.delete()
	pod.wait_gone()
	rival.wait("RUNNING")
	assert rival.wait_started() > pod.runs()[0].stop
	assert not masked(stand)


def test_foreign_pod_deleted_by_force_holds_on_until_a_person_says_that_it_is_gone(stand):
	pod = foreign(stand, "forced", STUBBORN, cpu="8", grace=GRACE)
	pod.wait_running()
	wait_masked(stand, "forced")
	pod.delete(now=True)
	pod.wait_gone()
	told = wait_for("the reason", lambda: masked(stand)["forced"].get("why"), 30)
	assert "vanished before the kubelet had reported" in told
	rival = stand.batch(8)
	stand.scheduled()
	assert rival.state == "PENDING"
	assert "is free" in tool(stand, "release", "default/forced")
	rival.wait("RUNNING")


BRIEF = str(10**6 + os.getpid())  # seconds that a container of the static pod would sleep, as no other process does


def end_brief():
	for path in glob.glob("/proc/[0-9]*/cmdline"):
		with contextlib.suppress(OSError), open(path, "rb") as file:
			if file.read().split(b"\0")[:2] == [b"sleep", BRIEF.encode()]:
				os.kill(int(path.split("/")[2]), signal.SIGKILL)


@pytest.fixture
def static(stand):
	"""A pod that n1's kubelet runs from a file: the file, and its mirror."""
	made = pod_object("steady", cpu="1500m", memory="512Mi", schedulerName="default-scheduler",
		containers={"main": POLITE, "other": f"exec sleep {BRIEF}"})
	path = os.path.join(Kubernetes(stand.folder).static_pods("n1"), "steady.json")
	with open(os.path.join(stand.folder, "steady.json"), "w", encoding="utf-8") as file:
		json.dump(made, file)
	os.rename(file.name, path)

	def mirrors():
		return [pod for pod in stand.pods() if pod.name == "steady-n1"]
	yield path, wait_for("its mirror", mirrors, 60)[0]
	if os.path.exists(path):
		os.unlink(path)
	wait_for("no mirror", lambda: not mirrors(), 60)


@pytest.mark.apis("real")  # kubesim's kubelets read no files
def test_static_pod_is_masked_once_also_without_its_mirror_until_it_has_ended_and_that_is_known(stand, static):
	path, mirror = static
	mirror.wait_phase("Running")
	uid = mirror.seen["metadata"]["annotations"]["kubernetes.io/config.hash"]
	wait_masked(stand, mirror.name)
	assert allocated(stand) == (3, 1024)
	rival = stand.batch(6)
	mirror.delete(now=True)
	mirror.wait_gone()
	Node(stand).stays("what it holds", lambda: allocated(stand) == (3, 1024))
	end_brief()  # else its kubelet looks after it once in 60 to 90 s

	def another():
		assert allocated(stand) == (3, 1024)
		found = stand.api.get("/api/v1/pods?fieldSelector=metadata.name%3Dsteady-n1")["items"]
		return found and found[0]["metadata"]["uid"] != mirror.uid and Pod(stand, found[0])
	again = wait_for("another mirror", another, 60)
	again.wait_phase("Running")
	stand.scheduled()
	assert rival.state == "PENDING" and allocated(stand) == (3, 1024)
	os.unlink(path)
	again.wait_gone()
	wait_for("its end", lambda: all(run.stop for run in stand.runs() if run.uid == uid), 30)
	silent = "has not reported since"
	wait_for("no mask, or the reason", lambda: silent in masked(stand).get(again.name, {"why": silent}).get("why", ""), 30)
	if masked(stand):  # at times a kubelet takes a mirror away before it has told there of the end: free a minute and a half later
		assert "is free" in tool(stand, "release", again.uid)
	began = rival.wait_started()
	main, other = (run for run in stand.runs() if run.uid == uid)
	assert max(main.stop, other.stop) < began


def test_pod_for_slurm_waits_for_a_foreign_pod(stand):
	first = foreign(stand, "first", "sleep 6", cpu="7")
	wait_masked(stand, "first")
	pod = stand.pod("second", cpu="2", node="n1")
	pod.wait_job("PENDING")
	stand.scheduled()
	assert pod.job()["JobState"] == "PENDING"
	pod.wait_phase("Succeeded")
	assert pod.runs()[0].start > first.runs()[0].stop


def test_pod_for_slurm_that_is_resized_keeps_slurms_jobs_from_what_it_got(stand):
	pod = stand.pod("growing", POLITE, cpu="1", memory="100Mi", node="n1")
	pod.wait_running()
	assert allocated(stand) == (1, 100)
	pod.resize(cpu="5500m", memory="1000Mi")
	wait_for("what it got", lambda: allocated(stand) == (6, 1000), 30)
	stand.restart_slurmctld()
	assert allocated(stand) == (6, 1000)
	rival = stand.batch(3)
	stand.scheduled()
	assert rival.state == "PENDING"
	pod.resize(cpu="4", memory="100Mi")
	rival.wait("RUNNING")
	assert pod.job()["JobState"] == "RUNNING"


def test_pod_for_slurm_that_is_resized_while_it_waits_is_bound_by_a_job_that_is_large_enough(stand):
	first = stand.batch(7)
	first.wait("RUNNING")
	pod = stand.pod("growing", POLITE, cpu="2", node="n1")
	pod.wait_job("PENDING")
	pod.resize(cpu="3")
	second = stand.batch(6)
	first.cancel()
	pod.wait_running()
	second.wait("PENDING")
	assert pod.job()["NumCPUs"] == "3"
	assert allocated(stand)[0] == 3


def test_foreign_pods_stay_masked_when_slurmctld_dies_and_the_api_server_is_away(stand):
	pod = foreign(stand, "steady", cpu="8")
	pod.wait_running()
	wait_masked(stand, "steady")

	def saved():
		with open(f"{stand.folder}/slurm/state/slurm-k8s.stand.ledger", encoding="utf-8") as file:
			return pod.uid in file.read()
	wait_for("the saved ledger", saved, 10)
	with stand.paused("apiserver"):
		stand.restart_slurmctld()
		rival = stand.batch(8)
		stand.scheduled()
		assert rival.state == "PENDING"
		assert allocated(stand)[0] == 8
	stand.scheduled()
	assert rival.state == "PENDING"
	pod.delete()
	rival.wait("RUNNING")
	assert rival.wait_started() > pod.runs()[0].stop


@once_only
@pytest.mark.slow
def test_foreign_pod_that_ended_while_slurmctld_was_down_is_free_once_its_kubelet_has_reported(stand):
	pod = foreign(stand, "gone", cpu="8", grace=1)
	pod.wait_running()
	wait_masked(stand, "gone")
	stand.cluster("stop", "slurmctld")
	pod.delete()
	pod.wait_gone()
	stand.cluster("start", "slurmctld")
	wait_for("the reason", lambda: "has not reported since" in masked(stand)["gone"].get("why", ""), 30)
	rival = stand.batch(8)
	stand.scheduled()
	assert rival.state == "PENDING"
	rival.wait("RUNNING", seconds=150)  # kubelets of stands report every ten seconds


def test_foreign_pods_on_a_node_that_is_not_shared_are_no_business_of_slurm(stand):
	path = "/api/v1/nodes/n2"
	foreign(stand, "elsewhere", cpu="8", node="n2").wait_running()
	wait_masked(stand, "elsewhere", node="n2")
	stand.api.patch(path, {"metadata": {"labels": {"slurm-k8s.io/shared": "false"}}})
	try:
		wait_for("no mask", lambda: allocated(stand, "n2")[0] == 0, 30)
	finally:
		stand.api.patch(path, {"metadata": {"labels": {"slurm-k8s.io/shared": "true"}}})
	wait_for("a mask", lambda: allocated(stand, "n2")[0] == 8, 30)
