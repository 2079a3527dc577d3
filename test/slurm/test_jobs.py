# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Placeholder jobs: made, found, ended by us and by others, in a real slurmctld."""
import re

import pytest
from conftest import Cluster

NOBODY = 65534


def test_job_starts_at_once_and_its_start_is_told_with_node_cores_and_memory(cluster):
	job = cluster.submit(cpus=2, mem=300, mark="k8s:prod/ns/a/uid-a")
	assert (job["running"], job["rc"]) == ("1", "0")
	told = [event for event in cluster.events() if f"job={job['job']} " in event]
	assert len(told) == 1 and told[0].startswith("job_start ")
	assert "state=RUNNING node=n1" in told[0] and "mem=300 mark=k8s:prod/ns/a/uid-a" in told[0]
	ids = cluster.show(job["job"])["CPU_IDs"]
	cores = [int(core) for core in told[0].rsplit("=", 1)[1].split(",")]
	assert ids == (f"{cores[0]}-{cores[1]}" if cores[1] == cores[0] + 1 else f"{cores[0]},{cores[1]}")


def test_job_belongs_to_the_mapped_user_and_shows_where_it_came_from(cluster):
	job = cluster.submit(uid=NOBODY, gid=NOBODY, comment="hello", nice=5, minutes=7)
	shown = cluster.show(job["job"])
	assert shown["UserId"].endswith(f"({NOBODY})") and shown["GroupId"].endswith(f"({NOBODY})")
	assert shown["AllocNode:Sid"] == "k8s:0" and shown["Comment"] == "hello"
	assert shown["Nice"] == "5" and shown["TimeLimit"] == "00:07:00" and shown["NumNodes"] == "1"


def test_partition_for_root_only_takes_no_pod_of_another_user(cluster):
	refused = cluster.submit(partition="pods", uid=NOBODY)
	assert (refused["job"], refused["fatal"]) == ("0", "1") and refused["text"].startswith("access denied: ")
	assert cluster.submit(partition="pods", uid=0, gid=0)["running"] == "1"


@pytest.mark.parametrize("what,fatal,text", [
	({"partition": "nope"}, "1", "invalid partition specified: nope"),
	({"features": "none"}, "1", "Invalid feature specification"),
	({"mem": 999999}, "1", "Memory specification can not be satisfied"),
	({"tres": "nogres:1"}, "1", "Invalid generic resource (gres) specification"),
	({"licenses": "nope:1"}, "1", "Invalid license specification"),
	({"reservation": "nope"}, "1", "Requested reservation is invalid"),
	({"exclude": "nope"}, "1", "Invalid node name specified"),
	({"cpus": 70000}, "1", "CPU count specification invalid"),
])
def test_refusal_says_why_in_one_sentence_and_leaves_no_job_with_a_mark(cluster, what, fatal, text):
	before = set(cluster.jobs())
	outcome = cluster.submit(**what)
	assert outcome["job"] == "0" and outcome["rc"] != "0" and outcome["fatal"] == fatal
	assert outcome["text"] == text
	assert set(cluster.jobs()) == before


def test_pending_job_says_slurms_reason_and_whether_it_is_held(cluster):
	held = cluster.submit(held=1)
	assert (held["job"] != "0", held["fatal"], held["text"]) == (True, "0", "JobHeldUser")
	assert cluster.jobs()[int(held["job"])]["held"] == "1"
	cluster.submit(cpus=8)
	waiting = cluster.submit(cpus=8)
	cluster.scheduled()
	view = cluster.jobs()[int(waiting["job"])]
	assert (view["state"], view["held"], view["reason"]) == ("PENDING", "0", "Resources")


