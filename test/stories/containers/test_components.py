# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Heterogeneous jobs: each component has pods and containers of its own. Kubelets, containerd and slurmds are real."""
import pytest
from mixed import reservations
from stands.waiting import wait_for
from test_container import INSIDE, containing
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")

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
