# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What others wrote down about one play: the API server's audit log, the runtimes, Slurm's log and its jobs."""
import bisect
import re
import time
from collections import defaultdict, namedtuple

from cordons import Drains, cordons, listening, started, uncordoned
from plan import LOAD
from reservations import reservations
from shared_pods import shared_pods
from stands.gres import devices
from world import MARK, seconds_of

DEVICES = "slurm-k8s.io/gres-devices"
# Slurm saves its jobs at most 5 s after a change, and the saving takes its time on a busy machine.
SAVED = 10

# What foreign pods hold is saved at most a second after it was masked.
LEDGER = 2

# What ends with the API server's audit log, or makes it end.
SERVERS = ("kube-apiserver", "etcd", "kubesim")

# Between two lives of slurmctld: the last line of the log before, the first line after. Seconds since 1970.
Crash = namedtuple("Crash", "last start")


class ControllerLog:
	"""slurmctld's log over all its lives."""

	def __init__(self, text):
		self.crashes, self.lines, self.reused = [], [], set()
		last, ended, lives = None, True, [set()]
		for line in text.splitlines():
			match = re.match(r"\[(\S{19})(\.\d+)\] (.*)", line)
			if not match:
				continue
			when = seconds_of_local(match[1]) + float(match[2])
			if match[3].startswith("slurmctld version"):
				if not ended:
					self.crashes.append(Crash(last, when))
				ended = False
				lives.append(set())
			ended |= match[3].startswith("Terminate signal")
			last = when
			self._ids(match[3], lives)
			self.lines.append((when, match[3]))

	def _ids(self, text, lives):
		"""Notes ids that Slurm gave to a second job after it had forgotten the first."""
		if found := re.match(r"Recovered JobId=(\d+) ", text):
			lives[-1].add("recovered " + found[1])
		elif found := re.search(r"JobId=(\d+)\b|\bjob (\d+):", text):
			number = found[1] or found[2]
			if "recovered " + number not in lives[-1] and any(number in life for life in lives[:-1]):
				self.reused.add(number)
			lives[-1].add(number)

	def about(self, *words):
		"""When lines with one of the words were written."""
		return [when for when, text in self.lines if any(word in text for word in words)]

	def lost(self):
		"""{uid: node} of pods that slurm-k8s calls lost after a crash: deleted when they had cores and, as far as anybody
		can tell by then, perhaps a Binding. Their cores stay masked until an administrator releases them."""
		found = {}
		for when, text in self.lines:
			match = re.search(r"uid (\S+) job .* what it holds on node (\S+) stays masked", text)
			if match and any(min(self.about(match[1])) < crash.start < when for crash in self.crashes):
				found[match[1]] = match[2]
		return found

	def vanished(self):
		"""{uid: node} of foreign pods that were deleted by force: masked until an administrator releases them."""
		found = (re.search(r"uid (\S+) .*object of this foreign pod vanished.* on node (\S+) stays masked", text) for _, text in self.lines)
		return {match[1]: match[2] for match in found if match}

	def all(self, *words):
		"""When lines with all of the words were written."""
		return [when for when, text in self.lines if all(word in text for word in words)]

	def forgot(self, times):
		"""Whether a crash came so soon after one of the times that Slurm cannot have saved it, or was going on then."""
		return any(crash.last - SAVED <= when <= crash.start for crash in self.crashes for when in times)