@pytest.mark.parametrize("state,status,shown,code,reason", [
	("COMPLETED", 0, "COMPLETED", "0:0", "None"),
	("FAILED", 7 << 8, "FAILED", "7:0", "NonZeroExitCode"),
	("FAILED", 9, "FAILED", "0:9", "RaisedSignal:9(Killed)"),
	("FAILED", 0, "FAILED", "1:0", "NonZeroExitCode"),
	("OUT_OF_MEMORY", 0, "OUT_OF_MEMORY", "0:125", "OutOfMemory"),
	("TIMEOUT", 0, "TIMEOUT", "0:0", "TimeLimit"),
	("CANCELLED", 0, "CANCELLED", "0:0", "None"),
	("NODE_FAIL", 0, "NODE_FAIL", "0:0", "None"),
])
@pytest.mark.parametrize("suspended", [False, True])
def test_pods_end_becomes_the_jobs_end(cluster, state, status, shown, code, reason, suspended):
	job = cluster.submit()["job"]
	if suspended:
		cluster.run("scontrol", "suspend", job)
	outcome = cluster.ask("end", job, state, f"exit={status}", "comment=it is over")
	assert outcome["rc"] == "0", outcome
	seen = cluster.show(job)
	if cluster.release.startswith("22.05"):  # which shows no signal
		reason = reason.replace("RaisedSignal:9(Killed)", "NonZeroExitCode")
	assert (seen["JobState"].replace("COMPLETING", shown), seen["ExitCode"], seen["Reason"]) == (shown, code, reason)
	assert "SystemComment=slurm-k8s: it is over" in cluster.run("scontrol", "show", "job", job)
	end = [event for event in cluster.events() if event.startswith(f"job_fini job={job} ")]
	assert len(end) == 1 and f"state={shown} " in end[0] and "by_us=1" in end[0] and not end[0].endswith("cores=")
	assert cluster.jobs()[int(job)]["by_us"] == "1"


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "CANCELLED"])
def test_job_that_never_ran_is_cancelled_whatever_its_pod_did(cluster, state):
	job = cluster.submit(held=1)["job"]
	assert cluster.ask("end", job, state, "exit=256")["rc"] == "0"
	shown = cluster.show(job)
	assert (shown["JobState"], shown["ExitCode"], shown["RunTime"]) == ("CANCELLED", "0:0", "00:00:00")
	assert shown["StartTime"] == shown["EndTime"]


def test_end_needs_id_submit_time_and_mark(cluster):
	job = cluster.submit()["job"]
	for wrong in ("mark=k8s:prod/ns/other/uid", "mark=", "submit_time=3"):
		assert cluster.ask("end", job, "COMPLETED", wrong)["rc"] != "0"
	assert cluster.show(job)["JobState"] == "RUNNING"
	assert cluster.ask("end", job, "COMPLETED")["rc"] == "0"
	again = cluster.ask("end", job, "FAILED", "exit=256")
	assert again["rc"] != "0" and again["fatal"] == "1"
	assert cluster.show(job)["ExitCode"] == "0:0"


def test_who_cancelled_is_known_when_the_job_leaves_its_node(cluster):
	job = cluster.submit(uid=NOBODY)["job"]
	cluster.run("setpriv", "--reuid", str(NOBODY), "--clear-groups", "scancel", job)
	end = [event for event in cluster.events() if event.startswith(f"job_fini job={job} ")]
	assert len(end) == 1 and f"state=CANCELLED node=n1 ended_by={NOBODY} by_us=0" in end[0]
	pending = cluster.submit(uid=NOBODY, held=1)["job"]
	cluster.run("setpriv", "--reuid", str(NOBODY), "--clear-groups", "scancel", pending)
	view = cluster.jobs()[int(pending)]
	assert (view["state"], view["ended_by"], view["by_us"]) == ("CANCELLED", str(NOBODY), "0")


def test_preempted_job_was_ended_by_nobody(cluster):
	job = cluster.submit(partition="lowone", cpus=6)["job"]
	wanted = cluster.batch("-p", "one", "-n", "6")
	cluster.becomes(wanted, "RUNNING")
	end = [event for event in cluster.events() if event.startswith(f"job_fini job={job} ")]
	assert len(end) == 1 and "state=PREEMPTED node=n1 ended_by=4294967295 by_us=0" in end[0]


