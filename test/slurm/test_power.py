# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Power saving: for Slurm a node with nothing but pods is idle."""
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
