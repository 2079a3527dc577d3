# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories about test/cluster itself: stock Slurm and a real Kubernetes, without slurm-k8s."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from stands import cgroup, reserve, stand
from stands.api import Api, ApiError
from stands.process import Daemon, processes_of
from stands.waiting import wait_for

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Seconds that nobody else on this host sleeps, another run of this suite included.
FOREVER = str(10 ** 7 + os.getpid())
CLUSTER = os.path.join(TEST, "cluster")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a stand needs root")


def cluster(*words, check=True):
	done = subprocess.run([CLUSTER, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
		timeout=900)
	if check:
		assert done.returncode == 0, done.stderr + done.stdout
	return done


@pytest.fixture
def folders():
	"""Two folders for stands; whatever was started in them is stopped."""
	made = [tempfile.mkdtemp(prefix="sk8-", dir="/tmp") for _ in range(2)]
	yield made
	for folder in made:
		if os.path.exists(os.path.join(folder, ".stand")):
			cluster("down", folder, check=False)
		shutil.rmtree(folder)


@pytest.fixture(scope="module")
def env():
	"""The environment of one stand that several stories share: none changes what another looks at."""
	folder = tempfile.mkdtemp(prefix="sk8-", dir="/tmp")
	cluster("up", "--no-plugin", "--fake-nodes", "1", "--accounting", folder)
	yield stand.read_env(folder)
	cluster("down", folder)
	shutil.rmtree(folder)


def slurm(env, *argv):
	return subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, check=True,
		timeout=60).stdout.strip()


def pod(name, command, node, **container):
	return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
		"nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
		"containers": [{"name": "main", "image": "localhost/busybox:test", "imagePullPolicy": "Never",
			"command": ["sh", "-c", command], **container}]}}


def phase_of(api, name, *phases, seconds=30):
	path = f"/api/v1/namespaces/default/pods/{name}"
	return wait_for(f"pod {name}", lambda: (p := api.get(path))["status"]["phase"] in phases and p, seconds)


def host_mounts():
	with open("/proc/mounts", encoding="utf-8") as file:
		return {line.split(" ")[1] for line in file}


def test_down_leaves_nothing_of_running_jobs_and_pods(folders):
	folder = folders[0]
	mounts = host_mounts()
	links = set(os.listdir("/sys/class/net"))
	cluster("up", "--no-plugin", "--fake-nodes", "1", folder)
	env = stand.read_env(folder)
	api = Api(env["KUBECONFIG"])
	marker = os.path.join(folder, "marker")
	slurm(env, "sbatch", "-D", "/", "-o", "/dev/null", "-w", "n1", "--wrap",
		f"trap '' TERM; setsid sleep {FOREVER} & touch {marker}; sleep {FOREVER}")
	api.post("/api/v1/namespaces/default/pods", pod("stubborn", f"trap '' TERM; while :; do sleep {FOREVER}; done", "n1"))
	phase_of(api, "stubborn", "Running")
	wait_for("the job", lambda: os.path.exists(marker), 20)
	assert processes_of(folder)

	cluster("down", folder)

	assert processes_of(folder) == []
	sleeping = [path for path in glob.glob("/proc/[0-9]*/cmdline") if _reads(path, b"sleep\0" + FOREVER.encode())]
	assert sleeping == []
	assert {m for m in host_mounts() - mounts if reserve.stand_id(folder) in m or folder in m} == set()
	assert {link for link in set(os.listdir("/sys/class/net")) - links
		if reserve.stand_id(folder) in link} == set()
	assert cgroup.left("sk8-" + reserve.stand_id(folder)) == []
	assert stand.leftovers(folder) == []


def _reads(path, needle):
	try:
		with open(path, "rb") as file:
			return needle in file.read()
	except OSError:
		return False


def test_two_stands_run_at_once_and_do_not_meet(folders):
	with ThreadPoolExecutor(2) as pool:
		list(pool.map(lambda folder: cluster("up", "--no-plugin", folder), folders))
	first, second = (stand.read_env(folder) for folder in folders)
	for env, name in ((first, "one"), (second, "two")):
		api = Api(env["KUBECONFIG"])
		api.post("/api/v1/namespaces/default/pods", pod(name, "exit 0", "n1"))
		phase_of(api, name, "Succeeded")
		names = [item["metadata"]["name"] for item in api.get("/api/v1/namespaces/default/pods")["items"]]
		assert names == [name]
		slurm(env, "sbatch", "-J", name, "-D", "/", "-o", "/dev/null", "--wrap", "sleep 600")
		assert slurm(env, "squeue", "-h", "-o", "%j") == name

	cluster("down", folders[0])

	assert slurm(second, "squeue", "-h", "-o", "%j") == "two"
	api = Api(second["KUBECONFIG"])
	api.post("/api/v1/namespaces/default/pods", pod("three", "exit 0", "n1"))
	phase_of(api, "three", "Succeeded")


def test_kubelet_enforces_memory_and_admits_by_the_cores_of_the_slurm_node(env):
	api = Api(env["KUBECONFIG"])
	path = "/api/v1/namespaces/default/pods"
	assert api.get("/api/v1/nodes/n1")["status"]["allocatable"]["cpu"] == "8"
	assert slurm(env, "sinfo", "-h", "-n", "n1", "-o", "%c %m") == "8 16000"

	api.post(path, pod("code", "exit 7", "n1"))
	api.post(path, pod("memory", "tail /dev/zero", "n1", resources={"limits": {"memory": "32Mi"}}))
	api.post(path, pod("six", "sleep 600", "n1", resources={"requests": {"cpu": "6"}}))
	phase_of(api, "six", "Running")
	api.post(path, pod("three", "sleep 600", "n1", resources={"requests": {"cpu": "3"}}))

	ends = {name: phase_of(api, name, "Failed")["status"] for name in ("code", "memory", "three")}
	terminated = {name: ends[name]["containerStatuses"][0]["state"]["terminated"] for name in ("code", "memory")}
	assert terminated["code"]["exitCode"] == 7
	assert terminated["memory"]["reason"] == "OOMKilled"
	assert ends["three"]["reason"] == "OutOfcpu"