def test_excluded_nodes_change_and_nothing_else_does(cluster):
	job = cluster.submit(partition="batch", held=1)["job"]
	cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+1hour", "Nice=7")
	cluster.run("scontrol", "hold", job) # Nice gave it a priority, and Slurm's next pass another reason
	before = cluster.show(job)
	assert cluster.ask("exclude", job, "n1,n2")["rc"] == "0"
	after = cluster.show(job)
	assert after["ExcNodeList"] in ("n1,n2", "n[1-2]")
	for key in ("Priority", "EligibleTime", "StartTime", "Nice", "Reason", "Partition", "TimeLimit", "UserId"):
		assert after[key] == before[key], key
	assert cluster.jobs()[int(job)]["excluded"] == "n1,n2"
	assert cluster.ask("exclude", job, "")["rc"] == "0"
	assert cluster.show(job)["ExcNodeList"] == "(null)"


def test_excluded_nodes_change_though_one_of_them_is_no_node_any_more():
	"""update_job() of 24.11 reads the former list once more, and leaves the job without any if that has become wrong."""
	cluster = Cluster(nodes=["n1", "n2", "n3"], conf="")
	try:
		job = cluster.submit(partition="batch", held=1, exclude="n1,n2,n1")["job"]
		short = cluster.submit(partition="batch", held=1, exclude="n[1-2],n1")["job"]
		controller = cluster.slurm.daemon("slurmctld")
		controller.stop()
		with open(cluster.slurm.conf, "r+", encoding="utf-8") as file:
			text = re.sub(r"^NodeName=n1 .*\n", "", file.read(), flags=re.M).replace("n1,n2,n3", "n2,n3")
			file.seek(0)
			file.truncate()
			file.write(text)
		controller.start_again()
		cluster.slurm.wait_controller()
		assert cluster.ask("exclude", job, "n2,n3,n2")["rc"] == "0"
		assert cluster.jobs()[int(job)]["excluded"] == "n2,n3,n2"
		assert cluster.ask("exclude", job, "n3,n3")["rc"] == "0"
		assert cluster.ask("exclude", short, "n[2-3],n2")["rc"] == "0"
		assert cluster.jobs()[int(short)]["excluded"] == "n[2-3],n2"
	finally:
		cluster.down()


def test_nodes_that_a_submission_excludes_are_told_as_it_gave_them(cluster):
	"""The engine knows its own list by the first name, which comes again at the end."""
	job = cluster.submit(partition="batch", held=1, exclude="n1,n2,n1")["job"]
	assert cluster.jobs()[int(job)]["excluded"] == "n1,n2,n1"
	cluster.reconfigure()
	assert cluster.jobs()[int(job)]["excluded"] == "n1,n2,n1"
	assert cluster.ask("exclude", job, "")["rc"] == "0"
	assert cluster.show(job)["ExcNodeList"] == "(null)"


def test_ranges_of_excluded_nodes_stay_as_they_were_given(cluster):
	job = cluster.submit(partition="batch", held=1, exclude="n[1-2],n1")["job"]
	assert cluster.jobs()[int(job)]["excluded"] == "n[1-2],n1"
	cluster.reconfigure()
	assert cluster.jobs()[int(job)]["excluded"] == "n[1-2],n1"
	assert cluster.ask("exclude", job, "n2,n2")["rc"] == "0"
	assert cluster.ask("exclude", job, "n[1-2],n1")["rc"] == "0"
	assert cluster.jobs()[int(job)]["excluded"] == "n[1-2],n1"


def test_priority_that_an_administrator_set_survives_a_change_of_excluded_nodes(cluster):
	job = cluster.submit(begin=4000000000)["job"]
	cluster.run("scontrol", "update", f"JobId={job}", "Priority=4711")
	assert cluster.ask("exclude", job, "n2")["rc"] == "0"
	assert cluster.show(job)["Priority"] == "4711"


def test_running_jobs_nodes_are_not_excluded(cluster):
	job = cluster.submit()["job"]
	assert cluster.ask("exclude", job, "n1")["rc"] != "0"


def test_freed_cores_are_used_at_once(cluster):
	first = cluster.submit(cpus=8)["job"]
	second = cluster.submit(cpus=8)["job"]
	cluster.ask("end", first, "COMPLETED")
	cluster.becomes(second, "RUNNING", 5)
