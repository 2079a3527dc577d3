# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The judge finds each kind of damage: one good world, spoiled in one way per story."""
from collections import defaultdict
from types import SimpleNamespace

import judge
from evidence import US, ControllerLog
from world import Run

START = "[2026-11-22T01:00:00.000] slurmctld version 22.05.8 started on cluster stand\n"
UID, FOREIGN = "uid-of-pod0", "uid-of-foreign0"


class Batch:
	def __init__(self, number, start, stop):
		self.id, self.times = number, (start, stop)

	def stamps(self):
		return self.times


def world(log=START):
	"""A pod with exit code 3 beside a job of 3 cores on n1, both well ended."""
	about = {"cores": 1, "memory": 500, "code": 3}
	status = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}
	return SimpleNamespace(
		users=SimpleNamespace(pods={"pod0": UID}, foreign={}, jobs={"job0": Batch(2, 100.0, 110.0)}),
		steps={"pod0": about, "job0": {"cores": 3, "memory": 500, "code": 0, "node": "n1"}},
		log=ControllerLog(log), objects={UID: {"metadata": {"name": "pod0"}, "status": status}},
		runs=defaultdict(list, {UID: [Run(UID, "main", "c1", "n1", 101.0, 105.0, 3)]}),
		pod_jobs=defaultdict(list, {UID: [{"JobId": "1", "JobState": "FAILED", "ExitCode": "3:0"}]}),
		jobs=defaultdict(list, {"job0": [{"JobId": "2", "JobState": "COMPLETED", "ExitCode": "0:0"}]}),
		bindings={UID: ["n1"]}, deleted=defaultdict(set), slurmd_ends=defaultdict(list), touched=lambda name: set(),
		started={"pod0": 100.5, "job0": 100.0}.get, told=None)


def with_foreign(told):
	"""That world, and a foreign pod on n1 while job0 runs and pod0 comes, of which slurm-k8s knew at that time."""
	spoiled = world()
	spoiled.users.foreign = {"foreign0": FOREIGN}
	spoiled.steps["foreign0"] = {"cores": 1, "memory": 100, "code": 0, "node": "n1"}
	spoiled.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", 99.0, 120.0, 0)]
	spoiled.told = lambda name: told
	return spoiled


def crash(when):
	"""slurmctld's log with a crash at this second of the first minute."""
	return START + f"[2026-11-22T01:00:{when:02}.000] any line about {UID}\n" + START.replace("00.000", f"{when + 2:02}.000")


def test_a_good_world_is_found_good():
	good = world()
	for check in (judge.check_overbooking, judge.check_bindings, judge.check_deletions, judge.check_pods, judge.check_jobs):
		verdict = check(good)
		assert (verdict.wrong, verdict.apart) == ([], [])


def test_one_core_too_many_is_found_and_so_is_memory():
	bad = world()
	bad.steps["pod0"]["cores"] = 2
	assert "5 cores" in judge.check_overbooking(bad).wrong[0]
	bad = world()
	bad.steps["pod0"]["memory"] = judge.MEMORY
	assert len(judge.check_overbooking(bad).wrong) == 1


def test_what_starts_when_the_other_ends_does_not_overlap():
	good = world()
	good.steps["job0"]["cores"] = 4
	good.runs[UID] = [Run(UID, "main", "c1", "n1", 110.0, 115.0, 3)]
	assert judge.check_overbooking(good).wrong == []


def test_cores_that_slurm_gave_away_because_it_forgot_its_own_job_count_apart():
	bad = world()
	bad.steps["pod0"]["cores"] = 2
	bad.jobs["job0"] = []
	verdict = judge.check_overbooking(bad)
	assert verdict.wrong == [] and len(verdict.apart) == 1


