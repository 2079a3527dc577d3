# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Features that labels give nodes, in a real slurmctld: what scontrol shows and --constraint finds, and whose they are."""
import os
import re
import time

import pytest
from conftest import Cluster
from stands.waiting import StandError, wait_for

A, B = "k8s.topology..kubernetes..io/zone.a", "k8s.topology..kubernetes..io/zone.b"


def lists(cluster, node):
	found = cluster.node(node)
	return tuple(found.get(name, "").replace("(null)", "") for name in ("AvailableFeatures", "ActiveFeatures"))


def give(cluster, node, features, active=None, expected=None):
	had = expected or lists(cluster, node)
	return cluster.ask("features", node, f"expected={had[0]}", f"expected_active={had[1]}", f"features={features}",
		f"active={features if active is None else active}")


@pytest.fixture
def nodes(cluster):
	yield cluster
	cluster.cancel_all()
	for node in cluster.nodes:
		give(cluster, node, "")


def constrained(cluster, text, *options):
	return cluster.batch("-C", text, "-N1", *options)


def runs_on(cluster, job):
	wait_for(f"job {job} to run", lambda: cluster.show(job)["JobState"] == "RUNNING", 20, lambda: str(cluster.show(job)))
	return cluster.show(job)["NodeList"]


def test_features_are_shown_and_found_by_every_operator_of_constraints(nodes):
	assert give(nodes, "n1", f"big,{A}")["rc"] == give(nodes, "n2", B)["rc"] == "0"
	assert lists(nodes, "n1") == (f"big,{A}", f"big,{A}") and lists(nodes, "n2") == (B, B)
	assert runs_on(nodes, constrained(nodes, A)) == "n1"
	assert runs_on(nodes, constrained(nodes, B)) == "n2"
	assert runs_on(nodes, constrained(nodes, f"{A}&big")) == "n1"
	assert runs_on(nodes, constrained(nodes, f"{B}|big", "-w", "n2")) == "n2"
	both = nodes.batch("-C", f"[{A}*1&{B}*1]", "-N2")
	wait_for("both nodes", lambda: nodes.show(both)["NodeList"] == "n[1-2]", 20, lambda: str(nodes.show(both)))
	either = nodes.batch("-C", f"[{A}|{B}]", "-N1")
	assert runs_on(nodes, either) in ("n1", "n2")


def test_a_change_is_made_only_of_what_was_expected(nodes):
	give(nodes, "n1", A)
	told = give(nodes, "n1", B, expected=("", ""))
	assert told["rc"] != "0" and (told["features"], told["active"]) == (A, A)
	assert give(nodes, "nope", B, expected=("", ""))["rc"] != "0"


def test_a_label_that_no_node_has_any_more_holds_a_job_and_comes_back_with_the_label_at_once(nodes):
	give(nodes, "n1", A)
	block = nodes.batch("-w", "n1", "--exclusive")
	nodes.becomes(block, "RUNNING")
	job = constrained(nodes, A)
	give(nodes, "n1", B)
	nodes.run("scancel", str(block))
	wait_for("no node for it", lambda: nodes.show(job)["Reason"] == "BadConstraints", 60, lambda: str(nodes.show(job)))
	assert nodes.show(job)["Priority"] == "0"
	began = time.monotonic()
	give(nodes, "n2", A)
	assert runs_on(nodes, job) == "n2"
	assert time.monotonic() - began < 15  # Slurm itself looks every 30 seconds


def test_a_job_that_its_user_holds_stays_held(nodes):
	give(nodes, "n1", A)
	job = constrained(nodes, A, "--hold")
	give(nodes, "n2", A)
	assert (nodes.show(job)["Priority"], nodes.show(job)["Reason"]) == ("0", "JobHeldUser")


def test_a_reconfigure_and_a_restart_leave_what_slurm_conf_has_and_double_nothing(nodes):
	give(nodes, "n1", f"{A},{B}")
	nodes.reconfigure()
	assert lists(nodes, "n1") == ("", "")
	assert give(nodes, "n1", A)["rc"] == "0"
	assert lists(nodes, "n1") == (A, A)


