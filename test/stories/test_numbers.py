# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What Prometheus and the log get of a real slurmctld, with its own locks and hooks."""
import contextlib
import re
import socket
import subprocess
import time
import urllib.request

import pytest
from command import status
from prometheus_client.parser import text_string_to_metric_families
from stands.waiting import wait_for

pytestmark = pytest.mark.apis("sim")  # the engine is the same on both


def free_port():
	with socket.socket() as s:
		s.bind(("127.0.0.1", 0))
		return s.getsockname()[1]


class Page:
	"""One scrape."""

	def __init__(self, port):
		with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
			self.text = answer.read().decode()
		self.samples = [s for family in text_string_to_metric_families(self.text) for s in family.samples]

	def values(self, name, **labels):
		return [s.value for s in self.samples if s.name == "slurm_k8s_" + name and labels.items() <= s.labels.items()]

	def sum(self, name, **labels):
		"""Of the samples with these labels, of which there must be one at least."""
		found = self.values(name, **labels)
		assert found, f"no {name} with {labels}"
		return sum(found)


@contextlib.contextmanager
def metrics_on(stand):
	"""Yields a function that scrapes."""
	path, port = stand.env["SLURM_K8S_CONF"], free_port()
	with open(path, encoding="utf-8") as file:
		off = file.read()

	def use(text):
		with open(path, "w", encoding="utf-8") as file:
			file.write(text)
		stand.reconfigure()
	use(f"metrics: {{listen: \"127.0.0.1:{port}\"}}\n{off}")
	try:
		wait_for("metrics", lambda: Page(port), 20)
		yield lambda: Page(port)
	finally:
		use(off)

	def gone():
		with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=5):
			return False
		return True
	wait_for("the end of metrics", gone, 20)


def test_numbers_of_a_real_slurmctld_tell_of_its_pods_jobs_masks_hooks_and_locks(stand):
	with metrics_on(stand) as scrape:
		runs = stand.pod("n-runs", "sleep 600", cpu="2", node="n2", grace=1).wait_running()
		waits = stand.pod("n-waits", "exit 0", cpu="8", node="n2")
		waits.wait_job("PENDING")
		leaves = stand.pod("n-leaves", "trap '' TERM; sleep 600 & wait; wait", cpu="3", node="n1", grace=30).wait_running()
		stand.run("scancel", str(leaves.job_id))
		leaves.wait("deleted", lambda: (leaves.get() or {}).get("metadata", {}).get("deletionTimestamp"))

		def settled():
			page = scrape()
			deleted = page.values("api_requests_total", verb="delete", resource="pods", code="200")
			leaving = page.sum("pods", cluster="stand", state="leaving")  # when the watch has told of the deletion, too
			return page.sum("masked_cores", cluster="stand") == 3 and deleted and leaving and page
		page = wait_for("the mask", settled, 20)

		states = {state: page.sum("pods", cluster="stand", state=state) for state in ("bound", "waiting", "leaving", "lost")}
		assert states == {"bound": 1, "waiting": 1, "leaving": 1, "lost": 0}
		assert [page.sum("jobs", state=state) for state in ("running", "queued", "ended")] == [1, 1, 1]
		assert page.sum("masked_nodes", cluster="stand") == 1 and page.sum("masked_memory_bytes") == 16 << 20
		mask, = status(stand)["masks"]
		assert len(mask["cores"]) == 3
		assert page.sum("holds", state="placed") == page.sum("holds", state="leaving") == 1

		assert page.sum("job_start_to_binding_seconds_count") >= 2 <= page.sum("pod_seen_to_bound_seconds_count")
		assert page.sum("job_end_to_delete_seconds_count") >= 1 and page.sum("job_end_to_delete_seconds_sum") < 5
		for hook in ("job_start", "job_fini", "masks", "reconfigure"):
			assert page.sum("hook_duration_seconds_count", hook=hook) > 0
		assert page.sum("hook_duration_seconds_sum") < 5
		for mode in ("write", "read"):
			assert page.sum("slurmctld_lock_held_seconds_count", mode=mode) > 0
		assert 0 < page.sum("slurmctld_lock_held_seconds_sum") < 5
		assert page.sum("api_requests_total", verb="create", resource="pods/binding", code="201") >= 2
		for resource in ("pods", "nodes"):
			assert time.time() - page.sum("watch_last_event_timestamp_seconds", resource=resource) < 60
		assert page.sum("slurm_commands_waiting") < 100 and page.sum("engine_events_waiting") < 100
		assert page.sum("api_requests_in_flight") >= 2  # the watches
		assert page.sum("connected") == page.sum("engine_responsive") == 1
		said = subprocess.run(["promtool", "check", "metrics"], input=page.text, capture_output=True, text=True, check=False)
		assert (said.returncode, said.stderr) == (0, "")
		assert runs.uid not in page.text and "n-runs" not in page.text  # labels are never pods


def test_each_line_of_slurmctlds_log_about_a_pod_says_which_and_its_job(stand):
	began = stand.log_size()
	pod = stand.pod("its-story", "exit 3")
	pod.wait_phase("Failed")
	lines = wait_for("the end of the story", lambda: (log := stand.log(began)) and "is ended as FAILED" in log and log, 20)
	ours = [line for line in lines.splitlines() if "its-story" in line or pod.uid in line]
	told = [re.search(rf"slurm-k8s: pod stand/default/its-story uid {pod.uid} job (\d+|none): (.*)", line) for line in ours
		if "slurm-k8s" in line]
	assert told and all(told), ours
	assert {one[1] for one in told} <= {"none", str(pod.job_id)} and str(pod.job_id) in {one[1] for one in told}
	text = "\n".join(one[2] for one in told)
	assert re.search(r"^queued\n(.*\n)*bound to node n\d\n(.*\n)*its job is ended as FAILED, exit code 3:0", text, re.M), text


def test_slurms_debug_level_decides_how_much_of_a_story_is_told(stand):
	def story(level):
		"""What the log has about a pod that runs and ends."""
		stand.scontrol("setdebug", level)
		began = stand.log_size()
		pod = stand.pod(f"told-at-{level}", "exit 0")
		pod.wait_phase("Succeeded")
		pod.wait("without finalizer", lambda: not (pod.get() or {"metadata": {}})["metadata"].get("finalizers"))
		return [line for line in stand.log(began).splitlines() if pod.uid in line and "slurm-k8s: pod " in line]
	try:
		assert any("waiting: submit" in line for line in story("debug"))
		told = story("info")
		assert any("bound to node" in line for line in told) and not any("waiting: submit" in line for line in told)
		assert story("error") == []
	finally:
		stand.scontrol("setdebug", "verbose")
