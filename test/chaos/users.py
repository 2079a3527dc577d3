# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The load, and what users do to it, whatever is broken at the moment."""
import time

import jobs
import mixed
from insistent import PAUSE, Insistent
from plan import GPU
from stands.api import ApiError
from world import pod_object

SOON = 20  # seconds in which a job gets its pods, mostly
POLITE = "trap 'exit 143' TERM; sleep {} & wait $!; exit {}"
DEAF = "trap '' TERM; sleep {}; exit {}"
PODS = "/api/v1/namespaces/default/pods"


def _stands_for(pod, ids):
	"""Whether it is the pod of one of these jobs, theirs alone or with others."""
	meta = pod["metadata"]
	others = meta.get("annotations", {}).get("slurm-k8s.io/jobs", "").split(",")
	return meta.get("labels", {}).get("slurm-k8s.io/job") in ids or bool(set(others) & set(ids))


class Users(Insistent):
	"""One method for each verb of plan.load(). Each returns what became of it, as one reads it. Thread safe."""

	def __init__(self, stand):
		super().__init__(stand)
		self.pods, self.foreign, self.jobs = {}, {}, {}  # {name: uid} twice, {name: jobs.Job}
		self.touched = {}  # {name: verbs that were, or may have been, done to it}
		self.to_release = set()  # ids of jobs that were held for a while

	# -- who comes

	def pod(self, step):
		self.pods[step.target] = made = self._make(step)
		return made

	def foreign_pod(self, step):
		"""With its node from the beginning, as those of a DaemonSet have soon."""
		self.foreign[step.target] = made = self._make(step, schedulerName="default-scheduler", nodeName=step.about["node"])
		return made

	def _make(self, step, **spec):
		about = step.about
		command = (DEAF if about["deaf"] else POLITE).format(about["seconds"], about["code"])
		gpus = {GPU: str(about["gpus"])} if about["gpus"] else {}
		body = pod_object(step.target, command, cpu=str(about["cores"]), memory=f"{about['memory']}Mi", grace=about["grace"],
			requests=gpus, limits=gpus, **spec)

		def create():
			try:
				return self.api.post(PODS, body)
			except ApiError as error:
				if error.status != 409:
					raise
				return self.api.get(f"{PODS}/{step.target}")  # an answer was lost
		return self._insist(create)["metadata"]["uid"]

	def job(self, step):
		"""Not twice: an sbatch whose answer is lost may have arrived."""
		self.jobs[step.target] = job = jobs.submit(self.stand, step.target, step.about)
		return f"JobId={job.id}"

	# -- what is done to them

	def _touch(self, step):
		self.touched.setdefault(step.target, set()).add(step.verb)

	def delete(self, step):
		return self._delete(step, None)

	def force(self, step):
		return self._delete(step, {"gracePeriodSeconds": 0})

	def _delete(self, step, body):
		try:
			self.api.delete(f"{PODS}/{step.target}", body)
		except ApiError as error:
			if error.status == 404:
				return "not there"
			raise
		finally:
			self._touch(step)
		return "accepted"

	def _ids(self, name):
		return self.stand.run("squeue", "-h", "-a", "-n", name, "-o", "%A").split()

	def scancel(self, step):
		ids = self._ids(step.target)
		self._touch(step)
		if ids:
			self.stand.run("scancel", *ids)
		return " ".join(ids) or "no such job"

	def evict(self, step):
		"""As kubectl drain does it to the pods that stand for a job."""
		return self._take(step, lambda pod: mixed.evict(self.stand, pod, self.api))

	def take(self, step):
		"""Deletes them."""
		return self._take(step, lambda pod: self.api.delete(f"{mixed.PODS}/{pod['metadata']['name']}"))

	def _take(self, step, how):
		"""Waits for a while until there are some."""
		end, pods = time.monotonic() + SOON, []
		while not pods and time.monotonic() < end and (ids := self._ids(step.target)):
			time.sleep(PAUSE)
			pods = [pod for pod in self._insist(lambda: self.api.get(mixed.PODS))["items"] if _stands_for(pod, ids)]
		for pod in pods:
			self._touch(step)
			try:
				how(pod)
			except ApiError as error:
				if error.status not in (404, 409, 429):
					raise
				return "too late"
		return " ".join(pod["metadata"]["name"] for pod in pods) or "no pod of it"

	def hold(self, step):
		"""Holds what waits, releases it later: a user who does not forget."""
		ids = self._ids(step.target)
		if not ids:
			return "no such job"
		try:
			held = self.stand.run("scontrol", "hold", *ids, check=False).returncode == 0
			time.sleep(step.about["seconds"])
		finally:
			self.to_release.update(ids)
			# one that says no has ended, or never was held
			self._insist(lambda: self.stand.run("scontrol", "ping") and self.stand.run("scontrol", "release", *ids, check=False))
		return " ".join(ids) + (" for a while" if held else " too late")

	def release(self):
		"""Releases again what should be; the ids. A slurmctld that is killed forgets what it had not saved yet, and Slurm holds
		jobs whose launch failed. One that went back into the queue after its launch it lets wait for two minutes."""
		waiting = [line.split(maxsplit=1) for line in self.stand.run("squeue", "-h", "-t", "PD", "-o", "%A %r").splitlines()]
		held = [number for number, reason in waiting if reason == "JobHeldAdmin" and number in self.to_release or
			reason.startswith("launch failed")]
		late = [number for number, reason in waiting if reason == "BeginTime"]
		# one may have ended meanwhile
		if held:
			self.stand.run("scontrol", "release", *held, check=False)
		for number in late:
			self.stand.run("scontrol", "update", f"JobId={number}", "StartTime=now", check=False)
		return held + late

	def reconfigure(self, _step):
		self.stand.ask_to_reconfigure()
		return "done"
