# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Plugins that were built with other headers than slurmctld: they must do nothing, and Slurm goes on as without them.

Distributions patch Slurm and micro releases change its structs; the version, which Slurm compares, stays the same.
"""
import os
import re

import pytest
from conftest import Cluster
from stands.other_headers import build_with_field
from stands.waiting import wait_for

CONF = "PartitionName=one Nodes=n1\n"
SAYS = "of this slurmctld is not that of the Slurm"


@pytest.mark.parametrize("struct,behind,named", [
	("gres_node_state", "gres_cnt_alloc", "gres_node_state_t"),
	("gres_job_state", "node_cnt", "gres_job_state_t"),
])
def test_gres_of_another_layout_is_not_touched_and_jobs_have_it_as_without_us(struct, behind, named, tmp_path):
	cluster = Cluster(nodes=["n1"], conf=CONF, other=build_with_field(struct, behind, tmp_path), gres="gpu:4")
	try:
		cluster.tell("mask", "n1", "gres=gpu::3")
		cluster.submit(tres="gpu:1")
		job = cluster.batch("--gres=gpu:3")
		cluster.becomes(job, "RUNNING")
		assert cluster.ask("active")["active"] == "0"
		assert len([line for line in cluster.log().splitlines() if SAYS in line and named in line]) == 1
		assert "underflow" not in cluster.log()
	finally:
		cluster.down()


@pytest.mark.parametrize("struct,behind,named,by", [
	("job_record", "alloc_node", "job_record_t", {"slurm-k8s", "job_submit/k8s"}),
	("job_record", None, "job_record_t", {"slurm-k8s", "job_submit/k8s"}),
	("node_record", None, "node_record_t", {"slurm-k8s"}),
	("job_descriptor", None, "job_desc_msg_t", {"slurm-k8s", "job_submit/k8s"}),
])
def test_one_field_more_in_our_headers_and_slurm_schedules_as_without_us(struct, behind, named, by, tmp_path):
	cluster = Cluster(nodes=["n1"], conf=CONF, other=build_with_field(struct, behind, tmp_path))
	try:
		# neither a mask nor a pod's job; 22.05 shows what its jobs look like only when it has one
		for order in (["mask", "n1", "whole=1"], ["submit", "partition=one"]):
			if os.path.exists(cluster.socket):
				assert cluster.tell(*order).startswith(("not active", "masks=1", "made=0 "))
		wait_for("no job to be left", lambda: not cluster.run("squeue", "-h"), 20, lambda: cluster.run("squeue"))
		first = cluster.batch("-n2")
		cluster.becomes(first, "RUNNING")
		cluster.run("scontrol", "update", f"JobId={first}", "AdminComment=" + ("k8s:prod/ns/p/uid" if len(by) > 1 else "any"))
		second = cluster.batch("-n6")
		cluster.becomes(second, "RUNNING")
		assert cluster.node("n1")["CPUAlloc"] == "8"
		cluster.reconfigure()
		cluster.run("scancel", str(first))
		cluster.becomes(first, "CANCELLED")
		assert cluster.show(second)["JobState"] == "RUNNING"
		if os.path.exists(cluster.socket):
			assert cluster.ask("active")["active"] == "0"
			assert not [event for event in cluster.events() if event.startswith("job_")]
		said = [re.search(r"slurm-k8s: (\S+) of .* which (\S+) was built with", line) for line in cluster.log().splitlines() if SAYS in line]
		assert {found.groups() for found in said} == {(named, plugin) for plugin in by}
		# once in the life of a slurmctld, and a reconfigure may begin another
		assert len(said) <= len(by) * (2 if cluster.again else 1), said
	finally:
		cluster.down()
