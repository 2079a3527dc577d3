# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""sharing: mixed: a foreign pod and a Slurm job want the last core of a node at the same time; exactly one gets it.

Each node has one core, and on all of them races run at once. SK8_RACES says how many there are (make races: 1000).
"""
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import lent, with_conf
from mixed import mixing
from stands.api import Api
from stands.replays import once_only
from stands.waiting import wait_for
from world import Pod, pod_object

RACES = int(os.environ.get("SK8_RACES", "12"))
NODES = {"sim": 8, "real": 2}
SPREAD = 0.2  # seconds that either may come before the other, ...
STEP = 0.05  # ... beside a lead for who has lost, so that both win about as often


@pytest.fixture
def small(request, session_stands, api):
	"""Nodes of one core."""
	for found in lent(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s"),
			"--kubelets", str(NODES[api]), "--cpus", "1"):
		yield from mixing(found)


class Track:
	"""The races of one node, one after the other."""

	def __init__(self, stand, node, seed, lock):
		self.stand, self.node, self.lock = stand, node, lock
		self.dice = random.Random(seed)
		self.api = Api(stand.env["KUBECONFIG"])
		self.wins = Counter()
		self.lead = 0.0  # of the job

	def submit(self, delay):
		time.sleep(delay)
		with self.lock:  # files of jobs have numbers
			return self.stand.batch(1, node=self.node)

	def place(self, number, delay):
		time.sleep(delay)
		made = self.api.post("/api/v1/namespaces/default/pods", pod_object(f"rival-{self.node}-{number}", "sleep 600", cpu="1",
			grace=1, schedulerName="default-scheduler", nodeName=self.node))
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

	def race(self, number):
		lead = self.lead + self.dice.uniform(-SPREAD, SPREAD)
		with ThreadPoolExecutor(1) as pool:
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
		return not pods and cpus.startswith("0/")

	def run(self, races):
		for number in range(races):
			self.race(number)
		return self.wins


@once_only
@pytest.mark.slow
def test_exactly_one_of_a_foreign_pod_and_a_job_gets_the_last_core_whoever_comes_first(small):
	seed = int(os.environ.get("SK8_SEED", random.randrange(1 << 32)))
	print(f"SK8_SEED={seed}")
	nodes = NODES[small.kind]
	lock = threading.Lock()
	tracks = [Track(small, f"n{i + 1}", seed + i, lock) for i in range(nodes)]
	with ThreadPoolExecutor(nodes) as pool:
		wins = sum(pool.map(lambda track: track.run(-(-RACES // nodes)), tracks), Counter())
	print(f"{sum(wins.values())} races: {dict(wins)}")
	assert sum(wins.values()) >= RACES
