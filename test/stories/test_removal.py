# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurm-k8s goes in the order of slurm-k8s(7), REMOVAL: nodes are stock again on both sides, and no job notices."""
import re

import pytest
import yaml
from mixed import IMAGE, apply, reservations, restore, share, wait_reservation
from node import Node, taints
from stands.slurm import stock_plugins
from test_node_features import FEATURE, ZONE, features, label, wait_features
from stands.waiting import wait_for

THEIRS = ("slurm-k8s.io/shared", "slurm-k8s.io/cordon-reason")  # the administrators' own label and annotation


@pytest.fixture
def used(gated):
	"""A stand with all that slurm-k8s does to nodes: n1 is mixed, n2 dedicated, both have features by a label. It is not used
	again: what is left of slurm-k8s there is nothing."""
	apply(gated)
	for name in ("n1", "n2"):
		label(gated, name, ZONE, "a")
	share(gated, {"image": IMAGE}, sharing="dedicated", groups=[{"selector": "kubernetes.io/hostname=n1", "sharing": "mixed"}],
		features=[ZONE])
	try:
		for name in ("n1", "n2"):
			wait_features(gated, name, f"{FEATURE}.a", seconds=60)
		yield gated
	finally:
		gated.spoiled = True


def do_nothing_to_nodes(stand):
	"""Step 1: slurm-k8s.yaml as it is to be, until the engine has it."""
	with open(stand.env["SLURM_K8S_CONF"], encoding="utf-8") as file:
		about = yaml.safe_load(file)
	cluster = about["clusters"][0]
	cluster["nodes"] = {"selector": cluster["nodes"]["selector"], "sharing": "none"}
	cluster["state"] = {"slurm": "ignore", "cordon": "ignore", "notReady": {"action": "ignore"}}
	restore(stand, yaml.safe_dump(about))


def take_out_plugins(stand):
	"""Step 3: slurm.conf without ours, and all daemons of Slurm start with it."""
	stand.cluster("stop", "slurmctld")
	path = stand.env["SLURM_CONF"]
	with open(path, encoding="utf-8") as file:
		text = file.read()
	text = re.sub(r"^PluginDir=.*", "PluginDir=" + stock_plugins(), text, flags=re.M)
	text = re.sub(r"^(JobSubmitPlugins|PrEpPlugins)=.*\n", "", text, flags=re.M)
	with open(path, "w", encoding="utf-8") as file:
		file.write(text)
	began = stand.log_size()
	stand.cluster("start", "slurmctld")
	for name in ("n1", "n2"):
		stand.cluster("restart", f"slurmd-{name}")
	return began


def ours_in_kubernetes(stand):
	"""What has a name of slurm-k8s on nodes and pods, but for what the administrator has put there."""
	found = []
	for node in stand.api.get("/api/v1/nodes")["items"]:
		meta = node["metadata"]
		names = [*meta.get("labels", {}), *meta.get("annotations", {}), *(taint["key"] for taint in node["spec"].get("taints", []))]
		found += [f"{meta['name']}: {name}" for name in names if name.startswith("slurm-k8s.io/") and name not in THEIRS]
	for pod in stand.api.get("/api/v1/pods")["items"]:
		found += [f"{pod['metadata']['name']}: {name}" for name in pod["metadata"].get("finalizers", [])]
	return found


def test_nodes_are_stock_again_and_no_job_notices_when_slurm_k8s_goes_in_the_order_of_its_manual_page(used):
	n1, n2 = Node(used), Node(used, "n2")
	runs = used.batch(3, seconds=None)
	runs.wait_started()
	wait_reservation(used, runs.id)
	waits = used.batch(8, seconds=1)
	pod = used.pod("leaves", "sleep 600", node="n2", grace=1).wait_running()
	assert pod.get()["metadata"]["finalizers"] and taints(n2)
	n1.drain("bad disk")
	n1.wait("cordoned", lambda: n1.cordoned)
	n2.cordon("fan is broken")
	n2.wait_drained("k8s: cordoned")

	pod.delete()
	pod.wait_gone()
	do_nothing_to_nodes(used)
	wait_for("nothing of ours in Kubernetes", lambda: not (ours_in_kubernetes(used) or reservations(used)), 60,
		lambda: f"{ours_in_kubernetes(used)} {list(reservations(used))}")
	n1.wait("not cordoned by us", lambda: not n1.cordoned)
	n2.wait("not drained by us", lambda: not n2.drained and n2.reason == "", 30)
	assert n1.reason == "bad disk" and n2.cordoned  # administrators', both
	n1.resume()
	n2.uncordon()

	began = take_out_plugins(used)
	for node in (n1, n2):
		node.wait_in_use()
		assert features(used, node.name) == set()
	assert n2.reason == "" and n1.reason in ("", "bad disk")  # which Slurm forgets when the next job starts there
	assert "slurm-k8s" not in used.log(began)
	assert runs.state == "RUNNING" and runs.stamps()[1] is None
	assert waits.state == "PENDING"
	whole = used.batch(8, seconds=1, node="n2")  # nothing is masked
	whole.wait("COMPLETED")
	runs.finish()
	runs.wait("COMPLETED")
	waits.wait("COMPLETED")
	assert len([job for job in used.jobs() if job["JobId"] in (str(runs.id), str(waits.id))]) == 2
	assert ours_in_kubernetes(used) == []
