# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What is done to nodes, and what becomes of them, whatever is broken at the moment."""
import threading
import time

from cordons import CORDONED
from insistent import PAUSE, Insistent
from node import CONDITION, OURS, OWNER
from plan import GPU, GPUS, NODES
from stands.api import ApiError
from stands.waiting import StandError

# Reasons for which Slurm drains a node of its own accord: here because it gave the id of a running job, that it had
# forgotten by a crash, to another.
DRAINS = ("Duplicate jobid",)
DRAINED = "chaos"  # the reason that an administrator gives
NOT_READY = "node.kubernetes.io/not-ready"
TOLD_WITHIN = 35  # seconds in which one side has heard of what is done on the other one: everything that failed is tried again by then
STRATEGIC = "application/strategic-merge-patch+json"
BROKEN = "GpuBroken"  # of clusters[].state.conditions, see world.py


class Nodes(Insistent):
	"""One method for each verb of plan.ON_DEDICATED. Each returns what became of it, as one reads it. Thread safe."""

	def __init__(self, stand):
		super().__init__(stand)
		self.to_resume = set()  # nodes that were drained, failed or DOWN for a while
		self.upkeep = set()  # names of reservations for maintenance that are over
		self.gone = []  # (from, to, node) of those that Kubernetes did not have
		self.deleting = {name: threading.Lock() for name in NODES}  # who deletes one makes it again first

	def register_gpus(self):
		"""As a device plugin does it; the names of nodes that had lost theirs: a kubelet that starts may take them off."""
		found = []
		for name in NODES:
			status = self.api.get(f"/api/v1/nodes/{name}")["status"]
			if any(status[what].get(GPU) != str(GPUS) for what in ("capacity", "allocatable")):
				self.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": {GPU: str(GPUS)}, "allocatable": {GPU: str(GPUS)}}})
				found.append(name)
		return found

	def cordon(self, step):
		path = f"/api/v1/nodes/{step.target}"
		try:
			self._insist(lambda: self.api.patch(path, {"spec": {"unschedulable": True}}))
			time.sleep(step.about["seconds"])
		finally:
			self._insist(lambda: self.api.patch(path, {"spec": {"unschedulable": None}}))
		return "for a while"

	def last_cordon(self, step):
		"""The last one of a play, when nothing breaks any more that keeps it from Slurm. It stays so long after Slurm has the drain,
		that there is always one of which can be said whether jobs were started on it: not of one on top of ours."""
		path = f"/api/v1/nodes/{step.target}"
		self._wait_free_of_us(step.target)
		self._insist(lambda: self.api.patch(path, {"spec": {"unschedulable": True}}))
		try:
			told = self._await(lambda: self.stand.run("sinfo", "-h", "-n", step.target, "-o", "%E").startswith(CORDONED))
			time.sleep(step.about["seconds"])
		finally:
			self._insist(lambda: self.api.patch(path, {"spec": {"unschedulable": None}}))
		return "for a while" if told else "and Slurm did not drain it"

	def last_close(self, step):
		"""The same on Slurm's side: until Kubernetes has it cordoned."""
		path, state = f"/api/v1/nodes/{step.target}", step.about["state"]
		self._wait_free_of_us(step.target)
		self.to_resume.discard(step.target)
		try:
			self._insist(lambda: self.stand.scontrol("update", f"NodeName={step.target}", f"State={state}", f"Reason={DRAINED}"))
			told = self._await(lambda: self.api.get(path)["spec"].get("unschedulable", False))
			time.sleep(step.about["seconds"])
		finally:
			self.to_resume.add(step.target)
			self._insist(lambda: self._resume(step.target))
		return "for a while" if told else "and Kubernetes did not cordon it"

	def _wait_free_of_us(self, node):
		"""Until whoever has deleted it has made it again, and no cordon of ours is on it."""
		with self.deleting[node]:
			self._await(lambda: OWNER not in self.api.get(f"/api/v1/nodes/{node}")["metadata"].get("annotations", {}))

	def _await(self, condition):
		end = time.monotonic() + TOLD_WITHIN
		while not (found := self._insist(condition)) and time.monotonic() < end:
			time.sleep(PAUSE)
		return found

	def condition(self, step):
		"""What looks after its GPUs says that they are broken, and later that they are well."""
		return self._say(step, BROKEN, ("True", "False"), "Told", "fell off the bus")

	def not_ready(self, step):
		"""Its kubelet has not been heard of, says the node lifecycle controller, which is not here; a kubelet that is there says
		so with its next report."""
		return self._say(step, "Ready", ("Unknown", "True"), "NodeStatusUnknown", "Kubelet stopped posting node status.")

	def _say(self, step, kind, statuses, reason, message):
		"""A condition has the one status, and later the other one."""
		def say(status):
			self.api.patch(f"/api/v1/nodes/{step.target}/status", {"status": {"conditions": [{"type": kind, "status": status,
				"reason": reason, "message": message}]}}, STRATEGIC)
		meanwhile, later = statuses
		try:
			self._insist(lambda: say(meanwhile))
			time.sleep(step.about["seconds"])
		finally:
			self._insist(lambda: say(later))
		return "for a while"

	def delete_node(self, step):
		"""kubectl delete node. Its kubelet, if it does not start anew, makes no other one: somebody does, like the one before."""
		path = f"/api/v1/nodes/{step.target}"
		with self.deleting[step.target]:
			old, began = self._insist(lambda: self.api.get(path)), time.time()
			try:
				self._insist(lambda: self.api.delete(path))
				time.sleep(step.about["seconds"])
			finally:
				self._insist(lambda: self._make(path, old))
				self.gone.append((began, time.time(), step.target))
		return "for a while"

	def _make(self, path, old):
		labels = {"labels": old["metadata"]["labels"]}
		try:
			self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": old["metadata"]["name"], **labels}})
		except ApiError as error:
			if error.status != 409:
				raise
			self.api.patch(path, {"metadata": labels})
		# of what has been found out about the old one nothing is known of this one
		status = {**old["status"], "conditions": [c for c in old["status"]["conditions"] if c["type"] not in (BROKEN, CONDITION)]}
		self.api.patch(path + "/status", {"status": status}, STRATEGIC)
		# of a new one, by the API server; there is no controller here that takes it off
		taints = [taint for taint in self.api.get(path)["spec"].get("taints", []) if taint["key"] != NOT_READY]
		self.api.patch(path, {"spec": {"taints": taints or None}})

	def untaint(self, step):
		"""Takes off what keeps kube-scheduler from the node; leaves what others have put there."""
		path = f"/api/v1/nodes/{step.target}"

		def take_off():
			taints = self.api.get(path)["spec"].get("taints", [])
			self.api.patch(path, {"spec": {"taints": [taint for taint in taints if taint["key"] != OURS["key"]] or None}})
			return "taken off" if OURS in taints else "not there"
		return self._insist(take_off)

	def drain(self, step):
		return self._close(step, "DRAIN")

	def fail(self, step):
		return self._close(step, "FAIL")

	def set_down(self, step):
		"""Slurm ends all that runs there."""
		return self._close(step, "DOWN")

	def _close(self, step, state):
		self.to_resume.discard(step.target)
		try:
			self._insist(lambda: self.stand.scontrol("update", f"NodeName={step.target}", f"State={state}", f"Reason={DRAINED}"))
			time.sleep(step.about["seconds"])
		finally:
			self.to_resume.add(step.target)
			self._insist(lambda: self._resume(step.target))
		return "for a while"

	def maintain(self, step):
		"""A reservation for maintenance has it for a while."""
		name = f"upkeep-{step.target}-{step.at:.3f}"
		try:
			self._insist(lambda: self._begin_upkeep(name, step.target))
			time.sleep(step.about["seconds"])
		finally:
			self.upkeep.add(name)
			self._insist(lambda: self._end_upkeep(name))
		return "for a while"

	def _begin_upkeep(self, name, node):
		made = self.stand.run("scontrol", "create", "reservation", f"ReservationName={name}", "StartTime=now", "Duration=60", "Users=root",
			"Flags=maint,ignore_jobs", f"Nodes={node}", check=False)
		if made.returncode and "uplicate" not in made.stderr:  # else it is there, and the answer was lost
			raise StandError(made.stderr.strip())

	def _end_upkeep(self, name):
		"""One that says no is not there."""
		self.stand.run("scontrol", "ping")
		self.stand.run("scontrol", "delete", f"ReservationName={name}", check=False)

	def _resume(self, node):
		"""One that says no is not drained: somebody else was at it too."""
		self.stand.run("scontrol", "ping")
		self.stand.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)

	def undrain(self):
		"""An administrator takes back what Slurm does to a node, and again what a slurmctld that was killed forgot to be
		taken back; its names. Not what anybody else does."""
		found = []
		for line in self.stand.run("scontrol", "-o", "show", "reservation").splitlines():
			if (name := line.partition("ReservationName=")[2].partition(" ")[0]) in self.upkeep:
				self._end_upkeep(name)
		for line in self.stand.run("sinfo", "-h", "-N", "-R", "-o", "%N|%E").splitlines():
			node, reason = line.split("|", 1)
			again = reason == DRAINED and node in self.to_resume
			if (again or reason.startswith(DRAINS)) and node not in found:
				self.stand.scontrol("update", f"NodeName={node}", "State=RESUME")
				found.append(node)
		return found
