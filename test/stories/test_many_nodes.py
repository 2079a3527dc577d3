# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""How soon one side hears of the other's node among a thousand."""
import statistics
import time

import pytest
from mixed import restore, share
from node import Node
from stands.waiting import wait_for

NODES = 1000
TIMES = 5


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_cordon_drains_and_drain_cordons_within_a_second_among_a_thousand_nodes(many):
	def took(act, done):
		began = time.monotonic()
		act()
		wait_for("the other side", done, 20)
		return time.monotonic() - began
	node = Node(many, "f1")
	assert len(many.api.get("/api/v1/nodes")["items"]) == NODES + 2
	cordon, drain = [], []
	for _ in range(TIMES):
		cordon.append(took(node.cordon, lambda: node.drained))
		took(node.uncordon, lambda: not node.drained)
		drain.append(took(node.drain, lambda: node.cordoned))
		took(node.resume, lambda: not node.cordoned)
	print(f"cordon -> drain {sorted(cordon)}, drain -> cordon {sorted(drain)} seconds")
	assert statistics.median(cordon) < 1 and statistics.median(drain) < 1, (cordon, drain)


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_label_is_a_feature_and_lets_its_job_go_within_a_second_among_a_thousand_nodes(many):
	zone, feature = "topology.kubernetes.io/zone", "k8s.topology..kubernetes..io/zone"

	def label(value):
		many.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {zone: value}}})

	def has(text):
		return all(text in line for line in many.run("scontrol", "show", "node", "n1").splitlines() if "Features=" in line)
	before = share(many, features=[zone, "kubernetes.io/hostname"])
	try:
		last = f"k8s.kubernetes..io/hostname.f{NODES}"
		wait_for("all nodes to have features", lambda: last in many.run("scontrol", "show", "node", f"f{NODES}"), 60)
		seen, free, ran = [], [], []
		for number in range(TIMES):
			began = time.monotonic()
			label(f"z{number}")
			wait_for("the feature", lambda n=number: has(f"{feature}.z{n}"), 20)
			seen.append(time.monotonic() - began)
			job = int(many.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-n1", "--mem", "100", "-C", f"{feature}.z{number}",
				"--begin", "now+1hour", "--wrap", "sleep 600"))
			label("other")
			wait_for("no feature", lambda: has(f"{feature}.other"), 20)
			many.scontrol("update", f"JobId={job}", "StartTime=now")
			wait_for("no node for the job", lambda j=job: many.job(j)["Reason"] == "BadConstraints", 90, lambda j=job: many.job(j))
			began = time.monotonic()
			label(f"z{number}")
			wait_for("the job not to be held", lambda j=job: many.job(j)["Priority"] != "0", 60, lambda j=job: many.job(j))
			free.append(time.monotonic() - began)
			wait_for("the job to run", lambda j=job: many.job(j)["JobState"] == "RUNNING", 60, lambda j=job: many.job(j))
			ran.append(time.monotonic() - began)
			many.run("scancel", str(job))
		print(f"label -> feature {sorted(seen)}, label -> job may run {sorted(free)}, -> runs {sorted(ran)} seconds")
		assert statistics.median(seen) < 1 and statistics.median(free) < 1, (seen, free)
		assert statistics.median(ran) < 10, ran  # Slurm looks once a second what it is to start; by itself only every 30
	finally:
		label(None)
		restore(many, before)
