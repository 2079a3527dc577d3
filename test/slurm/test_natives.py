# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Jobs of Slurm's own: what they have on each node is told, and they are queued again or cancelled with a reason."""
import re
import subprocess
import time

import pytest
from conftest import Cluster, words
from stands.process import processes_with
from stands.waiting import wait_for

NODES = "PartitionName=all Nodes=n1,n2 Default=YES\n"
WHY = "the reservation pod on node n1 was evicted"


@pytest.fixture(scope="module", name="natives_of_module")
def natives_of_module_fixture():
	cluster = Cluster(nodes=["n1", "n2"], conf=NODES, gres="gpu:a100:2,gpu:h100:2,shard:8,token:5")
	yield cluster
	cluster.down()


@pytest.fixture(name="slurm")
def slurm_fixture(natives_of_module):
	yield natives_of_module
	natives_of_module.clean()


def natives(cluster, job):
	"""node -> what a job has there"""
	found = [words(text) for text in cluster.tell("natives").split(";") if text.strip()]
	return {share["node"]: share for share in found if int(share["job"]) == job}


def gres(share):
	"""{"gpu:a100": (2, {0, 1})}"""
	found = {}
	for word in filter(None, share["gres"].strip().split("+")):
		what, _, devices = word.partition("@")
		name, kind, count = what.split(":")
		name = f"{name}:{kind}" if kind else name
		before = found.get(name, (0, set()))
		found[name] = (before[0] + int(count), before[1] | {int(d) for d in devices.split(",") if d})
	return found


def start(cluster, *options):
	job = cluster.batch("-p", "all", "--mem=10", *options)
	cluster.becomes(job, "RUNNING")
	return job


def process_states(cluster, job):
	"""Of the processes of the job's script, as in /proc: {"T"} if all are stopped. slurmstepd stops them two seconds after Slurm says
	so, and slurmd takes each order in a thread of its own: a job that it were to let run before that would stay stopped."""
	states = set()
	for pid, _ in processes_with(f"SLURM_JOB_ID={job}", f"SLURM_CONF={cluster.slurm.env['SLURM_CONF']}"):
		try:
			with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
				states.add(file.read().rpartition(")")[2].split()[0])
		except OSError:
			pass  # it has ended
	return states


def comment(cluster, job):
	found = re.search(r"SystemComment=(.*)", cluster.run("scontrol", "show", "job", str(job)))
	return found and found[1].strip()


def test_what_a_job_has_on_each_of_its_nodes_is_told_with_its_gres(slurm):
	job = start(slurm, "-N2", "-n2", "-c2", "--gres=gpu:a100:1,gpu:h100:2,token:3")
	shares = natives(slurm, job)
	assert set(shares) == {"n1", "n2"}
	for share in shares.values():
		assert (share["cpus"], share["mem"], share["ending"], share["requeues"]) == ("2", "10", "0", "1")
		has = gres(share)
		assert {name: count for name, (count, _) in has.items()} == {"gpu:a100": 1, "gpu:h100": 2, "token": 3}
		assert has["gpu:h100"][1] == {2, 3} and has["gpu:a100"][1] < {0, 1}


def test_gres_that_differ_from_node_to_node_are_told_of_the_right_one(slurm):
	start(slurm, "-w", "n1", "-n1", "--gres=gpu:a100:1")  # n1 has less than n2 from now on
	job = start(slurm, "-N2", "-n2", "--gpus=a100:3")
	assert {node: gres(share)["gpu:a100"][0] for node, share in natives(slurm, job).items()} == {"n1": 1, "n2": 2}


def test_a_job_without_gres_and_one_with_shards(slurm):
	plain = start(slurm, "-w", "n1", "-n1")
	assert gres(natives(slurm, plain)["n1"]) == {}
	shards = start(slurm, "-w", "n1", "-n1", "--gres=shard:2")
	assert gres(natives(slurm, shards)["n1"])["shard"][0] == 2


def used(cluster):
	"""node -> what jobs have there: cores, MB, and each GRES"""
	found = {}
	for text in cluster.tell("nodes").split(";"):
		if "node=" in text:
			said = words(text)
			cores, memory, *gres = said["used"].split(",")
			found[said["node"]] = (int(cores), int(memory), dict(part.split(":") for part in gres))
	return found


