# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurm-k8s: what an administrator sees of the engine, and what may be done by hand."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest
from command import TOOL, findings, status, tool
from outage import saved
from stands.process import heed_interrupt
from stands.waiting import wait_for

pytestmark = pytest.mark.apis("sim")  # the engine is the same on both
STUBBORN = "trap '' TERM; sleep 600 & wait; wait"


def socket_of(stand):
	return os.path.join(stand.folder, "slurm", "state", "slurm-k8s.socket")


def leaving(stand, name):
	"""A pod whose job was cancelled and whose process does not go."""
	pod = stand.pod(name, STUBBORN, cpu="3", node="n1", grace=30).wait_running()
	stand.run("scancel", str(pod.job_id))
	pod.wait("deleted", lambda: (pod.get() or {}).get("metadata", {}).get("deletionTimestamp"))
	return pod


def test_status_shows_connections_pods_and_jobs_by_state(stand):
	runs = stand.pod("runs", "sleep 600", cpu="2", node="n1", grace=1).wait_running()
	waits = stand.pod("waits", "exit 0", cpu="8", node="n1")
	waits.wait_job("PENDING")
	about = status(stand)
	cluster = about["clusters"][0]
	assert (about["state"], cluster["name"], cluster["state"]) == ("running", "stand", "running")
	assert about["slurm_version"] in stand.run("scontrol", "-V") and about["pid"] > 1
	assert {watch["state"] for watch in cluster["watches"]} == {"up to date"} and cluster["connected_since"]
	assert cluster["summary"]["pods"]["bound"] == 1 and cluster["summary"]["jobs"]["queued"] == 1
	assert about["masks"] == []
	one = status(stand, "--pod", "default/waits")["clusters"][0]["pods"]
	assert [(pod["uid"], pod["pod"], pod["job"], pod["next"]) for pod in one] == [(waits.uid, "waiting", "queued", "mirror")]
	assert f"job {runs.job_id}" in tool(stand, "status", "--pod", runs.uid)
	assert "cluster stand: running, connected since" in tool(stand, "status")


def test_status_of_a_node_shows_a_leaving_pod_its_mask_and_why(stand):
	pod = leaving(stand, "stubborn")
	about = status(stand, "--node", "n1")
	mask, = about["masks"]
	assert mask["node"] == "n1" and len(mask["cores"]) == 3
	shown, = about["clusters"][0]["pods"]
	assert (shown["name"], shown["pod"], shown["job_id"]) == ("stubborn", "leaving", pod.job_id)
	assert shown["holds"]["masked"] and "the kubelet has not reported the last of its containers gone" in shown["why"]
	text = tool(stand, "status", "--node", "n1")
	assert "masked on node n1: 3 cores" in text and "a mask" in text
	assert "pods that keep resources from Slurm's jobs" in tool(stand, "status")
	assert status(stand, "--node", "n2")["clusters"][0]["pods"] == []


def test_release_is_refused_while_the_node_reports_and_frees_the_cores_by_force(stand):
	pod = leaving(stand, "forced")
	refused = tool(stand, "release", "default/forced", check=False)
	assert refused.returncode == 1 and "whose kubelet reports" in refused.stderr and "--force" in refused.stderr
	assert status(stand)["masks"]
	log = stand.log_size()
	assert "holds on node n1 is free" in tool(stand, "release", "--force", pod.uid)
	assert status(stand)["masks"] == []
	assert "is released by hand by root (uid 0), though" in stand.log(log)
	pod.wait("without finalizer", lambda: not (pod.get() or {"metadata": {}})["metadata"].get("finalizers"))


