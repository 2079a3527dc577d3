# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A node that takes no more work on one side takes none on the other, and neither administrator is run over."""
import pytest
from node import BY, OWNER, REASON, RESUMED, Node


@pytest.fixture
def node(stand):
	found = Node(stand)
	yield found
	found.settle()


def test_cordon_drains_the_node_in_slurm_and_uncordon_gives_it_back(node):
	job = node.stand.batch(2)
	job.wait("RUNNING")
	node.cordon("fan is broken")
	node.wait_drained("k8s: cordoned: fan is broken")
	assert job.state == "RUNNING"
	node.wait_condition("False", "1 job of Slurm left: k8s: cordoned")
	waits = node.stand.batch(1)
	node.stand.scheduled()
	assert waits.state == "PENDING"
	job.cancel()
	node.wait_condition("True", "no job of Slurm left", 30)
	assert node.note(OWNER) is None
	node.uncordon()
	waits.wait("RUNNING", seconds=60)
	assert not node.drained and node.reason == ""
	node.wait_condition("False", "Slurm gives this node jobs")
	waits.cancel()


def test_drain_in_slurm_cordons_and_says_draining_then_drained_and_resume_uncordons(node):
	job = node.stand.batch(1)
	job.wait("RUNNING")
	node.drain("bad disk")
	node.wait("cordoned", lambda: node.cordoned)
	assert (node.note(OWNER), node.note(REASON)) == ("slurm", "bad disk")
	assert node.note(BY).startswith("root (uid 0)")
	node.wait_condition("False", "1 job of Slurm left: bad disk, by root (uid 0)")
	job.cancel()
	node.wait_condition("True", "no job of Slurm left: bad disk", 30)
	assert node.reason == "bad disk"
	node.resume()
	node.wait("uncordoned", lambda: not node.cordoned)
	assert [node.note(name) for name in (OWNER, REASON, BY)] == [None] * 3
	node.wait_condition("False", "Slurm gives this node jobs")
	node.stays("resumed, and not cordoned", lambda: not node.drained and not node.cordoned)


def test_an_administrators_drain_is_never_undone_by_uncordon(node):
	node.cordon()
	node.wait_drained("k8s: cordoned")
	node.drain("I look after it")
	node.uncordon()
	# Slurm keeps it, and so Kubernetes gets to know of that
	node.wait("cordoned for Slurm", lambda: node.cordoned and node.note(OWNER) == "slurm")
	node.stays("the administrator's drain", lambda: node.drained and node.reason == "I look after it")


def test_resume_does_not_undo_a_cordon_that_is_not_ours(node):
	node.cordon()
	node.wait_drained("k8s: cordoned")
	node.resume()
	node.wait("noted", lambda: node.note(RESUMED) == "cordoned")
	node.stays("cordoned and resumed", lambda: node.cordoned and not node.drained)
	node.uncordon()
	node.wait("forgotten", lambda: node.note(RESUMED) is None)
	node.cordon()  # another decision
	node.wait_drained("k8s: cordoned")


def test_uncordon_of_what_slurm_drained_stands_until_slurm_has_another_reason(node):
	node.drain("bad disk")
	node.wait("cordoned", lambda: node.cordoned)
	node.uncordon()
	node.wait("known", lambda: node.note(OWNER) == "kubernetes")
	node.stays("uncordoned though drained", lambda: not node.cordoned and node.drained)
	node.drain("bad memory")
	node.wait("cordoned again", lambda: node.cordoned and node.note(REASON) == "bad memory")
	node.resume()
	node.wait("uncordoned", lambda: not node.cordoned and node.note(OWNER) is None)
