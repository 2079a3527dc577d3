# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Labels of nodes in Kubernetes are features in Slurm, and follow them."""
import pytest
from command import tool
from mixed import restore, share
from node import PROMPT
from stands.waiting import wait_for

ZONE, FEATURE = "topology.kubernetes.io/zone", "k8s.topology..kubernetes..io/zone"
KEYS = [ZONE, "test.example/*"]
OWN = "big"  # an administrator's


def label(stand, node, key, value):
	stand.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {key: value}}})


def features(stand, node):
	shown = dict(word.partition("=")[::2] for word in stand.run("scontrol", "show", "node", node).split() if "=" in word)
	found = [shown.get(name, "").replace("(null)", "") for name in ("AvailableFeatures", "ActiveFeatures")]
	assert found[0] == found[1]
	return set(filter(None, found[0].split(",")))


def wait_features(stand, node, *wanted, seconds=PROMPT):
	wait_for(f"{node} to have {wanted}", lambda: features(stand, node) == set(wanted), seconds, lambda: features(stand, node))


@pytest.fixture
def labelled(stand):
	"""n1 is in zone a, n2 in b."""
	for node, zone in (("n1", "a"), ("n2", "b")):
		label(stand, node, ZONE, zone)
	before = share(stand, features=KEYS)
	wait_features(stand, "n1", f"{FEATURE}.a", seconds=60)
	wait_features(stand, "n2", f"{FEATURE}.b", seconds=60)
	yield stand
	for node in ("n1", "n2"):
		for key in (ZONE, "test.example/x"):
			label(stand, node, key, None)
	restore(stand, before)


def where(stand, *options):
	job = int(stand.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null",
		"-N1", "-n1", "--mem", "100", *options, "--wrap", "sleep 600"))
	wait_for(f"job {job} to run", lambda: stand.job(job)["JobState"] == "RUNNING", 60, lambda: stand.job(job))
	return stand.job(job)["NodeList"]


def test_label_is_a_feature_that_constraints_find_and_follows_the_label(labelled):
	assert where(labelled, "-C", f"{FEATURE}.b") == "n2"
	label(labelled, "n1", ZONE, "c")
	wait_features(labelled, "n1", f"{FEATURE}.c")
	assert where(labelled, "-C", f"{FEATURE}.c|{FEATURE}.a") == "n1"
	label(labelled, "n1", "test.example/x", "x" * 63)
	wait_features(labelled, "n1", f"{FEATURE}.c", "k8s.test..example/x." + "x" * 63)
	assert f"features by labels: k8s.test..example/x.{'x' * 63}, {FEATURE}.c\n" in tool(labelled, "status", "--node", "n1") + "\n"
	label(labelled, "n1", ZONE, None)
	wait_features(labelled, "n1", "k8s.test..example/x." + "x" * 63)


def test_labels_are_features_over_a_start_of_slurmctld_without_api_server(labelled):
	with labelled.paused("apiserver"):
		labelled.restart_slurmctld()
		assert where(labelled, "-C", f"{FEATURE}.b") == "n2"
		assert features(labelled, "n1") == {f"{FEATURE}.a"}
	label(labelled, "n1", ZONE, "c")
	wait_features(labelled, "n1", f"{FEATURE}.c", seconds=60)


def test_administrators_features_stay_and_ours_come_back_after_reconfigure_and_restart(labelled):
	labelled.scontrol("update", "NodeName=n1", f"Features={OWN}", f"ActiveFeatures={OWN}")
	wait_features(labelled, "n1", OWN, f"{FEATURE}.a")
	label(labelled, "n1", ZONE, "c")
	wait_features(labelled, "n1", OWN, f"{FEATURE}.c")
	labelled.reconfigure()  # slurm.conf has no features
	wait_features(labelled, "n1", f"{FEATURE}.c", seconds=60)
	labelled.restart_slurmctld()
	wait_features(labelled, "n1", f"{FEATURE}.c", seconds=60)
	wait_features(labelled, "n2", f"{FEATURE}.b")
