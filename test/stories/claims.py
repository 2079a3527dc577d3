# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A stand whose nodes have devices with a driver (Dynamic Resource Allocation), and pods' claims for them."""
import os
import re
import subprocess

import yaml
from mixed import ETC, restore, set_resources
from stands.api import ApiError
from stands.kubernetes import Kubernetes
from stands.process import Machine
from stands.waiting import wait_for

API = "/apis/resource.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLASS = "gpu.example.com"
NODES = ("n1", "n2")
DEVICES = 4
# The API server lets a kubelet read a claim when it has noticed the Binding. One that was faster says FailedPrepareDynamicResources
# and tries again after its syncFrequency, which is a minute and may be half a minute more.
PREPARED = 150


def containers_see_devices():
	"""Does containerd know CDI?"""
	found = subprocess.run(["containerd", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
	return tuple(int(n) for n in re.search(r"(\d+)\.(\d+)\.\d", found).groups()) >= (1, 7)


def post(stand, path, item):
	"""Unless it is there."""
	try:
		stand.api.post(path, {"apiVersion": "resource.k8s.io/v1", **item})
	except ApiError as error:
		if error.status != 409:
			raise


def allow(stand):
	"""kubectl apply -f etc/kubernetes-devices.yaml"""
	with open(os.path.join(ETC, "kubernetes-devices.yaml"), encoding="utf-8") as file:
		for item in yaml.safe_load_all(file):
			post(stand, f"{RBAC}/{item['kind'].lower()}s", item)


def publish_class(stand):
	post(stand, f"{API}/deviceclasses", {"kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": {
		"selectors": [{"cel": {"expression": f"device.driver == '{CLASS}'"}}]}})


def device(index, **attributes):
	return {"name": f"gpu-{index}", "attributes": {"index": {"int": index}, "model": {"string": "a100"}, **attributes}}


def publish_slice(stand, node, devices):
	"""What a driver would say of a node."""
	spec = {"driver": CLASS, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}
	post(stand, f"{API}/resourceslices", {"kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec})
	stand.api.patch(f"{API}/resourceslices/{node}-gpus", {"spec": {"devices": devices}})


class Drivers:
	"""On each node gpu-0 to gpu-3 of gpu.example.com, which are Slurm's gpu."""

	def __init__(self, stand):
		self.stand = stand
		self.records = {}

	def begin(self):
		publish_class(self.stand)
		for node in NODES:
			if self.stand.kind == "real":
				self.records[node] = Kubernetes(self.stand.folder).driver(Machine(self.stand.folder, node), DEVICES)
			else:
				self.publish(node)
		wait_for("the drivers' devices", lambda: {s["spec"]["nodeName"] for s in self.slices()} == set(NODES), 60)

	def publish(self, node, missing=(), tainted=(), twins=()):
		"""Only where no driver is. twins: indices that another device has as well."""
		def whole(index):
			return device(index, uuid={"string": f"GPU-{node}-{index}"}, numaNode={"int": 0}, pciBusID={"string": f"0000:0{index}:00.0"})
		publish_slice(self.stand, node, [{**whole(i), **({"taints": [{"key": "broken", "effect": "NoSchedule"}]} if i in tainted else {})}
			for i in range(DEVICES) if i not in missing] + [{**whole(i), "name": f"twin-{i}"} for i in twins])

	def slices(self):
		return [s for s in self.stand.api.get(f"{API}/resourceslices")["items"] if s["spec"]["driver"] == CLASS]

	def record(self, node):
		"""[(what, device, claim)], in their order; of former stories, too."""
		try:
			with open(self.records[node], encoding="utf-8") as file:
				return [(what, int(device), claim) for what, device, claim in map(str.split, file)]
		except FileNotFoundError:
			return []

	def end(self):
		for found in self.slices() if not self.records else ():
			self.stand.api.delete(f"{API}/resourceslices/{found['metadata']['name']}")


class Claim:
	"""For count devices, and as many more in a request of their own for each of `more`. owner: the pod for which it was made from a
	template. Its name is free again when end() has been called."""

	def __init__(self, stand, name, count=1, more=(), namespace="default", owner=None, **exactly):
		self.stand, self.name = stand, name
		self.path = f"{API}/namespaces/{namespace}/resourceclaims/{name}"
		requests = {"gpus": {"count": count, **exactly}, **{f"more{i}": {"count": n} for i, n in enumerate(more)}}
		about = {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "controller": True, "name": owner["metadata"]["name"],
			"uid": owner["metadata"]["uid"]}]} if owner else {}  # else its kubelet does not take it
		post(stand, os.path.dirname(self.path), {"kind": "ResourceClaim", "metadata": {"name": name, **about}, "spec": {"devices": {"requests": [
			{"name": request, "exactly": {"deviceClassName": CLASS, **about}} for request, about in requests.items()]}}})

	def get(self):
		return self.stand.api.get(self.path)

	def allocated(self):
		return self.get().get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])

	def results(self):
		"""[(node, index)] of what it has."""
		return [(r["pool"], int(r["device"].rpartition("-")[2])) for r in self.allocated()]

	def devices(self):
		return {index for _, index in self.results()}

	def allocate(self, node, devices, pod):
		"""As kube-scheduler would, for a pod."""
		results = [{"request": "gpus", "driver": CLASS, "pool": node, "device": f"gpu-{i}"} for i in devices]
		self.stand.api.patch(self.path + "/status", {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": [
			{"resource": "pods", "name": pod.name, "uid": pod.uid}]}})

	def free(self):
		"""As kube-controller-manager does when its pod is over."""
		self.stand.api.patch(self.path + "/status", {"status": {"allocation": None, "reservedFor": None, "devices": None}})
		self.stand.api.patch(self.path, {"metadata": {"finalizers": None}})

	def end(self):
		try:
			self.free()
			self.stand.api.delete(self.path)
		except ApiError as error:
			if error.status != 404:
				raise


def uses(*claims):
	"""More of a pod's spec."""
	return {"resourceClaims": [{"name": f"c{i}", "resourceClaimName": c.name} for i, c in enumerate(claims)]}


def with_drivers(stand):
	"""The stand while its nodes' GPUs have drivers, for a fixture: (stand, Drivers, claim())."""
	allow(stand)
	drivers, claims = Drivers(stand), []
	drivers.begin()
	before = set_resources(stand, [{"deviceClass": CLASS, "gres": "gpu"}])

	def claim(*words, **more):
		claims.append(Claim(stand, *words, **more))
		return claims[-1]
	yield stand, drivers, claim
	for pod in stand.api.get("/api/v1/namespaces/default/pods")["items"]:
		stand.api.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
	wait_for("no pod", lambda: not stand.api.get("/api/v1/namespaces/default/pods")["items"], 60)
	for made in claims:
		made.end()
	drivers.end()
	restore(stand, before)
