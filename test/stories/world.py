# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A stand as the stories see it: pods, jobs, events, and what really ran when.

What happened is told by the runtime (containerd's events, or kubesim's kubelets),
by the API server's audit log and by slurmctld's log; never by our own records.
"""
import calendar
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections import namedtuple

import clock
from stands import stand as stands
from stands.api import Api, ApiError
from stands.build import build_folder
from stands.process import Daemon
from stands.slurm import SBIN, misses_wakeup, starts_again
from stands.waiting import StandError, wait_for

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# what pods run: one that ends when it is asked to, one that goes when its grace is over
POLITE = "trap 'exit 0' TERM; sleep 600 & wait"
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
IMAGE = "localhost/busybox:test"
MARK = "k8s:stand/"
SAVED_WITHIN = 6  # seconds
LIVE = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED")

# Who may what in the stories. default: nothing but its own; team-a: a partition of
# its own, and what "allow" says; broken: a user that nobody knows.
CONFIG = """clusters:
  - name: stand
    kubeconfig: @KUBECONFIG@
    schedulerNames: [slurm]
    nodes: {selector: "slurm-k8s.io/shared=true"}
    resources: [{kubernetes: nvidia.com/gpu, gres: gpu}, {kubernetes: example.com/token, gres: token}]
    reservations: {devices: false} # most stands have no gate
    namespaces:
      - {match: default, user: daemon, account: general, allow: {partition: [batch, low, short], qos: [normal, high]}}
      - {match: team-a, user: games, account: team-a, partition: low,
         allow: {partition: [short, "bat*"], reservation: ["for-pods*"]}}
      - {match: team-b, user: news, account: team-b}
      - {match: broken, user: no-such-user-here}
    pods: {killGrace: 8s}
    state: {conditions: [GpuBroken]}
