# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A kubelet whose CPU manager has the policy static: jobs of Slurm's are given other cores than pods that have theirs alone."""
import json
import os

import pytest
from conftest import lent
from outage import saved
from stands.process import Machine
from stands.slurm import Slurm
from stands.waiting import wait_for
from command import TOOL
from foreign import foreign, masked, wait_masked
from test_agent import told

pytestmark = pytest.mark.apis("real")

ANNOTATION = "slurm-k8s.io/pinned-cores"


def write(path, text):
	os.makedirs(os.path.dirname(path), exist_ok=True)
	with open(path, "w", encoding="utf-8") as file:
		file.write(text)


def set_policy(stand, settings, reserved=None):
	"""kubelet starts with a new policy only without what it knew of the old one."""
	home = os.path.join(stand.folder, "nodes", "n1")
	known = os.path.join(home, "kubelet", "cpu_manager_state")
	stand.cluster("stop", "kubelet-n1")
	if os.path.exists(known):
		os.unlink(known)
	static = {"cpuManagerPolicy": "static", "reservedSystemCPUs": reserved} if reserved else {}
	write(os.path.join(home, "kubelet.json"), json.dumps(settings | static))
	stand.cluster("start", "kubelet-n1")


@pytest.fixture
def static(request, session_stands):
	"""Its kubelet has CPU 0 to give away, and keeps CPU 1 for everybody."""
	if len(os.sched_getaffinity(0)) < 2:
		pytest.skip("a machine with one CPU has none to give away")
	stands = lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", "1")
	stand = next(stands)
	home = os.path.join(stand.folder, "nodes", "n1")
	for cpu in ("0", "1"):
		write(f"{home}/hardware/cpu/cpu{cpu}/topology/core_id", cpu + "\n")
		write(f"{home}/hardware/cpu/cpu{cpu}/topology/physical_package_id", "0\n")
	with open(f"{home}/kubelet.json", encoding="utf-8") as file:
		settings = json.load(file)
	set_policy(stand, settings, reserved="1")
	wait_for("a CPU less to allocate", lambda: stand.node("n1")["status"]["allocatable"]["cpu"] == "1", 30)
	yield stand
	set_policy(stand, settings)
	wait_for("all CPUs to allocate", lambda: stand.node("n1")["status"]["allocatable"]["cpu"] == "2", 30)
	yield from stands


def pinned_pod(stand, name):
	pod = foreign(stand, name, cpu="1", limits={"cpu": "1", "memory": "16Mi"})
	pod.wait_running()
	return pod


def wait_told(stand, name, cores):
	wait_for(f"the core of {name} to be told", lambda: masked(stand).get(name, {}).get("cores") == cores, 30,
		lambda: str(masked(stand)))


def says(stand):
	return json.loads(stand.node("n1")["metadata"].get("annotations", {}).get(ANNOTATION, "{}"))


def test_slurms_jobs_get_other_cores_than_a_pod_that_its_kubelet_has_pinned(static):
	pod = pinned_pod(static, "pinned")
	wait_told(static, "pinned", [0])
	job = static.batch(1)
	job.wait("RUNNING")
	assert static.job(job.id)["CPU_IDs"] == "1"  # of two that are free the first one, if none is masked
	second = static.batch(1)
	static.scheduled()
	assert second.state == "PENDING"
	assert says(static) == {pod.uid: {"cores": [0], "cpus": 1}}
	pod.delete()
	second.wait("RUNNING")
	assert static.job(second.id)["CPU_IDs"] == "0"
	wait_for("nothing to be told", lambda: not says(static), 30, lambda: str(says(static)))


def test_agent_and_check_say_that_the_kubelet_pins_pods_itself(static):
	static.pod("ours", "sleep 600", cpu="1", limits={"cpu": "1", "memory": "16Mi"}).wait_running()
	told(static, "no pod is pinned: the kubelet's CPU manager has the policy static and pins pods itself; set its cpuManagerPolicy to none")
	done = static.run("nsenter", "-t", str(Machine(static.folder, "n1").pid), "-m", "-p", "env",
		f"SLURM_K8S_NODE_CONF={Slurm(static.folder).agent_conf('n1')}", TOOL, "check", "--on-node", check=False)
	assert "warning  agent: the kubelet's CPU manager has the policy static" in done.stdout, done


def test_pinned_core_is_known_at_once_when_slurmctld_comes_back(static):
	pinned_pod(static, "pinned")
	wait_told(static, "pinned", [0])
	saved(static, "--hold", node="n1")  # that jobs of the story before are over
	static.cluster("restart", "slurmctld", "--kill")
	job = static.batch(1)
	job.wait("RUNNING")
	assert static.job(job.id)["CPU_IDs"] == "1"
	wait_masked(static, "pinned")
	assert masked(static)["pinned"]["cores"] == [0]