def test_what_jobs_have_of_each_node_is_told_and_of_suspended_ones_only_memory(slurm):
	assert used(slurm) == {"n1": (0, 0, {}), "n2": (0, 0, {})}
	assert slurm.tell("nodes").count(" sockets=1x8 ") == 2
	wide = start(slurm, "-N2", "-n2", "-c2", "--gres=gpu:a100:1,gpu:h100:2")
	narrow = start(slurm, "-w", "n2", "-n3", "--gres=token:2")
	slurm.submit(partition="all", cpus=2, mem=30, exclude="n1")
	wait_for("the pod's job", lambda: used(slurm)["n2"][0] == 7, 20)
	assert used(slurm) == {"n1": (2, 10, {"gpu": "3"}), "n2": (7, 50, {"gpu": "3", "token": "2"})}
	slurm.run("scontrol", "suspend", str(narrow))
	assert used(slurm)["n2"][:2] == (4, 50)
	wait_for("its processes to be stopped", lambda: process_states(slurm, narrow) == {"T"}, 20)
	slurm.run("scontrol", "resume", str(narrow))
	assert used(slurm)["n2"][:2] == (7, 50)
	wait_for("its processes to run", lambda: "T" not in process_states(slurm, narrow), 20)
	slurm.run("scancel", str(wide))
	wait_for("the others' alone", lambda: used(slurm) == {"n1": (0, 0, {}), "n2": (5, 40, {"token": "2"})}, 20)


def test_a_pods_job_is_none_of_slurms_own(slurm):
	pod = slurm.submit(partition="all")
	assert not natives(slurm, int(pod["job"]))
	assert slurm.ask("end_native", pod["job"], f"comment={WHY}", "submit_time=" + pod["submit_time"])["rc"] != "0"
	assert slurm.show(pod["job"])["JobState"] == "RUNNING"


def test_a_job_that_is_queued_again_says_why_and_starts_once_more(slurm):
	job = start(slurm, "-n1", "--requeue")
	ended = slurm.ask("end_native", job, "requeue=1", f"comment={WHY}")
	assert (ended["rc"], ended["running"]) == ("0", "1")
	slurm.becomes(job, "PENDING")
	assert slurm.show(job)["Restarts"] == "1"
	assert comment(slurm, job) == f"slurm-k8s: {WHY}"
	assert "Comment" not in slurm.show(job)  # that is its user's
	wait_for("no process of its first run", lambda: not natives(slurm, job), 20)
	# slurmd refuses a job's credentials of the second in which it has revoked one, and older ones (slurm_cred.c)
	ended = int(time.time())
	wait_for("another second", lambda: int(time.time()) > ended, 20)
	slurm.run("scontrol", "update", f"jobid={job}", "starttime=now")
	slurm.becomes(job, "RUNNING")
	assert slurm.ask("end_native", job, "requeue=1", "comment=again")["running"] == "1"
	assert comment(slurm, job) == "slurm-k8s: again"  # not of each of its runs


def test_a_users_own_comment_stays(slurm):
	job = start(slurm, "-n1", "--comment=mine")
	assert slurm.ask("end_native", job, f"comment={WHY}")["rc"] == "0"
	assert comment(slurm, job) == f"slurm-k8s: {WHY}" and slurm.show(job)["Comment"] == "mine"


@pytest.mark.parametrize("options, wish", [(["--requeue"], "requeue=0"), (["--no-requeue"], "requeue=1")])
def test_a_job_that_is_not_to_be_or_cannot_be_queued_again_is_cancelled(slurm, options, wish):
	job = start(slurm, "-n1", *options)
	ended = slurm.ask("end_native", job, wish, f"comment={WHY}")
	assert (ended["rc"], ended["running"]) == ("0", "0")
	slurm.becomes(job, "CANCELLED")
	assert comment(slurm, job) == f"slurm-k8s: {WHY}"
	assert slurm.ask("end_native", job, wish, "comment=twice", "submit_time=0")["rc"] != "0"
	assert comment(slurm, job) == f"slurm-k8s: {WHY}"


def test_another_run_of_the_job_is_left_alone(slurm):
	job = start(slurm, "-n1")
	assert slurm.ask("end_native", job, f"comment={WHY}", "submit_time=12345")["rc"] != "0"
	assert slurm.show(job)["JobState"] == "RUNNING" and not comment(slurm, job)


def test_who_waits_at_a_terminal_reads_why(slurm):
	with subprocess.Popen(["srun", "-p", "all", "-n1", "--mem=10", "sleep", "600"], env=slurm.slurm.env, stdout=subprocess.DEVNULL,
			stderr=subprocess.PIPE, text=True) as srun:
		wait_for("a job", lambda: slurm.run("squeue", "-h", "-t", "R", "-o", "%A"), 20)
		job = slurm.run("squeue", "-h", "-o", "%A").split()[0]
		wait_for("a step", lambda: slurm.run("squeue", "-h", "-s", "-j", job), 20)
		assert slurm.ask("end_native", job, "requeue=1", f"comment={WHY}")["running"] == "0"
		assert WHY in srun.communicate(timeout=40)[1]
	slurm.becomes(job, "CANCELLED")


def test_a_heterogeneous_job_is_ended_as_a_whole(slurm):
	first = int(slurm.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-p", "all", "-n1", "--mem=10", ":", "-p", "all", "-n1", "--mem=10",
		"--wrap", "sleep 600"))
	slurm.becomes(first, "RUNNING")
	slurm.becomes(first + 1, "RUNNING")
	assert slurm.ask("end_native", first + 1, f"comment={WHY}")["rc"] == "0"
	for job in (first, first + 1):
		slurm.becomes(job, "CANCELLED")
