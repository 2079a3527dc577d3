# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine while the way to its API server is broken, and afterwards: no hot loop ever, and all goes on soon.

Run: /usr/bin/python3 -m pytest test/engine/test_faults.py; variables as in test_engine.py
All faults are played side by side, each by a server and an engine of its own: they mostly wait.
"""
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from test_engine import NAMESPACE, TEST, api_server, bindings, engine_host, server_up

sys.path[:0] = [TEST, os.path.join(TEST, "contract")]
from kube import Kube  # noqa: E402
from stands.waiting import wait_for  # noqa: E402

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
USER = "slurm-k8s"
WRITES, ALL = 4, 12  # seconds that a fault hits all but lists and watches, and then all
HOLD = WRITES + ALL
MOST = 5  # requests a second of an engine with three pods, on average of that time; a hot loop has thousands
BACK = 20  # seconds until all has come to its end: 10 until the server is heard again, 2 for the rest, and a slow machine

# What kubesim does to all that the engine asks, see kubesim --help.
RULES = {
	"401": {"action": "status", "code": 401},
	"403": {"action": "deny"},
	"404": {"action": "status", "code": 404},
	"409": {"action": "status", "code": 409},
	"410": {"action": "status", "code": 410},
	"422": {"action": "status", "code": 422},
	"429 with Retry-After": {"action": "status", "code": 429, "retryAfter": 1},
	"429": {"action": "status", "code": 429},
	"500": {"action": "status", "code": 500},
	"503": {"action": "status", "code": 503},
	"504": {"action": "status", "code": 504},
	"redirect": {"action": "status", "code": 302},
	"reset": {"action": "reset"},
	"truncated": {"action": "truncate", "bytes": 10},
	"slow": {"action": "delay", "delayMs": 3000},
	"invalid JSON": {"action": "answer", "body": '{"kind": nonsense'},
	"wrong content type": {"action": "answer", "type": "text/html", "body": "<html>log in here</html>"},
	"oversized": {"action": "answer", "body": " " * 1024, "bytes": 20 << 20},
}


class Play:
	"""A server, an engine and three pods: one whose process ends during the fault, one that its user deletes then, and
	one that is made then."""

	def __init__(self, folder):
		self.folder = folder
		self.log = f"{folder}/engine.log"
		self.kube = Kube(f"{folder}/admin.conf")
		assert self.kube.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).code == 201

	@contextlib.contextmanager
	def engine(self):
		command, env = engine_host(self.folder)
		with open(self.log, "w", encoding="utf-8") as log, subprocess.Popen([*command, "0", "0", "1", "hold"],
				stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, env=env) as host:
			try:
				yield
			finally:
				host.stdin.close()
				status = host.wait(30)
		assert status == 0

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

	def left(self):
		"""Names of pods that have not come to their end: their process and our finalizer."""
		pods = self.kube.get(PODS)["items"]
		return [p["metadata"]["name"] for p in pods
			if p["status"].get("phase") != "Succeeded" or p["metadata"].get("finalizers") or "deletionTimestamp" in p["metadata"]]

	def order(self, **rule):
		assert self.kube.post("/kubesim/faults", rule).code == 200

	@contextlib.contextmanager
	def rule(self, name, verbs):
		"""Yields a function that counts the requests that met the fault."""
		self.order(match={"user": USER, "verb": verbs}, **RULES[name])
		yield lambda: self.kube.get("/kubesim/faults")["rules"][0]["hits"]
		assert self.kube.delete("/kubesim/faults").code == 200

	def asked(self):
		"""Requests of the engine that the server has answered."""
		with open(f"{self.folder}/audit.log", encoding="utf-8") as file:
			return sum(json.loads(line)["user"]["username"] == USER for line in file)

	def expire(self):
		"""All watches, again and again; returns the number of requests that follow."""
		before = self.asked()
		end = time.monotonic() + HOLD
		while time.monotonic() < end:
			self.order(action="expire-watches")
			time.sleep(0.1)  # a storm, not a wait
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

	def seconds_until_all_is_over(self):
		began = time.monotonic()
		self.create("afterwards", 0.1)
		wait_for("the end of all pods", lambda: not self.left(), 90, lambda: f"left: {self.left()}\n{''.join(self.lines('')[-30:])}")
		return time.monotonic() - began


def hold(play, name):
	"""The fault while it lasts. Returns how many requests met it in its two parts; None: nobody can count them."""
	if name in RULES:
		with play.rule(name, "get|create|update|patch|delete") as hits:
			play.users_act()
			time.sleep(WRITES)  # what is measured is a rate
			writes = hits()
		with play.rule(name, "") as hits:
			play.order(action="expire-watches")  # what is open meets it, too
			time.sleep(ALL)
			return writes, hits()
	if name == "watches that expire":
		play.users_act()
		return 1, play.expire()
	play.users_act()
	play.signal(signal.SIGSTOP if name == "a server that hangs" else signal.SIGKILL)
	time.sleep(HOLD)
	if name == "a server that hangs":
		play.signal(signal.SIGCONT)
	else:
		server_up(play.folder)
	return None


def check_bindings(pods, counts, audit_may_lack):
	"""All four were bound, none of them twice. audit_may_lack: pods whose Binding the server may have done and not written
	down when it was killed, as a real one may, too: that they have a node says then that they were bound."""
	bound = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName")}
	assert set(bound) == {"ends", "made", "afterwards"}  # the fourth is deleted
	unwritten = {name for name, uid in bound.items() if uid not in counts}
	assert unwritten <= audit_may_lack, unwritten
	assert len(counts) + len(unwritten) == 4 and max(counts.values()) == 1, counts


def played(name):
	"""(what hold() returned, seconds until all was over, the engine's lines that it is lost)"""
	with api_server() as folder:
		play = Play(folder)
		with play.engine():
			play.create("ends", 4)
			play.create("deleted", 600)
			play.wait_running("ends", "deleted")
			requests = hold(play, name)
			seconds = play.seconds_until_all_is_over()
		check_bindings(play.kube.get(PODS)["items"], bindings(folder),
			audit_may_lack={"made"} if name == "a server that is gone" else set())
		assert not play.lines("WARNING: ThreadSanitizer") and not play.lines("AddressSanitizer")
		return requests, seconds, play.lines("cluster sim: lost")


FAULTS = [*RULES, "watches that expire", "a server that hangs", "a server that is gone"]


@pytest.fixture(scope="module")
def plays():
	with concurrent.futures.ThreadPoolExecutor(len(FAULTS)) as pool:
		yield {name: pool.submit(played, name) for name in FAULTS}


@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_makes_a_hot_loop_and_all_goes_on_soon_after_it(plays, name):
	requests, seconds, lost = plays[name].result()
	print(f"{name}: {requests} requests in {HOLD} s, all was over {seconds:.1f} s after it")
	assert requests is None or min(requests) >= 1 and sum(requests) <= HOLD * MOST
	assert seconds < BACK
	assert len(lost) <= 1  # one line a minute at most