"""
NAMESPACES = ("default", "team-a", "team-b", "broken", "unmapped")

# One run of one container. Times in seconds since 1970; stop is None while it runs.
Run = namedtuple("Run", "uid container id node start stop code")


def seconds_of(text):
	"""'2026-11-21T08:48:31.5Z', also with a blank for T and ' +0000 UTC' for Z, as seconds since 1970."""
	whole, _, rest = text.replace("T", " ").partition(".")
	fraction = re.match(r"\d*", rest).group(0)
	return calendar.timegm(time.strptime(whole.rstrip("Z")[:19], "%Y-%m-%d %H:%M:%S")) + float("0." + (fraction or "0"))


def fields(line):
	"""One line of 'scontrol -o show' as a dictionary."""
	return dict(re.findall(r"(\S+?)=(.*?)\s*(?= [\w:/]+=|$)", line.strip()))


class Command(subprocess.Popen):
	"""Whose story does not wait for its end when it has failed."""

	def __exit__(self, kind, *rest):
		if kind:
			self.kill()
		return super().__exit__(kind, *rest)


def pod_object(name, command="exit 0", cpu="200m", memory="16Mi", grace=2, annotations=None, labels=None, containers=None,
		first=None, limits=None, requests=None, node=None, finalizers=None, owners=None, **spec):
	"""A pod for Slurm. containers: {name: command} instead of one; first: command of an init container;
	node: the only one it may run on. Its containers have what it claims."""
	claims = [{"name": claim["name"]} for claim in spec.get("resourceClaims", ())]

	def container(title, text):
		return {"name": title, "image": IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", text],
			"resources": {"requests": {"cpu": cpu, "memory": memory, **(requests or {})}, "limits": limits or {},
				**({"claims": claims} if claims else {})}}
	if first:
		spec["initContainers"] = [container("first", first)]
	selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
	return {"apiVersion": "v1", "kind": "Pod",
		"metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}, "finalizers": finalizers or [],
			"ownerReferences": owners or []},
		"spec": {"schedulerName": "slurm", "restartPolicy": "Never", "terminationGracePeriodSeconds": grace,
			"containers": [container(*item) for item in (containers or {"main": command}).items()], **selector, **spec}}


class Pod:
	"""One pod of a story. Its name is free again when the story ends."""

	def __init__(self, stand, made):
		self.stand = stand
		self.name, self.ns, self.uid = (made["metadata"][key] for key in ("name", "namespace", "uid"))
		self.path = f"/api/v1/namespaces/{self.ns}/pods/{self.name}"
		self.seen = made

	def get(self):
		"""The object; None if it is gone."""
		try:
			found = self.stand.api.get(self.path)
		except ApiError as error:
			if error.status == 404:
				return None
			raise
		if found["metadata"]["uid"] != self.uid:
			return None
		self.seen = found
		return found

	@property
	def phase(self):
		found = self.get()
		return found["status"].get("phase") if found else None

	@property
	def node(self):
		found = self.get()
		return found and found["spec"].get("nodeName")

	def annotation(self, name):
		return (self.get() or {"metadata": {}})["metadata"].get("annotations", {}).get(name)

	def condition(self, kind="PodScheduled"):
		found = self.get() or {}
		return next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == kind), {})

	def events(self, reason=None):
		"""Messages of its events, oldest first, as (type, reason, message)."""
		items = self.stand.api.get(f"/api/v1/namespaces/{self.ns}/events")["items"]
		return [(e["type"], e["reason"], e.get("message", "")) for e in items
			if e["involvedObject"].get("uid") == self.uid and reason in (None, e["reason"])]

	def delete(self, grace=None, now=False):
		body = {"gracePeriodSeconds": 0 if now else grace} if now or grace is not None else None
		return self.stand.api.delete(self.path, body)

	def resize(self, **requests):
		"""In place: its container is not started anew."""
		containers = [{"name": "main", "resources": {"requests": requests}}]
		self.stand.api.patch(f"{self.path}/resize", {"spec": {"containers": containers}}, "application/strategic-merge-patch+json")

	def bind(self, node):
		"""As kube-scheduler does."""
		self.stand.api.post(self.path + "/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": self.name},
			"target": {"apiVersion": "v1", "kind": "Node", "name": node}})

	def jobs(self):
		"""All its jobs that Slurm knows, oldest first."""
		return [job for job in self.stand.jobs() if job.get("AdminComment", "").endswith("/" + self.uid)]

	def job(self):
		"""Its newest job, as scontrol shows it, or {}."""
		return (self.jobs() or [{}])[-1]

	@property
	def job_id(self):
		return int(self.wait_job()["JobId"])

	def about(self):
		found = self.get() or {"status": "gone"}
		node = found.get("spec", {}).get("nodeName")
		return "\n".join([f"pod {self.name}: {json.dumps(found['status'])}", f"job: {self.job()}", f"events: {self.events()}",
			*self.stand.daemons_ended(), *(self.stand.last_words(f"kubelet-{node}") if node else ())])

	def wait(self, what, condition, seconds=60):
		return wait_for(f"pod {self.name}: {what}", condition, seconds, self.about)

	def wait_phase(self, *phases, seconds=60):
		return self.wait(" or ".join(phases), lambda: self.phase in phases, seconds)

	def wait_running(self, seconds=60):
		"""Its process runs: the runtime says so, and the kubelet has told."""
		self.wait("Running", lambda: self.phase == "Running" and self.runs(), seconds)
		return self

	def wait_gone(self, seconds=60):
		self.wait("gone", lambda: self.get() is None, seconds)

	def wait_job(self, *states, seconds=60):
		"""Its newest job once it is in one of the states (none: once there is one)."""
		def there():
			job = self.job()
			return job if job and (not states or job["JobState"] in states) else None
		return self.wait(f"job {' or '.join(states)}", there, seconds)

	def wait_condition(self, part, seconds=60):
		"""PodScheduled once its message has `part`."""
		def there():
			condition = self.condition()
			return condition if part in condition.get("message", "") else None
		return self.wait(f"condition '{part}'", there, seconds)

	def wait_event(self, reason, part="", seconds=60):
		return self.wait(f"event {reason} '{part}'", lambda: next((e for e in self.events(reason) if part in e[2]), None), seconds)

	def runs(self):
		return [run for run in self.stand.runs() if run.uid == self.uid]


class Batch:
	"""An sbatch job whose script notes when it ran."""

	def __init__(self, stand, job_id, file):
		self.stand, self.id, self.file = stand, job_id, file

	def show(self):
		return self.stand.job(self.id)

	@property
	def state(self):
		return self.show()["JobState"]

	def stamps(self):
		"""(start, stop) by its own process' clock; None for what has not happened."""
		try:
			with open(self.file, encoding="utf-8") as file:
				words = file.read().split()
		except FileNotFoundError:
			words = []
		return tuple(float(word) for word in words[:2]) + (None,) * (2 - len(words[:2]))

	def wait(self, *states, seconds=60):
		return wait_for(f"job {self.id} {' or '.join(states)}", lambda: self.state in states and self.show(), seconds, self.why)

	def wait_started(self, seconds=60):
		return wait_for(f"process of job {self.id}", lambda: self.stamps()[0], seconds, self.why)

	def why(self):
		"""What Slurm says of the job, of who else waits, and of the nodes."""
		return "\n".join(self.stand.run(*command, check=False).stdout for command in (("scontrol", "-o", "show", "job", str(self.id)),
			("squeue", "-a", "-o", "%i %T %r %N"), ("sinfo", "-a", "-N", "-o", "%N %T %O %E")))

	def cancel(self):
		self.stand.run("scancel", str(self.id))

	def finish(self):
		"""One of batch(seconds=None) ends by itself, with its exit code; it has started."""
		with open(self.file + ".fifo", "wb"):
			pass


