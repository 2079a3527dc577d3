# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Two hundred pods and a mix of jobs on a node of eight cores, with ends from both sides.

The proof is made from what the runtime, the jobs' own processes, the API server's
audit log and slurmctld's log say. SK8_SEED=N plays another game.
"""
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from stands.api import Api, ApiError
from stands.waiting import wait_for
from world import LIVE, Pod, pod_object

PODS, CORES = 200, 8
COMMAND = "trap 'exit 0' TERM; sleep {} & wait $!; exit {}"


def most_at_once(intervals):
	"""(most cores, when) of (start, stop, cores); what ends and starts at the same instant does not overlap."""
	steps = sorted([(start, 1, cores) for start, _, cores in intervals] + [(stop, 0, -cores) for _, stop, cores in intervals])
	used, most = 0, (0, 0)
	for when, _, cores in steps:
		used += cores
		most = max(most, (used, when))
	return most


class Game:
	"""Submits everything at once, then ends some of it at random while it waits or runs."""

	def __init__(self, stand, seed):
		self.stand, self.random = stand, random.Random(seed)
		self.pods, self.batches, self.wanted, self.ended = [], [], {}, {}

	def submit(self):
		plan = []
		for i in range(PODS):
			seconds, code = round(self.random.uniform(0.2, 3), 1), self.random.choice((0, 0, 0, 3))
			plan.append((f"crowd{i}", seconds, code))
		for _ in range(12):
			self.batches.append(self.stand.batch(self.random.choice((1, 1, 2, 4)), round(self.random.uniform(0.2, 3), 1)))
		for name, seconds, code in plan:
			pod = self.stand.pod(name, COMMAND.format(seconds, code), memory="8Mi", grace=2, node="n1")
			self.pods.append(pod)
			self.wanted[pod.uid] = code

	def play(self, until):
		"""Ends about a quarter of the pods and jobs before their time, spread over the game, every second one of them
		while it runs; until(): everything is over."""
		api = Api(self.stand.env["KUBECONFIG"])
		mine = {pod.uid: pod for pod in self.pods}
		for number in range(PODS // 4):
			phases = {}

			def turn(number=number, phases=phases):
				phases.clear()
				items = api.get("/api/v1/namespaces/default/pods")["items"]
				phases.update({item["metadata"]["uid"]: item["status"].get("phase") for item in items
					if item["metadata"]["uid"] in mine and "deletionTimestamp" not in item["metadata"]})
				alive = sum(phase in ("Pending", "Running") for phase in phases.values())
				return until() or PODS - alive >= 3 * number
			wait_for("the next turn", turn, 400)
			wanted = "Running" if number % 2 else "Pending"
			victims = [pod for pod in self.pods if phases.get(pod.uid) == wanted]
			if victims:
				victim = self.random.choice(victims)
				self.ended[victim.uid] = wanted
				self.random.choice((self.scancel, self.delete, self.force))(api, victim)
			if number % 16 == 15:
				self.stand.run("scancel", str(self.random.choice(self.batches).id), check=False)

	def scancel(self, _api, pod):
		job = pod.job()
		if job and job["JobState"] in LIVE:
			self.stand.run("scancel", job["JobId"], check=False)

	def delete(self, api, pod):
		self._delete(api, pod, None)

	def force(self, api, pod):
		self._delete(api, pod, {"gracePeriodSeconds": 0})

	@staticmethod
	def _delete(api, pod, body):
		try:
			api.delete(pod.path, body)
		except ApiError as error:
			if error.status not in (404, 409):
				raise


@pytest.fixture(scope="module")
def limited(shared):
	"""A pod in a partition with a limit of one minute, beside the crowd: it takes its time."""
	return shared.pod("limited", "sleep 600", ns="default", annotations={"slurm-k8s.io/partition": "short"}, node="n2", grace=1)


@pytest.mark.slow
def test_two_hundred_pods_and_jobs_share_eight_cores_and_all_end(shared, limited):
	seed = int(os.environ.get("SK8_SEED", "1"))
	began = time.monotonic()
	game = Game(shared, seed)
	stand = shared
	game.submit()
	print(f"seed {seed}: {PODS} pods and {len(game.batches)} jobs submitted in {time.monotonic() - began:.1f} s")
	mine = {pod.uid: pod for pod in game.pods}
	with ThreadPoolExecutor(1) as pool:
		over = []
		player = pool.submit(game.play, lambda: bool(over))

		def left():
			live = [job for job in stand.jobs() if job["JobState"] in LIVE and not job.get("AdminComment", "").endswith(limited.uid)]
			if live:
				return False
			phases = {pod.uid: pod.seen["status"].get("phase") for pod in map_pods(stand)}
			return all(phases.get(uid) in (None, "Succeeded", "Failed") for uid in mine)
		wait_for("the end of all pods and jobs", left, 420, lambda: stand.run("squeue"))
		over.append(True)
		player.result()
	print(f"all over after {time.monotonic() - began:.1f} s")
	check_ends(stand, game)
	check_cores(stand, game)
	check_bindings(stand, game)
	check_order(stand, game)


def map_pods(stand):
	return [Pod(stand, item) for item in stand.api.get("/api/v1/namespaces/default/pods")["items"]]


def check_ends(stand, game):
	"""Every pod had exactly one job; job and pod tell the same end."""
	jobs = {}
	for job in stand.jobs():
		jobs.setdefault(job.get("AdminComment", "").rsplit("/", 1)[-1], []).append(job)
	there = {pod.uid: pod.seen for pod in map_pods(stand)}
	for pod in game.pods:
		found = jobs[pod.uid]
		assert len(found) == 1, f"{pod.name}: {found}"
		job, code = found[0], game.wanted[pod.uid]
		if pod.uid in game.ended and pod.uid not in there:
			assert job["JobState"] in ("CANCELLED", "COMPLETED", "FAILED"), f"{pod.name}: {job}"
		else:
			wanted = ("FAILED", "3:0") if code else ("COMPLETED", "0:0")
			assert (job["JobState"], job["ExitCode"]) == wanted, f"{pod.name}: {job}"


def check_cores(stand, game):
	mine = {pod.uid for pod in game.pods}
	runs = [run for run in stand.runs() if run.uid in mine]
	assert all(run.stop for run in runs) and len({run.uid for run in runs}) == len(runs)
	cores = {str(batch.id): int(batch.show()["NumCPUs"]) for batch in game.batches}
	intervals = [(run.start, run.stop, 1) for run in runs]
	for batch in game.batches:
		start, stop = batch.stamps()
		if start:
			intervals.append((start, stop or start, cores[str(batch.id)]))
	most, when = most_at_once(intervals)
	hit = [run for run in runs if run.uid in game.ended]
	print(f"{len(runs)} pods ran, {len(hit)} of them were ended by others; at most {most} cores were in use at once, at {when:.3f}")
	assert CORES - 2 <= most <= CORES and len(hit) > PODS // 20
	# with Slurm's word for when it gave a job its cores, which comes before the process
	given = [(stand.allocated_at(batch.id) or batch.stamps()[0], batch.stamps()[1] or batch.stamps()[0], cores[str(batch.id)])
		for batch in game.batches if batch.stamps()[0]]
	assert most_at_once([(run.start, run.stop, 1) for run in runs] + given)[0] <= CORES


def check_bindings(stand, game):
	bindings = stand.bindings()
	ran = {run.uid for run in stand.runs()}
	for pod in game.pods:
		assert len(bindings.get(pod.uid, [])) <= 1
		if pod.uid in ran:
			assert bindings.get(pod.uid) == ["n1"]


def check_order(stand, game):
	"""Among pods, which are all of the same size: who has the better priority is given its cores first."""
	uids = {pod.uid for pod in game.pods}
	order = [(int(job["Priority"]), job["StartTime"], job["JobName"]) for job in stand.jobs()
		if job.get("AdminComment", "").rsplit("/", 1)[-1] in uids and job["StartTime"] != "Unknown" and job["NodeList"] == "n1"]
	assert len(order) > PODS // 2 and len({priority for priority, _, _ in order}) > PODS // 2
	wrong = [(a, b) for a in order for b in order if a[0] > b[0] and a[1] > b[1]]
	assert not wrong, wrong[:5]


@pytest.mark.slow
def test_partition_time_limit_ends_the_pod(shared, limited):
	job = limited.wait_job("TIMEOUT", seconds=180)
	limited.wait_gone()
	assert job["JobState"] == "TIMEOUT" and job["TimeLimit"] == "00:01:00"
	run, = limited.runs()
	assert 60 <= run.stop - run.start < 150
	assert "ended: TIMEOUT" in limited.wait_event("SlurmJobEnded")[2]
