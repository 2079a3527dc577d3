# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A device plugin for stories with a real kubelet (test/kubernetes/modules/kubernetes/test-device-plugin)."""
import os
import signal

import pytest
from conftest import lent, with_conf
from mixed import mixing, restore, set_resources
from stands.kubernetes import Kubernetes
from stands.process import Machine
from stands.waiting import wait_for

A100, OF_EACH = "example.com/a100", 4
H100, FPGA = "example.com/h100", "example.com/fpga"
NVIDIA = "nvidia.com/gpu"
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


def with_plugins(request, session_stands, *nodes):
	"""(stand, Plugin of the first node's A100): on each node eight GPUs, behind four A100 four H100, and four FPGAs, which only Kubernetes
	knows."""
	if len(os.sched_getaffinity(0)) < 2:
		pytest.skip("a machine with one CPU has no cores to choose from")
	for stand in lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", str(len(nodes)),
			"--gres", f"gpu@0-1:a100:{OF_EACH},gpu@0-1:h100:{OF_EACH},k8s:fpga:{OF_EACH}", *with_conf("PrEpPlugins=prep/script,prep/k8s")):
		plugins = [Plugin(stand, resource, number * OF_EACH, node) for node in nodes for number, resource in enumerate((A100, H100, FPGA))]
		for plugin in plugins:
			plugin.wait_told()
		before = set_resources(stand, [{"kubernetes": A100, "gres": "gpu", "type": "a100"},
			{"kubernetes": H100, "gres": "gpu", "type": "h100", "devices": [{"first": OF_EACH}]},
			{"kubernetes": FPGA, "gres": "k8s", "type": "fpga"}])
		for mixed in mixing(stand):
			yield mixed, plugins[0]
		plugins[0].not_well()
		restore(stand, before)


def with_known_gpus(request, session_stands):
	"""Four GPUs of n1, by a name that everybody knows, and settings that say nothing of devices."""
	for stand in lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", "1", "--gres", f"gpu@0-1:{OF_EACH}",
			*with_conf("PrEpPlugins=prep/script,prep/k8s")):
		Plugin(stand, NVIDIA, 0).wait_told()
		before = set_resources(stand, [])
		yield from mixing(stand)
		restore(stand, before)
