# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What tasks are told of GRES that Slurm only counts: k8scpu, k8smemory, and devices that only Kubernetes knows.

The agent is played by files in its folder. Nodes have names of this process, for that folder is the machine's.
"""
import glob
import os
import shutil
import subprocess

import pytest
from conftest import Cluster
from stands.waiting import wait_for

NODES = [f"gres{number}-{os.getpid()}" for number in (1, 2)]
TOKENS = "--gres=k8scpu:3,k8smemory:4000"
HCA = "--gres=k8s:rdma_hca:1"
ANSWER = {"SLURM_K8S_DEVICES": "/dev/infiniband/uverbs0,/dev/infiniband/rdma_cm", "RDMA_DEVICE": "mlx5_0", "EMPTY": ""}
NAMES = "SLURM_K8S_DEVICE_VARIABLES"


@pytest.fixture(scope="module", name="cluster_of_module")
def cluster_of_module_fixture():
	cluster = Cluster(nodes=NODES, gres="k8scpu:8,k8smemory:16000,k8s:rdma_hca:2,k8s:fpga:1",
		conf=f"PartitionName=one Nodes={','.join(NODES)}\n")
	try:
		with open(os.path.join(cluster.slurm.etc, "plugstack.conf"), "w", encoding="utf-8") as file:
			file.write(f"required {cluster.folder}/inst/plugins/spank_k8s.so\n")
		yield cluster
	finally:
		cluster.down()


@pytest.fixture(name="cluster")
def cluster_fixture(cluster_of_module):
	yield cluster_of_module
	cluster_of_module.clean()
	for node in NODES:
		shutil.rmtree(folder(node), ignore_errors=True)


def folder(node):
	return f"/run/slurm-k8s/{node}.devices"


def agent(*nodes):
	"""These have one."""
	for node in nodes:
		os.makedirs(folder(node), mode=0o700)


def tell(node, job, answer):
	"""As the agent does it: the whole file at once."""
	path = os.path.join(folder(node), str(job))
	with open(path + ".new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
		file.write("".join(f"{name}={value}\0" for name, value in answer.items()))
	os.rename(path + ".new", path)


def variables(text):
	return dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)


def ours(found):
	return {name: value for name, value in found.items() if name.startswith("SLURM_K8S_") or name in ANSWER}


def srun(cluster, *options, env=None, node=NODES[0]):
	"""A job of one step that shows its variables. -Q: srun does not tell that it waits for nodes."""
	return subprocess.Popen(["srun", "-Q", "-p", "one", "-w", node, "-n1", "--mem=10", *options, "env"], text=True, stdout=subprocess.PIPE,
		stderr=subprocess.PIPE, env={**cluster.slurm.env, **(env or {})}, cwd="/")


def finish(step):
	out, err = step.communicate(timeout=90)
	assert step.returncode == 0, err
	return ours(variables(out)), err


def job_of(cluster):
	return int(wait_for("a job that runs", lambda: cluster.run("squeue", "-h", "-t", "R", "-o", "%A").strip(), 30))


def last_job(cluster):
	"""The one that it makes for that: the next one has the next number."""
	return int(cluster.run("sbatch", "--parsable", "-p", "one", "-H", "--wrap", "true"))


def told(cluster, options, answer, env=None, node=NODES[0]):
	"""The variables of a job whose agent has told before it starts."""
	tell(node, last_job(cluster) + 1, answer)
	return finish(srun(cluster, *options, env=env, node=node))


def is_watched(path):
	"""Does some process wait for what comes into this folder?"""
	inode = f" ino:{os.stat(path).st_ino:x} "
	for file in glob.glob("/proc/[0-9]*/fdinfo/*"):
		try:
			with open(file, encoding="utf-8") as text:
				if inode in text.read():
					return True
		except OSError:
			pass  # gone meanwhile
	return False


def test_tasks_find_the_tokens_of_their_job_on_their_node_in_their_environment(cluster):
	assert finish(srun(cluster, "-c2", TOKENS))[0] == {"SLURM_K8S_CPU": "3", "SLURM_K8S_MEMORY": "4000"}
	assert finish(srun(cluster, "--gres=k8scpu:1"))[0] == {"SLURM_K8S_CPU": "1"}
	# another job's, which sbatch and srun hand on, are not this one's
	stale = {"SLURM_K8S_CPU": "9", "SLURM_K8S_MEMORY": "9"}
	assert finish(srun(cluster, env=stale))[0] == {}
	assert finish(srun(cluster, "--gres=k8scpu:2", env=stale))[0] == {"SLURM_K8S_CPU": "2"}


def test_batch_scripts_and_all_steps_of_a_job_are_told_of_its_tokens(cluster):
	out = os.path.join(cluster.folder, "tokens.out")
	# srun may have to wait for the end of the step before, and says so
	cluster.run("sbatch", "-W", "-p", "one", "-N2", "--ntasks-per-node=1", "--mem=10", TOKENS, "-D", "/", "-o", out, "-e", "/dev/null", "--wrap",
		"echo script $SLURM_K8S_CPU $SLURM_K8S_MEMORY; srun sh -c 'echo all $SLURM_K8S_CPU $SLURM_K8S_MEMORY'; "
		"srun --gres=none -N1 -n1 sh -c 'echo none $SLURM_K8S_CPU $SLURM_K8S_MEMORY'")
	with open(out, encoding="utf-8") as file:
		assert sorted(file.read().splitlines()) == ["all 3 4000"] * 2 + ["none 3 4000", "script 3 4000"]


def test_step_waits_for_the_word_of_the_agent(cluster):
	agent(NODES[0])
	with srun(cluster, HCA) as step:
		wait_for("the step to wait", lambda: is_watched(folder(NODES[0])), 60)
		tell(NODES[0], job_of(cluster), ANSWER)
		assert finish(step)[0]["RDMA_DEVICE"] == ANSWER["RDMA_DEVICE"]


@pytest.mark.parametrize("gres", ["k8s", "k8s:1", "k8scpu:1,k8s:1"])
def test_device_without_its_type_is_refused(cluster, gres):
	said = subprocess.run(["sbatch", "-p", "one", f"--gres={gres}", "--wrap", "true"], env=cluster.slurm.env, capture_output=True,
		text=True, check=False)
	assert said.returncode and "needs the type of the device, as in --gres=k8s:rdma_hca:1" in said.stderr, said


def test_tasks_get_what_the_device_plugin_answered(cluster):
	agent(NODES[0])
	found, err = told(cluster, [HCA], ANSWER)
	assert {name: value for name, value in found.items() if name != NAMES} == ANSWER and not err
	assert set(found[NAMES].split(",")) == set(ANSWER)
	assert told(cluster, [HCA], {})[0] == {}


def test_variables_that_the_user_has_set_and_those_that_are_not_for_devices_stay(cluster):
	agent(NODES[0])
	found, _ = told(cluster, [HCA], {**ANSWER, "SLURM_JOB_ID": "1", "HOME": "/x", "1X": "y"}, {"RDMA_DEVICE": "mine", "SLURM_K8S_DEVICES": "mine"})
	assert found["RDMA_DEVICE"] == "mine" and found["SLURM_K8S_DEVICES"] == ANSWER["SLURM_K8S_DEVICES"] and found["EMPTY"] == ""
	assert set(found[NAMES].split(",")) == {"SLURM_K8S_DEVICES", "EMPTY"}


def test_variables_of_another_nodes_or_jobs_devices_are_not_taken_for_the_users(cluster):
	agent(*NODES)
	first, _ = told(cluster, [HCA], ANSWER)
	second, _ = told(cluster, [HCA], {"RDMA_DEVICE": "mlx5_7"}, env=first, node=NODES[1])
	assert second == {"RDMA_DEVICE": "mlx5_7", NAMES: "RDMA_DEVICE"}
	assert finish(srun(cluster, env=first))[0] == {}
	# who takes a name from the list has set it himself
	kept, _ = told(cluster, [HCA], {"RDMA_DEVICE": "mlx5_7"}, env={**first, NAMES: "EMPTY,SLURM_K8S_DEVICES"})
	assert kept == {"RDMA_DEVICE": ANSWER["RDMA_DEVICE"]}


def test_node_without_an_agent_does_not_wait_and_a_job_without_such_devices_reads_nothing(cluster):
	assert finish(srun(cluster, HCA)) == ({}, "")
	agent(NODES[0])
	last = last_job(cluster)
	for job in range(last + 1, last + 3):
		tell(NODES[0], job, ANSWER)
	for options, wanted in (([], {}), ([TOKENS], {"SLURM_K8S_CPU": "3", "SLURM_K8S_MEMORY": "4000"})):
		assert finish(srun(cluster, *options)) == (wanted, "")
	assert last_job(cluster) == last + 3


def test_file_that_somebody_else_may_have_written_is_not_believed(cluster):
	agent(NODES[0])
	job = last_job(cluster) + 1
	tell(NODES[0], job, ANSWER)
	os.chmod(os.path.join(folder(NODES[0]), str(job)), 0o666)
	assert finish(srun(cluster, HCA)) == ({}, "")
	with open(os.path.join(cluster.folder, "log", f"slurmd-{NODES[0]}.log"), encoding="utf-8") as file:
		assert "the agent of this node has not told which devices" in file.read()
