# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What both sides wrote down, in one clock: the API server's audit log and slurmctld's log."""
import json
import re
from datetime import datetime

STARTED = re.compile(r"^\[(\S+)\] sched(?:/backfill: _start_job: Started|: Allocate) JobId=(\d+)")
# The RPC's first line, so before the job ends: what is measured from it is at least as long as the truth.
KILLED = re.compile(r"^\[(\S+)\] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=(\d+)")
METRIC = re.compile(r"slurm-k8s: (\w+) count=(\d+) sum=(\d+) p50=(\d+) p99=(\d+) max=(\d+)$")


def seconds_of(stamp):
	"""RFC 3339 with Z (audit log), or local time without zone (Slurm's iso8601_ms), as seconds since 1970."""
	return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Audit:
	"""By pod name: when it was created, bound, deleted (by slurm-k8s), and as which job."""

	def __init__(self, path):
		self.created, self.binding_sent, self.bound, self.deleted, self.job = {}, {}, {}, {}, {}
		with open(path, encoding="utf-8") as file:
			for line in file:
				if '"pods"' in line and ('"create"' in line or '"delete"' in line):
					self._take(json.loads(line))

	def _take(self, entry):
		ref = entry.get("objectRef", {})
		if ref.get("resource") != "pods" or entry["stage"] != "ResponseComplete":
			return
		received, name = seconds_of(entry["requestReceivedTimestamp"]), ref.get("name")
		ours, good = entry["user"]["username"] == "slurm-k8s", entry["responseStatus"]["code"] < 300
		if entry["verb"] == "create" and ref.get("subresource") == "binding":
			self.binding_sent.setdefault(name, received)
			if good:
				self.bound[name] = seconds_of(entry["stageTimestamp"])
				self.job[name] = int(entry["requestObject"]["metadata"]["annotations"]["slurm-k8s.io/job-id"])
		elif entry["verb"] == "create" and not ref.get("subresource"):
			self.created[name] = received
		elif entry["verb"] == "delete" and ours:
			self.deleted.setdefault(name, received)


class Slurmctld:
	"""By job: when it was started and when it was to be cancelled. metrics: what slurm-k8s counted in slurmctld's last
	life, which it says at the end. Empty if slurmctld could not save its state then ("Locks left set": a thread of it
	held its locks at that moment), because the plugin hears of the end by that alone."""

	def __init__(self, path):
		self.started, self.killed, self.metrics = {}, {}, {}
		with open(path, encoding="utf-8", errors="replace") as file:
			for line in file:
				for pattern, target in ((STARTED, self.started), (KILLED, self.killed)):
					if found := pattern.match(line):
						target.setdefault(int(found.group(2)), seconds_of(found.group(1)))
				if "slurmctld version" in line:
					self.metrics.clear()
				if found := METRIC.search(line):
					self.metrics[found.group(1)] = dict(zip(("count", "sum", "p50", "p99", "max"),
						map(int, found.groups()[1:])))


def percentile(values, share):
	values = sorted(values)
	return values[min(len(values) - 1, int(share * len(values)))]


def memory_kib(pid):
	"""Anonymous memory of a process: what it allocated, without files that others map, too."""
	with open(f"/proc/{pid}/status", encoding="utf-8") as file:
		return int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M).group(1))
