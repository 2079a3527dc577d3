# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The agent in slurmd keeps pods on the cores that Slurm gave them; the kernel says where they may run."""
import contextlib
import glob
import json
import os
import shutil
import subprocess
import time

import pytest
from claims import API, CLASS, allow, device, publish_class, publish_slice
from command import status, tool
from conftest import lent, with_conf
from foreign import foreign, masked, of_daemon_set, wait_masked
from mixed import restore, set_resources
from outage import restart_without
from stands import cgroup
from stands.gres import indices
from stands.other_headers import build_with_field
from stands.process import Machine, processes_with
from stands.replays import once_only
from stands.slurm import Slurm
from stands.waiting import wait_for
from world import IMAGE

pytestmark = pytest.mark.apis("real")

ALL = "0-1"  # the CPUs of the stand's machine: any has two at least


@pytest.fixture
def agents(request, session_stands):
	if len(os.sched_getaffinity(0)) < 2:
		pytest.skip("a machine with one CPU has no cores to choose from")
	yield from lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", "1")


def processes(pod):
	"""Of all containers of the pod, as the host numbers them."""
	found = []
	for top, folders, _ in os.walk(os.path.join(cgroup.BASE, "" if cgroup.is_v2() else "cpuset")):
		folders[:] = [name for name in folders if not name.startswith(".")]
		if pod.uid in top or pod.uid.replace("-", "_") in top:
			with open(os.path.join(top, "cgroup.procs"), encoding="utf-8") as file:
				found += file.read().split()
	return found


def may_run_on(pod):
	"""The CPUs of its processes; all lists there are, while the agent moves one container after the other."""
	lists = set()
	for pid in processes(pod):
		with open(f"/proc/{pid}/status", encoding="utf-8") as file:
			lists |= {line.split()[1] for line in file if line.startswith("Cpus_allowed_list:")}
	return " and ".join(sorted(lists)) or None


def core_of(stand, pod):
	"""What Slurm gave its job; cores and CPUs have the same numbers here."""
	return stand.job(pod.job_id)["CPU_IDs"]


def is_pinned(stand, pod, seconds=30):
	wait_for(f"{pod.name} to be on its core", lambda: may_run_on(pod) == core_of(stand, pod), seconds,
		lambda: f"on {may_run_on(pod)}\n{log(stand)}")


def log(stand, node="n1"):
	with open(os.path.join(stand.folder, "log", f"slurmd-{node}.log"), encoding="utf-8") as file:
		return "".join(line for line in file if "slurm-k8s" in line)


def told(stand, part, seconds=30):
	wait_for(f"the agent to say: {part}", lambda: part in log(stand), seconds, lambda: log(stand))


def test_pods_run_on_the_cores_that_slurm_gave_them_from_their_first_instruction(agents):
	one, other = (agents.pod(name, "grep Cpus_allowed_list /proc/self/status; sleep 600", cpu="1") for name in ("one", "other"))
	for pod in (one, other):
		pod.wait_running()
		is_pinned(agents, pod)
	assert {may_run_on(one), may_run_on(other)} == {"0", "1"}
	for pod in (one, other):
		assert agents.api.call("GET", pod.path + "/log", raw=True).split()[1] == may_run_on(pod)


def test_pods_stay_on_their_cores_while_slurmd_is_dead_and_get_them_back_when_it_is_not(agents):
	pod = agents.pod("stays", "sleep 600", cpu="1")
	pod.wait_running()
	is_pinned(agents, pod)
	agents.cluster("stop", "slurmd-n1")
	assert may_run_on(pod) == core_of(agents, pod)
	later = agents.pod("later", "sleep 600", cpu="1")
	later.wait_running()
	assert may_run_on(later) == ALL
	agents.cluster("start", "slurmd-n1")
	for each in (pod, later):
		is_pinned(agents, each)
	agents.cluster("restart", "slurmd-n1", "--kill")
	for each in (pod, later):
		is_pinned(agents, each)


