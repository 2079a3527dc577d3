# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Jobs of several nodes, and heterogeneous ones: each node, and each component, has a pod and a container of its own. Kubelets, containerd and slurmds are real."""
import os
import pwd
import subprocess
import tempfile

import pytest
from mixed import reservations
from stands.waiting import wait_for
from test_container import INSIDE, USER, containing
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")

HERE = os.path.dirname(os.path.abspath(__file__))

PLAIN = ("--mem=100", "-n1", "-D", "/tmp")
OPTIONS = (*PLAIN, f"--k8s-image={BUSYBOX}")
WRONG = "--k8s-image or --k8s-template: give it to the first component of the job"


@pytest.fixture
def pair(request, session_stands):
	"""Slurm gives no two components of a job one node."""
	yield from containing(request, session_stands, kubelets=2)


def test_each_component_of_a_job_has_a_container_of_its_own_and_a_later_one_alone_is_refused(pair):
	before = len(pair.jobs())
	done = pair.run("srun", *PLAIN, "true", ":", *OPTIONS, "true", check=False)
	assert done.returncode and done.stderr.count(WRONG) == 1 and len(pair.jobs()) == before, done

	task = ("sh", "-c", f"{INSIDE}; echo $SLURM_PROCID; echo > /tmp/mark.$SLURM_PROCID; ls /tmp; sleep 600")
	with pair.start("srun", "-l", *OPTIONS, *task, ":", *PLAIN, *task) as run:
		said = sorted(run.stdout.readline() for _ in range(6))
		jobs = sorted(int(job["JobId"]) for job in pair.jobs() if job["JobState"] == "RUNNING")
		pods = reservations(pair)
		pair.run("scancel", str(jobs[0]))
		run.communicate(timeout=60)
	assert said == sorted(f"{i}: {word}\n" for i in (0, 1) for word in ("2", str(i), f"mark.{i}")), said
	assert len(jobs) == 2 and sorted(job for job, _ in pods) == jobs and len({node for _, node in pods}) == 2, (jobs, list(pods))
	assert {pod["spec"]["containers"][0]["image"] for pod in pods.values()} == {BUSYBOX}
	wait_for("no reservation", lambda: not reservations(pair), 60)


def test_each_node_of_a_job_has_a_container_with_its_share_and_tasks_find_each_other_by_pmi2(pair):
	with tempfile.TemporaryDirectory(dir="/tmp") as folder:
		subprocess.run(["cc", "-static", "-O1", "-o", f"{folder}/client", f"{HERE}/pmi2_client.c"], check=True)
		os.chmod(folder, 0o755)
		task = f"{INSIDE}; echo > /tmp/mark.$SLURM_PROCID; sleep 3; "\
			f"echo $SLURMD_NODENAME has $(ls /tmp | grep -c mark); id -u; exec {folder}/client"
		words = ("-N2", "-n3", "--mem=150", "-D", folder, OPTIONS[-1], "--mpi=pmi2", "--k8s-mount-home", "sh", "-c", task)
		with pair.start("runuser", "-u", USER, "--", "srun", "-l", *words) as run:
			pods = wait_for("pods on both nodes", lambda: len(reservations(pair)) == 2 and reservations(pair), 60)
			out, err = run.communicate(timeout=90)
	said = [[line.split(": ", 1)[1] for line in out.splitlines() if line.startswith(f"{i}: ")] for i in range(3)]
	uid = str(pwd.getpwnam(USER).pw_uid)
	assert sorted(said[i][1] for i in range(3)) in (["n1 has 1", "n2 has 2", "n2 has 2"], ["n1 has 2", "n1 has 2", "n2 has 1"]), (out, err)
	assert [[*lines[:1], *lines[2:]] for lines in said] == [["2", uid, f"{i} has the card of {(i + 1) % 3}"] for i in range(3)], (out, err)
	(job, _), _ = pods  # keys
	assert run.returncode == 0 and {node for _, node in pods} == {"n1", "n2"} and {number for number, _ in pods} == {job}, (out, err)
	cpus = {node: pod["spec"]["containers"][0]["resources"]["requests"] for (_, node), pod in pods.items()}
	assert sorted(share["cpu"] for share in cpus.values()) == ["1", "2"] and {share["memory"] for share in cpus.values()} == {"150Mi"}, cpus
	wait_for("no reservation", lambda: not reservations(pair), 60)
