# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Jobs of pods on releases with external jobs and nodes: no slurmd hears of them."""
import pytest
from conftest import Cluster

CONF = """NodeName=x1 State=EXTERNAL
PartitionName=one Nodes=n1,x1
"""


@pytest.fixture(scope="module")
def apart():
	cluster = Cluster(nodes=["n1"], conf=CONF)
	yield cluster
	cluster.down()


@pytest.mark.external
def test_job_of_a_pod_is_external_and_ends_without_completing(apart):
	job = apart.submit(exclude="x1", cpus=2)["job"]
	apart.becomes(job, "RUNNING")
	assert apart.show(job)["NodeList"] == "n1"
	assert apart.ask("end", job, "COMPLETED")["rc"] == "0"
	# not a moment of COMPLETING, which takes the node out of scheduling: the mask does what it did
	assert apart.show(job)["JobState"] == "COMPLETED"
	with open(f"{apart.folder}/log/slurmd-n1.log", encoding="utf-8") as file:
		assert "job" not in file.read().lower()


@pytest.mark.external
def test_node_without_slurmd_runs_pods_and_masks_hold_there(apart):
	nodes = {part.split()[0]: part for part in apart.tell("nodes").split(";") if part}
	assert "usable=1" in nodes["node=x1"]
	job = apart.submit(exclude="n1", cpus=6)["job"]
	apart.becomes(job, "RUNNING")
	assert apart.node("x1")["State"] == "MIXED+EXTERNAL"
	assert apart.ask("end", job, "COMPLETED")["rc"] == "0"
	apart.tell("mask", "x1", "cores=0-3", "mem=1000")
	assert (apart.node("x1")["CPUAlloc"], apart.node("x1")["AllocTRES"]) == ("4", "cpu=4,mem=1000M")
	wide = apart.submit(exclude="n1", cpus=6)["job"]
	apart.scheduled()
	assert apart.show(wide)["JobState"] == "PENDING"
	apart.tell("unmask")
	apart.becomes(wide, "RUNNING")


@pytest.mark.external
def test_batch_job_does_not_go_to_a_node_without_slurmd(apart):
	apart.cancel_all()
	first, second = apart.batch("-n8"), apart.batch("-n8")
	apart.becomes(first, "RUNNING")
	apart.scheduled()
	assert (apart.show(first)["NodeList"], apart.show(second)["JobState"]) == ("n1", "PENDING")