class Stand:
	"""One stand of test/cluster. api_kind: real or sim."""

	def __init__(self, api_kind, *options):
		self.kind = api_kind
		self.options = options
		self.folder = tempfile.mkdtemp(prefix="sk8-", dir="/var/tmp" if "--private-tmp" in options else "/tmp")
		self.count = 0
		self.spoiled = False
		self.cleaned = 0
		self.spare = tempfile.mkdtemp(prefix="sk8-", dir="/tmp")  # a stand's folder must be its own
		config = os.path.join(self.spare, "slurm-k8s.yaml")
		with open(config, "w", encoding="utf-8") as file:
			file.write(CONFIG)
		measured = [word for pair in clock.build(self.spare).items() for word in ("--slurmctld-env", "=".join(pair))]
		began = time.monotonic()
		try:
			self.cluster("up", "--api", api_kind, "--kubelets", "2", "--build", build_folder(), "--config", config,
				*measured, *options, folder=True)
		except StandError:
			self.down()
			raise
		self.seconds = time.monotonic() - began
		self.env = stands.read_env(self.folder)
		self.release = self.run("scontrol", "-V").split()[1]
		self.starts_again = starts_again(self.release)
		self.api = Api(self.env["KUBECONFIG"])
		self.jobs_folder = os.path.join(self.folder, "jobs")
		os.mkdir(self.jobs_folder, 0o777)
		for ns in NAMESPACES[1:]:
			self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})

	def down(self):
		self.cluster("down", folder=True, check=False)
		if not os.environ.get("SK8_KEEP"):
			shutil.rmtree(self.folder, ignore_errors=True)
			shutil.rmtree(self.spare, ignore_errors=True)

	@contextlib.contextmanager
	def paused(self, name):
		"""It accepts connections and answers nothing."""
		self.cluster("pause", name)
		try:
			yield
		finally:
			self.cluster("resume", name)

	def cluster(self, command, *words, folder=False, check=True):
		"""test/cluster COMMAND; with folder the folder comes last (up, down), else first."""
		if "slurmctld" in words and "--kill" in words:
			self.wait_saved()
		argv = [os.path.join(TEST, "cluster"), command, *((*words, self.folder) if folder else (self.folder, *words))]
		done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=900)
		if check and done.returncode:
			raise StandError(f"{' '.join(argv)}:\n{done.stderr}{done.stdout}")
		if command in ("start", "restart") and "apiserver" in words:
			self.api = Api(self.env["KUBECONFIG"])  # the old connection is dead
		return done

	def wait_saved(self):
		"""Until slurmctld, if it is killed, does not run the jobs of earlier stories again: it saves an end five seconds later at
		most (SAVE_MAX_WAIT of state_save.c), and none that comes in the second of clean() is sure to know all ends."""
		wait_for("Slurm to save the end of earlier stories", lambda: time.time() > self.cleaned + SAVED_WITHIN
			or os.stat(f"{self.folder}/slurm/state/job_state").st_mtime > self.cleaned + 1, SAVED_WITHIN + 5)

	def daemons_ended(self):
		"""Lines."""
		return [line for line in self.cluster("status", check=False).stdout.splitlines() if line.endswith("ended")]

	def last_words(self, daemon):
		"""The last lines of its log."""
		return self.cluster("logs", daemon, check=False).stdout.splitlines()[-12:]

	# -- Slurm

	def run(self, *argv, check=True, seconds=60, user=None):
		"""A command of Slurm's; its output, or StandError with its words."""
		env = {**os.environ, **self.env}
		env["PATH"] = ":".join([env["PATH"], *SBIN])
		if user:
			argv = ("runuser", "-u", user, "--", *argv)
		done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
			timeout=seconds)
		if check and done.returncode:
			raise StandError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
		return done.stdout.strip() if check else done

	def start(self, *argv):
		"""A command of Slurm's that goes on; to be used with `with`."""
		env = {**os.environ, **self.env}
		env["PATH"] = ":".join([env["PATH"], *SBIN])
		return Command(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

	def jobs(self):
		"""Every job that Slurm knows, as scontrol shows it, in the order of their ids."""
		try:
			text = self.run("scontrol", "-o", "-a", "show", "jobs")
		except StandError as error:
			raise OSError(str(error)) from error
		return sorted((fields(line) for line in text.splitlines() if line.startswith("JobId=")), key=lambda j: int(j["JobId"]))

	def job(self, job_id):
		try:
			return fields(self.run("scontrol", "-o", "-d", "show", "job", str(job_id)))
		except StandError as error:
			raise OSError(str(error)) from error

	def scontrol(self, *words):
		return self.run("scontrol", *words)

	def ask_to_reconfigure(self):
		"""scontrol reconfigure, and nothing else. A slurmctld that hangs in it is killed, and started with what it was to read."""
		said = self.run("scontrol", "reconfigure", check=False)
		if not said.returncode:
			return
		if not misses_wakeup(Daemon(self.folder, "slurmctld")):
			raise StandError(f"scontrol reconfigure: {said.stderr.strip()}")
		self.restart_slurmctld(kill=True)

	def reconfigure(self):
		"""The same, until slurm-k8s answers: from 23.11 on slurmctld starts again for it."""
		path = os.path.join(self.folder, "slurm", "state", "slurm-k8s.socket")

		def made():
			return os.path.exists(path) and os.stat(path).st_mtime_ns
		before = made()
		self.ask_to_reconfigure()

		def answers():
			with socket.socket(socket.AF_UNIX) as sock:
				sock.connect(path)
			return made() != before  # that of the one before is there until it goes
		if self.starts_again:
			wait_for("slurm-k8s", answers, 30)

	@contextlib.contextmanager
	def changing_settings(self):
		"""Yields what slurm-k8s.yaml says, and a function that writes another text there; in the end it is as before, and read."""
		path = self.env["SLURM_K8S_CONF"]
		with open(path, encoding="utf-8") as file:
			good = file.read()

		def write(text):
			with open(path, "w", encoding="utf-8") as file:
				file.write(text)
		try:
			yield good, write
		finally:
			write(good)
			self.reconfigure()

	def update(self, job_id, *words):
		"""scontrol update. 24.11 answers EAGAIN now and then, also without slurm-k8s."""
		def done():
			said = self.run("scontrol", "update", f"JobId={job_id}", *words, check=False)
			if said.returncode and "Resource temporarily unavailable" not in said.stderr:
				raise StandError(said.stderr)
			return not said.returncode
		wait_for(f"update of job {job_id}", done, 20)

	def batch(self, cores=1, seconds=600, node="n1", options=(), code=0, deaf=False):
		"""An sbatch job of so many cores, that runs for so many seconds and ends at once when it is cancelled.

		seconds: None: until its finish(). code: its exit code. deaf: it ignores SIGTERM."""
		self.count += 1
		file = os.path.join(self.jobs_folder, str(self.count))
		work = f"sleep {seconds}"
		if seconds is None:
			os.mkfifo(file + ".fifo")
			work = f"cat {file}.fifo"
		script = (f"#!/bin/sh\nexec 2>/dev/null\ndate +%s.%N > {file}.new; mv {file}.new {file}\n"
			f"end() {{ date +%s.%N >> {file}; kill $child; exit $1; }}\ntrap '{'' if deaf else 'end 1'}' TERM\n"
			f"{work} &\nchild=$!\nwait $child\nend {code}\n")
		with open(file + ".sh", "w", encoding="utf-8") as text:
			text.write(script)
		answer = self.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-N", "1", "-n", str(cores), "--mem", "100",
			"-w", node, *options, file + ".sh")
		return Batch(self, int(answer), file)

	def scheduled(self):
		"""Both of Slurm's schedulers have looked at every job since now."""
		before = self._cycles()

		def passed():
			# else nothing has changed for the backfill scheduler; without waiting jobs it does not even count
			self.scontrol("update", "PartitionName=low", "PriorityTier=1")
			waiting = any(job["JobState"] == "PENDING" and job["Priority"] != "0" for job in self.jobs())
			main, backfill = (new > old + 1 for new, old in zip(self._cycles(), before))
			return main and (backfill or not waiting)
		wait_for("both schedulers", passed, 60)

	def _cycles(self):
		text = self.run("sdiag").split("Main schedule statistics")[1]
		return [int(line.rsplit(":", 1)[1]) for line in text.splitlines() if "Total cycles:" in line]

	def log(self, since=0, name="STAND_SLURMCTLD_LOG"):
		with open(self.env[name], encoding="utf-8", errors="replace") as file:
			file.seek(since)
			return file.read()

	def engine_starts(self, log="STAND_SLURMCTLD_LOG"):
		"""How often the engine of a controller has begun to work: it knows all pods then."""
		return self.log(name=log).count("pods and jobs known, starting")

	def engine_started_at(self):
		"""When it did so last, in seconds."""
		found = re.findall(r"^\[(\S+)\] .*pods and jobs known, starting", self.log(), re.MULTILINE)
		return _log_time(found[-1])

	def log_size(self):
		return os.path.getsize(self.env["STAND_SLURMCTLD_LOG"])

	def allocated_at(self, job_id, log="STAND_SLURMCTLD_LOG"):
		"""When Slurm gave a waiting job its cores, from slurmctld's log; None if the log does not tell."""
		found = re.findall(rf"^\[(\S+)\] .*(?:Allocate|Started) JobId={job_id}\b", self.log(name=log), re.MULTILINE)
		return found and _log_time(found[-1]) or None

	def restart_slurmctld(self, kill=True):
		self.cluster("restart", "slurmctld", *(["--kill"] if kill else []))

	# -- Kubernetes

	def pod(self, name, *args, ns="default", **more):
		made = self.api.post(f"/api/v1/namespaces/{ns}/pods", pod_object(name, *args, **more))
		return Pod(self, made)

	def node(self, name):
		return self.api.get(f"/api/v1/nodes/{name}")

	def patch_node(self, name, spec):
		return self.api.patch(f"/api/v1/nodes/{name}", {"spec": spec})

	def close_node(self, name, spec, why):
		"""Patches a node so that pods are kept off it, and waits until slurm-k8s knows: nodes and pods are two streams."""
		self.patch_node(name, spec)

		def known():
			self.count += 1
			probe = self.pod(f"probe{self.count}", node=name)
			probe.wait("an answer", lambda: probe.condition().get("message") or probe.phase == "Succeeded")
			refused = why in probe.condition().get("message", "")
			probe.delete()
			return refused
		wait_for(f"node {name} {why}", known, 30)

	def pods(self):
		return [Pod(self, item) for item in self.api.get("/api/v1/pods")["items"]]

	# -- what really happened

	def runs(self):
		"""Every run of every container, from the runtimes' logs."""
		found = []
		for path in self.env["STAND_RUNTIME_LOGS"].split():
			found += _sim_runs(path) if self.kind == "sim" else _real_runs(path)
		return found

	def audit(self):
		"""Finished requests, as the API server wrote them down."""
		with open(self.env["STAND_AUDIT_LOG"], encoding="utf-8", errors="replace") as file:
			for line in file:
				try:
					yield json.loads(line)
				except ValueError:
					pass  # the server was killed while it wrote

	def _bindings(self):
		"""(uid, node, seconds since 1970) of each successful Binding, in their order."""
		for event in self.audit():
			if event.get("objectRef", {}).get("subresource") == "binding" and event.get("responseStatus", {}).get("code") == 201:
				body = event["requestObject"]
				yield body["metadata"]["uid"], body["target"]["name"], seconds_of(event["requestReceivedTimestamp"])

	def bindings(self):
		"""{uid: [node of each successful Binding]}"""
		found = {}
		for uid, node, _ in self._bindings():
			found.setdefault(uid, []).append(node)
		return found

	def bound_at(self):
		"""{uid: seconds since 1970} of each pod's last Binding. Its condition may not tell: a kubelet that refuses a pod replaces it."""
		return {uid: when for uid, _, when in self._bindings()}

	# -- between stories

	def clean(self, seconds=90):
		"""Nothing of a story is left: no pod, no live job, no core in use."""
		# Pods first: one that waits for the job's cores would be deleted while it is being bound, and kube-apiserver
		# then drops it without asking its kubelet, so that what it holds stays masked.
		for pod in self.pods():
			try:
				pod.delete(grace=1)
			except ApiError as error:
				if error.status not in (404, 409):
					raise
		self.run("scancel", "--quiet", "-u", "root", check=False)

		def live():
			return [job["JobId"] for job in self.jobs() if job["JobState"] in LIVE]

		def used():
			text = self.run("sinfo", "-h", "-N", "-n", "n1,n2", "-o", "%N %C")
			return [line for line in text.splitlines() if not line.split()[1].startswith("0/")]
		wait_for("an empty stand", lambda: not (live() or self.pods() or used()), seconds,
			lambda: f"jobs: {live()}\npods: {[p.about() for p in self.pods()]}\nnodes in use: {used()}")
		self.cleaned = time.time()


