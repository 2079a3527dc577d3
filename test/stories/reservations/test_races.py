# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""sharing: mixed: a foreign pod and a Slurm job want the last core of a node, or its last device; exactly one gets it.

Races run on all nodes at once. Where kubelets are real every fifth for a core is one for a kubelet that is down when both come,
and has to choose when it starts (one with devices refuses both then, until their plugin is back). SK8_RACES says how many races
there are (make races: 1000).
"""
import contextlib
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import lent, with_conf
from device_plugin import FPGA, OF_EACH, with_plugins
from foreign import foreign, wait_masked
from mixed import mixing
from stands.api import Api
from stands.replays import once_only
from stands.waiting import wait_for
from world import Pod, pod_object

RACES = int(os.environ.get("SK8_RACES", "12"))
NODES = {"sim": 8, "real": 2}
SPREAD = 0.2  # seconds that either may come before the other, ...
STEP = 0.05  # ... beside a lead for who has lost, so that both win about as often
DOWN = 5  # one race of as many is for a kubelet that is down meanwhile


@pytest.fixture
def small(request, session_stands, api):
	"""Nodes of one core."""
	for found in lent(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s"),
			"--kubelets", str(NODES[api]), "--cpus", "1"):
		yield from mixing(found)


@pytest.fixture
def plugged(request, session_stands):
	"""Nodes of which all devices but one are with a pod."""
	for stand, _ in with_plugins(request, session_stands, "n1", "n2"):
		pods = [foreign(stand, f"has-{node}", "sleep 6000", cpu="100m", node=node, limits={FPGA: str(OF_EACH - 1)})
			for node in ("n1", "n2")]
		for pod in pods:
			wait_masked(stand, pod.name, node=pod.node)
		yield stand
		for pod in pods:
			pod.delete()


class Track:
	"""The races of one node, one after the other. pod: what the foreign pod wants; options: what the job wants beside a core;
	down: the kubelet is at times; others: pods that are there all the time, of a core each."""

	def __init__(self, stand, node, seed, lock, pod, options=(), down=False, others=0):
		self.stand, self.node, self.lock = stand, node, lock
		self.pod, self.options, self.down, self.others = pod, options, down, others
		self.dice = random.Random(seed)
		self.api = Api(stand.env["KUBECONFIG"])
		self.wins = Counter()
		self.lead = 0.0  # of the job

	def submit(self, delay):
		time.sleep(delay)
		with self.lock:  # files of jobs have numbers
			return self.stand.batch(1, node=self.node, options=self.options)

	def place(self, number, delay):
		time.sleep(delay)
		made = self.api.post("/api/v1/namespaces/default/pods", pod_object(f"rival-{self.node}-{number}", "sleep 600", grace=1,
			schedulerName="default-scheduler", nodeName=self.node, **self.pod))
		return Track.On(self, made)

	class On(Pod):
		"""A pod that is asked for over the track's own connection."""

		def __init__(self, track, made):
			self.own = track.api
			super().__init__(track.stand, made)

		def get(self):
			found = [item for item in self.own.get(f"/api/v1/namespaces/{self.ns}/pods?fieldSelector=metadata.name={self.name}")["items"]
				if item["metadata"]["uid"] == self.uid]
			return found[0] if found else None

		def delete(self, grace=None, now=False):
			self.own.delete(self.path, {"gracePeriodSeconds": 1})

	@contextlib.contextmanager
	def kubelet(self, number):
		"""Of some races: it is down until both are there."""
		if not self.down or number % DOWN != DOWN - 1:
			yield
			return
		with self.lock:
			self.stand.cluster("stop", f"kubelet-{self.node}")
		yield
		with self.lock:
			self.stand.cluster("start", f"kubelet-{self.node}")

	def race(self, number):
		lead = self.lead + self.dice.uniform(-SPREAD, SPREAD)
		with self.kubelet(number), ThreadPoolExecutor(1) as pool:
			pod = pool.submit(self.place, number, max(0, lead))
			job = self.submit(max(0, -lead))
			pod = pod.result()
		about = lambda: f"{pod.phase} {job.why()}\n{self.left()}"  # noqa: E731
		pod.wait_phase("Running", "Failed")
		if pod.phase == "Failed":
			job.wait_started()
			winner = "job"
		else:
			wait_for(f"job {job.id} to wait", lambda: job.state in ("PENDING", "CONFIGURING"), 30, about)
			winner = "pod"
		time.sleep(0.3)
		ran = {"job": bool(job.stamps()[0]), "pod": pod.phase == "Running"}
		assert ran == {"job": winner == "job", "pod": winner == "pod"}, f"race {number} on {self.node}: {ran}\n{about()}"
		self.wins[winner] += 1
		self.lead += STEP if winner == "pod" else -STEP
		job.cancel()
		pod.delete()
		wait_for(f"node {self.node} to be empty", lambda: pod.get() is None and self.empty(), 60, about)
		assert bool(job.stamps()[0]) == (winner == "job"), f"race {number} on {self.node}: launched before it was cancelled\n{about()}"

	def left(self):
		"""Pods and CPUs (allocated/idle/other/total) of the node."""
		pods = self.api.get("/api/v1/pods?fieldSelector=spec.nodeName=" + self.node)["items"]
		# All nodes: asked for one slurmctld tells what it counted when somebody last asked for all of them
		# (_slurm_rpc_dump_node_single()), which may be a minute ago.
		nodes = self.stand.run("sinfo", "-h", "-N", "-p", "batch", "-o", "%N %C")
		cpus = dict(line.split() for line in nodes.splitlines())[self.node]
		return [(pod["metadata"]["name"], pod["status"].get("phase")) for pod in pods], cpus

	def empty(self):
		pods, cpus = self.left()
		return len(pods) == self.others and cpus.startswith(f"{self.others}/")

	def run(self, races):
		wait_for(f"node {self.node} to be empty", self.empty, 60, lambda: str(self.left()))
		for number in range(races):
			self.race(number)
		return self.wins


def play(stand, nodes, **want):
	"""RACES of them, on so many nodes at once."""
	seed = int(os.environ.get("SK8_SEED", random.randrange(1 << 32)))
	print(f"SK8_SEED={seed}")
	lock = threading.Lock()
	tracks = [Track(stand, f"n{i + 1}", seed + i, lock, **want) for i in range(nodes)]
	with ThreadPoolExecutor(nodes) as pool:
		wins = sum(pool.map(lambda track: track.run(-(-RACES // nodes)), tracks), Counter())
	print(f"{sum(wins.values())} races: {dict(wins)}")
	assert sum(wins.values()) >= RACES


@once_only
@pytest.mark.slow
@pytest.mark.each_release
def test_exactly_one_of_a_foreign_pod_and_a_job_gets_the_last_core_whoever_comes_first(small):
	play(small, NODES[small.kind], pod={"cpu": "1"}, down=small.kind == "real")


@once_only
@pytest.mark.slow
@pytest.mark.apis("real")
def test_exactly_one_of_a_foreign_pod_and_a_job_gets_the_last_device_whoever_comes_first(plugged):
	play(plugged, 2, pod={"cpu": "100m", "limits": {FPGA: "1"}}, options=("--gres=k8s:fpga:1",), others=1)
