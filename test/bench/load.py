# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What the benchmark does to a stand: creates pods, watches them, and plays their kubelet where there is none."""
import heapq
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from stands.api import Api, ApiError
from stands.waiting import StandError

PODS = "/api/v1/namespaces/default/pods"
RUN_SECONDS = "kubesim.slurm-k8s.io/run-seconds"  # kubesim's own fake nodes read it, and FakeKubelet


def pod(name, cpus, run_seconds, memory="64Mi"):
	return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {RUN_SECONDS: str(run_seconds)}},
		"spec": {"schedulerName": "slurm", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
			{"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpus), "memory": memory}}}]}}


class Watch(threading.Thread):
	"""All pods of the namespace, by name, kept up to date. wait() for a condition on them."""

	def __init__(self, kubeconfig):
		super().__init__(daemon=True)
		self.api = Api(kubeconfig, timeout=3600)
		self.changed = threading.Condition()
		self.pods = {}
		self.listeners = []
		self.version = self.api.get(PODS + "?limit=1")["metadata"]["resourceVersion"]
		self.start()

	def run(self):
		line = http.client.HTTPSConnection(self.api.host, int(self.api.port), context=self.api.tls)
		line.request("GET", f"{PODS}?watch=1&resourceVersion={self.version}&timeoutSeconds=3600")
		for text in line.getresponse():
			event = json.loads(text)
			if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
				continue
			item = event["object"]
			with self.changed:
				if event["type"] == "DELETED":
					self.pods.pop(item["metadata"]["name"], None)
				else:
					self.pods[item["metadata"]["name"]] = item
				self.changed.notify_all()
			for listener in self.listeners:
				listener(event["type"], item)

	def wait(self, what, condition, seconds=120):
		"""condition(pods by name) -> true when it is over."""
		with self.changed:
			if not self.changed.wait_for(lambda: condition(self.pods), seconds):
				raise StandError(f"{what}: not within {seconds} s")


def is_bound(item):
	return bool(item["spec"].get("nodeName"))


def is_over(item):
	return item["status"].get("phase") in ("Succeeded", "Failed")


def create(kubeconfig, items, connections=4):
	"""Creates pods over a few connections at once."""
	def some(part):
		api = Api(kubeconfig)
		for item in part:
			api.post(PODS, item)
	with ThreadPoolExecutor(connections) as pool:
		list(pool.map(some, [items[i::connections] for i in range(connections)]))


class FakeKubelet(threading.Thread):
	"""Says what a kubelet would say about pods on nodes that have none: running, over, gone.

	Only status: nothing runs. One thread, in the order of time.
	"""

	def __init__(self, kubeconfig, watch):
		super().__init__(daemon=True)
		self.api = Api(kubeconfig)
		self.due = []  # heap of (time, number, what, pod)
		self.more = threading.Condition()
		self.state = {}  # uid: "running", "over", "deleted"
		self.number = 0
		watch.listeners.append(self.seen)
		self.start()

	def plan(self, seconds, what, item):
		with self.more:
			self.number += 1
			heapq.heappush(self.due, (time.monotonic() + seconds, self.number, what, item))
			self.more.notify()

	def seen(self, kind, item):
		uid = item["metadata"]["uid"]
		state = self.state.get(uid)
		if kind == "DELETED" or not is_bound(item):
			return
		if state is None:
			self.state[uid] = "running"
			self.plan(0, self.running, item)
			self.plan(float(item["metadata"]["annotations"][RUN_SECONDS]), self.over, item)
		if item["metadata"].get("deletionTimestamp") and state != "deleted":
			self.state[uid] = "deleted"
			self.plan(0, self.killed, item)

	def run(self):
		while True:
			with self.more:
				while not self.due or self.due[0][0] > time.monotonic():
					self.more.wait(self.due[0][0] - time.monotonic() if self.due else None)
				_, _, what, item = heapq.heappop(self.due)
			try:
				what(item)
			except ApiError:
				pass  # it has gone meanwhile
			except OSError:
				self.plan(0.1, what, item)

	def status(self, item, phase, container):
		now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
		container = {key: {**value, "startedAt": now, **({"finishedAt": now} if key == "terminated" else {})}
			for key, value in container.items()}
		self.api.patch(f"{PODS}/{item['metadata']['name']}/status", {"metadata": {"uid": item["metadata"]["uid"]},
			"status": {"phase": phase, "startTime": now, "containerStatuses": [{"name": "main", "ready": False,
				"restartCount": 0, "image": "none", "imageID": "", "containerID": "fake://1", "state": container}]}})

	def running(self, item):
		if self.state[item["metadata"]["uid"]] == "running":
			self.status(item, "Running", {"running": {}})

	def over(self, item):
		if self.state[item["metadata"]["uid"]] == "running":
			self.state[item["metadata"]["uid"]] = "over"
			self.status(item, "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed"}})

	def killed(self, item):
		self.status(item, "Failed", {"terminated": {"exitCode": 143, "reason": "Error"}})
		self.api.delete(f"{PODS}/{item['metadata']['name']}",
			{"gracePeriodSeconds": 0, "preconditions": {"uid": item["metadata"]["uid"]}})
