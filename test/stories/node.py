# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A node on both sides, as its two administrators see it."""
import contextlib
import time

from stands.waiting import StandError, wait_for
from world import fields

OWNER, REASON, BY = (f"slurm-k8s.io/drain-{word}" for word in ("owner", "reason", "by"))
RESUMED = "slurm-k8s.io/resumed-in-slurm"
CONDITION = "SlurmDrained"
CORDONER = "fan-watch"
OURS = {"key": "slurm-k8s.io/dedicated", "value": "slurm", "effect": "NoSchedule"}  # the taint
PROMPT = 10  # seconds, with all that runs beside; how long it really takes is measured in test/bench


def taints(node):
	return node.stand.node(node.name)["spec"].get("taints", [])


class Node:
	"""n1, unless another is named."""

	def __init__(self, stand, name="n1"):
		self.stand, self.name = stand, name

	def cordon(self, why=None):
		note = {"metadata": {"annotations": {"slurm-k8s.io/cordon-reason": why}}} if why else {}
		self.stand.api.patch(f"/api/v1/nodes/{self.name}?fieldManager={CORDONER}", {"spec": {"unschedulable": True}, **note})

	def uncordon(self):
		self.stand.patch_node(self.name, {"unschedulable": None})

	def drain(self, reason="bad disk", state="drain"):
		self.stand.scontrol("update", f"NodeName={self.name}", f"State={state}", f"Reason={reason}")

	def resume(self):
		self.stand.scontrol("update", f"NodeName={self.name}", "State=resume")

	@contextlib.contextmanager
	def maintained(self):
		"""A reservation for maintenance has it meanwhile."""
		self.stand.scontrol("create", "reservation", "ReservationName=for-pods-upkeep", "StartTime=now", "Duration=60",
			"Users=root,games", "Flags=maint,ignore_jobs", f"Nodes={self.name}")
		try:
			yield
		finally:
			self.stand.scontrol("delete", "ReservationName=for-pods-upkeep")

	@contextlib.contextmanager
	def deleted(self):
		"""Kubernetes does not have it meanwhile. No kubelet makes its Node again before it starts again itself, and here is no
		controller that takes off what a new Node is tainted with."""
		path, old = f"/api/v1/nodes/{self.name}", self.stand.node(self.name)
		self.stand.api.delete(path)
		try:
			yield
		finally:
			self.stand.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
				"metadata": {"name": self.name, "labels": old["metadata"]["labels"]}})
			# what has been written to the new one meanwhile stays
			status = {**old["status"], "conditions": [c for c in old["status"]["conditions"] if c["type"] != CONDITION]}
			self.stand.api.patch(path + "/status", {"status": status}, "application/strategic-merge-patch+json")
			self.stand.api.patch(path, {"spec": {"taints": old["spec"].get("taints")}})

	def say(self, kind, status, message):
		"""A condition of the node, as its kubelet or another agent writes it."""
		self.stand.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": {"conditions": [{"type": kind, "status": status,
			"reason": "Told", "message": message}]}}, "application/strategic-merge-patch+json")

	# -- what is seen

	def slurm(self):
		return fields(self.stand.run("scontrol", "-o", "show", "node", self.name))

	@property
	def drained(self):
		return "DRAIN" in self.slurm()["State"]

	@property
	def reason(self):
		"""Slurm's, without who and when."""
		return self.slurm().get("Reason", "").rsplit(" [", 1)[0]

	@property
	def cordoned(self):
		return self.stand.node(self.name)["spec"].get("unschedulable", False)

	def note(self, name):
		return self.stand.node(self.name)["metadata"].get("annotations", {}).get(name)

	def condition(self):
		"""SlurmDrained as (status, reason, message)."""
		for found in self.stand.node(self.name)["status"]["conditions"]:
			if found["type"] == CONDITION:
				return tuple(found[key] for key in ("status", "reason", "message"))
		return None

	def about(self):
		found = self.stand.node(self.name)
		return f"{self.slurm()}\n{found['spec']} {found['metadata'].get('annotations')}\n{self.condition()}"

	def wait(self, what, condition, seconds=PROMPT):
		return wait_for(f"node {self.name}: {what}", condition, seconds, self.about)

	def wait_drained(self, reason):
		self.wait(f"drained: {reason}", lambda: self.drained and self.reason.startswith(reason))

	def wait_in_use(self):
		"""slurmd has registered again, too."""
		self.wait("in use", lambda: self.slurm()["State"] in ("IDLE", "MIXED", "ALLOCATED"), 60)

	def wait_not_cordoned_by_us(self):
		self.wait("uncordoned", lambda: not self.cordoned, 30)
		assert [self.note(name) for name in (OWNER, REASON, BY)] == [None] * 3
		self.wait_condition("False", "Slurm gives this node jobs")

	def wait_condition(self, status, part, seconds=PROMPT):
		def there():
			found = self.condition()
			return found and found[0] == status and part in found[2]
		self.wait(f"SlurmDrained {status} {part}", there, seconds)

	def stays(self, what, condition, seconds=2.5):
		"""For several looks of the Slurm thread, and longer than any answer of the API server takes here."""
		end = time.monotonic() + seconds
		while time.monotonic() < end:
			assert condition(), f"{what}\n{self.about()}"
			time.sleep(0.1)

	def settle(self):
		self.stand.api.patch(f"/api/v1/nodes/{self.name}", {"metadata": {"annotations": {
			name: None for name in (OWNER, REASON, BY, RESUMED, "slurm-k8s.io/cordon-reason")}}, "spec": {"unschedulable": None}})
		try:
			self.resume()
		except StandError:
			pass  # it is in use
		self.wait_in_use()
		self.wait("no cordon", lambda: not self.cordoned)
		# told last; the next story may take the right to
		self.wait("not drained", lambda: (self.condition() or ["False"])[0] == "False")
