# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The load, and what users and administrators do meanwhile, whatever is broken at the moment."""
import subprocess
import threading
import time

from stands.api import Api, ApiError
from stands.waiting import StandError
from world import pod_object

PATIENCE = 120  # seconds until somebody gives up whose command must get through
PAUSE = 0.5  # seconds before the next try
POLITE = "trap 'exit 143' TERM; sleep {} & wait $!; exit {}"
DEAF = "trap '' TERM; sleep {}; exit {}"
# Reasons for which Slurm drains a node of its own accord: here because it gave the id of a running job, that it had
# forgotten by a crash, to another.
DRAINS = ("Duplicate jobid",)
PODS = "/api/v1/namespaces/default/pods"
DRAINED = "chaos"  # the reason that an administrator gives


class Users:
	"""One method for each verb of plan.load(). Each returns what became of it, as one reads it. Thread safe."""

	def __init__(self, stand):
		self.stand = stand
		self.local = threading.local()  # a connection is for one thread
		self.pods, self.foreign, self.jobs = {}, {}, {}  # {name: uid} twice, {name: world.Batch}
		self.touched = {}  # {name: verbs that were, or may have been, done to it}
		self.to_release = set()  # ids of jobs that were held for a while
		self.to_resume = set()  # nodes that were drained for a while
		self.submitting = threading.Lock()

	@property
	def api(self):
		if not hasattr(self.local, "api"):
			self.local.api = Api(self.stand.env["KUBECONFIG"], timeout=10)
		return self.local.api

	def _insist(self, call):
		"""Until the API server or Slurm has answered; the last words if it does not."""
		end = time.monotonic() + PATIENCE
		while True:
			try:
				return call()
			except ApiError as error:
				if error.status < 500 and error.status != 429 or time.monotonic() > end:
					raise
			except (OSError, StandError, subprocess.TimeoutExpired):
				if time.monotonic() > end:
					raise
			time.sleep(PAUSE)

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
		body = pod_object(step.target, command, cpu=str(about["cores"]), memory=f"{about['memory']}Mi", grace=about["grace"], **spec)

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
		about = step.about
		with self.submitting:
			batch = self.stand.batch(about["cores"], about["seconds"], about["node"], ("-J", step.target, "--no-requeue",
				f"--mem={about['memory']}"), about["code"], about["deaf"])
		self.jobs[step.target] = batch
		return f"JobId={batch.id}"

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
		"""Releases again what should be; the ids. A slurmctld that is killed forgets what it had not saved yet."""
		waiting = [line.split(maxsplit=1) for line in self.stand.run("squeue", "-h", "-t", "PD", "-o", "%A %r").splitlines()]
		found = [number for number, reason in waiting if reason == "JobHeldAdmin" and number in self.to_release]
		if found:
			self.stand.run("scontrol", "release", *found, check=False)  # one may have ended meanwhile
		return found

	# -- what is done to nodes

	def cordon(self, step):
		path = f"/api/v1/nodes/{step.target}"
		try:
			self._insist(lambda: self.api.patch(path, {"spec": {"unschedulable": True}}))
			time.sleep(step.about["seconds"])
		finally:
			self._insist(lambda: self.api.patch(path, {"spec": {"unschedulable": None}}))
		return "for a while"

	def drain(self, step):
		self.to_resume.discard(step.target)
		try:
			self._insist(lambda: self.stand.scontrol("update", f"NodeName={step.target}", "State=DRAIN", f"Reason={DRAINED}"))
			time.sleep(step.about["seconds"])
		finally:
			self.to_resume.add(step.target)
			self._insist(lambda: self._resume(step.target))
		return "for a while"

	def _resume(self, node):
		"""One that says no is not drained: somebody else was at it too."""
		self.stand.run("scontrol", "ping")
		self.stand.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)

	def undrain(self):
		"""An administrator takes back what Slurm does to a node, and again what a slurmctld that was killed forgot to be
		taken back; its names. Not what anybody else does."""
		found = []
		for line in self.stand.run("sinfo", "-h", "-N", "-R", "-o", "%N|%E").splitlines():
			node, reason = line.split("|", 1)
			again = reason == DRAINED and node in self.to_resume
			if (again or reason.startswith(DRAINS)) and node not in found:
				self.stand.scontrol("update", f"NodeName={node}", "State=RESUME")
				found.append(node)
		return found

	def reconfigure(self, _step):
		self.stand.scontrol("reconfigure")
		return "done"
