# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Power saving: for Slurm a node with nothing but pods is idle."""
import pytest
from conftest import CONF, Cluster
from stands.waiting import wait_for

# The shortest that Slurm can do: it looks once a second.
POWER = CONF.replace("SchedulerParameters=", "SchedulerParameters=power_save_interval=1,") + """SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=3
SuspendTimeout=1
ResumeTimeout=60
"""


# node -> its mask; the others are powered down
PODS = {"n1": ("cores=0",), "n2": ("more=1",), "n3": ("milli=100",), "n4": ("mem=10",), "n5": ("whole=1",)}
NO_PODS = {"n6": ("node_milli=100", "node_mem=10"), "n7": ()}


def test_node_with_a_pod_is_not_powered_down_but_for_pods_that_belong_to_the_node():
	cluster = Cluster(nodes=[*PODS, *NO_PODS], conf=POWER)
	try:
		for node, mask in (PODS | NO_PODS).items():
			if mask:
				cluster.tell("mask", node, *mask)

		def down():
			"""Told of masks as the Slurm thread tells it, all the time."""
			assert "saves_power=1" in cluster.tell("keep_up")
			return {name for name in cluster.nodes if "POWER" in cluster.node(name)["State"]}
		wait_for("nodes without pods to be powered down", lambda: down() >= set(NO_PODS), 60, lambda: cluster.run("sinfo", "-N"))
		assert down() == set(NO_PODS)
		cluster.tell("unmask")
		wait_for("the others, too", lambda: down() == set(cluster.nodes), 60, lambda: cluster.run("sinfo", "-N"))
	finally:
		cluster.down()


# Only what is told to power down does: by itself none would in the test's time.
TOLD = POWER.replace("SuspendTime=3", "SuspendTime=600")


def gone(cluster):
	"""Told of masks as the Slurm thread tells it, all the time."""
	cluster.tell("keep_up")
	return {name for name in cluster.nodes if {"POWERED_DOWN", "POWERING_DOWN"} & set(cluster.node(name)["State"].split("+"))}


def ends_on(cluster, node, *options, powers_down=None):
	"""A job there, which ends, and has told its node to power down."""
	job = cluster.batch("-n1", "--mem=10", "-w", node, *options)
	cluster.becomes(job, "RUNNING")
	if powers_down:
		cluster.run("scontrol", "update", f"NodeName={node}", f"State={powers_down}", "Reason=test")
	cluster.run("scancel", str(job))


def stays_up_with_its_pod(cluster, options, powers_down):
	"""Its neighbour, which has none, is told the same after it, and goes."""
	cluster.tell("mask", "n1", "cores=7")
	for node in ("n1", "n2"):
		ends_on(cluster, node, *options, powers_down=powers_down)
	wait_for("the node without a pod to go", lambda: "n2" in gone(cluster), 60, lambda: cluster.run("sinfo", "-N"))
	assert gone(cluster) == {"n2"}
	cluster.tell("unmask")
	wait_for("the other one, too", lambda: gone(cluster) == {"n1", "n2"}, 60, lambda: cluster.run("sinfo", "-N"))


@pytest.mark.parametrize("how", ("POWER_DOWN", "POWER_DOWN_ASAP"))
def test_node_that_is_told_to_power_down_does_when_its_last_pod_is_gone(how):
	cluster = Cluster(conf=TOLD + "PartitionName=all Nodes=n1,n2\n")
	try:
		stays_up_with_its_pod(cluster, ("-p", "all"), how)
	finally:
		cluster.down()


def test_node_that_is_forced_to_power_down_waits_for_no_pod():
	cluster = Cluster(conf=TOLD)
	try:
		cluster.tell("mask", "n1", "cores=7")
		cluster.run("scontrol", "update", "NodeName=n1", "State=POWER_DOWN_FORCE", "Reason=test")
		wait_for("the node to be powered down", lambda: gone(cluster) == {"n1"}, 60, lambda: cluster.run("sinfo", "-N"))
	finally:
		cluster.down()


@pytest.mark.starts_again  # 22.05 has no PowerDownOnIdle
def test_node_of_a_partition_that_powers_down_what_is_idle_does_when_its_last_pod_is_gone():
	cluster = Cluster(conf=TOLD + "PartitionName=all Nodes=n1,n2 PowerDownOnIdle=YES\n")
	try:
		stays_up_with_its_pod(cluster, ("-p", "all"), None)
	finally:
		cluster.down()
