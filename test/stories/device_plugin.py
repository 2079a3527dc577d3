# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A device plugin for stories with a real kubelet (test/kubernetes/modules/kubernetes/test-device-plugin)."""
import signal

from stands.kubernetes import Kubernetes
from stands.process import Machine
from stands.waiting import wait_for

A100, OF_EACH = "example.com/a100", 4
DEVICES = "slurm-k8s.io/devices"


class Plugin:
	"""A device plugin of a node. It asks its kubelet for the last devices first, and Slurm takes the first ones first."""

	def __init__(self, stand, resource, first, node="n1"):
		self.stand, self.resource, self.node = stand, resource, node
		self.daemon, self.unhealthy = Kubernetes(stand.folder).device_plugin(Machine(stand.folder, node), resource, first, OF_EACH)

	def wait_devices(self, number):
		wait_for(f"a kubelet with {number} {self.resource}",
			lambda: self.stand.node(self.node)["status"]["allocatable"].get(self.resource) == str(number), 60)

	def wait_told(self):
		self.wait_devices(OF_EACH)
		wait_for("its agent to tell of them",
			lambda: self.resource in self.stand.node(self.node)["metadata"].get("annotations", {}).get(DEVICES, ""), 60)

	def not_well(self, *numbers):
		"""These, and no others. One that was killed starts again."""
		with open(self.unhealthy, "w", encoding="utf-8") as file:
			file.write(" ".join(map(str, numbers)))
		if self.daemon.pid:
			self.daemon.send(signal.SIGHUP)
		else:
			self.daemon.start_again()
		self.wait_devices(OF_EACH - len(numbers))
