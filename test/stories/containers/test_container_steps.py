# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What steps in containers (--k8s-image) keep of Slurm: signals, limits, arrays, groups, MPI's launch."""
import os
import signal
import subprocess
import tempfile

import pytest
from mixed import reservations, wait_no_reservation
from stands.waiting import wait_for
from test_container import OPTIONS, USER, containers, srun  # pylint: disable=unused-import # a fixture

pytestmark = pytest.mark.apis("real")

HERE = os.path.dirname(os.path.abspath(__file__))


AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--")  # signals are for srun itself


def ready(run):
	"""The id of the job whose task has said its first line."""
	line = run.stdout.readline()
	assert line.startswith("ready "), (line, run.stderr.read() if run.poll() is not None else "")
	return int(line.split()[1])


@pytest.mark.each_release
def test_signal_of_scancel_reaches_the_tasks_and_their_exit_code_is_the_steps(containers):
	task = "trap 'echo got it; exit 5' USR1; echo ready $SLURM_JOB_ID; while :; do sleep 0.1; done"
	with containers.start(*AS_USER, "srun", *OPTIONS, "sh", "-c", task) as run:
		job = ready(run)
		containers.run("scancel", "--signal=USR1", f"{job}.0", user=USER)
		out, err = run.communicate(timeout=60)
	assert (out, run.returncode) == ("got it\n", 5), err


@pytest.mark.each_release
def test_task_that_a_signal_kills_has_that_signal_in_slurm(containers):
	done = srun(containers, "sh", "-c", "kill -9 $$", user=USER)
	assert done.returncode == 137 and "Killed" in done.stderr, done  # as srun tells of any task


@pytest.mark.each_release
def test_ctrl_c_ends_the_tasks_and_the_job(containers):
	with containers.start(*AS_USER, "srun", *OPTIONS, "sh", "-c", "echo ready $SLURM_JOB_ID; sleep 600") as run:
		job = ready(run)
		run.send_signal(signal.SIGINT)
		while "one more within 1 sec" not in run.stderr.readline():
			assert run.poll() is None
		run.send_signal(signal.SIGINT)
		_, err = run.communicate(timeout=60)
	assert run.returncode and "sending Ctrl-C to" in err, err
	wait_no_reservation(containers, job)


def test_time_limit_ends_the_tasks(containers):
	with containers.start(*AS_USER, "srun", *OPTIONS, "-t", "10", "sh", "-c", "echo ready $SLURM_JOB_ID; sleep 600") as run:
		job = ready(run)
		containers.scontrol("update", f"JobId={job}", "EndTime=now+3")  # "now" may be over when slurmctld reads it
		run.communicate(timeout=90)  # slurmctld looks each half minute
	assert run.returncode
	wait_for("the job to be over", lambda: containers.job(job)["JobState"] == "TIMEOUT", 30, lambda: containers.job(job)["JobState"])
	wait_no_reservation(containers, job)


def test_twenty_jobs_of_an_array_have_a_container_each(containers, tmp_path):
	script = tmp_path / "job.sh"
	for folder in (tmp_path.parent.parent, tmp_path.parent):
		folder.chmod(0o755)
	tmp_path.chmod(0o777)
	script.write_text("#!/bin/sh\nsrun sh -c 'test ! -e /tmp/mine && echo $SLURM_ARRAY_TASK_ID > /tmp/mine && cat /tmp/mine'\n")
	script.chmod(0o755)
	containers.run("sbatch", "--wait", "--array=0-19", "-o", str(tmp_path / "out.%a"), *OPTIONS, str(script), seconds=200, user=USER)
	assert [(tmp_path / f"out.{i}").read_text() for i in range(20)] == [f"{i}\n" for i in range(20)]
	wait_for("no reservation", lambda: not reservations(containers), 30)


def test_tasks_have_the_groups_that_they_have_without_a_container(containers):
	about = ("id -u; id -g; grep -E '^(Groups|Cap|NoNewPrivs)' /proc/self/status",)
	plain = srun(containers, "sh", "-c", *about, user=USER, options=("--mem=100", "-n1", "-D", "/tmp"))
	inside = srun(containers, "sh", "-c", *about, user=USER)
	assert inside.stdout.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0") == plain.stdout and plain.stdout.count("\n") >= 8, (plain, inside)


@pytest.mark.each_release
def test_tasks_of_an_mpi_step_find_each_other_by_pmi2(containers):
	with tempfile.TemporaryDirectory(dir="/tmp") as folder:
		subprocess.run(["cc", "-static", "-O1", "-o", f"{folder}/client", f"{HERE}/pmi2_client.c"], check=True)
		os.chmod(folder, 0o755)
		done = srun(containers, "--mpi=pmi2", "--k8s-mount-home", f"{folder}/client",
			options=("--mem=100", "-n2", "-D", folder, OPTIONS[-1]))
	assert sorted(done.stdout.splitlines()) == ["0 has the card of 1", "1 has the card of 0"], done
