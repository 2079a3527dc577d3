# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A play of something that goes wrong between an engine and its API server; and of what becomes of three pods in it."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import yaml
from test_engine import NAMESPACE, TEST, bindings, engine_host

sys.path[:0] = [TEST, os.path.join(TEST, "contract"), os.path.join(TEST, "chaos")]
from kube import Kube  # noqa: E402
from stands.waiting import wait_for  # noqa: E402

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
USER = "slurm-k8s"
# Requests a second of an engine with three pods and three watches, on average of the time that a fault lasts: each watch
# lists and watches every 0.7 s in a storm of 410. A hot loop has thousands.
MOST = 10
BACK = 20  # seconds until all has come to its end: 10 until the server is heard again, 2 for the rest, and a slow machine


def write(path, text):
	"""As a whole, and for its owner only."""
	with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
		file.write(text)
	os.rename(path + ".new", path)


class Play:
	"""A server, an engine and three pods: one whose process ends during the fault, one that its user deletes then, and
	one that is made then."""

	def __init__(self, folder):
		self.folder = folder
		self.log = f"{folder}/engine.log"
		self.kubeconfig = f"{folder}/engine.conf"
		self.reach()
		self.kube = Kube(f"{folder}/admin.conf")
		assert self.kube.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).code == 201

	def port(self):
		"""The server's."""
		with open(f"{self.folder}/port", encoding="ascii") as file:
			return int(file.read())

	def reach(self, cluster=None, user=None):
		"""Writes the engine's kubeconfig. cluster: what differs from kubesim's own; user: instead of its certificate."""
		with open(f"{self.folder}/slurm-k8s.conf", encoding="utf-8") as file:
			about = yaml.safe_load(file)
		about["clusters"][0]["cluster"] |= cluster or {}
		about["users"][0]["user"] = user or about["users"][0]["user"]
		write(self.kubeconfig, yaml.safe_dump(about))

	@contextlib.contextmanager
	def engine(self, *around):
		"""around: a command that starts it in its turn."""
		command, env = engine_host(self.folder, self.kubeconfig)
		with open(self.log, "w", encoding="utf-8") as log, subprocess.Popen([*around, *command, "0", "0", "1", "hold"],
				stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, env=env) as host:
			try:
				yield
			finally:
				host.stdin.close()
				status = host.wait(30)
		assert status == 0
		assert not self.lines("WARNING: ThreadSanitizer") and not self.lines("AddressSanitizer")

	def lines(self, part):
		with open(self.log, encoding="utf-8") as file:
			return [line.strip() for line in file if part in line]

	def create(self, name, seconds):
		answer = self.kube.post(PODS, {"metadata": {"name": name, "annotations": {"kubesim.slurm-k8s.io/run-seconds": str(seconds)}},
			"spec": {"schedulerName": "slurm", "restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}})
		assert answer.code == 201, answer

	def wait_running(self, *names):
		def all_run():
			pods = [self.kube.get(f"{PODS}/{name}").body for name in names]
			return all(p["status"].get("phase") == "Running" and p["metadata"].get("finalizers") for p in pods)
		wait_for(f"{names} to run", all_run, 60)

	def begin(self):
		"""The two pods that are there before the fault."""
		self.create("ends", 4)
		self.create("deleted", 600)
		self.wait_running("ends", "deleted")

	def left(self):
		"""Names of pods that have not come to their end: their process and our finalizer."""
		pods = self.kube.get(PODS)["items"]
		return [p["metadata"]["name"] for p in pods
			if p["status"].get("phase") != "Succeeded" or p["metadata"].get("finalizers") or "deletionTimestamp" in p["metadata"]]

	def order(self, **rule):
		assert self.kube.post("/kubesim/faults", rule).code == 200

	@contextlib.contextmanager
	def rule(self, rule, verbs):
		"""What kubesim does to all that the engine asks, see kubesim --help. Yields a function that counts the requests
		that met it."""
		self.order(match={"user": USER, "verb": verbs}, **rule)
		yield lambda: self.kube.get("/kubesim/faults")["rules"][0]["hits"]
		assert self.kube.delete("/kubesim/faults").code == 200

	def answered(self):
		"""All requests that the server has answered, in order."""
		with open(f"{self.folder}/audit.log", encoding="utf-8") as file:
			return [json.loads(line) for line in file if line.endswith("\n")]  # the last one may be half written

	def requests(self):
		"""Those of the engine."""
		return [entry for entry in self.answered() if entry["user"]["username"] == USER]

	def asked(self):
		return len(self.requests())

	def codes(self):
		"""Of all answers to anybody, in order."""
		return [entry["responseStatus"]["code"] for entry in self.answered()]

	def storm(self, action, seconds, pause=0.1):
		"""Does it to all watches, again and again; returns the number of requests that follow."""
		before = self.asked()
		end = time.monotonic() + seconds
		while time.monotonic() < end:
			self.order(action=action)
			time.sleep(pause)  # a storm, not a wait
		return self.asked() - before

	def signal(self, number):
		with open(f"{self.folder}/kubesim.pid", encoding="ascii") as file:
			pid = int(file.read())
		os.kill(pid, number)
		self.kube.connection = None
		if number == signal.SIGKILL:
			wait_for("the end of kubesim", lambda: not os.path.exists(f"/proc/{pid}"), 10)

	def users_act(self):
		self.create("made", 0.1)
		assert self.kube.delete(f"{PODS}/deleted").code == 200

	def nothing_was_done(self):
		"""For the pods of users_act() and for the one whose process ended, a while later."""
		return set(self.left()) >= {"made", "ends"}

	def seconds_until_all_is_over(self):
		began = time.monotonic()
		self.create("afterwards", 0.1)
		wait_for("the end of all pods", lambda: not self.left(), 90, lambda: f"left: {self.left()}\n{''.join(self.lines('')[-30:])}")
		return time.monotonic() - began

	def bound_once(self, pods):
		counts = bindings(self.folder)
		return len(counts) == pods and max(counts.values()) == 1
