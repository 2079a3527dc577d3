# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The clock of slurmctld's host is set forward or back by an hour while slurmctld runs."""
import contextlib
import os
import time

import pytest
from outage import converge, in_every_state
from stands.waiting import wait_for

pytestmark = [pytest.mark.apis("sim"), pytest.mark.slow]
HOUR = 3600


@contextlib.contextmanager
def bindings_refused(stand):
	"""Yields a function that returns when so many more were."""
	stand.api.post("/kubesim/faults", {"match": {"resource": "pods/binding"}, "action": "status", "code": 503})

	def hits():
		return stand.api.get("/kubesim/faults")["rules"][0]["hits"]

	def wait(more):
		wanted = hits() + more
		wait_for("Bindings that are refused", lambda: hits() >= wanted, 60)
	yield wait
	stand.api.delete("/kubesim/faults")


def quiet(stand):
	"""Nothing has happened for longer than the second that Slurm's stamps tell: what happens next is news by them alone."""
	wait_for("a quiet moment", lambda: time.time() - os.path.getmtime(stand.env["STAND_SLURMCTLD_LOG"]) > 2, 30)


def test_clock_that_is_set_forward_by_an_hour_ends_no_pod_and_no_wait_for_a_binding(clocked, slurm_clock):
	slurm_clock.begin(clocked, 0)
	made = in_every_state(clocked, "forward")
	before = clocked.batch(8, node="n2")
	binds = clocked.pod("binds", "exit 6", cpu="8", node="n2")
	binds.wait_job("PENDING")
	with bindings_refused(clocked) as wait_refused:
		before.cancel()
		wait_refused(1)
		slurm_clock.set(clocked, HOUR)  # many times bindTimeout
		wait_refused(2)
	made["binds"] = binds, 6
	made["after"] = clocked.pod("after", "exit 2"), 2
	converge(clocked, made)
	assert all(len(pod.jobs()) == 1 for pod, _ in made.values())


def test_clock_that_is_set_back_by_an_hour_ends_no_pod_and_hides_nothing(clocked, slurm_clock):
	slurm_clock.begin(clocked, HOUR)
	made = in_every_state(clocked, "back")
	cancelled, deleted, held = [clocked.pod(name, "exit 0", cpu="8", node="n1") for name in ("cancelled", "deleted", "held")]
	ids = {pod.name: pod.job_id for pod in (cancelled, deleted, held, *(pod for pod, _ in made.values()))}
	quiet(clocked)
	slurm_clock.set(clocked, 0)
	# One may have started already if the one before it has ended; from now on none does.
	waiting = {name: made.pop(name) for name in ("waits", "waits2") if made[name][0].job()["JobState"] == "PENDING"}
	made["after"] = clocked.pod("after", "exit 2"), 2  # its node is free
	# What has a hook, and what only a look at the jobs finds.
	clocked.run("scancel", str(ids[cancelled.name]))
	cancelled.wait_gone()
	deleted.delete()
	deleted.wait_job("CANCELLED")
	clocked.scontrol("hold", str(ids[held.name]))
	held.wait_condition("JobHeldAdmin")
	converge(clocked, made)
	# Slurm's schedulers stand still until their clock is where it was, and what was eligible waits for that time, pods'
	# jobs as any others. This is what an administrator does about it.
	waiting["held"] = held, 0
	assert {pod.job()["JobState"] for pod, _ in waiting.values()} == {"PENDING"}
	clocked.scontrol("release", str(ids[held.name]))
	clocked.restart_slurmctld(kill=False)
	for pod, _ in waiting.values():
		clocked.update(ids[pod.name], "StartTime=now")
	converge(clocked, waiting)
	assert all(len(pod.jobs()) == 1 for pod, _ in [*made.values(), *waiting.values()])
