# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""An administrator's day: Debian's own Slurm, our packages beside it, a pod, an upgrade, and a Slurm as before.

In a bare Debian of each release (machine.py), against kubesim on this host. As root: /usr/bin/python3 -m pytest test/packages
"""
import os
import shutil
import subprocess

import pytest
from bench.load import PODS, pod
from machine import SCRIPT, Machine, is_host, releases
from made import packages
from stands import reserve
from stands.api import Api
from stands.build import TOP
from stands.kubernetes import RBAC, SHARED_LABEL, SLURM_USER
from stands.waiting import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a Debian in a folder needs root")

NODE = "f1"
CONFIG = """\
clusters:
  - name: prod
    kubeconfig: /etc/slurm/k8s.kubeconfig
    schedulerNames: [slurm]
    nodes: {selector: "slurm-k8s.io/shared=true"}
    namespaces:
      - {match: default, user: daemon}
"""


class Cluster:
	"""kubesim with one node."""

	def __init__(self, folder, build):
		self.folder = str(folder)
		subprocess.run([os.path.join(TOP, "test/kubesim/up"), "--kubesim", os.path.join(build, "test/kubesim/kubesim"), "--user", SLURM_USER,
			"--rbac", RBAC, "--fake-nodes", "1", self.folder], check=True, stdout=subprocess.DEVNULL)
		self.api = Api(os.path.join(self.folder, "admin.conf"))
		self.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SHARED_LABEL: "true"}}})

	def kubeconfig(self):
		with open(os.path.join(self.folder, SLURM_USER + ".conf"), encoding="utf-8") as file:
			return file.read()

	def create(self, name, seconds):
		self.api.post(PODS, pod(name, 1, seconds))

	def wait(self, name, phase, hint):
		wait_for(f"pod {name} {phase}", lambda: self.api.get(f"{PODS}/{name}")["status"].get("phase") == phase, 60, hint)


@pytest.fixture(name="cluster")
def fixture_cluster(tmp_path, build):
	yield Cluster(tmp_path / "kubesim", build)
	subprocess.run([os.path.join(TOP, "test/kubesim/down"), str(tmp_path / "kubesim")], check=False)


@pytest.fixture(name="release", params=releases(), ids=lambda release: f"debian-{release}")
def fixture_release(request):
	return request.param


@pytest.fixture(name="debs")
def fixture_debs(release):
	"""For the Slurm of that Debian, built in it."""
	return packages("deb", () if is_host(release) else (SCRIPT, release))


@pytest.fixture(name="machine")
def fixture_machine(tmp_path, release):
	machine = Machine(release)
	machine.configure_ports = reserve.ports(str(tmp_path), 2)
	yield machine
	machine.close()
	reserve.release(str(tmp_path))


def newer(debs, folder):
	"""The same packages with a higher version, as the next release will be."""
	for name, path in debs.items():
		tree = folder / name
		subprocess.run(["dpkg-deb", "--raw-extract", path, tree], check=True)
		control = tree / "DEBIAN/control"
		text = control.read_text(encoding="utf-8")
		control.write_text(text.replace("+slurm", ".1+slurm"), encoding="utf-8")
		subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, folder], check=True, stdout=subprocess.DEVNULL)
		shutil.rmtree(tree)
	return [str(path) for path in folder.glob("*.deb")]


def test_packages_install_beside_debians_slurm_place_a_pod_survive_an_upgrade_and_leave_a_stock_slurm(machine, cluster, debs, tmp_path):
	machine.run("apt-get update -q")
	machine.install("slurmctld", "slurmd", "slurm-client", "munge")
	machine.configure(NODE, *machine.configure_ports)
	stock = machine.run("cat /etc/slurm/slurm.conf")
	for daemon in ("slurmctld", "slurmd"):
		machine.start(daemon)
	machine.runs_a_job()

	# Our packages change nothing by themselves; then slurm.conf as README says.
	machine.install(*debs.values())
	machine.stop("slurmctld")
	machine.start("slurmctld")
	assert "slurm-k8s" not in machine.run("scontrol show config")
	machine.write("/etc/slurm/k8s.kubeconfig", cluster.kubeconfig(), mode="600", owner="slurm")
	machine.write("/etc/slurm/slurm-k8s.yaml", CONFIG, mode="640", owner="slurm")
	machine.run("echo PluginDir=/usr/lib/slurm-k8s/plugins:$(dirname /usr/lib/*/slurm-wlm/select_cons_tres.so) >> /etc/slurm/slurm.conf;"
		" echo JobSubmitPlugins=k8s >> /etc/slurm/slurm.conf")
	ours = machine.run("cat /etc/slurm/slurm.conf /etc/slurm/slurm-k8s.yaml /etc/slurm/k8s.kubeconfig")
	machine.run("slurm-k8s check; /usr/share/slurm-k8s/make-kubeconfig --help")
	machine.stop("slurmctld")
	machine.start("slurmctld")
	cluster.create("hello", 1)
	cluster.wait("hello", "Succeeded", machine.log)
	machine.runs_a_job()

	# An upgrade while a pod runs.
	cluster.create("long", 3600)
	cluster.wait("long", "Running", machine.log)
	running = machine.run("squeue -h -n long -o '%i %j %T'").split()
	assert running[1:] == ["long", "RUNNING"]
	next_release = tmp_path / "next"
	next_release.mkdir()
	machine.install(*newer(debs, next_release))
	assert ".1+slurm" in machine.run("dpkg-query -W -f '${Version}' slurm-k8s-controller")
	machine.stop("slurmctld")
	machine.start("slurmctld")
	cluster.create("after", 1)
	cluster.wait("after", "Succeeded", machine.log)
	assert machine.run("squeue -h -n long -o '%i %j %T'").split() == running
	cluster.wait("long", "Running", machine.log)
	assert machine.run("cat /etc/slurm/slurm.conf /etc/slurm/slurm-k8s.yaml /etc/slurm/k8s.kubeconfig") == ours

	# The end: what is running goes, then slurm.conf, then the packages.
	machine.run(f"scancel {running[0]}")
	wait_for("the end of the pod long", lambda: not machine.run("squeue -h"), 60, machine.log)
	machine.write("/etc/slurm/slurm.conf", stock)
	machine.stop("slurmctld")
	machine.run("apt-get remove -y -q 'slurm-k8s-*'")
	assert machine.run("ls -d /usr/lib/slurm-k8s 2>&-", check=False) == ""
	assert "kubeconfig:" in machine.run("cat /etc/slurm/slurm-k8s.yaml")
	machine.start("slurmctld")
	machine.runs_a_job()