def test_release_frees_what_a_pod_held_whose_object_vanished(stand):
	pod = leaving(stand, "vanished")
	stand.api.patch(pod.path, {"metadata": {"finalizers": None}})
	pod.delete(now=True)
	pod.wait_gone()

	def lost():
		found = status(stand, "--pod", pod.uid)["clusters"][0]["pods"]
		return found and found[0]["pod"] == "lost"
	wait_for("a lost pod", lost, 30)
	assert status(stand)["masks"]
	tool(stand, "release", "default/vanished", "--node", "n1")
	assert status(stand)["masks"] == []
	gone = tool(stand, "release", "default/vanished", check=False)
	assert gone.returncode == 1 and "holds anything" in gone.stderr
	stand.restart_slurmctld(kill=True)
	wait_for("the engine", lambda: running(stand), 30)
	assert status(stand)["masks"] == []


def test_what_was_released_stays_free_after_a_restart_while_its_object_is_there(stand):
	pod = leaving(stand, "remembered")

	def remembered():
		with open(os.path.join(stand.folder, "slurm", "state", "slurm-k8s.stand.ledger"), encoding="utf-8") as file:
			about = [line for line in file if pod.uid in line]
		return about and '"gone"' in about[-1]
	tool(stand, "release", "--force", pod.uid)
	for _ in range(2):
		stand.restart_slurmctld(kill=True)
		wait_for("the engine", lambda: running(stand), 30)
		assert pod.get() and not pod.runs()[-1].stop  # Kubernetes still says that it runs, and it does, for 8 s (killGrace)
		assert status(stand)["masks"] == [] and remembered()
	batch = stand.batch(cores=8, node="n1")
	batch.wait_started()
	batch.cancel()
	pod.wait_gone()
	wait_for("a ledger without it", lambda: not remembered(), 30)


@contextlib.contextmanager
def watching(stand, tmp_path, *words):
	"""slurm-k8s status --watch while it runs: yields a function that says what it has printed so far."""
	out = tmp_path / "out"
	with open(out, "w", encoding="utf-8") as file, subprocess.Popen([TOOL, "status", "--watch", *words],
			stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **stand.env}, preexec_fn=heed_interrupt) as process:
		try:
			yield out.read_text
			process.send_signal(signal.SIGINT)  # as Ctrl-C does
			assert process.wait(10) == -signal.SIGINT
		finally:
			process.kill()


def test_status_watch_shows_what_changes_and_lives_on_without_slurmctld(stand, tmp_path):
	with watching(stand, tmp_path) as shown, watching(stand, tmp_path / "..", "--json", "--pod", "default/watched") as about:
		wait_for("the state", lambda: "cluster stand: running" in shown(), 10)
		assert "1 bound" not in shown()
		stand.pod("watched", "sleep 600", cpu="1", grace=1).wait_running()
		wait_for("the pod", lambda: "1 bound" in shown(), 10)

		def states():
			answers = [json.loads(line) for line in about().splitlines() if line.startswith("{")]
			return {pod["pod"] for answer in answers for pod in answer["clusters"][0]["pods"]}
		wait_for("its state", lambda: "bound" in states(), 10)
		stand.cluster("stop", "slurmctld")
		try:
			wait_for("the complaint", lambda: "slurmctld is not running" in shown(), 10)
		finally:
			stand.cluster("start", "slurmctld")
		times = shown().count("cluster stand: running")
		wait_for("the next one", lambda: shown().count("cluster stand: running") > times, 30)


def test_only_root_and_slurmuser_may_ask(stand):
	denied = tool(stand, "status", check=False, user="daemon")
	assert denied.returncode == 1 and "only root and SlurmUser" in denied.stderr
	assert os.stat(socket_of(stand)).st_mode & 0o777 == 0o600
	os.chmod(socket_of(stand), 0o666)  # the peer's uid counts even then
	try:
		denied = tool(stand, "release", "default/x", "--force", check=False, user="daemon")
		assert denied.returncode == 1 and "only root and SlurmUser may ask, not daemon (uid" in denied.stderr
	finally:
		os.chmod(socket_of(stand), 0o600)


