# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Two controllers with one StateSaveLocation: whichever is in charge runs the engine, and nothing is lost in between."""
import os
import re

import pytest
from outage import converge, in_every_state, saved, stand_job
from stands.process import Daemon
from stands.slurm import BACKUP, PRIMARY
from stands.waiting import wait_for

pytestmark = [pytest.mark.apis("sim"), pytest.mark.slow]
BACKUP_LOG = "STAND_BACKUP_LOG"


def engines(stand):
	"""The controllers that run an engine now."""
	found = []
	for name in (PRIMARY, BACKUP):
		pid = Daemon(stand.folder, name).pid
		threads = os.listdir(f"/proc/{pid}/task") if pid else []
		for thread in threads:
			try:
				with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
					found += [name] if file.read().strip() == "sk8-engine" else []
			except OSError:
				pass  # it has just ended
	return found


def answer_of(stand, controller):
	"""What scontrol ping says of this one."""
	return "".join(line for line in stand.run("scontrol", "ping", check=False).stdout.splitlines() if f"({controller})" in line)


def backup_takes_over(stand, order=True):
	before = stand.engine_starts(BACKUP_LOG)
	if order:
		# a reconfigure of the primary goes to it as well, and from 23.11 on it starts again for that
		wait_for("the backup to answer", lambda: " is UP" in answer_of(stand, "backup"), 30)
		stand.scontrol("takeover")
	wait_for("the backup's engine", lambda: stand.engine_starts(BACKUP_LOG) > before and engines(stand) == [BACKUP], 60,
		lambda: str(stand.cluster("logs", BACKUP).stdout))


def primary_returns(stand):
	"""It asks the backup to give way, and hears the answer when that is done.

	As Slurm means it. But from 24.11 on who gives way first waits for the end of all requests and then saves its state, and this
	request's end waits for that: after half a minute it is answered all the same, and the primary reads a state that is just being
	written, where for a moment there is no job_state.
	"""
	before, said = stand.engine_starts(), os.path.getsize(stand.env[BACKUP_LOG])

	def backup_says(what):
		return what in stand.log(said, BACKUP_LOG)
	primary = Daemon(stand.folder, PRIMARY)
	primary.start_again()
	wait_for("the backup to be asked", lambda: primary.check() and backup_says("Performing RPC: REQUEST_CONTROL"), 30, primary.hint)
	with stand.paused(PRIMARY):
		wait_for("the backup to give way", lambda: backup_says("slurmctld running in background mode"), 60,
			lambda: str(stand.cluster("logs", BACKUP).stdout))
	wait_for("the primary's engine", lambda: stand.engine_starts() > before and engines(stand) == [PRIMARY], 60,
		lambda: str(stand.cluster("logs", PRIMARY).stdout))


def test_standby_writes_nothing_takes_over_by_order_and_gives_back(standby):
	made = in_every_state(standby, "order")
	assert engines(standby) == [PRIMARY] and standby.engine_starts(BACKUP_LOG) == 0
	backup_takes_over(standby)
	later = standby.pod("later", "sleep 12; exit 9", node="n2"), 9
	later[0].wait_running()
	primary_returns(standby)
	converge(standby, {**made, "later": later})


def test_standby_takes_over_from_a_killed_primary_and_keeps_what_pods_hold(standby):
	"""Of n1's eight cores three are a running pod's and three a pod's whose job was cancelled; two are free."""
	runs = standby.pod("runs", "sleep 600", cpu="3", node="n1", grace=1).wait_running()
	leaves = standby.pod("leaves", "sleep 600", cpu="3", node="n1", grace=1).wait_running()
	waits = standby.pod("waits", "exit 0", cpu="8", node="n1")
	waits.wait_job("PENDING")
	job = runs.job_id
	saved(standby)
	with standby.paused("apiserver"):
		standby.run("scancel", stand_job(standby, leaves))
		saved(standby)
		standby.cluster("stop", PRIMARY, "--kill")
		wait_for("the backup to be in charge", lambda: engines(standby) == [BACKUP], 60,
			lambda: str(standby.cluster("logs", BACKUP).stdout))
		wide, narrow = standby.batch(3), standby.batch(2, seconds=5)
		narrow.wait("RUNNING")  # it came last: the others have been looked at. Its launch is slurmd's, and may be late
		assert wide.state == "PENDING"
	wide.wait_started()
	assert leaves.runs()[0].stop < standby.allocated_at(wide.id, "STAND_BACKUP_LOG")
	assert runs.phase == "Running" and runs.job_id == job and len(runs.jobs()) == 1
	wide.cancel()
	primary_returns(standby)
	runs.delete()
	waits.wait_phase("Succeeded", seconds=90)
	assert len(waits.jobs()) == 1 and runs.job()["JobState"] == "CANCELLED"


def test_reconfigure_of_whichever_controller_is_in_charge_changes_nothing_for_pods(standby):
	made = in_every_state(standby, "reconf")
	jobs = {name: pod.job_id for name, (pod, _) in made.items()}
	standby.reconfigure()
	wait_for("one engine, the primary's", lambda: engines(standby) == [PRIMARY], 30)
	backup_takes_over(standby)
	standby.reconfigure()
	wait_for("one engine, the backup's", lambda: engines(standby) == [BACKUP], 30)
	# Who gives way waits for those whom it is telling of the new settings, and a slurmd may be asking the other one then.
	wait_for("all to be told", lambda: re.search(r"Agent count: *0\b", standby.run("sdiag")), 60)
	primary_returns(standby)
	converge(standby, made)
	assert {name: [int(job["JobId"]) for job in pod.jobs()] for name, (pod, _) in made.items()} == \
		{name: [job] for name, job in jobs.items()}
