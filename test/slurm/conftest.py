# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A real Slurm with our plugins, and a stand-in for the engine that tests give orders to.

Run: /usr/bin/python3 -m pytest test/slurm      (root; SK8_BUILD names the build folder)
"""
import argparse
import os
import re
import shutil
import socket
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TEST)
from stands import stand  # noqa: E402
from stands.build import build_folder  # noqa: E402
from stands.process import Daemon  # noqa: E402
from stands.replays import Replays  # noqa: E402
from stands.slurm import Slurm, has_external, starts_again, version  # noqa: E402
from stands.waiting import StandError, wait_for  # noqa: E402

CONF = """SchedulerParameters=sched_interval=2,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,bf_continue
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
OverTimeLimit=1
PartitionName=one Nodes=n1 PriorityTier=10
PartitionName=lowone Nodes=n1 PriorityTier=1
PartitionName=pods RootOnly=YES
"""


def words(line):
	"""'a=1 b=two c=three words' as a dictionary; the last value may have blanks."""
	found, key = {}, None
	for word in line.split(" "):
		name, equals, value = word.partition("=")
		if equals and name.isidentifier() and key not in ("text", "reason"):
			key, found[name] = name, value
		elif key:
			found[key] += " " + word
	return found


class Cluster:
	def __init__(self, nodes=("n1", "n2"), scripted=True, plugin=True, conf=CONF, other=None, env=None, gres=None, files=None):
		"""gres: of each node, as test/cluster --gres. files: {name: text} beside slurm.conf. other: a folder with plugins that take the place of those that were built. env: more of it, for slurmctld."""
		self.folder = tempfile.mkdtemp(prefix="sk8slurm-", dir="/tmp")
		os.rmdir(self.folder)
		stand.prepare_folder(self.folder)
		self.socket = os.path.join(self.folder, "engine")
		self.nodes = list(nodes)
		self.slurm = Slurm(self.folder)
		self.release = version()
		self.again = starts_again(self.release)
		try:
			self.start(scripted, plugin, conf, other, env or {}, gres, files or {})
		except BaseException:
			self.down()
			raise

	def start(self, scripted, plugin, conf, other, env, gres, files):
		self.slurm.munge()
		self.slurm.configure(self.nodes, argparse.Namespace(plugin=plugin, backup=False, build=build_folder(), cpus=8, memory=16000,
			slurm_conf=[conf], gres=gres))
		for name, text in files.items():
			with open(os.path.join(self.slurm.etc, name), "w", encoding="utf-8") as file:
				file.write(text)
		if scripted:
			double = os.path.join(build_folder(), "test/slurm/.libs/libsk8core.so.0")
			for name in os.listdir(os.path.join(self.folder, "inst")):
				if name.startswith("libsk8core"):
					os.unlink(os.path.join(self.folder, "inst", name))
			shutil.copy(double, os.path.join(self.folder, "inst", "libsk8core.so.0"))
		if other:
			shutil.copytree(other, os.path.join(self.folder, "inst"), dirs_exist_ok=True)
		self.slurm.controller({"SLURM_K8S_TEST_SOCKET": self.socket, **env})
		for name in self.nodes:
			self.slurm.daemon(f"slurmd-{name}").start(["slurmd", "-D", "-N", name], self.slurm.env)
		self.slurm.wait_nodes(self.nodes)

	def down(self):
		# what a batch job runs outlives its slurmd
		if self.slurm.daemon("slurmctld").pid:
			self.cancel_all()
		Daemon(self.folder, "slurmctld").stop()
		for name in self.nodes:
			self.slurm.daemon(f"slurmd-{name}").stop()
		stand.down(self.folder)
		shutil.rmtree(self.folder, ignore_errors=True)

	def run(self, *argv):
		return self.slurm.command(*argv)

	def tell(self, *line):
		"""One order to the stand-in; the answer's first line as words."""
		with socket.socket(socket.AF_UNIX) as sock:
			sock.settimeout(30)
			sock.connect(self.socket)
			sock.sendall(("\t".join(str(word) for word in line) + "\n").encode())
			sock.shutdown(socket.SHUT_WR)
			return sock.makefile().read().strip()

	def ask(self, *line):
		return words(self.tell(*line).rstrip(";"))

	def submit(self, **more):
		more.setdefault("partition", "one")
		return self.ask("submit", *(f"{key}={value}" for key, value in more.items()))

	def jobs(self):
		return {int(job["job"]): job for job in map(words, self.tell("jobs").split(";")) if "job" in job}

	def events(self):
		with open(self.socket + ".events", encoding="utf-8") as file:
			return [line.split(" ", 1)[1].strip() for line in file]

	def reconfigure(self):
		"""scontrol reconfigure, until slurmctld and its nodes are ready again."""
		self.slurm.reconfigure()
		if self.again:
			wait_for("all nodes to respond", lambda: not re.search(r"\*|unk", self.run("sinfo", "-h", "-N", "-o", "%T")), 30)

	def restart(self):
		"""slurmctld, until it has heard of the nodes again."""
		self.slurm.daemon("slurmctld").stop()
		self.slurm.daemon("slurmctld").start_again()
		self.slurm.wait_controller()
		self.slurm.wait_nodes(self.nodes)

	def log(self):
		with open(os.path.join(self.folder, "log", "slurmctld.log"), encoding="utf-8") as file:
			return file.read()

	def batch(self, *options):
		return int(self.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", *options, "--wrap", "sleep 600"))

	def show(self, job):
		"""scontrol -d show job, as a dictionary."""
		return dict(word.partition("=")[::2] for word in self.run("scontrol", "-d", "show", "job", str(job)).split() if "=" in word)

	def node(self, name):
		return dict(word.partition("=")[::2] for word in self.run("scontrol", "show", "node", name).split() if "=" in word)

	def becomes(self, job, state, seconds=20):
		wait_for(f"job {job} to be {state}", lambda: self.show(job)["JobState"] == state, seconds,
			lambda: self.run("scontrol", "show", "job", str(job)))

	def cancel_all(self):
		for job in self.run("squeue", "-h", "-o", "%A").split():
			self.run("scancel", "--quiet", job)
		wait_for("no job is left", lambda: not self.run("squeue", "-h"), 30, lambda: self.run("squeue"))

	def clean(self):
		self.tell("unmask")
		self.cancel_all()

	def scheduled(self):
		"""Both schedulers have looked at every job since now. From 24.11 on they have no turn while none is pending."""
		before = self._cycles()

		def passed():
			# else nothing may have changed for the backfill scheduler since its last turn, and it has none
			self.run("scontrol", "update", f"NodeName={self.nodes[0]}", "Comment=changed")
			return all(new > old for new, old in zip(self._cycles(), before)) or not self.run("squeue", "-h", "-t", "PD")
		wait_for("both schedulers", passed, 30)

	def _cycles(self):
		diag = self.run("sdiag")
		main = diag.split("Main schedule statistics")[1]
		total = [line for line in main.splitlines() if "Total cycles:" in line]
		return [int(line.rsplit(":", 1)[1]) for line in total]


# marker -> does it hold for this release?
OF_RELEASES = {"starts_again": starts_again, "external": has_external}


def pytest_configure(config):
	config.addinivalue_line("markers", "external: of releases with external jobs and nodes (from 25.05 on)")
	config.addinivalue_line("markers", "starts_again: of releases whose reconfigure starts slurmctld again (from 23.11 on)")
	config.addinivalue_line("markers", "flaky(reruns): how often script/test plays the test again, if it fails")
	config.pluginmanager.register(Replays(config))


def pytest_collection_modifyitems(config, items):
	def foreign(item):
		return any(item.get_closest_marker(name) and not holds(version()) for name, holds in OF_RELEASES.items())
	config.hook.pytest_deselected(items=[item for item in items if foreign(item)])
	items[:] = [item for item in items if not foreign(item)]


@pytest.fixture(scope="session")
def session_cluster():
	cluster = Cluster()
	yield cluster
	cluster.down()


@pytest.fixture
def cluster(session_cluster):
	yield session_cluster
	session_cluster.clean()