def test_socket_survives_the_end_and_the_death_of_slurmctld(stand):
	before = status(stand)["pid"]
	stand.restart_slurmctld(kill=True)
	second = wait_for("an answer", lambda: answer(stand), 30)
	assert second["pid"] != before
	stand.cluster("stop", "slurmctld")
	try:
		assert not os.path.exists(socket_of(stand))
		away = tool(stand, "status", check=False)
		assert away.returncode == 1 and "slurmctld is not running" in away.stderr
	finally:
		stand.cluster("start", "slurmctld")
	assert wait_for("an answer", lambda: answer(stand), 30)["pid"] != second["pid"]
	# somebody removed it by mistake
	os.unlink(socket_of(stand))
	assert wait_for("the socket", lambda: answer(stand), 30)


def answer(stand):
	done = tool(stand, "status", "--json", check=False)
	return json.loads(done.stdout) if done.returncode == 0 else None


def running(stand):
	"""Its engine knows pods, nodes and jobs."""
	about = answer(stand)
	return about and about["clusters"] and about["clusters"][0]["state"] == "running"


def test_debug_flag_shows_decisions_without_slurms_own_debug_lines(stand):
	assert tool(stand, "debug") == "off"
	log = stand.log_size()
	assert tool(stand, "debug", "on") == "debug"
	try:
		pod = stand.pod("told", "exit 0")
		pod.wait_phase("Succeeded")
		wait_for("the line", lambda: f"debug: pod stand/default/told uid {pod.uid} job none: waiting: submit" in stand.log(log), 10)
		assert "debug2:" not in stand.log(log)
	finally:
		assert tool(stand, "debug", "off") == "off"
	log = stand.log_size()
	pod = stand.pod("untold", "exit 0")
	pod.wait_phase("Succeeded")
	assert "debug:" not in stand.log(log)
	assert tool(stand, "debug", "loud", check=False).returncode == 1


def test_configuration_with_a_mistake_is_shown_by_status_and_found_by_check(stand):
	path = stand.env["SLURM_K8S_CONF"]
	with stand.changing_settings() as (good, write):
		write(good.replace("schedulerNames", "schedulerName"))
		stand.reconfigure()
		errors = wait_for("the mistake", lambda: status(stand)["configuration"]["errors"], 30)
		assert "schedulerNames" in errors[0] and f"{path}:4:" in errors[0]
		assert any("schedulerNames" in line for line in findings(stand)["problem"])
		about = status(stand)
		assert about["state"] == "running"
		last = about["troubles"][-1]
		assert last["level"] == "error" and "is not used; the former settings stay in force" in last["text"]
		assert last["text"] in tool(stand, "status")
	wait_for("the good one", lambda: not status(stand)["configuration"]["errors"], 30)


@pytest.mark.parametrize("restarted, state", [(False, "running"), (True, "connecting")])
def test_status_answers_at_once_while_an_api_server_never_does(stand, restarted, state):
	leaving(stand, "masked")
	if restarted:
		saved(stand)  # else it may recover a job that runs, and there is no mask
	with stand.paused("apiserver"):
		if restarted:
			stand.restart_slurmctld(kill=True)
			wait_for("an answer", lambda: (answer(stand) or {}).get("clusters"), 30)
		took = []
		for ask in (lambda: status(stand), lambda: tool(stand, "status", "--node", "n1")):
			began = time.monotonic()
			took.append((ask(), time.monotonic() - began))
		(about, first), (text, second) = took
		# 1.5 s are left to an engine that hangs; who waits for the server waits for half a minute
		assert max(first, second) < 5, (first, second)
		cluster, = about["clusters"]
		assert (cluster["name"], cluster["state"]) == ("stand", state)
		assert [mask["node"] for mask in about["masks"]] == ["n1"] and "masked on node n1" in text
	wait_for("the engine", lambda: running(stand), 120)


def test_wrong_usage_is_told_with_exit_code_2(stand):
	for words in (["nonsense"], ["status", "--nod", "n1"], ["release"], []):
		done = tool(stand, *words, check=False)
		assert done.returncode == 2 and "slurm-k8s --help" in done.stderr
	assert tool(stand, "--version").startswith("slurm-k8s ")