def test_foreign_pod_counts_against_what_slurm_started_once_it_was_known():
	bad = with_foreign(98.5)
	assert "5 cores" in judge.check_overbooking(bad).wrong[0]
	for told in (100.7, None):  # Slurm had started all there is, or nobody told slurm-k8s
		assert judge.check_overbooking(with_foreign(told)).wrong == []
	late = with_foreign(98.5)
	late.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", 104.0, 120.0, 0)]  # its kubelet took its time
	assert len(judge.check_overbooking(late).wrong) == 1
	gone = with_foreign(98.5)
	gone.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", 90.0, 99.9, 0)]
	assert judge.check_overbooking(gone).wrong == []


def test_second_binding_and_a_run_elsewhere_are_found():
	for bindings in (["n1", "n1"], ["n2"]):
		bad = world()
		bad.bindings[UID] = bindings
		assert len(judge.check_bindings(bad).wrong) == 1


def test_pod_that_we_deleted_for_nothing_is_found():
	bad = world()
	bad.deleted["pod0"] = {US}
	assert len(judge.check_deletions(bad).wrong) == 1
	bad.touched = lambda name: {"scancel"}
	assert judge.check_deletions(bad).wrong == []


def test_job_that_tells_another_end_than_its_pod_is_found():
	bad = world()
	bad.pod_jobs[UID][0]["ExitCode"] = "0:0"
	assert "its job with 1 FAILED 0:0" in judge.check_pods(bad).wrong[0]


def test_pod_that_its_kubelet_rejects_is_found_also_if_users_touched_it():
	bad = world()
	bad.objects[UID]["status"].update(reason="OutOfcpu", message="Node didn't have enough resource")
	bad.touched = lambda name: {"hold"}
	assert "did not take it: Node didn't" in judge.check_pods(bad).wrong[0]


def test_pod_for_which_a_foreign_one_left_no_room_is_found_only_if_that_was_known_before():
	for told, wrong in ((98.5, 1), (100.2, 0), (None, 0)):
		bad = with_foreign(told)
		bad.objects[UID]["status"].update(reason="OutOfcpu", message="Node didn't have enough resource")
		assert len(judge.check_pods(bad).wrong) == wrong


def test_pod_that_is_gone_or_never_ended_is_found():
	bad = world()
	bad.objects = {}
	assert "gone" in judge.check_pods(bad).wrong[0]
	bad = world()
	bad.objects[UID]["status"] = {"phase": "Running"}
	assert "Running" in judge.check_pods(bad).wrong[0]


def test_forgotten_job_counts_apart_only_after_a_crash_soon_after_its_news():
	for log, wrong in ((START, 1), (crash(8), 0)):
		bad = world(log)
		bad.pod_jobs[UID] = []
		verdict = judge.check_pods(bad)
		assert (len(verdict.wrong), len(verdict.apart)) == (wrong, 1 - wrong)


def test_slurm_job_with_another_end_than_its_process_is_found():
	bad = world()
	bad.jobs["job0"][0]["JobState"] = "CANCELLED"
	assert len(judge.check_jobs(bad).wrong) == 1


def test_id_that_slurm_gave_twice_is_known():
	log = START + "[2026-11-22T01:00:01.000] submit JobId=9 x\n" + START + "[2026-11-22T01:00:09.000] other JobId=9 x\n"
	assert ControllerLog(log).reused == {"9"}
	kept = log.replace("other", "Recovered JobId=9 Assoc=0\n[2026-11-22T01:00:09.000] other")
	assert ControllerLog(kept).reused == set()


def test_foreign_pod_that_was_deleted_by_force_is_known_by_the_log():
	line = (f"[2026-11-22T01:00:20.000] slurm-k8s: pod stand/default/x uid {FOREIGN} job none: the object of this foreign pod vanished "
		"before the kubelet had reported its containers gone; what it holds on node n1 stays masked\n")
	assert ControllerLog(START + line).vanished() == {FOREIGN: "n1"}


def test_pod_is_lost_by_a_crash_only_if_there_was_one():
	gone = f"[2026-11-22T01:00:20.000] pod uid {UID} job 1: gone; what it holds on node n1 stays masked\n"
	assert ControllerLog(crash(8) + gone).lost() == {UID: "n1"}
	assert ControllerLog(START + f"[2026-11-22T01:00:08.000] {UID}\n" + gone).lost() == {}
