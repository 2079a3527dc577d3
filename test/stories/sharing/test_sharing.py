# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What keeps Kubernetes' own pods from Slurm's jobs: clusters[].nodes.sharing."""
import pytest
from command import status
from mixed import restore, share
from node import OURS, Node, taints

GPU = {"key": "gpu", "value": "yes", "effect": "PreferNoSchedule"}


@pytest.fixture
def dedicated(stand):
	before = share(stand, sharing="dedicated")
	yield stand
	restore(stand, before)
	for name in ("n1", "n2"):
		node = Node(stand, name)
		node.wait("no taint of ours", lambda node=node: OURS not in taints(node))


def test_dedicated_node_takes_pods_that_go_through_slurm_although_they_tolerate_nothing(dedicated):
	node = Node(dedicated)
	node.wait("tainted", lambda: OURS in taints(node))
	pod = dedicated.pod("through-slurm", node="n1")
	pod.wait_phase("Succeeded")
	assert OURS in taints(node)


def test_taint_that_somebody_takes_off_comes_back_beside_those_of_others(dedicated):
	node = Node(dedicated)
	node.wait("tainted", lambda: OURS in taints(node))
	dedicated.patch_node("n1", {"taints": [GPU]})
	try:
		node.wait("both", lambda: taints(node) == [GPU, OURS])
	finally:
		dedicated.patch_node("n1", {"taints": [OURS]})


def test_node_that_leaves_the_selector_loses_the_taint_and_only_that(dedicated):
	node = Node(dedicated)
	path = "/api/v1/nodes/n1"
	node.wait("tainted", lambda: OURS in taints(node))
	dedicated.patch_node("n1", {"taints": [GPU, OURS]})
	dedicated.api.patch(path, {"metadata": {"labels": {"slurm-k8s.io/shared": "false"}}})
	try:
		node.wait("one left", lambda: taints(node) == [GPU])
	finally:
		dedicated.api.patch(path, {"metadata": {"labels": {"slurm-k8s.io/shared": "true"}}, "spec": {"taints": None}})
	node.wait("tainted again", lambda: OURS in taints(node))


def test_taint_goes_with_the_setting_also_if_slurmctld_was_away(stand):
	node = Node(stand)
	before = share(stand, sharing="dedicated")
	node.wait("tainted", lambda: OURS in taints(node))
	stand.cluster("stop", "slurmctld")
	with open(stand.env["SLURM_K8S_CONF"], "w", encoding="utf-8") as file:
		file.write(before)
	stand.cluster("start", "slurmctld")
	node.wait("not tainted", lambda: OURS not in taints(node), 30)
	assert status(stand, "--node", "n1")["masks"] == []