class Evidence:
	"""game: after its play, its stand still up."""

	def __init__(self, game):
		stand = game.stand
		self.users, self.sharing, self.gone = game.users, game.sharing, game.nodes.gone
		self.steps = {step.target: step.about for step in game.steps if step.verb in LOAD}
		self.server_ends = [when for when, name in game.faults.ends if name in SERVERS]
		self.log = ControllerLog(stand.log())
		self.objects = {item["metadata"]["uid"]: item for item in game.users.api.get("/api/v1/pods")["items"]}
		self.runs, self.pod_jobs, self.jobs = defaultdict(list), defaultdict(list), defaultdict(list)
		self.unseen = 0  # ends that no event tells of
		for run in sorted(stand.runs(), key=lambda run: run.start):
			self.runs[run.uid].append(run if run.stop else self._ended_unseen(run, game.left.get("containers", [])))
		for job in stand.jobs():
			mark = job.get("AdminComment", "")
			if mark.startswith(MARK):
				self.pod_jobs[mark.rsplit("/", 1)[1]].append(job)
			else:
				self.jobs[job["JobName"]].append(job)
		self.bindings, self.deleted, self.requests = stand.bindings(), defaultdict(set), 0
		self.devices = {uid: _devices(item["metadata"]) for uid, item in self.objects.items()}
		for event in stand.audit():
			self.requests += 1
			if event.get("verb") == "delete" and event.get("responseStatus", {}).get("code", 500) < 300:
				self.deleted[event["objectRef"].get("name")].add(event["user"]["username"])
			elif event.get("objectRef", {}).get("subresource") == "binding" and event.get("responseStatus", {}).get("code") == 201:
				about = event["requestObject"]["metadata"]
				self.devices[about["uid"]] = _devices(about)
		self.plugins = game.devices is not None  # then the kubelets choose, also for foreign pods
		if self.plugins:
			self.devices = dict(game.devices.had)
		self.reservations = reservations(stand.audit())
		self.shared = shared_pods(stand.audit()) if game.shared else None
		self.cordons, self.drains, self.started_jobs = cordons(stand.audit()), Drains(self.log.lines), started(self.log.lines)
		self.uncordoned, self.last_cordon = uncordoned(stand.audit()), any(step.verb == "last_cordon" for step in game.steps)
		self.listening, self.broken = listening(stand.audit(), self.server_ends), _in_the_way(game.faults, self.log)
		self.behind = [(begin, end) for begin, end, name in game.faults.spans if name == "etcd"]
		self.slurmd_ends = _task_ends(stand)

	def _ended_unseen(self, run, running):
		"""A run that ended while containerd was dead, with the time that containerd told the kubelet later; without
		that the shortest that can be."""
		if run.id in running:
			return run
		self.unseen += 1
		for status in self.objects.get(run.uid, {}).get("status", {}).get("containerStatuses", []):
			ended = status.get("state", {}).get("terminated", {})
			if ended.get("finishedAt") and status.get("containerID", "").endswith(run.id):
				return run._replace(stop=max(run.start, seconds_of(ended["finishedAt"])), code=ended.get("exitCode"))
		return run._replace(stop=run.start)

	def started(self, name):
		"""When Slurm started a pod's job or a job; None: never, or it has forgotten it."""
		if name in self.users.pods:
			return min(self.log.all(self.users.pods[name], "started on node"), default=None)
		return min((seconds_of_local(job["StartTime"]) for job in self.jobs[name] if job["StartTime"] != "Unknown"), default=None)

	def reservation(self, name, run):
		"""Of this run of a job; None: nobody told of any."""
		runs = self.reservations.get((int(self.users.jobs[name].id), self.steps[name]["node"]), ())
		return next((found for found in reversed(runs) if found.asked <= run.start), None)

	def server_ended(self, begin, end):
		"""Whether an API server ended between the two: what it did last may be in no audit log."""
		return any(begin <= when <= end for when in self.server_ends)

	def told(self, name):
		"""When slurm-k8s knew of a foreign pod, and had not forgotten it by a crash; None: never, or only of its end."""
		told = self.log.all(self.users.foreign[name], "foreign pod on node", "are masked")
		return min((when for when in told if not any(when <= crash.last <= when + LEDGER for crash in self.log.crashes)), default=None)

	def touched(self, name):
		return self.users.touched.get(name, set())


def _in_the_way(faults, log):
	"""[(from, to)] while the engine could not hear of nodes, or nobody could tell it, whatever it was."""
	starts = [(when, when) for when, text in log.lines if text.startswith("slurmctld version")]
	ends = [(when, when) for when, name in faults.ends if name in (*SERVERS, "slurmctld")]
	return starts + ends + [(begin, end) for begin, end, name in faults.spans if name in (*SERVERS, "slurmctld", "network")]


def _devices(metadata):
	"""GPUs that a pod, or its Binding, says to have."""
	return devices(metadata.get("annotations", {}).get(DEVICES, ""))


def seconds_of_local(text):
	"""Slurm's times are those of the machine."""
	return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def _task_ends(stand):
	"""{job id: [when slurmd saw the end of its process]}, for processes that cannot tell themselves."""
	ends = defaultdict(list)
	for node in ("n1", "n2"):
		with open(f"{stand.env['STAND_LOGS']}/slurmd-{node}.log", encoding="utf-8", errors="replace") as file:
			for line in file:
				if match := re.match(r"\[(\S{19})(\.\d+)\] \[(\d+)\.batch\] task 0 \(\d+\) exited", line):
					ends[match[3]].append(seconds_of_local(match[1]) + float(match[2]))
	return ends


def stopped(evidence, name, run):
	"""When the last process of this run of a job was gone."""
	return run.stop or first_after(evidence.slurmd_ends[str(evidence.users.jobs[name].id)], run.start) or run.start


def set_down(evidence, name, run):
	"""When this run of a job was ended by somebody who set its node DOWN: then Slurm counts it no more, and waits for none of its
	processes. Also when that came between Slurm's start of the job and the script's own first word. None: nobody did."""
	node, stop = evidence.steps[name]["node"], stopped(evidence, name, run)
	starts = [job.when for job in evidence.started_jobs if job.job == str(evidence.users.jobs[name].id) and job.when <= run.start]
	since = max(starts, default=run.start)
	return min((when for when, where in evidence.drains.downs if where == node and since <= when <= stop), default=None)


def pod_set_down(evidence, uid):
	"""Whether one of a pod's jobs was ended by that."""
	failed = {job["JobId"] for job in evidence.pod_jobs[uid] if job["JobState"] == "NODE_FAIL"}
	return any(job.job in failed and any(where == job.node and job.when <= when for when, where in evidence.drains.downs)
		for job in evidence.started_jobs)


def first_after(times, when):
	"""The first of the times (sorted) that is not before `when`, or None."""
	index = bisect.bisect_left(times, when)
	return times[index] if index < len(times) else None