@contextlib.contextmanager
def machine_of(stand, siblings):
	"""The kernel of n1 numbers hardware threads so: {CPU that is online: the CPUs of its core}. To its kubelet it tells no cores."""
	folder = os.path.join(stand.folder, "nodes", "n1", "hardware", "cpu")
	online = os.path.join(folder, "online")
	with open(online, encoding="utf-8") as file:
		before = file.read()

	def write(path, text):
		with open(path, "w", encoding="utf-8") as file:  # as it is: it is mounted
			file.write(text)
	made = [os.path.join(folder, f"cpu{cpu}", "topology") for cpu in siblings]
	for path, threads in zip(made, siblings.values()):
		os.makedirs(path)
		write(os.path.join(path, "thread_siblings_list"), threads + "\n")
	write(online, ",".join(map(str, siblings)) + "\n")
	stand.cluster("restart", "slurmd-n1")
	try:
		yield
	finally:
		write(online, before)
		for path in made:
			shutil.rmtree(path)
		stand.cluster("restart", "slurmd-n1")


def is_on(stand, pod, cpus):
	wait_for(f"{pod.name} to be on {cpus}", lambda: may_run_on(pod) == cpus, 30, lambda: f"on {may_run_on(pod)}\n{log(stand)}")


def test_pods_run_on_all_hardware_threads_of_the_cores_that_slurm_counts_whatever_the_kernel_calls_them(agents):
	"""Slurm counts cores from 0 on. A machine with two CPUs cannot have two cores with two threads, but each of these."""
	pod = agents.pod("threads", "sleep 600", cpu="1")
	is_pinned(agents, pod.wait_running())
	assert core_of(agents, pod) == may_run_on(pod) == "0"
	with machine_of(agents, {0: "0-1", 1: "0-1"}):  # one core
		is_on(agents, pod, "0-1")
	is_on(agents, pod, "0")
	with machine_of(agents, {1: "1"}):  # CPU 0 is offline
		is_on(agents, pod, "1")
		assert core_of(agents, pod) == pod.annotation("slurm-k8s.io/cores") == "0"
	is_on(agents, pod, "0")


def test_adopted_pod_moves_to_the_core_of_its_new_job(agents):
	first, second = (agents.pod(name, "sleep 600", cpu="1") for name in ("first", "second"))
	for pod in (first, second):
		is_pinned(agents, pod.wait_running())
	by_core = {may_run_on(pod): pod for pod in (first, second)}
	by_core["0"].delete()
	by_core["0"].wait_gone()
	stays = by_core["1"]
	restart_without(agents, "jobs")
	stays.wait_job("RUNNING")
	assert core_of(agents, stays) == "0"  # the first that is free for a job that Slurm knows nothing of
	is_pinned(agents, stays)
	assert stays.annotation("slurm-k8s.io/cores") == "0"


def test_pod_that_claims_the_job_of_another_is_left_alone(agents):
	victim = agents.pod("victim", "sleep 600", cpu="1")
	victim.wait_running()
	is_pinned(agents, victim)
	thief = agents.api.post("/api/v1/namespaces/team-b/pods", {"apiVersion": "v1", "kind": "Pod",
		"metadata": {"name": "thief", "annotations": {"slurm-k8s.io/job-id": str(victim.job_id), "slurm-k8s.io/cores": "0-1"}},
		"spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": IMAGE,
			"imagePullPolicy": "Never", "command": ["sleep", "600"]}]}})
	told(agents, f"pod team-b/thief uid {thief['metadata']['uid']} job {victim.job_id}: is not pinned: Slurm has no such job for it")
	assert may_run_on(victim) == core_of(agents, victim)
	agents.api.delete("/api/v1/namespaces/team-b/pods/thief")


LOST = {"slurm-k8s.io/lost", "slurm-k8s.io/gone"}


@once_only
def test_what_lost_pods_held_is_free_by_the_agents_word_once_their_last_process_is_gone(agents):
	"""A foreign pod that is deleted by force, and one for Slurm whose finalizer somebody has taken off."""
	forced, taken = foreign(agents, "forced", "sleep 600", cpu="1"), agents.pod("taken", "sleep 600", cpu="1", grace=600)
	for pod in (forced, taken):
		pod.wait_running()
	wait_masked(agents, "forced")
	with agents.paused("kubelet-n1"): # what runs runs on
		agents.run("scancel", str(taken.job_id))
		taken.wait("deleted", lambda: taken.get()["metadata"].get("deletionTimestamp"))
		agents.api.patch(taken.path, {"metadata": {"finalizers": None}})
		for pod in (taken, forced):
			pod.delete(now=True)
			pod.wait_gone()
		for pod in (taken, forced):
			told(agents, f"pod {pod.uid} is lost for slurmctld, and runs here", 60)
		asked = agents.node("n1")["metadata"]["annotations"]["slurm-k8s.io/lost"]
		assert {word.split("@")[0] for word in asked.split(",")} == {forced.uid, taken.uid}
		rival = agents.batch(2)
		agents.scheduled()
		assert rival.state == "PENDING"
		assert processes(forced) and processes(taken)
	rival.wait("RUNNING", seconds=300)  # within seconds, if the kubelet does away with their cgroups as usual
	assert rival.wait_started() > max(run.stop for pod in (forced, taken) for run in pod.runs())
	assert not masked(agents) and status(agents)["masks"] == []
	wait_for("no more questions", lambda: not LOST & set(agents.node("n1")["metadata"].get("annotations", {})), 60)


