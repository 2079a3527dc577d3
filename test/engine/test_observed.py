# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What an administrator sees of the engine: /metrics while pods run, and the log of one pod.

Run: /usr/bin/python3 -m pytest test/engine/test_observed.py; variables as in test_engine.py
"""
import collections
import json
import os
import random
import re
import socket
import subprocess
import threading
import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families
from test_engine import BUILD, CORES, NAMESPACE, NODES, SEED, api_server, bindings, pod, run

PODS, CANCELS = 30, 6


def free_port():
	with socket.socket() as s:
		s.bind(("127.0.0.1", 0))
		return s.getsockname()[1]


def wait_until(what, seconds=60):
	"""The first true value of what()."""
	end = time.monotonic() + seconds
	while not (value := what()):
		assert time.monotonic() < end, f"not within {seconds} s: {what}"
		time.sleep(0.05)
	return value


def scrape(port):
	"""The page as text; OSError if nobody listens there."""
	with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
		assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
		return answer.read().decode()


class Numbers:
	"""A parsed page."""

	def __init__(self, page):
		self.families = {f.name: f for f in text_string_to_metric_families(page)}
		self.samples = [s for f in self.families.values() for s in f.samples]

	def sum(self, name, **labels):
		return sum(s.value for s in self.samples
			if s.name == name and all(re.fullmatch(v, s.labels[k]) for k, v in labels.items()))


class Engine:
	"""engine_host with pods to run, scraped from its first second on."""

	def __init__(self, folder):
		self.folder, self.port, self.pages, self.refused = folder, free_port(), [], 0
		self.config = f"{folder}/slurm-k8s.yaml"
		self.configure(self.port)
		os.makedirs(f"{folder}/state")
		self.log = f"{folder}/engine.log"
		with open(self.log, "w", encoding="utf-8") as log:
			self.process = subprocess.Popen([f"{BUILD}/test/engine/engine_host", self.config, f"{folder}/state",
				str(NODES), str(CORES), str(PODS), str(CANCELS), str(SEED), "hold"], stdin=subprocess.PIPE,
				stdout=subprocess.PIPE, stderr=log, text=True,
				env={**os.environ, "TSAN_OPTIONS": "halt_on_error=0 exitcode=66"})
		self.done = threading.Event()
		scraper = threading.Thread(target=self._scrape)
		scraper.start()
		self.completed = self.process.stdout.readline()
		self.done.set()
		scraper.join()

	def _scrape(self):
		while not self.done.is_set():
			try:
				self.pages.append(scrape(self.port))
			except OSError:
				self.refused += 1  # not up yet
			self.done.wait(0.1)

	def configure(self, port):
		metrics = f"metrics: {{listen: \"127.0.0.1:{port}\"}}\n" if port else ""
		with open(os.open(self.config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
			file.write(f"{metrics}clusters: [{{name: sim, kubeconfig: {self.folder}/slurm-k8s.conf, namespaces: "
				f"[{{match: {NAMESPACE}, user: daemon}}]}}]\n")

	def reconfigure(self, port):
		self.configure(port)
		self.process.stdin.write("reconfigure\n")
		self.process.stdin.flush()

	def lines(self):
		with open(self.log, encoding="utf-8") as file:
			return file.read().splitlines()

	def end(self):
		self.process.stdin.close()
		return self.process.wait(60)


@pytest.fixture(scope="module")
def engine():
	with api_server() as folder:
		chance = random.Random(SEED)
		objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
		objects += [pod(n, chance) for n in range(PODS)]
		run("kubectl", "create", "-f", "-", env={"KUBECONFIG": f"{folder}/admin.conf"},
			stdin="\n".join(json.dumps(o) for o in objects))
		it = Engine(folder)
		yield it
		it.process.kill()
		it.process.wait()


def test_numbers_grow_while_pods_run(engine):
	assert re.fullmatch(r"\d+ completed\n", engine.completed), engine.lines()[-20:]
	bound = [Numbers(p).sum("slurm_k8s_pods_bound_total") for p in engine.pages]
	assert bound == sorted(bound) and bound[0] < bound[-1], bound
	seen = collections.Counter()
	for page in engine.pages:
		for s in Numbers(page).samples:
			if s.name == "slurm_k8s_pods":
				seen[s.labels["state"]] += s.value
	assert seen["waiting"] and seen["bound"], seen


def test_numbers_agree_with_the_audit_log(engine):
	there = sum(bindings(engine.folder).values())
	assert there > 0
	wait_until(lambda: Numbers(scrape(engine.port)).sum("slurm_k8s_pods_bound_total") == there)
	n = Numbers(scrape(engine.port))
	assert n.sum("slurm_k8s_api_requests_total", cluster="sim", verb="create", resource="pods/binding", code="201") == there
	assert n.sum("slurm_k8s_pod_seen_to_bound_seconds_count") == there
	assert n.sum("slurm_k8s_job_start_to_binding_seconds_count") >= there
	assert n.sum("slurm_k8s_jobs_submitted_total") >= PODS
	assert n.sum("slurm_k8s_connected") == n.sum("slurm_k8s_engine_responsive") == 1
	assert n.sum("slurm_k8s_ledger_writes_total") > 0 and n.sum("slurm_k8s_ledger_write_errors_total") == 0
	assert n.sum("slurm_k8s_hook_duration_seconds_count", hook="job_start") >= there
	assert time.time() - n.sum("slurm_k8s_watch_last_event_timestamp_seconds", resource="pods") < 300
	# every pod has ended: nothing is held, nothing waits
	wait_until(lambda: Numbers(scrape(engine.port)).sum("slurm_k8s_holds") == 0)
	assert Numbers(scrape(engine.port)).sum("slurm_k8s_masked_cores") == 0


def test_histograms_are_cumulative_and_end_with_all(engine):
	buckets = collections.defaultdict(list)
	n = Numbers(scrape(engine.port))
	for s in n.samples:
		if s.name.endswith("_bucket"):
			key = (s.name.removesuffix("_bucket"), *((k, v) for k, v in sorted(s.labels.items()) if k != "le"))
			buckets[key].append((float(s.labels["le"]), s.value))
	assert len(buckets) > 5
	for (name, *labels), steps in buckets.items():
		assert steps == sorted(steps) and [v for _, v in steps] == sorted(v for _, v in steps)
		assert steps[-1] == (float("inf"), n.sum(f"{name}_count", **dict(labels)))


def test_promtool_has_nothing_to_say_about_the_page(engine):
	run("promtool", "check", "metrics", stdin=scrape(engine.port))


def test_hostile_scrapers_harm_nothing(engine):
	def connect():
		return socket.create_connection(("127.0.0.1", engine.port), timeout=30)

	slow = [connect() for _ in range(100)]
	for s in slow:
		s.sendall(b"GET /metr")
	huge = connect()
	try:
		huge.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * (8 << 20))
		assert not huge.recv(100).startswith(b"HTTP/1.1 200")
	except OSError:
		pass  # thrown out while it was still sending
	began = time.monotonic()
	assert "slurm_k8s_build_info" in wait_until(lambda: try_scrape(engine.port))
	assert time.monotonic() - began < 60
	assert engine.process.poll() is None
	for s in [*slow, huge]:
		s.close()


def try_scrape(port):
	try:
		return scrape(port)
	except OSError:
		return None


def test_the_page_moves_and_closes_with_the_setting(engine):
	old, new = engine.port, free_port()
	with socket.socket() as taken:
		taken.bind(("127.0.0.1", new))
		taken.listen()
		engine.reconfigure(new)
		wait_until(lambda: any(f"cannot listen on 127.0.0.1:{new}" in line for line in engine.lines()))
		assert try_scrape(old) is None
	# it is free now, and found so without a further reconfigure
	assert Numbers(wait_until(lambda: try_scrape(new))).sum("slurm_k8s_connected") == 1
	engine.reconfigure(None)
	wait_until(lambda: try_scrape(new) is None)
	engine.reconfigure(old)
	wait_until(lambda: try_scrape(old))
	assert sum("cannot listen" in line for line in engine.lines()) == 1


def story(lines, uid):
	return [line.split(f" uid {uid} ", 1)[1] for line in lines if f" uid {uid} " in line]


def test_the_log_tells_the_whole_story_of_one_pod(engine):
	lines = engine.lines()
	stories = {uid: story(lines, uid) for uid in bindings(engine.folder)}
	assert len(stories) > 10
	plain = [s for s in stories.values() if not any("deleted because" in line for line in s)]
	assert plain
	for lines_of_pod in plain:
		text = "\n".join(lines_of_pod)
		job = re.search(r"^job (\d+): queued$", text, re.M).group(1)
		# the hook of a job that starts at once may overtake the answer that it was made, and the watch that of the Binding
		assert text.index(f"job {job}: queued\n") < text.index(f"job {job}: bound to")
		node = re.search(rf"^job {job}: started on node (f\d)$", text, re.M)
		assert node, text
		for word in (f"bound to node {node.group(1)}", "nothing of it runs any more, what it held is free"):
			assert re.search(rf"^job {job}: started on node f\d\n(?:.*\n)*job {job}: {word}\n(?:.*\n)*"
				rf"job {job}: its job is ended as COMPLETED, exit code 0:0", text, re.M), text
		assert len(re.findall("bound to node", text)) == 1
	# whoever was cancelled, most before they were bound
	assert any(re.search(rf"^pod sim/{NAMESPACE}/p\d+ uid \S+ job \d+: deleted because its job ended: CANCELLED by ", line)
		for line in lines)


def test_every_line_about_a_pod_says_which_cluster_pod_and_job(engine):
	about = [line for line in engine.lines() if re.search(r"\bp\d+\b", line)]
	assert about
	for line in about:
		assert re.match(rf"pod sim/{NAMESPACE}/p\d+ uid [0-9a-f-]{{36}} job (\d+|none): ", line), line


def test_it_closes_at_shutdown_and_nothing_was_reported(engine):
	assert engine.end() == 0
	assert try_scrape(engine.port) is None
	log = "\n".join(engine.lines())
	assert "WARNING: ThreadSanitizer" not in log and "AddressSanitizer" not in log and "runtime error" not in log
