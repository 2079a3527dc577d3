# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Rounds of what happens on a cluster in a day. After each one nothing of it is left: no pod, no job, no fault.

All that happens does so in each round: only what grows in all of them is surely a leak.
"""
import json
import os
import urllib.request

from load import PODS, RUN_SECONDS, create, is_bound, is_over, pod
from stands import reserve
from stands.api import ApiError
from stands.waiting import StandError, wait_for
from world import Stand

# The last node is reserved for root: what may only run there waits.
NODES, CORES = 4, 16
CLOSED = f"f{NODES}"
EXIT_CODE = "kubesim.slurm-k8s.io/exit-code"
# Requests at once: TLS is slow under memcheck, and many handshakes together take longer than a connection may.
IN_FLIGHT = 4
# Jobs are forgotten within seconds, so that what Slurm still knows of them is not what grows.
SLURM_CONF = "MinJobAge=2\nMessageTimeout=60\nSlurmdTimeout=0\nInactiveLimit=0"

# What becomes of a pod, and of how many in a hundred.
SHARES = {"ends": 40, "fails": 10, "cancelled": 10, "deleted": 10, "forced": 5, "waiting-cancelled": 5, "waiting-deleted": 5,
	"refused": 15}


def make_pod(kind, name):
	"""A pod for this fate."""
	item = pod(name, 1, 600 if kind in ("cancelled", "deleted", "forced") else 0.2)
	if kind == "fails":
		item["metadata"]["annotations"][EXIT_CODE] = "3"
	if kind.startswith("waiting"):
		item["spec"]["nodeSelector"] = {"kubernetes.io/hostname": CLOSED}
	if kind == "refused":
		item["spec"]["containers"][0]["resources"]["limits"] = {"example.com/fpga": "1"}
	return item


class Day:
	"""One stand. memcheck: around its slurmctld."""

	def __init__(self, memcheck, tool):
		self.tool = tool
		self.stand = Stand("sim", "--kubelets", "0", "--fake-nodes", str(NODES), "--cpus", str(CORES), "--slurm-conf",
			SLURM_CONF, "--slurmctld-under", " ".join(memcheck.command()))
		try:
			self.env = self.stand.env
			self.port, = reserve.ports(self.stand.folder, 1)
			with open(self.env["SLURM_K8S_CONF"], encoding="utf-8") as file:
				self.config = file.read()
			self.stand.scontrol("create", "reservation", "ReservationName=closed", "StartTime=now", "Duration=UNLIMITED", f"Nodes={CLOSED}",
				"Users=root")
		except BaseException:
			self.close()
			raise
		self.rounds = self.pods = 0

	def close(self):
		self.stand.down()

	def round(self, count):
		"""So many pods, all that people do to them, and all that breaks; until nothing of it is left."""
		self.rounds += 1
		wanted = {kind: max(1, count * share // 100) for kind, share in SHARES.items()}
		names = {kind: [f"{kind}-{self.rounds}-{i}" for i in range(number)] for kind, number in wanted.items()}
		self.pods += sum(wanted.values())
		self.configure()
		wait_for("the engine", self.cluster, 600)
		self.stand.cluster("restart", "apiserver", "--kill")
		self.disturb()
		create(self.env["KUBECONFIG"], [make_pod(kind, name) for kind, some in names.items() for name in some])
		self.administrate()
		self.end_all(names)
		self.stand.api.delete("/kubesim/faults")
		self.wait_empty()

	# -- what administrators do

	def configure(self):
		"""A mistake, then other settings, which restart the engine. But once where slurmctld itself would start anew,
		without memcheck."""
		if self.stand.starts_again:
			if self.rounds == 1:
				self.write_settings()
				self.stand.cluster("restart", "slurmctld")
			return
		self.write(self.config + "nonsense: [\n")
		self.stand.ask_to_reconfigure()
		self.write_settings()
		self.stand.ask_to_reconfigure()

	def write_settings(self):
		seconds = 5 + self.rounds % 2
		self.write(self.config.replace("killGrace: 8s}", f"killGrace: {seconds}s}}\n    api: {{inFlight: {IN_FLIGHT}}}") +
			f"metrics: {{listen: \"127.0.0.1:{self.port}\"}}\n")

	def write(self, text):
		with open(self.env["SLURM_K8S_CONF"], "w", encoding="utf-8") as file:
			file.write(text)

	def administrate(self):
		for words in (["status"], ["status", "--json"], ["status", "--node", "f1"], ["status", "--pod", "default/none"],
				["debug", "on"], ["debug", "off"], ["release", "default/none"]):
			self.stand.run(self.tool, *words, check=False)
		wait_for("metrics", self.scrape, 60)
		node = "/api/v1/nodes/f3"
		for closed in (True, False):
			self.stand.api.patch(node, {"spec": {"unschedulable": closed}})
		self.stand.run("sbatch", "--wrap=true", "-D", "/", "-o", "/dev/null", "-w", "f2")

	def scrape(self):
		with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
			return b"slurm_k8s" in answer.read()

	# -- what breaks

	def disturb(self):
		ours = {"user": "slurm-k8s"}
		for rule in ({"action": "status", "code": 503, "count": 4}, {"action": "status", "code": 429, "retryAfter": 1, "count": 2},
				{"action": "reset", "count": 3}, {"action": "truncate", "bytes": 40, "count": 3},
				{"action": "delay", "delayMs": 200, "count": 5}, {"action": "deny", "count": 2}):
			self.stand.api.post("/kubesim/faults", {"match": {**ours, "verb": "create|patch|delete|get"}, **rule})
		self.stand.api.post("/kubesim/faults", {"action": "reset", "count": 1, "match": {**ours, "verb": "watch"}})
		for action in ("expire-watches", "duplicate-events"):
			self.stand.api.post("/kubesim/faults", {"action": action, "count": 3, "match": {"resource": "pods|nodes"}})

	# -- how pods end

	def end_all(self, names):
		running = names["cancelled"] + names["deleted"] + names["forced"]
		self.wait_pods("what runs long is bound", lambda pods: all(n in pods and is_bound(pods[n]) for n in running))
		waiting = names["waiting-cancelled"] + names["waiting-deleted"]
		for what in ("hold", "release"):
			self.stand.run("scontrol", what, ",".join(self.jobs_of(waiting)))
		self.stand.run("scancel", *self.jobs_of(names["cancelled"] + names["waiting-cancelled"]))
		for name in names["deleted"] + names["waiting-deleted"]:
			self.delete(name)
		for name in names["forced"]:
			self.delete(name, 0)
		self.wait_pods("what was cancelled or deleted is gone", lambda pods: not any(n in pods for n in running + waiting))
		over = names["ends"] + names["fails"]
		self.wait_pods("the others are over", lambda pods: all(is_over(pods[n]) for n in over))
		self.wait_pods("what is refused knows why", lambda pods: all("example.com/fpga" in json.dumps(pods[n]["status"])
			for n in names["refused"]))
		for name in over + names["refused"]:
			self.delete(name)

	def wait_pods(self, what, condition, seconds=600):
		"""condition(pods by name). Asked for again and again: what breaks watches would break ours, too."""
		wait_for(what, lambda: condition({item["metadata"]["name"]: item for item in self.stand.api.get(PODS)["items"]}), seconds)

	def delete(self, name, grace=None):
		try:
			self.stand.api.delete(f"{PODS}/{name}", None if grace is None else {"gracePeriodSeconds": grace})
		except ApiError as error:
			if error.status != 404:
				raise

	def jobs_of(self, names):
		"""Ids of these pods' jobs, once each has one."""
		def ids():
			lines = self.stand.run("squeue", "-h", "-o", "%i %j").splitlines()
			found = [line.split()[0] for line in lines if line.split()[1] in names]
			return found if len(found) >= len(names) else None
		return wait_for("jobs of pods", ids, 600)

	# -- and nothing is left

	def wait_empty(self):
		self.wait_pods("no pod is left", lambda pods: not pods)
		wait_for("no job is left", lambda: not self.stand.jobs(), 600)
		wait_for("the engine has forgotten all pods", self.forgotten, 600)

	def cluster(self):
		"""What status says of it, once its engine knows pods, nodes and jobs."""
		try:
			cluster, = json.loads(self.stand.run(self.tool, "status", "--json"))["clusters"]
		except (StandError, ValueError) as error:
			raise OSError(str(error)) from error
		return cluster if cluster["state"] == "running" else None  # on a busy machine it may be said to hang

	def forgotten(self):
		cluster = self.cluster()
		for one in cluster["pods"] if cluster else []:
			if one["pod"] == "lost":  # force-deleted before the finalizer was there: a person's to decide
				self.stand.run(self.tool, "release", one["uid"], check=False)
		return cluster and not any(cluster["summary"]["pods"].values())

	@property
	def pid(self):
		with open(os.path.join(self.stand.folder, "run", "slurmctld.json"), encoding="utf-8") as file:
			return json.load(file)["pid"]