def _log_time(stamp):
	"""Seconds since the epoch. Slurm's logs have local time."""
	return time.mktime(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")) + float(stamp[19:])


# -- runtimes' logs

def _real_runs(path):
	"""containerd: its events tell when tasks ran, its own log which pod they belong to."""
	node = os.path.basename(path)[len("events-"):-len(".log")]
	pod_of_sandbox, owner = {}, {}
	with open(os.path.join(os.path.dirname(path), f"containerd-{node}.log"), encoding="utf-8", errors="replace") as file:
		for line in file:
			if match := re.search(r'Uid:([^,]+),.* returns sandbox id \\"(\w+)', line):
				pod_of_sandbox[match[2]] = match[1]
			elif match := re.search(r'within sandbox \\"(\w+)\\" for &ContainerMetadata{Name:([^,]+),.* returns container id \\"(\w+)', line):
				owner[match[3]] = (pod_of_sandbox.get(match[1]), match[2])
	starts, found = {}, []
	with open(path, encoding="utf-8", errors="replace") as file:
		for line in file:
			match = re.match(r"(\S+ \S+) \S+ \S+ \S+ /tasks/(create|exit) ({.*})$", line.rstrip())
			if not match:
				continue
			stamp, what, about = seconds_of(match[1]), match[2], json.loads(match[3])
			one = about["container_id"]
			if what == "create":
				starts[one] = stamp
			elif about.get("id") == one and one in starts:
				stop = _exited_at(about) or stamp
				found.append((one, starts.pop(one), stop, about.get("exit_status", 0)))
	found += [(one, start, None, None) for one, start in starts.items()]
	return [Run(*owner[one], one, node, start, stop, code) for one, start, stop, code in found if one in owner]


def _exited_at(about):
	"""None if it is not told. containerd 1.6 tells it as a text, 1.7 as seconds and nanoseconds."""
	told = about.get("exited_at")
	return told["seconds"] + told.get("nanos", 0) / 1e9 if isinstance(told, dict) else told and seconds_of(told)


def _sim_runs(path):
	"""kubesim: one line per start and stop."""
	starts, found = {}, []
	with open(path, encoding="utf-8", errors="replace") as file:
		for line in file:
			about = json.loads(line)
			stamp = seconds_of(about["time"])
			if about["event"] == "start":
				starts[about["id"]] = Run(about["uid"], about["container"], about["id"], about["node"], stamp, None, None)
			elif about["id"] in starts:
				found.append(starts.pop(about["id"])._replace(stop=stamp, code=about.get("exitCode")))
	return found + list(starts.values())
