# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Nodes drained, set down and resumed by the engine, in a real slurmctld: compared and changed under one lock."""
import contextlib

import pytest
from stands.waiting import StandError, wait_for

OURS, THEIRS = "k8s: cordoned", "bad disk"


def usual(cluster):
	return cluster.node("n2")["State"] == "IDLE"


@pytest.fixture
def node(cluster):
	yield cluster
	cluster.cancel_all()
	with contextlib.suppress(StandError):  # if it is in use already
		cluster.run("scontrol", "update", "NodeName=n2", "State=resume")
	wait_for("n2 in use", lambda: usual(cluster), 60, lambda: cluster.run("scontrol", "show", "node", "n2"))


def tell(cluster, action, **more):
	return cluster.ask("node", "n2", action, *(f"{key}={value}" for key, value in more.items()))


def test_node_is_drained_by_slurmuser_with_the_reason_and_its_jobs_go_on(node):
	job = node.batch("-w", "n2")
	node.becomes(job, "RUNNING")
	told = tell(node, "drain", reason=OURS)
	assert (told["rc"], told["drain"], told["uid"], told["jobs"], told["reason"]) == ("0", "1", "0", "1", OURS)
	assert "n2 k8s: cordoned" in node.run("sinfo", "-h", "-R", "-o", "%n %E")
	assert node.show(job)["JobState"] == "RUNNING"


def test_resume_takes_back_our_drain_and_the_node_is_used_again(node):
	tell(node, "drain", reason=OURS)
	told = tell(node, "resume", expected=OURS)
	assert (told["rc"], told["drain"], told["reason"]) == ("0", "0", "")
	job = node.batch("-w", "n2")
	node.becomes(job, "RUNNING")
	assert "Reason" not in node.node("n2")


@pytest.mark.parametrize("action,more", [("drain", {"reason": OURS}), ("drain", {"reason": OURS, "expected": OURS}),
	("down", {"reason": OURS, "expected": OURS}), ("resume", {"expected": OURS}), ("resume", {})])
def test_administrators_drain_is_neither_renamed_nor_undone(node, action, more):
	tell(node, "drain", reason=OURS)
	node.run("scontrol", "update", "NodeName=n2", "State=drain", f"Reason={THEIRS}")
	told = tell(node, action, **more)
	assert told["rc"] != "0" and (told["drain"], told["down"], told["reason"]) == ("1", "0", THEIRS)


def test_reason_of_ours_may_be_changed_to_another_of_ours(node):
	tell(node, "drain", reason=OURS)
	told = tell(node, "drain", reason="k8s: NotReady", expected=OURS)
	assert (told["rc"], told["drain"], told["reason"]) == ("0", "1", "k8s: NotReady")


def test_node_that_nobody_keeps_jobs_from_is_not_resumed(node):
	assert tell(node, "resume")["rc"] != "0"
	assert usual(node)


def test_down_ends_the_nodes_jobs_and_resume_brings_it_back(node):
	job = node.batch("-w", "n2", "--no-requeue")
	node.becomes(job, "RUNNING")
	told = tell(node, "down", reason="k8s: NotReady")
	assert (told["rc"], told["down"], told["drain"], told["reason"]) == ("0", "1", "1", "k8s: NotReady")
	node.becomes(job, "NODE_FAIL")
	assert tell(node, "resume", expected="k8s: NotReady")["rc"] == "0"
	wait_for("n2 in use", lambda: usual(node), 60, lambda: node.run("scontrol", "show", "node", "n2"))


def test_resume_of_a_node_whose_slurmd_has_died_says_so_to_return_to_service(node):
	tell(node, "drain", reason=OURS)
	daemon = node.slurm.daemon("slurmd-n2")
	daemon.stop()
	try:
		node.run("scontrol", "update", "NodeName=n2", "State=NoResp")
		node.run("scontrol", "update", "NodeName=n2", "State=down", f"Reason={OURS}")
		told = tell(node, "resume", expected=OURS)
		assert (told["rc"], told["down"], told["drain"], told["reason"]) == ("0", "1", "0", "Not responding")
	finally:
		daemon.start(["slurmd", "-D", "-N", "n2"], node.slurm.env)


def test_resume_of_a_node_that_has_not_registered_since_slurmctld_started_takes_back_our_drain(node):
	tell(node, "drain", reason=OURS)
	daemon, slurmctld = node.slurm.daemon("slurmd-n2"), node.slurm.daemon("slurmctld")
	slurmctld.stop()
	daemon.stop()
	slurmctld.start_again()
	node.slurm.wait_controller()
	try:
		assert "UNKNOWN" in node.node("n2")["State"]
		told = tell(node, "resume", expected=OURS)
		assert (told["rc"], told["drain"], told["reason"]) == ("0", "0", "")
	finally:
		daemon.start(["slurmd", "-D", "-N", "n2"], node.slurm.env)


def test_fail_and_maintenance_are_told(node):
	node.run("scontrol", "update", "NodeName=n2", "State=fail", "Reason=smoke")
	told = tell(node, "resume", expected="smoke")
	assert told["rc"] != "0" and (told["fail"], told["reason"]) == ("1", "smoke")
	node.run("scontrol", "update", "NodeName=n2", "State=resume")
	node.run("scontrol", "create", "reservation", "ReservationName=m", "StartTime=now", "Duration=5", "Flags=maint,ignore_jobs",
		"Nodes=n2", "Users=root")
	try:
		wait_for("maintenance", lambda: tell(node, "resume")["maint"] == "1", 30)
	finally:
		node.run("scontrol", "delete", "reservation", "m")
	wait_for("no maintenance", lambda: tell(node, "resume")["maint"] == "0", 30)


def test_node_that_does_not_exist_is_refused(node):
	assert node.ask("node", "nope", "drain", f"reason={OURS}")["rc"] != "0"
