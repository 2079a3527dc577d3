# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A device plugin for the GPUs of each node, whose kubelet chooses who gets which, and what its checkpoint tells of that."""
import json
import os
import re
import threading

from plan import GPU, GPUS, NODES
from stands.kubernetes import Kubernetes
from stands.process import Machine
from stands.waiting import StandError, wait_for

LOOK = 0.1  # seconds between two; a pod that ran was longer in the checkpoint than that
TOLD = "slurm-k8s.io/devices"  # a node's annotation, by its agent


def told(checkpoint):
	"""{uid of a pod: indices of its GPUs} of a kubelet's checkpoint, as text."""
	found = {}
	for entry in json.loads(checkpoint)["Data"].get("PodDeviceEntries") or ():
		if entry["ResourceName"] == GPU:
			ids = [device for devices in entry["DeviceIDs"].values() for device in devices]
			found[entry["PodUID"]] = found.get(entry["PodUID"], frozenset()) | {int(re.search(r"\d+$", device)[0]) for device in ids}
	return found


class Devices:
	"""had: {uid of a pod: indices of its GPUs}."""

	def __init__(self, stand):
		self.stand, self.had, self.closing = stand, {}, threading.Event()
		kubernetes = Kubernetes(stand.folder)
		self.folders = {name: os.path.join(kubernetes.node_home(name), "kubelet", "device-plugins") for name in NODES}
		self.plugins = {name: kubernetes.device_plugin(Machine(stand.folder, name), GPU, 0, GPUS)[0] for name in NODES}
		for name in NODES:
			wait_for(f"the GPUs of {name}", lambda name=name: self._is_told(name), 60)
		self.keeper = threading.Thread(target=self._keep, daemon=True)
		self.keeper.start()

	def _is_told(self, name):
		node = self.stand.node(name)
		return node["status"]["allocatable"].get(GPU) == str(GPUS) and GPU in node["metadata"].get("annotations", {}).get(TOLD, "")

	def _keep(self):
		"""A kubelet that starts removes the sockets of its plugins, and these must begin anew."""
		while not self.closing.wait(LOOK):
			for name, folder in self.folders.items():
				try:
					with open(os.path.join(folder, "kubelet_internal_checkpoint"), encoding="utf-8") as file:
						self.had.update(told(file.read()))
				except (OSError, ValueError):
					pass  # it is being written
				plugin = self.plugins[name]
				if not os.path.exists(os.path.join(folder, GPU.replace("/", "_") + ".sock")) or not plugin.pid:
					try:
						plugin.stop()
						plugin.start_again()
					except (OSError, StandError):
						pass  # next time

	def close(self):
		self.closing.set()
		self.keeper.join()
