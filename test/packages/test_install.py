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
IGNORE_TERM = "kubesim.slurm-k8s.io/ignore-term"
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

	def create(self, name, seconds, cpus=1, deaf_for=0):
		"""deaf_for: it takes so many seconds to go when it is deleted."""
		item = pod(name, cpus, seconds)
		if deaf_for:
			item["metadata"]["annotations"][IGNORE_TERM] = "true"
			item["spec"]["terminationGracePeriodSeconds"] = deaf_for
		self.api.post(PODS, item)

	def is_leaving(self, name):
		return "deletionTimestamp" in self.api.get(f"{PODS}/{name}")["metadata"]

	def kill(self, name):
		self.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 1})

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


def empty_package(name, version, folder):
	"""A .deb of which nothing but its name and version is known."""
	tree = folder / f"{name}-{version}"
	(tree / "DEBIAN").mkdir(parents=True)
	(tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\n"
		"Description: nothing\n", encoding="utf-8")
	subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, folder], check=True, stdout=subprocess.DEVNULL)
	return f"{folder}/{name}_{version}_all.deb"


def squeue(machine, name):
	"""[job, name, state]"""
	return machine.run(f"squeue -h -n {name} -o '%i %j %T'").split()


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


def assert_is_ready(machine):
	"""slurm-k8s check finds nothing to do before slurmctld is restarted, on either kind of host, but what sharing says by itself."""
	found = machine.run("slurm-k8s check")
	for about in ("PluginDir: /usr/lib/slurm-k8s/plugins before /usr/lib/", "Slurm: slurmctld ", "JobSubmitPlugins: k8s", "rights of prod: "):
		assert f"\nok       {about}" in "\n" + found, found
	assert found.endswith(" 1 warnings, 0 problems\n") and "nodes.sharing is none" in found, found
	found = machine.run("slurm-k8s check --on-node")
	assert found.endswith(" 0 warnings, 0 problems\n"), found


def masked(machine):
	return f"masked on node {NODE}: 1 core" in machine.run(f"slurm-k8s status --node {NODE}")


def test_packages_install_beside_debians_slurm_place_a_pod_survive_an_upgrade_and_leave_a_stock_slurm(machine, cluster, debs, tmp_path):
	machine.run("apt-get update -q")
	# Hosts where users submit have no slurmd, and need none; beside another one nothing is installed that it would load.
	for_nodes = [debs[name] for name in ("node", "spank", "libs")]
	assert "Inst slurm-k8s-spank" in (plan := machine.run("apt-get install -s " + " ".join(for_nodes))) and "Inst slurmd" not in plan
	for number in ("1.2.3", "99.1.2"):
		other = empty_package("slurmd", number, tmp_path)
		refused = machine.run(f"apt-get install -s {other} " + " ".join(for_nodes), check=False)
		assert all(f"slurm-k8s-{name} : Breaks: slurmd (" in refused for name in ("node", "spank")) and "Inst" not in refused, refused
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
	assert_is_ready(machine)
	machine.run("/usr/share/slurm-k8s/make-kubeconfig --help")
	machine.stop("slurmctld")
	machine.start("slurmctld")
	cluster.create("hello", 1)
	cluster.wait("hello", "Succeeded", machine.log)
	machine.runs_a_job()

	# An upgrade while a pod runs, one is leaving, and one waits for what that holds.
	cluster.create("long", 3600)
	cluster.create("slow", 3600, deaf_for=3600)
	for name in ("long", "slow"):
		cluster.wait(name, "Running", machine.log)
	running = squeue(machine, "long")
	assert running[1:] == ["long", "RUNNING"]
	machine.run(f"scancel {squeue(machine, 'slow')[0]}")
	wait_for("the pod slow to leave", lambda: cluster.is_leaving("slow"), 60, machine.log)
	cluster.create("wide", 1, cpus=3)
	wait_for("a job for the pod wide", lambda: squeue(machine, "wide"), 60, machine.log)
	waiting = squeue(machine, "wide")
	assert waiting[1:] == ["wide", "PENDING"] and masked(machine)
	next_release = tmp_path / "next"
	next_release.mkdir()
	machine.install(*newer(debs, next_release))
	assert ".1+slurm" in machine.run("dpkg-query -W -f '${Version}' slurm-k8s-controller")
	assert_is_ready(machine)
	machine.stop("slurmctld")
	machine.start("slurmctld")
	wait_for("the engine", lambda: "\ncluster prod: running" in machine.run("slurm-k8s status", check=False), 60, machine.log)
	assert (squeue(machine, "long"), squeue(machine, "slow"), squeue(machine, "wide")) == (running, [], waiting)
	assert cluster.is_leaving("slow") and masked(machine)
	cluster.kill("slow")
	cluster.wait("wide", "Succeeded", machine.log)
	assert f"JobId={waiting[0]} JobName=wide" in machine.job(waiting[0]) and not masked(machine)
	cluster.create("after", 1)
	cluster.wait("after", "Succeeded", machine.log)
	assert squeue(machine, "long") == running
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
