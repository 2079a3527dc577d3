# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Who does not want to end: sidecars and tasks that ignore SIGTERM. Their cores are others' when they have ended, not before. Kubelet,
containerd and slurmd are real."""
import os
import time

import pytest
from conftest import with_conf
from mixed import wait_no_reservation
from stands.waiting import wait_for
from test_container import containing
from test_template import OPTIONS, USER, job_container, side, write
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")

KILL_WAIT = 3
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--")


@pytest.fixture(name="stubborn")
def stubborn_fixture(request, session_stands):
	yield from containing(request, session_stands, *with_conf(f"KillWait={KILL_WAIT}"), templates={"allow": True})


def processes_with(mark):
	"""Those that have it among their words, but srun, who has the task's."""
	found = []
	for pid in filter(str.isdigit, os.listdir("/proc")):
		try:
			with open(f"/proc/{pid}/cmdline", "rb") as file:
				words = file.read()
		except OSError:
			continue
		if mark.encode() in words and b"srun" not in words:
			found.append(int(pid))
	return found


def test_core_of_a_sidecar_that_ignores_its_end_is_anothers_when_it_has_ended(stubborn, tmp_path):
	mark = f"sidecar-{tmp_path}"
	template = write(tmp_path, containers=[job_container(), side(f": {mark}; trap '' TERM; while :; do sleep 0.2; done")])
	words = (*AS_USER, "srun", *OPTIONS, "-n1", "-c2")
	with stubborn.start(*words, template, "sh", "-c", "echo ready $SLURM_JOB_ID; sleep 600") as run:
		job = int(run.stdout.readline().split()[1])
		assert processes_with(mark)
		with stubborn.start(*words, "date", "+%s.%N") as other:
			wait_for("a job that waits", lambda: "PENDING" in stubborn.run("squeue", "-h", "-o", "%T"), 30)
			stubborn.run("scancel", str(job), user=USER)
			began, last = time.time(), 0
			while processes_with(mark):
				last = time.time()
				assert last - began < 90
				time.sleep(0.05)
			out, err = other.communicate(timeout=90)
		run.communicate(timeout=60)
	assert last - began > 0.5, "it ended at once"
	assert float(out) > last, (out, last, err)
	wait_no_reservation(stubborn, job)


@pytest.mark.parametrize("how", ["scancel", "time limit"])
def test_task_that_ignores_its_end_is_killed_after_killwait_and_nothing_of_it_is_left(stubborn, tmp_path, how):
	mark = f"task-{tmp_path}"
	stays = f": {mark}; trap '' TERM; echo ready $SLURM_JOB_ID; while :; do sleep 0.2; done"
	limit = ("-t", "10") if how == "time limit" else ()
	with stubborn.start(*AS_USER, "srun", *OPTIONS, "-n1", *limit, f"--k8s-image={BUSYBOX}", "sh", "-c", stays) as run:
		job = int(run.stdout.readline().split()[1])
		assert processes_with(mark)
		if limit:
			stubborn.scontrol("update", f"JobId={job}", "EndTime=now+3")
		else:
			stubborn.run("scancel", str(job), user=USER)
		wait_for("its end to begin", lambda: "COMPLETING" in stubborn.job(job)["JobState"], 120, lambda: str(stubborn.job(job)))
		began = time.monotonic()
		while "COMPLETING" in stubborn.job(job)["JobState"]:
			assert time.monotonic() - began < 60
			time.sleep(0.1)
		left = processes_with(mark)
		run.communicate(timeout=60)
	assert not left and time.monotonic() - began >= KILL_WAIT - 1.5, (left, time.monotonic() - began)
	assert stubborn.job(job)["JobState"] == ("TIMEOUT" if limit else "CANCELLED")
	wait_no_reservation(stubborn, job)