@pytest.mark.parametrize("constraint", ["k8s.nobody.knows", f"[{A}*1&k8s.nobody.knows*1]", f"{A}|k8s.nobody.knows"])
def test_what_no_node_has_ever_had_is_refused_by_slurm_and_the_user_reads_which_label_it_is(nodes, constraint):
	give(nodes, "n1", A)
	with pytest.raises(StandError, match="(?s)no node has the label for k8s.nobody.knows .*Invalid feature"):
		constrained(nodes, constraint)


def said(nodes, constraint):
	return nodes.run("sh", "-c", f"sbatch -D / -o /dev/null -N1 -C '{constraint}' --wrap 'sleep 600' 2>&1")


GONE, LOST = "k8s.zone.gone", "k8s.zone.lost"


@pytest.fixture
def less(nodes):
	"""n1 has B alone; GONE and LOST it has had."""
	give(nodes, "n1", f"{GONE},{LOST}")
	give(nodes, "n1", f"{B},big")
	return nodes


@pytest.mark.parametrize("constraint, named", [(GONE, GONE), (f"{GONE}|{LOST}", f"{GONE}, {LOST}"), (f"[{GONE}|{LOST}]", f"{GONE}, {LOST}"),
	(f"{GONE}|{LOST}&{B}", f"{GONE}, {LOST}"), (f"[{GONE}*1|{LOST}*2]", f"{GONE}, {LOST}")])
def test_of_labels_that_no_node_has_any_more_the_user_reads_which(less, constraint, named):
	with pytest.raises(StandError, match="no node has the label for " + re.escape(named) + " "):
		said(less, constraint)


@pytest.mark.parametrize("constraint", [B, f"{GONE}|{B}", f"[{B}|{GONE}]", f"({GONE}|{B})&big", f"{GONE}|big&{B}"])
def test_a_label_that_no_node_has_any_more_is_not_named_where_there_is_a_choice(less, constraint):
	assert "no node has" not in less.run("sh", "-c", f"sbatch -D / -o /dev/null -N1 -C '{constraint}' --wrap 'sleep 600' 2>&1 || true")


def test_labels_that_no_node_has_together_are_named(nodes):
	give(nodes, "n1", f"big,{A}")
	give(nodes, "n2", B)
	for constraint, pair in ((f"{A}&{B}", (A, B)), (f"{A},big,{B}", (A, B)), (f"big&{B}", ("big", B))):
		with pytest.raises(StandError, match=f"no node has both {pair[0]} and {pair[1]}; sinfo"):
			said(nodes, constraint)
	for fine in (f"{A}&big", f"{A}|{B}"):
		assert "no node has" not in said(nodes, fine)


def test_a_pool_that_is_mistyped_is_called_no_label(nodes):
	give(nodes, "n1", f"{A},k8s.exclusive,k8s.shared")
	with pytest.raises(StandError) as error:
		said(nodes, f"{A}&k8s.exclusiv")
	assert "no node has k8s.exclusiv, and no label makes such a feature" in str(error.value) and "the label for" not in str(error.value)
	with pytest.raises(StandError) as error:
		said(nodes, "k8s.exclusiv&k8s.zone.x")
	assert "no node has the label for k8s.zone.x " in str(error.value) and "no node has k8s.exclusiv, and" in str(error.value)


def test_who_changes_a_constraint_is_told_which_label_it_is(nodes):
	give(nodes, "n1", A)
	give(nodes, "n2", B)
	job = constrained(nodes, A, "--hold")
	for constraint, hint in (("k8s.nobody.knows", "no node has the label for k8s.nobody.knows "), (f"{A}&{B}", f"no node has both {A} and {B};")):
		before = len(nodes.log())
		told = nodes.run("sh", "-c", f"scontrol update JobId={job} Features='{constraint}' 2>&1 || true")
		assert hint in told or (nodes.release.startswith("22.05") and hint in nodes.log()[before:]), told


