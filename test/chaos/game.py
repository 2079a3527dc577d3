# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Plays a plan on a stand, then lets everything heal and waits until nothing is left to do."""
import json
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import mixed
import plan
from devices import Devices
from evidence import ControllerLog, Evidence
from faults import Faults
from judge import judge
from nodes import Nodes
from stands.build import build_folder
from stands.process import Daemon
from stands.process import run as run_command
from stands.slurm import Slurm
from stands.waiting import StandError
from story import Story
from users import Users
from verdict import table
from node import OURS, OWNER
from world import LIVE, Stand

# After the faults something must come to its end in so many seconds, until all has: a kubelet can take 90 s to look for
# a server that was killed. How long it takes in all depends on how much waits by then.
QUIET = 150
NOT_READY_AFTER = "2s"
HANDS = 48  # steps at once
ROUND = 15  # seconds between two looks of the administrator
# MinJobAge: Slurm shows all jobs until the end. SlurmdTimeout: it looks for lost jobs every 20 s.
SLURM_CONF = "MinJobAge=86400\nSlurmdTimeout=60\nSlurmdDebug=verbose"
GATES = {"none": "", "dedicated": "", "mixed": "\nPrEpPlugins=prep/script,prep/k8s"}


class Game:
	"""One play. stand: stays up until close(); what is in it is for evidence.py."""

	def __init__(self, api, seed, seconds, folder, sharing):
		self.seed, self.seconds, self.sharing, self.shared = seed, seconds, sharing, plan.shares_pods(seed, sharing)
		self.steps = plan.make(seed, seconds, api, sharing)
		plugins = plan.has_plugins(seed, api, sharing)
		self.stand = Stand(api, "--cpus", str(plan.CORES), "--memory", str(plan.MEMORY), "--slurm-conf", SLURM_CONF + GATES[sharing] +
			f"\nReturnToService={1 if plan.down_lasts(seed) else 2}",
			"--gres", f"gpu@0-{plan.CORES - 1}:{plan.GPUS}", *(["--agent"] if plugins else []))
		try:
			self.users = Users(self.stand)
			self.nodes = Nodes(self.stand)
			self.devices = self._plugins() if plugins else None
			if not self.devices:
				self.nodes.register_gpus()
			self._share()
			self.faults = Faults(self.stand)
		except (StandError, OSError):
			self.stand.down()
			raise
		self.lost, self.released = {}, set()  # {uid: node} of pods that a person has to decide about; and did
		self.closing, self.drained = threading.Event(), 0
		self.healed, self.left = None, {}  # seconds that it took; what has not ended yet
		os.makedirs(folder, exist_ok=True)
		how = sharing + (", small jobs in one pod" if self.shared else "") + (", a device plugin" if self.devices else "")
		self.story = Story(os.path.join(folder, f"{api}-{sharing}-{seed}.story"), f"seed {seed}, {seconds} s on {api}, sharing "
			f"{how}, {len(self.steps)} steps; stand {self.stand.folder}, ready after {self.stand.seconds:.0f} s")

	def _share(self):
		"""By the label that a kubelet gives to its Node itself: it may make another one."""
		if self.sharing == "mixed":
			mixed.apply(self.stand)
		self._believe_not_ready_soon()
		settings = {"image": mixed.IMAGE, **({"shared": {"maxCpus": plan.SHARED_CPUS}} if self.shared else {})}
		mixed.share(self.stand, settings if self.sharing == "mixed" else None, sharing=self.sharing, selector="kubernetes.io/hostname")

	def _plugins(self):
		"""Agents that pin nothing: nodes here may have more cores than this machine."""
		slurm = Slurm(self.stand.folder)
		for name in plan.NODES:
			with open(slurm.agent_conf(name), "a", encoding="utf-8") as file:
				file.write("pinning: false\n")
			slurmd = Daemon(self.stand.folder, f"slurmd-{name}")
			slurmd.stop()
			slurmd.start_again()
		slurm.wait_nodes(plan.NODES)
		return Devices(self.stand)

	def _believe_not_ready_soon(self):
		"""Not after the 40 s of the default, which no play has; share() has it read."""
		with mixed.edited(self.stand) as (_, cluster):
			cluster["state"]["notReady"] = {"after": NOT_READY_AFTER}

	def play(self):
		threading.Thread(target=self._administrate, daemon=True).start()
		with ThreadPoolExecutor(HANDS) as pool:
			for step in self.steps:
				while self.story.now < step.at:
					time.sleep(min(0.2, max(0, step.at - self.story.now)))
					self.story.progress(self._now)
				pool.submit(self._do, step)
			while self.story.now < self.seconds:
				time.sleep(0.2)
				self.story.progress(self._now)
			self.story.tell("the faults end")
			self.faults.over.set()
		self.healed = self._heal()

	def _do(self, step):
		began = self.story.now
		verb = next(getattr(who, step.verb) for who in (self.faults, self.nodes, self.users) if hasattr(type(who), step.verb))
		try:
			outcome = verb(step)
		except (OSError, StandError, subprocess.TimeoutExpired) as error:
			outcome = f"failed: {error}"
		except BaseException as error:
			self.story.tell(f"{plan.words(step)}: {error!r}")
			raise
		self.story.step(step, began, " ".join(outcome.split()))

	def _administrate(self):
		"""What Slurm wants a person for, with slurm-k8s or without."""
		while not self.closing.wait(ROUND):
			# each by itself: what one cannot do must not keep the administrator from the others
			for task in (self._undrain, self._release_jobs, self._release_pods, self._restart_slurmds, self._register_gpus):
				try:
					task()
				except (OSError, StandError, subprocess.TimeoutExpired):
					pass  # no answer: next time

	def _undrain(self):
		for node in self.nodes.undrain():
			self.drained += 1
			self.story.tell(f"Slurm had drained {node} because of an id that it gave twice; taken back")

	def _release_jobs(self):
		if self.faults.over.is_set():
			for number in self.users.release():
				self.story.tell(f"job {number} was held again, as before a crash, or Slurm lets it wait; released")

	def _release_pods(self):
		"""Of those that still hold something: for one that is free meanwhile it is an error."""
		held = {mark.rsplit("/", 1)[-1] for mark in self.holds()}
		for uid in held & (set(self.lost) | self._ended_by_force()) - self.released:
			self.stand.run(os.path.join(build_folder(), "tools", "slurm-k8s"), "release", uid)
			self.released.add(uid)

	def _restart_slurmds(self):
		"""Slurm looks for batch jobs whose launch was lost when a node registers, else at every 20th ping."""
		if self.left.get("jobs"):
			self.faults.restart("slurmd-n1", "slurmd-n2")

	def _register_gpus(self):
		for node in self.nodes.register_gpus() if not self.devices else ():
			self.story.tell(f"the kubelet of {node} had forgotten its GPUs; registered again")

	def _ended_by_force(self):
		"""Foreign pods that were deleted by force, and of which an administrator sees that no process is left: one that never
		had any can get it from a kubelet that was away."""
		runs = {}
		for run in self.stand.runs():
			runs.setdefault(run.uid, []).append(run)
		return {uid for uid in ControllerLog(self.stand.log()).vanished() if (uid in runs or self.faults.over.is_set()) and
			not any(run.stop is None and self._runs_on(run) for run in runs.get(uid, []))}

	def _now(self):
		down = ", ".join(f"{name} {what}" for name, what in sorted(self.faults.down.items())) or "nothing"
		return f"{len(self.users.pods)} pods, {len(self.users.foreign)} foreign ones, {len(self.users.jobs)} jobs; broken: {down}"

	# -- afterwards

	def _heal(self):
		"""Waits until nothing is left to do; the seconds that it took, or None if it stands still for QUIET."""
		began, best = self.story.now, (self.story.now, float("inf"))
		while self.story.now - best[0] < QUIET:
			try:
				self.left = self.unfinished()
			except (OSError, StandError, subprocess.TimeoutExpired) as error:
				self.left = {"answers": [str(error)]}
			count = sum(map(len, self.left.values()))
			if not count:
				self.story.tell("everything has ended")
				return self.story.now - began
			if "answers" not in self.left and count < best[1]:
				best = self.story.now, count
			self.story.progress(lambda: "left: " + ", ".join(f"{len(what)} {name}" for name, what in self.left.items() if what))
			time.sleep(0.5)
		return None

	def unfinished(self):
		"""{what: names} of what still has to come to an end."""
		pods, jobs = self.users.api.get("/api/v1/pods")["items"], self.stand.jobs()
		nodes = [line.split() for line in self.stand.run("sinfo", "-h", "-N", "-o", "%N %T %C").splitlines()]
		kube_nodes = self.users.api.get("/api/v1/nodes")["items"]
		holds = self.holds()
		if holds:
			self.lost.update(ControllerLog(self.stand.log()).lost())
		return {
			"pods": [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")],
			"reservations": [pod["metadata"]["name"] for pod in pods if pod["metadata"]["namespace"] == mixed.NAMESPACE],
			"finalizers": [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("finalizers")],
			"jobs": [job["JobName"] for job in jobs if job["JobState"] in LIVE],
			"cordons": [node["metadata"]["name"] for node in kube_nodes if
				node["spec"].get("unschedulable") or OWNER in node["metadata"].get("annotations", {})],
			"taints": [node["metadata"]["name"] for node in kube_nodes if
				(OURS in node["spec"].get("taints", [])) != (self.sharing == "dedicated")],
			"nodes": sorted({name for name, state, cpus in nodes if state != "idle" or not cpus.startswith("0/")}),
			"containers": [run.id for run in self.stand.runs() if run.stop is None and self._runs_on(run)],
			"holds": holds,
		}

	def _runs_on(self, run):
		"""Asks the runtime itself, as ends while containerd was dead are in no event."""
		if self.stand.kind == "sim":
			return True
		socket = os.path.join(self.stand.folder, "nodes", run.node, "run", "containerd.sock")
		tasks = run_command(["ctr", "--address", socket, "--namespace", "k8s.io", "tasks", "ls"])
		return any(words[0] == run.id and words[2] == "RUNNING" for words in map(str.split, tasks.splitlines()[1:]))

	def holds(self):
		"""Pods that slurm-k8s would mask after a restart: its saved ledger."""
		found = set()
		with open(os.path.join(Slurm(self.stand.folder).home, "state", "slurm-k8s.stand.ledger"), encoding="utf-8") as file:
			for line in map(json.loads, file):
				found.add(line["hold"]) if "hold" in line else found.discard(line.get("free"))
		return sorted(found)

	def masked(self):
		"""Nodes that a job cannot have as a whole, now that nothing runs there."""
		all_of_it = (f"--mem={plan.MEMORY}", f"--gres=gpu:{plan.GPUS}")
		whole = {node: self.stand.batch(plan.CORES, 0, node, all_of_it) for node in plan.NODES}
		found = []
		for node, batch in whole.items():
			try:
				batch.wait_started(60)
			except StandError as error:
				found.append(f"{node}: {error}")
		return found

	def summary(self, evidence):
		done = Counter(step.verb for step in self.steps)
		healed = f"all had ended after {self.healed:.0f} s" if self.healed is not None else f"NOT all had ended when nothing had for {QUIET} s"
		return (f"{', '.join(f'{count} {verb}' for verb, count in sorted(done.items()))}; {evidence.requests} requests in the "
			f"audit log, {sum(map(len, evidence.runs.values()))} containers ran ({evidence.unseen} ended while "
			f"no containerd could tell), pods stood for {sum(map(len, evidence.reservations.values()))} runs of jobs"
			f"{self._summary_of_shared(evidence)}, slurmctld "
			f"crashed {len(evidence.log.crashes)} times and Slurm drained nodes for that {self.drained} times; {healed}; what happened: {self.story.path}")

	def _summary_of_shared(self, evidence):
		pods = [pod for there in evidence.shared.values() for pod in there.pods] if self.shared else []
		return f" and {len(pods)}, asked {sum(len(pod.asked) for pod in pods)} times, for all small ones" if pods else ""

	def keep_logs(self):
		"""Of all daemons, beside the story."""
		shutil.copytree(self.stand.env["STAND_LOGS"], self.story.path + ".logs", dirs_exist_ok=True)

	def close(self):
		self.closing.set()
		self.faults.close()
		if self.devices:
			self.devices.close()
		self.story.close()
		self.stand.down()


def play(api, seed, seconds, folder, sharing="none"):
	"""A play and its judgement: (verdicts, a sentence)."""
	game = Game(api, seed, seconds, folder, sharing)
	try:
		game.play()
		evidence = Evidence(game)
		verdicts = judge(game, evidence)
		for line in table(verdicts):
			game.story.write(line)
		if any(verdict.wrong for verdict in verdicts):
			game.keep_logs()
		return verdicts, game.summary(evidence)
	finally:
		game.close()
