# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""etcd is restored from a backup that is older than what happened since, on a real Kubernetes.

As an administrator does it (doc/reliability.md): kubelets are stopped, etcd and kube-apiserver too, the files are put back,
etcd and kube-apiserver start, and a kubelet starts when its pods have their node again. Containers run meanwhile.
"""
import os
import shutil

import pytest
from stands.process import Daemon
from stands.replays import once_only
from stands.waiting import wait_for

pytestmark = pytest.mark.apis("real")
KUBELETS = ("kubelet-n1", "kubelet-n2")


class Etcd:
	"""Of one member; a copy of its files while it is stopped is a backup."""

	def __init__(self, stand):
		self.stand = stand
		self.home = os.path.join(stand.folder, "kubernetes", "etcd")
		self.copy = self.home + ".backup"

	def back_up(self):
		self.stand.cluster("stop", "etcd")
		shutil.rmtree(self.copy, ignore_errors=True)
		shutil.copytree(self.home, self.copy)
		self.stand.cluster("start", "etcd")

	def restore(self):
		self.stand.cluster("stop", "apiserver")
		self.stand.cluster("stop", "etcd")
		shutil.rmtree(self.home)
		shutil.copytree(self.copy, self.home)
		Daemon(self.stand.folder, "etcd").start_again()  # alone: the cluster's start waits for kube-apiserver as well
		self.stand.cluster("start", "apiserver")


@pytest.fixture
def etcd(stand):
	yield Etcd(stand)
	stand.spoiled = True  # a server whose past is another one's is nobody else's


@once_only
def test_pod_that_lost_its_node_to_a_backup_of_etcd_is_bound_there_again_and_its_container_goes_on(stand, etcd):
	job = stand.batch(cores=8, node="n1")
	job.wait_started()
	old = stand.pod("old", "sleep 40; exit 4", cpu="1", node="n2")
	old.wait_running()
	late = stand.pod("late", "sleep 40; exit 3", cpu="2", node="n1")
	late.wait_job("PENDING")
	etcd.back_up()
	job.cancel()
	late.wait_running()

	for kubelet in KUBELETS:
		Daemon(stand.folder, kubelet).stop()
	etcd.restore()
	late.wait("its node", lambda: late.get() and late.node == "n1")
	for kubelet in KUBELETS:
		Daemon(stand.folder, kubelet).start_again()
	late.wait_phase("Failed", seconds=150)
	old.wait_phase("Failed", seconds=150)
	assert [run.code for run in late.runs()] == [3], "its container was ended or started anew"
	assert [run.code for run in old.runs()] == [4]
	assert stand.bindings()[late.uid] == ["n1", "n1"]
	late.wait("the true end of its only job", lambda: [(made["JobState"], made["ExitCode"]) for made in late.jobs()] == [("FAILED", "3:0")])