@pytest.fixture
def helped():
	"""n1's slurmd has features of its own: fast is active, slow would need a reboot. And jobs have a gate."""
	cluster = Cluster(nodes=["n1"], conf="PartitionName=all Nodes=n1 Default=YES\nPrEpPlugins=prep/script,prep/k8s\n")
	try:
		helper = os.path.join(cluster.folder, "helper.sh")
		with open(os.open(helper, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
			file.write("#!/bin/sh\necho fast\n")
		with open(os.open(helper + ".reboot", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
			file.write(f"#!/bin/sh\ntouch {helper}.rebooted\n")
		with open(os.path.join(cluster.slurm.etc, "helpers.conf"), "w", encoding="utf-8") as file:
			file.write(f"Feature=fast Helper={helper}\nFeature=slow Helper={helper}\n")
		with open(os.path.join(cluster.slurm.etc, "slurm.conf"), "a", encoding="utf-8") as file:
			file.write(f"NodeFeaturesPlugins=node_features/helpers\nRebootProgram={helper}.reboot\n")
		for name in ("slurmctld", "slurmd-n1"):
			cluster.slurm.daemon(name).stop()
			cluster.slurm.daemon(name).start_again()
		cluster.slurm.wait_controller()
		wait_for("features of helpers", lambda: kinds(cluster) == ({"fast", "slow"}, {"fast"}), 30, lambda: str(lists(cluster, "n1")))
		cluster.slurm.wait_nodes(["n1"])
		yield cluster
	finally:
		cluster.down()


def kinds(cluster):
	return tuple(set(filter(None, found.split(","))) for found in lists(cluster, "n1"))


def reboots(cluster):
	return "REBOOT" in cluster.node("n1")["State"] or os.path.exists(os.path.join(cluster.folder, "helper.sh.rebooted"))


def test_features_of_helpers_stay_theirs_and_ours_come_and_go_beside_them_without_a_reboot(helped):
	for label in (A, B):
		assert give(helped, "n1", f"fast,slow,{label}", f"fast,{label}")["rc"] == "0"
		assert kinds(helped) == ({"fast", "slow", label}, {"fast", label})
	daemon = helped.slurm.daemon("slurmd-n1")
	began = helped.node("n1")["SlurmdStartTime"]
	wait_for("another second", lambda: time.strftime("%Y-%m-%dT%H:%M:%S") > began, 5)
	daemon.stop()
	daemon.start_again()
	wait_for("n1 to be back", lambda: helped.node("n1")["SlurmdStartTime"] != began, 30)
	assert kinds(helped) == ({"fast", "slow", B}, {"fast", B})
	job = constrained(helped, f"{B}&fast")
	assert runs_on(helped, job) == "n1"
	assert not reboots(helped)
	give(helped, "n1", "fast,slow", "fast")
	assert kinds(helped) == ({"fast", "slow"}, {"fast"})


def test_a_job_that_asks_for_an_exclusive_node_has_it_emptied_and_not_rebooted(helped):
	give(helped, "n1", "fast,slow,k8s.exclusive,k8s.shared", "fast,k8s.exclusive,k8s.shared")
	helped.tell("mask", "n1", "milli=8000", "exclusive_milli=0")
	helped.tell("gate", "keeps")
	job = constrained(helped, "k8s.exclusive&fast", "-n8")
	wait_for("the job in the gate", lambda: helped.run("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "CONFIGURING", 30,
		lambda: str(helped.show(job)))
	helped.tell("unmask")
	helped.tell("gate", "opens")
	helped.tell("answer", job, "open")
	assert runs_on(helped, job) == "n1"
	assert not reboots(helped)
	helped.run("scancel", str(job))
	constrained(helped, "slow")  # of a plugin that reboots nodes
	wait_for("a reboot", lambda: reboots(helped), 60, lambda: str(helped.node("n1")))