def started(stand):
	"""The agent of the slurmd that started last: it has read what the machine is like, and then the list of its pods."""
	wait_for("the agent to have started", lambda: "all is well" in log(stand).rpartition("agent of node n1 starts")[2], 60, lambda: log(stand))


@pytest.fixture
def numa_nodes(agents):
	"""Of n1's machine, which tells of none to its kubelet: one with CPU 0 and one with CPU 1. No slurmd has started with them."""
	started(agents)
	folder = os.path.join(agents.folder, "nodes", "n1", "hardware", "node")
	for number in range(2):
		os.makedirs(os.path.join(folder, f"node{number}"))
		with open(os.path.join(folder, f"node{number}", "cpulist"), "w", encoding="utf-8") as file:
			file.write(f"{number}\n")
	yield agents
	for name in os.listdir(folder):
		shutil.rmtree(os.path.join(folder, name))
	agents.cluster("restart", "slurmd-n1")  # started() waits for its agent where that matters


def test_agent_tells_which_of_slurms_cores_are_of_which_numa_node(numa_nodes):
	numa_nodes.cluster("restart", "slurmd-n1")
	text = wait_for("the agent to tell of them", lambda: numa_nodes.node("n1")["metadata"].get("annotations", {}).get("slurm-k8s.io/numa"), 60,
		lambda: log(numa_nodes))
	assert json.loads(text)["cores"] == {"0": [0], "1": [1]}


@contextlib.contextmanager
def pci_root_of(stand, node):
	"""What is behind the first root of PCI Express of n1's machine is near this NUMA node; the root's name, None: the host has none."""
	root = next(iter(sorted(glob.glob("/sys/devices/pci*"))), None)
	if not root:
		yield None
		return
	inside = ("nsenter", "-t", str(Machine(stand.folder, "n1").pid), "-m")
	folder = os.path.join(stand.folder, "nodes", "n1", "pci")
	os.makedirs(os.path.join(folder, "0000:00:01.0"), exist_ok=True)
	with open(os.path.join(folder, "0000:00:01.0", "numa_node"), "w", encoding="utf-8") as file:
		file.write(f"{node}\n")
	stand.run(*inside, "mount", "--bind", folder, root)
	try:
		yield os.path.basename(root)
	finally:
		stand.run(*inside, "umount", root)


@pytest.fixture
def driver_of_devices(numa_nodes):
	"""It tells of which NUMA node gpu-0 is, and behind which root of PCI Express gpu-1, where there is one. It prepares nothing."""
	allow(numa_nodes)
	publish_class(numa_nodes)
	with pci_root_of(numa_nodes, 1) as root:
		near = {"resource.kubernetes.io/pcieRoot": {"string": root}} if root else {"numaNode": {"int": 1}}
		publish_slice(numa_nodes, "n1", [device(0, numaNode={"int": 0}), device(1, **near)])
		before = set_resources(numa_nodes, [{"deviceClass": CLASS, "gres": "gpu"}])
		yield numa_nodes
		numa_nodes.api.delete(f"{API}/resourceslices/n1-gpus")
		restore(numa_nodes, before)


def test_driver_and_agent_together_tell_which_of_slurms_cores_a_device_is_near(driver_of_devices):
	stand = driver_of_devices

	def cores():
		head, *rows = (line.split() for line in tool(stand, "gres", "--node", "n1", "--format", "devices").splitlines())
		return [(row[head.index("DEVICE")], row[head.index("CORES")]) for row in rows]

	def without_cores():
		"""No slurmd has started since its kernel tells of NUMA nodes; but from 23.11 on each reconfigure starts it anew."""
		return [name for name, _ in cores()] == ["gpu-0", "gpu-1"] and (stand.starts_again or {of for _, of in cores()} == {"-"})

	wait_for("the devices", without_cores, 60, lambda: str(cores()))
	stand.cluster("restart", "slurmd-n1")
	wait_for("the cores", lambda: cores() == [("gpu-0", "0"), ("gpu-1", "1")], 60, lambda: str(cores()))


