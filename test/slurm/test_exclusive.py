# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A job that asks for k8s.exclusive is placed where pods are still to go, if there is a gate to hold it until they have."""
import pytest
from conftest import Cluster, words
from stands.waiting import wait_for

GATE = "PrEpPlugins=prep/script,prep/k8s\n"
BOTH = "k8s.exclusive,k8s.shared"
FULL = ("mask", "n1", "milli=8000")


def made(conf):
	return Cluster(nodes=["n1"], conf="PartitionName=all Nodes=n1 Default=YES\n" + conf)


@pytest.fixture(scope="module", name="node_of_module")
def node_of_module_fixture():
	cluster = made(GATE)
	yield cluster
	cluster.down()


@pytest.fixture(name="node")
def node_fixture(node_of_module):
	give(node_of_module)
	node_of_module.tell("gate", "keeps")
	yield node_of_module
	node_of_module.tell("gate", "opens")
	node_of_module.clean()


def give(cluster):
	had = cluster.node("n1")
	lists = [had.get(name, "").replace("(null)", "") for name in ("AvailableFeatures", "ActiveFeatures")]
	cluster.ask("features", "n1", f"expected={lists[0]}", f"expected_active={lists[1]}", f"features={BOTH}", f"active={BOTH}")


def state(cluster, job):
	return cluster.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").strip()


def stays_pending(cluster, *jobs):
	cluster.scheduled()
	for job in jobs:
		assert state(cluster, job) == "PENDING", cluster.show(job)


def becomes_configuring(cluster, job):
	wait_for(f"job {job} in the gate", lambda: state(cluster, job) == "CONFIGURING", 30, lambda: str(cluster.show(job)))


def native(cluster, job):
	found = [words(text) for text in cluster.tell("natives").split(";") if text.strip()]
	return next(share for share in found if int(share["job"]) == job)


def test_job_that_asks_for_it_is_placed_where_pods_go_and_no_other_job_is(node):
	node.tell(*FULL, "exclusive_milli=0")
	job = node.batch("-n8", "-C", "k8s.shared&k8s.exclusive")
	becomes_configuring(node, job)
	others = [node.batch("-n1"), node.batch("-n1", "-C", "k8s.shared")]
	assert native(node, job)["exclusive"] == "1"
	assert node.run("squeue", "-h", "-j", str(job), "-o", "%r").strip().replace("_", " ") == "Pods leave its nodes"
	stays_pending(node, *others)
	node.tell("unmask")
	node.tell("gate", "opens")
	node.tell("answer", job, "open")
	wait_for("its run", lambda: state(node, job) == "RUNNING", 30)
	stays_pending(node, *others)


def test_only_a_plain_list_of_features_counts(node):
	node.tell(*FULL, "exclusive_milli=0")
	others = [node.batch("-n1", "-C", text) for text in (
		"k8s.shared|k8s.exclusive", "[k8s.shared|k8s.exclusive]", "k8s.exclusive*1", "(k8s.exclusive&k8s.shared)|k8s.shared")]
	stays_pending(node, *others)
	node.run("scancel", *map(str, others))  # else they are before it
	becomes_configuring(node, node.batch("-n1", "-C", "k8s.exclusive"))


def test_what_does_not_go_is_in_its_way_too(node):
	node.tell(*FULL, "exclusive_milli=5000")
	large = node.batch("-n4", "-C", "k8s.exclusive")
	stays_pending(node, large)
	node.run("scancel", str(large))
	becomes_configuring(node, node.batch("-n3", "-C", "k8s.exclusive"))


def test_node_that_such_a_job_cannot_have_is_not_given_to_it_though_there_is_room(node):
	node.tell("mask", "n1", "milli=1000", "exclusive_whole=1")
	job = node.batch("-n1", "-C", "k8s.exclusive")
	stays_pending(node, job)
	node.tell("mask", "n1", "milli=1000", "exclusive_milli=0")
	becomes_configuring(node, job)
	becomes_configuring(node, node.batch("-n1", "-C", "k8s.shared"))


def test_without_a_gate_pods_are_in_its_way():
	cluster = made("")
	try:
		give(cluster)
		cluster.tell(*FULL, "exclusive_milli=0")
		job = cluster.batch("-n1", "-C", "k8s.exclusive")
		stays_pending(cluster, job)
		cluster.tell("unmask")
		wait_for("its run", lambda: state(cluster, job) == "RUNNING", 30)
	finally:
		cluster.down()