def test_slurm_k8s_may_do_what_its_rbac_says_and_nothing_else(env):
	admin, ours = Api(env["KUBECONFIG"]), Api(env["STAND_SLURM_KUBECONFIG"])
	pods = "/api/v1/namespaces/default/pods"
	made = admin.post(pods, pod("waits", "true", "f1"))
	assert ours.get(f"{pods}/waits")["metadata"]["uid"] == made["metadata"]["uid"]
	ours.patch(f"{pods}/waits", {"metadata": {"annotations": {"x": "y"}}})
	ours.patch("/api/v1/nodes/f1", {"metadata": {"annotations": {"x": "y"}}})
	for call in (lambda: ours.get("/api/v1/secrets"), lambda: ours.post(pods, made), lambda: ours.delete("/api/v1/nodes/f1"),
			lambda: ours.patch("/api/v1/namespaces/default", {"metadata": {"annotations": {"x": "y"}}})):
		with pytest.raises(ApiError) as error:
			call()
		assert error.value.status == 403


def test_accounting_knows_users_and_how_jobs_ended(env):
	slurm(env, "runuser", "-u", "games", "--", "sbatch", "-D", "/", "-o", "/dev/null", "--qos", "high", "--wrap", "exit 3")
	wanted = "games|team-a|high|FAILED|3:0"

	def told():
		return slurm(env, "sacct", "-a", "-X", "-n", "-P", "-o", "user,account,qos,state,exitcode")
	wait_for("sacct", lambda: told() == wanted, 30, told)


def test_daemons_restart_and_pause(folders):
	folder = folders[0]
	cluster("up", "--no-plugin", "--kubelets", "0", "--fake-nodes", "1", folder)
	env = stand.read_env(folder)
	before = {name: Daemon(folder, name).pid for name in ("slurmctld", "kube-apiserver")}
	cluster("restart", folder, "slurmctld", "--kill")
	cluster("restart", folder, "apiserver")
	after = {name: Daemon(folder, name).pid for name in before}
	assert all(after.values()) and not set(before.values()) & set(after.values())
	assert "UP" in slurm(env, "scontrol", "ping")

	cluster("pause", folder, "apiserver")
	began = time.monotonic()
	with pytest.raises(OSError):
		Api(env["KUBECONFIG"], timeout=1).get("/api/v1/nodes")
	assert time.monotonic() - began < 5
	cluster("resume", folder, "apiserver")
	assert Api(env["KUBECONFIG"]).get("/api/v1/nodes")["items"]


def test_threads_of_slurmctld_tell_where_they_are_and_a_crash_where_it_was(folders):
	folder = folders[0]
	cluster("up", "--no-plugin", "--kubelets", "0", "--fake-nodes", "1", folder)
	daemon = Daemon(folder, "slurmctld")
	said = daemon.stacks()
	assert said.count("stack of thread") > 5 and "pthread_cond" in said, said
	assert "UP" in slurm(stand.read_env(folder), "scontrol", "ping")  # it goes on
	daemon.send(signal.SIGSEGV)
	wait_for("its end", lambda: not daemon.pid, 20)
	with open(daemon.log, encoding="utf-8") as file:
		text = file.read()
	assert re.search(rf"^crash of process {daemon.record['pid']}: signal 11 .*\n(/\S+\(.*\n)+", text, re.M), text[-1000:]


def test_audit_log_and_runtime_events_tell_of_a_pod(env):
	api = Api(env["KUBECONFIG"])
	waiting = pod("told", "exit 0", "n1")
	del waiting["spec"]["nodeName"]
	waiting["spec"]["schedulerName"] = "slurm"
	uid = api.post("/api/v1/namespaces/default/pods", waiting)["metadata"]["uid"]
	Api(env["STAND_SLURM_KUBECONFIG"]).post("/api/v1/namespaces/default/pods/told/binding", {
		"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "told", "uid": uid},
		"target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}})
	ended = phase_of(api, "told", "Succeeded")

	with open(env["STAND_AUDIT_LOG"], encoding="utf-8") as file:
		about = [(event, event.get("objectRef", {})) for event in map(json.loads, file)]
	bindings = [event for event, ref in about if ref.get("subresource") == "binding" and ref["name"] == "told"]
	assert len(bindings) == 1
	assert bindings[0]["user"]["username"] == "slurm-k8s"
	assert bindings[0]["requestObject"]["target"]["name"] == "n1"
	with open(env["STAND_RUNTIME_LOGS"].split()[0], encoding="utf-8") as file:
		text = file.read()
	ids = {status["containerID"].split("//")[1] for status in ended["status"]["containerStatuses"]}
	for kind in ("create", "start", "exit"):
		assert [text.count(f'/tasks/{kind} {{"container_id":"{one}"') for one in ids] == [1]


def test_up_refuses_a_folder_that_is_in_use_or_not_its_own(folders):
	with open(os.path.join(folders[0], "precious"), "w", encoding="utf-8"):
		pass
	refused = cluster("up", "--no-plugin", "--kubelets", "0", folders[0], check=False)
	assert refused.returncode == 1 and "is not empty" in refused.stderr
	assert os.listdir(folders[0]) == ["precious"]
	assert cluster("down", folders[1], check=False).returncode == 1