def runs_a_job(stand):
	"""At once: what slurmd forks for a step has nothing to do with the agent."""
	began = time.monotonic()
	assert stand.run("srun", "-n1", "--mem=10", "echo", "hello") == "hello"
	assert time.monotonic() - began < 8


def test_steps_start_at_once_beside_the_agent(agents):
	pod = agents.pod("one", "sleep 600", cpu="1")
	is_pinned(agents, pod.wait_running())
	for _ in range(3):
		runs_a_job(agents)


def test_slurmd_runs_jobs_without_kubelet_configuration_or_credentials(agents):
	conf = Slurm(agents.folder).agent_conf("n1")
	with open(conf, encoding="utf-8") as file:
		good = file.read()
	try:
		for text, says in ((None, None), ("kubeconfig: /nowhere/kubelet.conf\n", "/nowhere/kubelet.conf"),
				("pining: true\n", "is not used: no pod of this node is pinned")):
			if os.path.exists(conf):
				os.unlink(conf)
			if text:
				with open(conf, "w", encoding="utf-8") as file:
					file.write(text)
			agents.cluster("restart", "slurmd-n1")
			if says:
				told(agents, says)
			runs_a_job(agents)
	finally:
		with open(conf, "w", encoding="utf-8") as file:
			file.write(good)
		agents.cluster("restart", "slurmd-n1")


def test_slurmd_starts_and_runs_jobs_without_kubelet_and_api_server_and_pins_when_they_are_back(agents):
	pod = agents.pod("one", "sleep 600", cpu="1")
	is_pinned(agents, pod.wait_running())
	agents.cluster("stop", "kubelet-n1")
	agents.cluster("stop", "apiserver")
	said = "pods stay as they are"
	before = log(agents).count(said)
	try:
		agents.cluster("restart", "slurmd-n1")
		runs_a_job(agents)
		wait_for(f"the agent to say: {said}", lambda: log(agents).count(said) > before, 30, lambda: log(agents))
		assert may_run_on(pod) == "0"
	finally:
		agents.cluster("start", "apiserver")
		agents.cluster("start", "kubelet-n1")
	later = agents.pod("later", "sleep 600", cpu="1")
	is_pinned(agents, later.wait_running(120))


@pytest.fixture
def bound(request, session_stands):
	"""Slurm keeps its jobs on their cores, too."""
	if len(os.sched_getaffinity(0)) < 2:
		pytest.skip("a machine with one CPU has no cores to choose from")
	yield from lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", "1",
		*with_conf("TaskPlugin=task/affinity"))


BUSY = "while :; do :; done"


def of_job(stand, job_id):
	"""Its processes, as the host numbers them."""
	return [pid for pid, _ in processes_with(f"SLURM_JOB_ID={job_id}", f"SLURM_CONF={stand.env['SLURM_CONF']}")]


def cpus_of(pids):
	"""On which they may run, and on which those run that do."""
	may, ran = set(), set()
	for pid in pids:
		try:
			with open(f"/proc/{pid}/status", encoding="utf-8") as file:
				may |= indices(next(line.split()[1] for line in file if line.startswith("Cpus_allowed_list:")))
			with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
				about = file.read().rpartition(")")[2].split()
			if about[0] == "R":
				ran.add(int(about[36]))
		except (FileNotFoundError, ProcessLookupError):
			pass  # it has ended meanwhile
	return may, ran


def sampled(what, seconds=10):
	"""{name: (CPUs on which its processes may run, on which they ran)} of what() = {name: pids}, over that time."""
	seen = {}
	for _ in range(seconds * 10):
		for name, pids in what().items():
			for before, now in zip(seen.setdefault(name, (set(), set())), cpus_of(pids)):
				before |= now
		time.sleep(0.1)  # what a sample is
	return seen


def test_busy_job_and_busy_pod_never_run_on_one_core_also_after_slurmd_was_killed(bound, tmp_path):
	pod = bound.pod("busy", BUSY, cpu="1")
	is_pinned(bound, pod.wait_running())
	script = tmp_path / "busy.sh"
	script.write_text(f"#!/bin/sh\n{BUSY} &\nsrun -n1 sh -c '{BUSY}' &\nwait\n")
	job = int(bound.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-n1", "--mem=100", str(script)))
	wait_for("its step", lambda: f"{job}.0" in bound.run("squeue", "-h", "-s", "-o", "%i"), 60)
	cores = {"job": indices(bound.job(job)["CPU_IDs"]), "pod": indices(core_of(bound, pod))}
	assert sorted(map(len, cores.values())) == [1, 1] and not cores["job"] & cores["pod"]
	for _ in range(2):
		seen = sampled(lambda: {"job": of_job(bound, job), "pod": processes(pod)})
		assert seen == {name: (cpus, cpus) for name, cpus in cores.items()}
		bound.cluster("restart", "slurmd-n1", "--kill")


@pytest.fixture
def confining(request, session_stands):
	"""Core 1 is Slurm's specialised one, which is left for pods that Slurm has not placed."""
	for found in lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", "1",
			"--node-conf", "CoreSpecCount=1"):
		with conf_of_agent(found, "confineForeignPods: true"):
			yield found


@contextlib.contextmanager
def conf_of_agent(stand, line):
	conf = Slurm(stand.folder).agent_conf("n1")
	with open(conf, encoding="utf-8") as file:
		good = file.read()
	try:
		with open(conf, "w", encoding="utf-8") as file:
			file.writelines([*(old for old in good.splitlines(True) if old.split(":")[0] != line.split(":")[0]), line + "\n"])
		stand.cluster("restart", "slurmd-n1")
		yield
	finally:
		with open(conf, "w", encoding="utf-8") as file:
			file.write(good)
		stand.cluster("restart", "slurmd-n1")


def runs_on(pod, cpus):
	wait_for(f"{pod.name} to run on {cpus}", lambda: may_run_on(pod) == cpus, 30, lambda: f"on {may_run_on(pod)}\n{log(pod.stand)}")


def test_foreign_pod_is_off_the_cores_of_an_exclusive_job_until_that_has_ended(confining):
	foreign = of_daemon_set(confining, "daemon", "100m")
	runs_on(foreign, ALL)
	job = confining.batch(options=["--exclusive"])
	job.wait_started()
	runs_on(foreign, "1")
	later = of_daemon_set(confining, "later", "100m")
	runs_on(later, "1")
	confining.cluster("stop", "slurmd-n1", "--kill")
	assert may_run_on(foreign) == "1"
	confining.cluster("start", "slurmd-n1")
	confining.run("scancel", str(job.id))
	for pod in (foreign, later):
		runs_on(pod, ALL)


def test_agent_that_is_told_to_confine_no_more_undoes_what_it_did(confining):
	foreign = of_daemon_set(confining, "daemon", "100m")
	job = confining.batch(options=["--exclusive"])
	job.wait_started()
	runs_on(foreign, "1")
	confining.cluster("stop", "slurmd-n1", "--kill")
	with conf_of_agent(confining, "confineForeignPods: false"):
		runs_on(foreign, ALL)
		assert job.state == "RUNNING"


def test_agent_that_was_built_with_other_headers_reads_no_job_and_says_so(agents, tmp_path):
	pod = agents.pod("one", "sleep 600", cpu="1")
	is_pinned(agents, pod.wait_running())
	module = os.path.join(agents.folder, "inst", "sk8_slurmd.so")
	os.rename(module, module + ".good")
	try:
		shutil.copy(os.path.join(build_with_field("job_info", None, tmp_path), "sk8_slurmd.so"), module)
		agents.cluster("restart", "slurmd-n1")
		told(agents, "are not known yet: jobs of this slurmd's Slurm are not those of the Slurm")
		assert may_run_on(pod) == core_of(agents, pod)
		runs_a_job(agents)
	finally:
		os.rename(module + ".good", module)
		agents.cluster("restart", "slurmd-n1")


def test_agent_runs_in_a_slurmd_that_has_daemonised(agents):
	agents.spoiled = True  # that slurmd is none of the stand's daemons
	agents.cluster("stop", "slurmd-n1")
	slurm = Slurm(agents.folder)
	record = slurm.daemon("slurmd-n1").record
	subprocess.run(["nsenter", "-t", str(Machine(agents.folder, "n1").pid), "-m", "-p", "slurmd", "-N", "n1"],
		env={**os.environ, **record["env"]}, check=True, timeout=60, stdin=subprocess.DEVNULL)
	pod = agents.pod("one", "sleep 600", cpu="1")
	pod.wait_running()
	is_pinned(agents, pod)
	runs_a_job(agents)
