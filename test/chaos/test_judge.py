# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The judge finds each kind of damage: one good world, spoiled in one way per story."""
import json
from collections import defaultdict
from types import SimpleNamespace

import judge
import plan
from cordons import Cordon, Drains, cordons, listening, started, uncordoned
from devices import told
from evidence import ControllerLog, seconds_of_local
from jobs import JobRun
from reservations import US, Reservation, reservations
from shared_pods import shared_pods
from world import Run

START = "[2026-11-22T01:00:00.000] slurmctld version 22.05.8 started on cluster stand\n"
UID, FOREIGN = "uid-of-pod0", "uid-of-foreign0"


class Job:
	def __init__(self, number, *runs):
		self.id, self.ran = number, list(runs)

	def runs(self):
		return self.ran


def world(log=START):
	"""A pod with exit code 3 beside a job of 3 cores on n1, both well ended."""
	about = {"cores": 1, "memory": 500, "gpus": 1, "code": 3}
	status = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}
	return SimpleNamespace(
		users=SimpleNamespace(pods={"pod0": UID}, foreign={}, jobs={"job0": Job(2, JobRun(100.0, 110.0, frozenset({1, 2})))}),
		steps={"pod0": about, "job0": {"cores": 3, "memory": 500, "gpus": 2, "code": 0, "node": "n1", "requeue": False}},
		log=ControllerLog(log), objects={UID: {"metadata": {"name": "pod0"}, "status": status}},
		runs=defaultdict(list, {UID: [Run(UID, "main", "c1", "n1", 101.0, 105.0, 3)]}),
		pod_jobs=defaultdict(list, {UID: [{"JobId": "1", "JobState": "FAILED", "ExitCode": "3:0"}]}),
		jobs=defaultdict(list, {"job0": [{"JobId": "2", "JobState": "COMPLETED", "ExitCode": "0:0"}]}),
		cordons=[], drains=Drains([]), started_jobs=[], broken=[], behind=[], listening=[(0, float("inf"))], uncordoned={}, last_cordon=False,
		devices={UID: frozenset({0})}, sharing="none", gone=[], server_ended=lambda begin, end: False, plugins=False,
		bindings={UID: ["n1"]}, deleted=defaultdict(set), slurmd_ends=defaultdict(list), touched=lambda name: set(),
		started={"pod0": 100.5, "job0": 100.0}.get, told=None, shared=None)


def with_foreign(told):
	"""That world, and a foreign pod on n1 while job0 runs and pod0 comes, of which slurm-k8s knew at that time."""
	spoiled = world()
	spoiled.users.foreign = {"foreign0": FOREIGN}
	spoiled.steps["foreign0"] = {"cores": 1, "memory": 100, "gpus": 0, "code": 0, "node": "n1"}
	spoiled.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", 99.0, 120.0, 0)]
	spoiled.told = lambda name: told
	return spoiled


def mixed(*told, asked=99.0):
	"""That world on a node that is shared as mixed; told: of the pod of job0."""
	good = world()
	good.sharing, good.reservation = "mixed", lambda name, run: Reservation(asked, told)
	return good


ADMITTED = ((99.2, "created"), (99.5, "status"))
GONE = (110.5, "removed")


def crash(when):
	"""slurmctld's log with a crash at this second of the first minute."""
	return START + f"[2026-11-22T01:00:{when:02}.000] any line about {UID}\n" + START.replace("00.000", f"{when + 2:02}.000")


def test_a_good_world_is_found_good():
	good = world()
	for check in (judge.check_overbooking, judge.check_devices, judge.check_numbers_of_devices, judge.check_bindings,
			judge.check_deletions, judge.check_pods, judge.check_jobs):
		verdict = check(good)
		assert (verdict.wrong, verdict.apart) == ([], [])


def test_one_core_too_many_is_found_and_so_is_memory():
	bad = world()
	bad.steps["pod0"]["cores"] = 2
	assert "5 cores" in judge.check_overbooking(bad).wrong[0]
	bad = world()
	bad.steps["pod0"]["memory"] = plan.MEMORY
	assert len(judge.check_overbooking(bad).wrong) == 1


def test_what_starts_when_the_other_ends_does_not_overlap():
	good = world()
	good.steps["job0"].update(cores=4, gpus=3)
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


# -- GPUs

def test_gpu_that_two_have_at_once_is_found_whatever_their_number():
	bad = world()
	bad.devices[UID] = frozenset({2})
	assert "GPU 2 of n1" in judge.check_devices(bad).wrong[0]
	assert judge.check_overbooking(bad).wrong == []
	bad.runs[UID] = [Run(UID, "main", "c1", "n1", 110.0, 115.0, 3)]
	assert judge.check_devices(bad).wrong == []
	bad.runs[UID] = [Run(UID, "main", "c1", "n2", 101.0, 105.0, 3)]
	assert judge.check_devices(bad).wrong == []


def test_gpu_that_two_jobs_or_two_pods_have_at_once_is_found():
	bad = world()
	bad.users.jobs["job1"] = Job(3, JobRun(109.0, 112.0, frozenset({0, 2})))
	bad.steps["job1"], bad.jobs["job1"] = bad.steps["job0"], [{"JobId": "3", "JobState": "RUNNING", "ExitCode": "0:0"}]
	assert [text.partition(": ")[2] for text in judge.check_devices(bad).wrong] == ["GPU 2 of n1: job0, job1"]
	bad = world()
	bad.users.pods["pod1"], bad.steps["pod1"], bad.devices["uid-of-pod1"] = "uid-of-pod1", bad.steps["pod0"], frozenset({0})
	bad.runs["uid-of-pod1"] = [Run("uid-of-pod1", "main", "c2", "n1", 104.0, 106.0, 0)]
	assert [text.partition(": ")[2] for text in judge.check_devices(bad).wrong] == ["GPU 0 of n1: pod0, pod1"]


def test_job_that_was_told_of_no_gpu_is_found_if_it_asked_for_one():
	for asked, wrong in ((2, 1), (0, 0)):
		bad = world()
		bad.users.jobs["job0"].ran, bad.steps["job0"]["gpus"] = [JobRun(100.0, 110.0, frozenset())], asked
		assert len(judge.check_numbers_of_devices(bad).wrong) == wrong


def test_gpus_of_a_foreign_pod_count_by_their_number():
	for told, wrong in ((98.5, 1), (None, 0)):
		bad = with_foreign(told)
		bad.steps["foreign0"].update(cores=0, gpus=1)
		assert len(judge.check_overbooking(bad).wrong) == wrong


def test_pod_or_job_that_has_not_as_many_gpus_as_it_asked_for_is_found():
	bad = world()
	bad.devices[UID] = frozenset()
	bad.users.jobs["job0"].ran = [JobRun(100.0, 110.0, frozenset({1}))]
	assert len(judge.check_numbers_of_devices(bad).wrong) == 2
	del bad.devices[UID]  # gone, and its Binding is in no log
	assert len(judge.check_numbers_of_devices(bad).wrong) == 1


def test_gpu_that_slurm_gave_away_because_it_forgot_its_own_job_counts_apart():
	bad = world()
	bad.devices[UID], bad.jobs["job0"] = frozenset({1}), []
	verdict = judge.check_devices(bad)
	assert verdict.wrong == [] and len(verdict.apart) == 1


def test_pod_that_its_kubelet_rejects_because_it_has_forgotten_its_gpus_is_not_our_mistake():
	for capacity, wrong in ((0, 0), (3, 1)):
		bad = world()
		bad.objects[UID]["status"].update(reason="OutOfnvidia.com/gpu", message=f"requested: 1, used: 0, capacity: {capacity}")
		assert len(judge.check_pods(bad).wrong) == wrong


# -- GPUs of a device plugin

def plugged(*told_of_job0, job0=(1, 2), pod0=(0,), foreign0=None, start=104.0):
	"""A mixed world in which the kubelets choose; foreign0: what a foreign pod has from `start` on."""
	bad = mixed(*told_of_job0)
	bad.plugins, bad.devices = True, {UID: frozenset(pod0)}
	bad.users.jobs["job0"].ran = [JobRun(100.0, 110.0, frozenset(job0))]
	if foreign0:
		bad.users.foreign, bad.told, bad.devices[FOREIGN] = {"foreign0": FOREIGN}, lambda name: None, frozenset(foreign0)
		bad.steps["foreign0"] = {"cores": 0, "memory": 100, "gpus": len(foreign0), "code": 0, "node": "n1"}
		bad.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", start, 120.0, 0)]
	return bad


def test_device_that_its_kubelet_gave_to_a_pod_and_slurm_to_a_job_is_found():
	assert judge.check_devices(plugged(*ADMITTED, GONE)).wrong == []
	for bad in (plugged(*ADMITTED, GONE, job0=(0, 1)), plugged(*ADMITTED, GONE, foreign0=(2,)), plugged(*ADMITTED, GONE, pod0=(1,))):
		assert len(judge.check_devices(bad).wrong) == 1
	assert judge.check_overbooking(plugged(*ADMITTED, GONE, foreign0=(2,))).wrong == []
	assert "foreign0 asked for" not in str(judge.check_numbers_of_devices(plugged(*ADMITTED, GONE, foreign0=(2,))).wrong)


def test_device_that_a_foreign_pod_got_from_a_job_whose_pod_others_took_is_not_its_kubelets_mistake():
	for taken, start, wrong in ((103.0, 104.0, 0), (105.0, 104.0, 1), (99.9, 104.0, 0)):
		again = (taken + 0.1, "created"), (taken + 0.2, "status")
		assert len(judge.check_devices(plugged(*ADMITTED, (taken, "taken"), *again, GONE, foreign0=(2,), start=start)).wrong) == wrong, taken
	forced = plugged(*ADMITTED, GONE, foreign0=(2,))
	forced.touched = lambda name: {"force"} if name == "foreign0" else set()
	assert judge.check_devices(forced).wrong == []


def test_pod_that_a_kubelet_with_a_device_plugin_does_not_take_is_found_unless_the_plugin_had_just_begun():
	for why, wrong in (("Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0", 1),
			("Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu", 0)):
		bad = plugged(*ADMITTED, GONE)
		bad.objects[UID]["status"].update(reason="UnexpectedAdmissionError", message=why)
		assert len(judge.check_pods(bad).wrong) == wrong, why


def test_checkpoint_of_a_kubelet_tells_which_pod_has_which_gpus():
	entries = [{"PodUID": uid, "ContainerName": "main", "ResourceName": resource, "DeviceIDs": {"-1": ids}} for uid, resource, ids in
		(("a", plan.GPU, ["gpu2", "gpu0"]), ("b", "example.com/fpga", ["gpu1"]), ("c", plan.GPU, ["gpu1"]))]
	assert told(json.dumps({"Data": {"PodDeviceEntries": entries}, "Checksum": 1})) == {"a": {0, 2}, "c": {1}}
	assert told('{"Data":{"PodDeviceEntries":null}}') == {}


def test_gpus_of_every_third_seed_are_a_device_plugins_on_real_mixed_nodes():
	assert [plan.has_plugins(*how) for how in ((3, "real", "mixed"), (1, "real", "mixed"), (3, "sim", "mixed"), (3, "real", "none"))] == [
		True, False, False, False]


def test_job_that_went_back_into_the_queue_is_judged_by_its_last_run_and_counts_in_each():
	good = world()
	good.users.jobs["job0"].ran = [JobRun(90.0, None, frozenset({1, 2})), JobRun(100.0, 110.0, frozenset({1, 2}))]
	assert judge.check_jobs(good).wrong == []
	good.slurmd_ends["2"] = [95.0]
	good.runs[UID] = [Run(UID, "main", "c1", "n1", 92.0, 99.0, 3)]
	good.steps["pod0"]["cores"] = 2
	assert len(judge.check_overbooking(good).wrong) == 1


def test_first_run_of_a_job_that_slurm_forgot_and_started_again_counts_apart():
	bad = world(crash(8))
	at = seconds_of_local("2026-11-22T01:00:00")
	bad.users.jobs["job0"].ran = [JobRun(at + start, at + 20.0, frozenset({1, 2})) for start in (7.0, 12.0)]
	verdict = judge.check_devices(bad)
	assert verdict.wrong == [] and len(verdict.apart) == 2
	bad.devices[UID] = frozenset({1})
	bad.runs[UID] = [Run(UID, "main", "c1", "n1", at + 15.0, at + 16.0, 3)]  # beside the one that it knows
	assert len(judge.check_devices(bad).wrong) == 1


def test_run_of_a_job_whose_start_slurm_forgot_and_that_was_cancelled_while_it_waited_again_counts_apart():
	for log, told, wrong in ((crash(8), 12.0, 0), (crash(8), 7.0, 1), (START, 12.0, 1)):
		bad, at = world(log), seconds_of_local("2026-11-22T01:00:00")
		bad.users.jobs["job0"].ran = [JobRun(at + 7.2, at + 20.0, frozenset({1, 2}))]
		bad.started = {"job0": at + told}.get
		bad.devices[UID], bad.runs[UID] = frozenset({1}), [Run(UID, "main", "c1", "n1", at + 15.0, at + 16.0, 3)]
		verdict = judge.check_devices(bad)
		assert (len(verdict.wrong), len(verdict.apart)) == (wrong, 1 - wrong), (log, told)


# -- sharing: mixed

def checks(evidence):
	return [len(verdict.wrong) for verdict in judge.check_sharing(evidence)]


def test_job_whose_pod_stands_from_before_its_launch_until_after_its_end_is_found_good():
	assert checks(mixed(*ADMITTED, GONE)) == [0, 0, 0]
	assert checks(world()) == []


def test_job_that_is_launched_before_its_pod_was_admitted_is_found():
	for told in ((), ((99.2, "created"),), ((99.2, "created"), (100.4, "status")), ((99.2, "created"), (99.5, "over")),
			((99.2, "created"), (99.5, "seen"), (101, "over"))):
		assert checks(mixed(*told)) == [0, 1, 0]
	late = mixed((99.2, "created"))
	late.server_ended = lambda begin, end: begin < 99.6 < end  # nobody wrote down what it did last
	verdict = judge.check_gate(late)
	assert verdict.wrong == [] and len(verdict.apart) == 1


def test_pod_that_is_removed_before_its_jobs_process_has_ended_is_found():
	assert checks(mixed(*ADMITTED, (109.5, "removed"))) == [0, 0, 1]
	bad = mixed(*ADMITTED, (112.5, "removed"))
	bad.users.jobs["job0"].ran, bad.slurmd_ends["2"] = [JobRun(100.0, None, frozenset({1, 2}))], [113.0]  # by SIGKILL
	assert checks(bad) == [0, 0, 1]


def test_foreign_pod_that_came_second_is_found_unless_somebody_had_taken_the_pod_of_the_job():
	def came(told, start=104.0):
		bad = mixed(*told, GONE)
		bad.users.foreign, bad.told = {"foreign0": FOREIGN}, lambda name: None
		bad.steps["foreign0"] = {"cores": 2, "memory": 100, "gpus": 0, "code": 0, "node": "n1"}
		bad.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", start, 120.0, 0)]
		bad.runs[UID] = []
		return bad
	assert checks(came(ADMITTED)) == [1, 0, 0]
	assert judge.check_overbooking(came(ADMITTED)).wrong == []  # as without mixed
	taken = (*ADMITTED, (103.0, "taken"), (103.2, "over"), (103.5, "taken"))
	assert checks(came(taken)) == [0, 0, 0]
	again = (*taken, (103.6, "created"), (103.8, "status"))  # the kubelet had room for it
	assert checks(came(again)) == [1, 0, 0] and checks(came(again, 103.7)) == [1, 0, 0]
	refused = (*taken, (103.6, "created"), (104.1, "over"))
	assert checks(came(refused)) == [0, 0, 0]
	forced = came(ADMITTED)
	forced.touched = lambda name: {"force"} if name == "foreign0" else set()  # its kubelet gives it up at once
	assert checks(forced) == [0, 0, 0]


def test_job_that_does_not_come_to_its_end_because_others_took_its_pod_is_found():
	bad = world()
	bad.jobs["job0"][0].update(JobState="CANCELLED", ExitCode="0:15")
	for verb, wrong in (("evict", 1), ("take", 1), ("scancel", 0)):
		bad.touched = lambda name, verb=verb: {verb}
		assert len(judge.check_jobs(bad).wrong) == wrong


def test_job_that_never_ran_is_found_unless_it_was_told_why_and_cannot_go_back_into_the_queue():
	line = "[2026-11-22T01:00:20.000] slurm-k8s: job 2 of cluster stand: not started: the kubelet of node n1 refuses\n"
	for log, requeue, wrong in ((START, False, 1), (START + line, True, 1), (START + line, False, 0)):
		bad = world(log)
		bad.users.jobs["job0"].ran, bad.steps["job0"]["requeue"] = [], requeue
		bad.jobs["job0"][0].update(JobState="CANCELLED", ExitCode="0:0")
		assert len(judge.check_jobs(bad).wrong) == wrong


def test_reservation_pod_that_stays_is_found():
	game = SimpleNamespace(left={"reservations": ["slurm-2-5f-n1"]})
	assert ["slurm-2-5f-n1"] in [verdict.wrong for verdict in judge.check_left(game, world())]


def test_kubelet_whose_node_is_not_there_counts_no_gpus_of_what_begins():
	bad = mixed(*ADMITTED, GONE)
	bad.steps["pod0"]["gpus"] = 2  # beside the two of job0
	assert len(judge.check_admitted(bad).wrong) == 1
	for gone, wrong in (((90.0, 92.0, "n1"), 0), ((80.0, 89.0, "n1"), 1), ((102.0, 108.0, "n1"), 1), ((90.0, 95.0, "n2"), 1), ((100.5, 106.0, "n1"), 0)):
		bad.gone = [gone]
		assert len(judge.check_admitted(bad).wrong) == wrong, gone


def test_audit_log_tells_who_did_what_to_the_pods_of_which_run():
	def event(verb, second, user, name="slurm-12-6a60-n1", code=201, part=None, **status):
		return {"verb": verb, "user": {"username": user}, "responseStatus": {"code": code},
			"requestReceivedTimestamp": f"1970-01-01T07:33:{second:02}.000000Z", "requestObject": {"status": status},
			"objectRef": {"resource": "pods", "namespace": "slurm-k8s-jobs", "name": name, **({"subresource": part} if part else {})}}
	begin = 7 * 3600 + 33 * 60
	kubelet, admits = "system:node:n1", [{"type": "PodScheduled"}, {"type": "Initialized"}]
	events = [event("create", 1, US), event("create", 2, US, code=409), event("patch", 3, "admin", part="status", conditions=admits),
		event("patch", 4, kubelet, part="status"), event("patch", 5, kubelet, part="status", conditions=admits), event("create", 10, "admin", part="eviction"),
		event("delete", 9, US, code=409), event("patch", 11, kubelet, part="status"), event("delete", 12, kubelet), event("create", 13, US),
		event("patch", 14, kubelet, part="status", phase="Running", conditions=admits), event("delete", 20, US), event("get", 21, US),
		event("create", 30, US, "slurm-12-6a80-n1"), event("patch", 31, kubelet, "slurm-12-6a80-n1", part="status", phase="Failed")]
	first, second = reservations(events)[12, "n1"]
	assert first.admitted == [(begin + 5, begin + 10), (begin + 14, begin + 20)] and first.removed == [begin + 20]
	assert first.gaps(begin + 6, begin + 18) == [(begin + 10, begin + 14)]
	assert (first.asked, second.asked, second.admitted) == (0x6a60, 0x6a80, [])
	ended = Reservation(1, [(2, "created"), (3, "status"), (4, "status"), (9, "over")])
	assert ended.gaps(3, 9) == [(4, 9)]  # nobody tells when its kubelet gave its room to others


def test_users_of_mixed_nodes_take_the_pods_of_jobs_and_others_do_not():
	verbs = {sharing: {step.verb for step in plan.make(3, 600, "real", sharing)} for sharing in ("none", "mixed")}
	assert verbs["mixed"] - verbs["none"] == set(plan.ON_RESERVATIONS)


def test_taint_of_dedicated_nodes_is_taken_off_and_other_nodes_have_none():
	verbs = {sharing: {step.verb for step in plan.make(3, 600, "real", sharing)} for sharing in ("none", "dedicated")}
	assert verbs["dedicated"] - verbs["none"] == {"untaint"}


# -- sharing: mixed, and small jobs share a pod

KUBELET = "system:node:n1"


def on_shared(second, verb, user=US, cores=None, **more):
	"""An event of the audit log about the pod that small jobs of n1 share."""
	part = {"resize": "resize", "status": "status", "eviction": "eviction"}.get(verb)
	asked = {"spec": {"containers": [{"resources": {"requests": {"cpu": str(cores), "memory": f"{cores * 500}Mi"}}}]}} if cores else {}
	return {"verb": {"eviction": "create", "create": "create", "delete": "delete"}.get(verb, "patch"), "user": {"username": user},
		"responseStatus": {"code": 200}, "requestReceivedTimestamp": f"1970-01-01T00:{second // 60:02}:{second % 60:02}.000000Z",
		"requestObject": {**asked, **more}, "objectRef": {"resource": "pods", "namespace": "slurm-k8s-jobs", "name": "slurm-shared-n1",
			**({"subresource": part} if part else {})}}


def keeps(second, seen, cores=None, phase="Running", **more):
	"""What its kubelet says; cores: has set aside so many."""
	has = {"containerStatuses": [{"allocatedResources": {"cpu": str(cores), "memory": f"{cores * 500}Mi"}}]} if cores else {}
	return on_shared(second, "status", KUBELET, status={"phase": phase, "observedGeneration": seen, **has,
		"conditions": [{"type": "Initialized"}], **more})


PUT_OFF = [{"type": "PodResizePending", "status": "True", "observedGeneration": 2, "reason": "Deferred"}]


def sharing_pods(*events, second=None):
	"""A world whose job0 has two cores from 100 to 110 in a pod that others share; second: (start, stop) of a job1 with one."""
	good = mixed()
	good.steps["job0"].update(cores=2, gpus=0, memory=1000)
	good.users.jobs["job0"].ran = [JobRun(100.0, 110.0, frozenset())]
	good.reservation, good.shared = lambda name, run: None, shared_pods(events)
	if second:
		good.users.jobs["job1"] = Job(3, JobRun(*second, frozenset()))
		good.steps["job1"], good.jobs["job1"] = {**good.steps["job0"], "cores": 1, "memory": 500}, good.jobs["job0"]
	return good


MADE = (on_shared(97, "create", cores=2), keeps(98, 1))
GROWN = (*MADE, on_shared(101, "resize", cores=3))


def test_small_jobs_whose_kubelet_keeps_enough_for_all_of_them_are_found_good():
	assert checks(sharing_pods(*MADE, on_shared(115, "delete"))) == [0, 0, 0, 0, 0]
	for grown in (keeps(102, 2, 3), keeps(102, 2)):  # its runtime has it, or not yet
		assert checks(sharing_pods(*GROWN, grown, second=(103.0, 109.0))) == [0, 0, 0, 0, 0]
	shrunk = (*GROWN, keeps(102, 2, 3), on_shared(106, "resize", cores=2), keeps(107, 3, 2))
	assert checks(sharing_pods(*shrunk, second=(103.0, 105.9))) == [0, 0, 0, 0, 0]
	taken = on_shared(99, "eviction", "admin")  # after it was let out
	assert checks(sharing_pods(*MADE, taken)) == [0, 0, 0, 0, 0]


def test_job_that_is_launched_before_its_kubelet_keeps_its_share_is_found():
	for events in ((), MADE[:1], (MADE[0], keeps(101, 1)), (MADE[0], keeps(98, 1, phase="Failed"))):
		assert checks(sharing_pods(*events))[3] == 1, events
	for grown in ((), (keeps(105, 2, 3),), (keeps(102, 2, 2, conditions=PUT_OFF),), (keeps(102, 1, 2),)):
		assert checks(sharing_pods(*GROWN, *grown, second=(103.0, 109.0))) == [0, 0, 0, 1, 0], grown
	stale = (*GROWN, on_shared(101, "resize", cores=2), on_shared(102, "resize", cores=3), keeps(102, 2, 3))
	assert checks(sharing_pods(*stale, second=(103.0, 109.0)))[3] == 1  # it may follow the one in between yet
	unknown = keeps(98, 1, 2), {**keeps(99, 1, 2), "requestObject": {**keeps(99, 1, 2)["requestObject"], "metadata": {"uid": "other"}}}
	assert checks(sharing_pods(unknown[0]))[3] == 0  # nobody wrote down that it was made
	first = {**MADE[1], "requestObject": {**MADE[1]["requestObject"], "metadata": {"uid": "one"}}}
	assert [checks(sharing_pods(MADE[0], first, on_shared(98, "delete"), *more))[3] for more in ((), unknown[1:])] == [1, 0]
	assert checks(sharing_pods(*MADE, on_shared(99, "delete"), keeps(99, 2, 2)))[3] == 1  # it goes, whatever its kubelet still says
	late = sharing_pods(*MADE[:1])
	late.server_ended = lambda begin, end: True
	assert [(len(verdict.wrong), len(verdict.apart)) for verdict in [judge.check_shared_gate(late)]] == [(0, 1)]


def test_share_that_is_taken_back_before_its_jobs_process_has_ended_is_found():
	grown = (*GROWN, keeps(102, 2, 3))
	for early in (on_shared(106, "resize", cores=2), on_shared(106, "delete")):
		assert checks(sharing_pods(*grown, early, second=(103.0, 109.0)))[4] == 1
	killed = sharing_pods(*grown, on_shared(112, "resize", cores=2), second=(103.0, None))
	killed.slurmd_ends["3"] = [113.0]
	killed.users.jobs["job0"].ran = [JobRun(100.0, 120.0, frozenset())]
	assert checks(killed)[4] == 1
	forgotten = sharing_pods(*grown, on_shared(106, "resize", cores=2), second=(103.0, 109.0))
	forgotten.jobs = {**forgotten.jobs, "job1": []}
	assert checks(forgotten)[4] == 0


def test_foreign_pod_that_came_second_is_found_while_a_kubelet_kept_enough_for_small_jobs():
	def came(start, *events):
		bad = sharing_pods(*MADE, *events)
		bad.users.foreign, bad.told, bad.runs[UID] = {"foreign0": FOREIGN}, lambda name: None, []
		bad.steps["foreign0"] = {"cores": 3, "memory": 100, "gpus": 0, "code": 0, "node": "n1"}
		bad.runs[FOREIGN] = [Run(FOREIGN, "main", "c2", "n1", start, 120.0, 0)]
		return bad
	taken = on_shared(103, "delete", "admin")
	again = (taken, on_shared(104, "create", cores=2), keeps(106, 1, 2))
	for start, events, wrong in ((104.0, (), 1), (102.0, (taken,), 1), (104.0, (taken,), 0), (107.0, again, 1)):
		assert checks(came(start, *events))[0] == wrong, (start, events)


def test_small_jobs_of_odd_seeds_share_a_pod_where_nodes_are_mixed():
	assert [plan.shares_pods(seed, sharing) for seed, sharing in ((1, "mixed"), (2, "mixed"), (1, "dedicated"))] == [True, False, False]


# -- the state of nodes

CORDONED = Cordon("n1", 60.0, 120.0, "admin", False, [])


def on_cordoned(when=100.0, node="n1", broken=(), log=(), cordon=CORDONED):
	"""That world, whose job0 started on a node that somebody had cordoned."""
	bad = world()
	bad.cordons, bad.broken, bad.drains = [cordon], list(broken), Drains(log)
	bad.started_jobs = started([(when, f"sched: Allocate JobId=2 NodeList={node} #CPUs=3 Partition=batch")])
	return bad


def test_job_that_starts_on_a_cordoned_node_is_found_once_slurm_must_have_been_told():
	for when, node, wrong in ((100.0, "n1", 1), (100.0, "n2", 0), (62.0, "n1", 0), (119.0, "n1", 1), (120.5, "n1", 0)):
		assert len(judge.check_cordons(on_cordoned(when, node)).wrong) == wrong, (when, node)
	assert judge.check_cordons(on_cordoned()).seen == 1
	by_backfill = on_cordoned()
	by_backfill.started_jobs = started([(100.0, "sched/backfill: _start_job: Started JobId=2 in batch on n1")])
	assert len(judge.check_cordons(by_backfill).wrong) == 1


def test_what_nobody_could_tell_slurm_does_not_count_until_it_hears_of_nodes_again():
	for broken, wrong in (((50.0, 51.0), 1), ((50.0, 98.0), 0), ((50.0, 96.0), 1), ((101.0, 110.0), 1), ((59.0, 130.0), 0)):
		assert len(judge.check_cordons(on_cordoned(broken=[broken])).wrong) == wrong, broken
	assert judge.check_cordons(on_cordoned(broken=[(59.0, 130.0)])).seen == 0
	for watches, wrong in (([(0, 70.0), (75.0, 130.0)], 1), ([(0, 70.0), (98.0, 130.0)], 0), ([(0, 99.0)], 0), ([(0, 70.0), (60.0, 130.0)], 1), ([], 0)):
		bad = on_cordoned()
		bad.listening = watches
		assert len(judge.check_cordons(bad).wrong) == wrong, watches
	for behind, wrong in (((50.0, 75.0), 0), ((50.0, 69.0), 1)):  # the watch goes on, its server has nothing to tell yet
		bad = on_cordoned()
		bad.behind = [behind]
		assert len(judge.check_cordons(bad).wrong) == wrong, behind


def test_cordon_for_which_slurm_has_drained_the_node_counts_whatever_breaks_until_slurmctld_starts_anew():
	drained = [(90.0, "update_node: node n1 reason set to: k8s: cordoned by admin"), (90.0, "update_node: node n1 state set to DRAINED")]
	for more, wrong in (([], 1), ([(95.0, "slurmctld version 22.05.8 started on cluster stand")], 0),
			([(99.0, "update_node: node n1 state set to IDLE")], 0), ([(96.0, "update_node: node n1 state set to IDLE")], 1)):
		assert len(judge.check_cordons(on_cordoned(broken=[(59.0, 130.0)], log=[*drained, *more])).wrong) == wrong, more
	faster = [(59.9995, text) for _, text in drained]  # than the answer to who had cordoned it
	assert judge.check_cordons(on_cordoned(broken=[(59.0, 130.0)], log=faster)).seen == 1
	other = [(when, text.replace("n1", "n2")) for when, text in drained]
	assert judge.check_cordons(on_cordoned(broken=[(59.0, 130.0)], log=other)).seen == 0


def test_play_with_a_last_cordon_of_which_nothing_can_be_said_is_found():
	for last, broken, wrong in ((True, [(59.0, 130.0)], 1), (True, [], 0), (False, [(59.0, 130.0)], 0)):
		bad = on_cordoned(when=130.0, broken=broken)
		bad.last_cordon = last
		assert len(judge.check_cordons(bad).wrong) == wrong


def test_last_things_done_to_nodes_of_a_play_are_a_cordon_and_what_slurm_keeps_jobs_away_by_when_nothing_is_in_the_way():
	for seed in range(50):
		for api, seconds in (("sim", 30), ("real", 45), ("real", 60), ("sim", 300)):
			steps = plan.make(seed, seconds, api, "mixed")
			last = {step.verb: step for step in steps if step.verb.startswith("last_")}
			at = last["last_cordon"].at
			assert seconds - 12 <= at < seconds - 5 and {step.target for step in last.values()} == set(plan.NODES)
			assert last["last_close"].about["state"] == ("DRAIN" if seed % 2 else "DOWN")
			near = [step for step in steps if step.verb in plan.ON_NODES or step.target in plan.NEAR and step.verb != "reconfigure"]
			assert max(step.at + step.about["seconds"] for step in near) < at


def test_node_that_its_administrator_resumed_despite_a_cordon_gets_jobs_and_another_one_does_not():
	resumed = [(99.0, "update_node: node n1 state set to IDLE")]
	for log, noted, wrong in (([], [], 1), (resumed, [], 0), ([(95.0, resumed[0][1])], [], 1), (resumed, [99.5], 0)):
		assert len(judge.check_cordons(on_cordoned(log=log, cordon=CORDONED._replace(resumed=noted))).wrong) == wrong
	claims = CORDONED._replace(resumed=[99.5])  # and nobody has
	assert [len(judge.check_nodes(on_cordoned(log=log, cordon=claims)).wrong) for log in ([], resumed)] == [1, 0]


def test_cordon_of_others_that_slurm_k8s_takes_off_is_found():
	for off, marked, wrong, apart in (("admin", False, 0, 0), (US, False, 1, 0), (US, True, 0, 1), (None, False, 0, 0)):
		found = judge.check_nodes(on_cordoned(cordon=CORDONED._replace(off=off, marked=marked)))
		assert (len(found.wrong), len(found.apart)) == (wrong, apart)


def test_drain_of_others_that_slurm_k8s_takes_back_or_renames_is_found():
	def log(reason, *more):
		return [(10.0, f"update_node: node n1 reason set to: {reason}"), (10.0, "update_node: node n1 state set to DRAINED"), *more]
	resumed = (20.0, "update_node: node n1 state set to IDLE")
	ours = (20.1, "slurm-k8s: node stand/n1: resumed in Slurm; it was k8s: cordoned")
	drained = (21.0, "update_node: node n1 reason set to: k8s: cordoned")
	started_anew = (15.0, "slurmctld version 22.05.8 started on cluster stand")
	for lines, wrong in ((log("chaos", resumed), 0), (log("chaos", resumed, ours), 1), (log("k8s: cordoned", resumed, ours), 0),
			(log("chaos", drained), 1), (log("chaos", resumed, drained), 0), (log("chaos", started_anew, drained), 0),
			(log("chaos", resumed, (25.0, ours[1])), 0)):
		assert len(judge.check_nodes(on_cordoned(log=lines)).wrong) == wrong, lines


CLOSED = [(60.0, "update_node: node n1 reason set to: chaos"), (60.0, "update_node: node n1 state set to DOWN"),
	(120.0, "update_node: node n1 state set to IDLE")]


def closed(open_spans, log=tuple(CLOSED), broken=(), by="admin"):
	"""That world, while Slurm's administrator has n1 DOWN, and where it is not cordoned."""
	bad = on_cordoned(log=log, broken=broken)
	bad.uncordoned = {name: [(*span, by) for span in spans] for name, spans in (("n1", open_spans), ("n2", [(0, float("inf"))]))}
	return judge.check_closed(bad)


def test_node_that_is_down_or_drained_by_slurms_administrator_and_not_cordoned_is_found():
	for spans, wrong in (([(0, float("inf"))], 1), ([(0, 62.0), (120.1, 130.0)], 0), ([(0, 62.0), (80.0, 82.0)], 0), ([(0, 62.0), (80.0, 90.0)], 1),
			([(0, 70.0)], 1)):
		assert len(closed(spans).wrong) == wrong, spans
	always = [(0, float("inf"))]
	drained = [(when, text.replace("DOWN", "DRAINED")) for when, text in CLOSED]
	assert "n1 is DOWN" in closed(always).wrong[0] and "n1 is drained" in closed(always, drained).wrong[0]
	ours = [(when, text.replace("chaos", "k8s: cordoned")) for when, text in CLOSED]
	soon = [*CLOSED[:2], (62.5, "node n1 returned to service")]  # by its slurmd, which was started anew
	crashed = [*CLOSED[:2], (62.5, "any line"), (70.0, "slurmctld version 22.05.8 started on cluster stand")]
	for log in (ours, soon, crashed):
		assert closed(always, log).wrong == [], log
	assert [len(closed(always, broken=[(50.0, end)]).wrong) for end in (85.0, 95.0)] == [1, 0]


def test_cordon_that_slurm_k8s_takes_off_while_slurm_has_the_node_down_is_found_whenever_that_is():
	for begin, by, broken, wrong in ((80.0, US, [(50.0, 76.0)], 1), (80.0, "admin", [(50.0, 76.0)], 0), (80.0, US, [(50.0, 79.0)], 0),
			(62.0, US, [(50.0, 51.0)], 0), (120.1, US, [(50.0, 51.0)], 0)):
		assert len(closed([(0, 60.1), (begin, begin + 2)], broken=broken, by=by).wrong) == wrong, (begin, by, broken)


def test_down_of_others_that_slurm_k8s_takes_back_or_renames_is_found():
	resumed = (80.0, "update_node: node n1 state set to IDLE")
	for last in (((80.1, "slurm-k8s: node stand/n1: resumed in Slurm; it was k8s: cordoned"),), ((80.2, "update_node: node n1 reason set to: k8s: NotReady"),)):
		log = [*CLOSED[:2], *([resumed] if "resumed" in last[0][1] else []), *last]
		assert [text.partition(": ")[2] for text in judge.check_nodes(on_cordoned(log=log)).wrong] == ['n1 was in DOWN for "chaos"']


def test_down_that_slurm_itself_takes_back_when_slurmd_answers_is_nobodys_any_more():
	answers, ours = (60.1, "node_did_resp: node n1 returned to service"), (80.0, "update_node: node n1 reason set to: k8s: cordoned by admin")
	drained = [(60.0, text.replace("DOWN", "DRAINED")) for _, text in CLOSED[:2]]
	for log, wrong in (([*CLOSED[:2], answers, ours], 0), ([*CLOSED[:2], ours], 1), ([*drained, *CLOSED[:2], answers, ours], 1)):
		assert len(judge.check_nodes(on_cordoned(log=log)).wrong) == wrong, log
	always = [(0, float("inf"))]
	assert [len(closed(always, log).wrong) for log in ([*CLOSED[:2], answers, CLOSED[2]], [*drained, *CLOSED[:2], answers, CLOSED[2]])] == [0, 1]


def set_down(when, world_of=world, start=99.8, node="n1"):
	"""That world, whose job0 Slurm started then, and somebody set its node DOWN."""
	bad = world_of()
	bad.started_jobs = started([(start, f"sched: Allocate JobId={number} NodeList=n1 #CPUs=3 Partition=batch") for number in (1, 2)])
	bad.drains = Drains([(when, f"update_node: node {node} state set to DOWN")])
	return bad


def test_what_a_process_has_after_its_node_was_set_down_counts_apart_and_before_that_it_counts():
	for when, start, node, wrong, apart in ((104.0, 99.8, "n1", 0, 1), (104.0, 99.8, "n2", 1, 0), (108.0, 99.8, "n1", 1, 1), (99.9, 99.8, "n1", 0, 1),
			(99.0, 99.8, "n1", 1, 0), (112.0, 99.8, "n1", 1, 0)):
		bad = set_down(when, start=start, node=node)
		bad.devices[UID], bad.runs[UID] = frozenset({1}), [Run(UID, "main", "c1", "n1", 106.0, 109.0, 3)]
		assert [bool(judge.check_devices(bad).wrong), bool(judge.check_devices(bad).apart)] == [wrong, apart], (when, start, node)


def test_job_or_pod_that_ended_with_its_node_is_found_only_if_nobody_had_set_that_down():
	for when, node, wrong in ((104.0, "n1", 0), (104.0, "n2", 1), (99.0, "n1", 1)):
		bad = set_down(when, node=node)
		bad.jobs["job0"][0].update(JobState="NODE_FAIL", ExitCode="0:0")
		bad.pod_jobs[UID][0].update(JobState="NODE_FAIL", ExitCode="0:0")
		assert (len(judge.check_jobs(bad).wrong), len(judge.check_pods(bad).wrong)) == (wrong, wrong), (when, node)
		bad.jobs["job0"][0]["JobState"] = "CANCELLED"
		assert len(judge.check_jobs(bad).wrong) == 1  # by whom?


def test_pod_that_is_removed_before_its_jobs_process_has_ended_is_found_unless_its_node_was_set_down():
	for when, wrong in ((104.0, 0), (106.0, 1)):
		bad = set_down(when, lambda: mixed(*ADMITTED, (105.0, "removed")))
		assert len(judge.check_removed(bad).wrong) == wrong
	for when, wrong in ((104.0, 0), (109.0, 1)):
		bad = set_down(when, lambda: sharing_pods(*MADE, on_shared(106, "delete")))
		assert len(judge.check_shared_removed(bad).wrong) == wrong


def node_event(second, user, verb="patch", notes=None, **spec):
	at = f"1970-01-01T00:00:{second:02}"
	body = {"requestObject": {"spec": spec, "metadata": {"annotations": notes or {}}}} if verb == "patch" else {}
	return {"verb": verb, "user": {"username": user}, "responseStatus": {"code": 200}, "objectRef": {"resource": "nodes", "name": "n1"},
		"requestReceivedTimestamp": at + ".000000Z", "stageTimestamp": at + ".500000Z", **body}


def test_audit_log_tells_when_a_node_can_be_had_and_nobody_has_decided_so():
	on, off = {"unschedulable": True}, {"unschedulable": None}
	ours, gone, forever = {"slurm-k8s.io/drain-owner": "slurm"}, {"slurm-k8s.io/drain-owner": None}, float("inf")
	first, begin = node_event(2, US, notes=ours, **on), (0, 2, None)
	assert uncordoned([first, node_event(9, US, notes=gone, **off)]) == {"n1": [begin, (9.5, forever, US)]}
	decided = [first, node_event(4, "admin", **off)]
	assert uncordoned(decided) == {"n1": [begin]}
	assert uncordoned([*decided, node_event(9, US, notes=gone)]) == {"n1": [begin, (9.5, forever, US)]}
	assert uncordoned([node_event(2, "admin", **on), node_event(3, US, notes=gone), node_event(4, "admin", **off)]) == {
		"n1": [begin, (4.5, forever, "admin")]}
	assert uncordoned([*decided, node_event(5, "admin", "delete"), node_event(7, "admin", "create")]) == {"n1": [begin, (7.5, forever, "admin")]}


def test_audit_log_tells_while_there_was_a_watch_of_nodes():
	def watch(second, stage, received, user=US, resource="nodes"):
		return {**node_event(second, user, "watch"), "stage": stage, "requestReceivedTimestamp": f"{received}", "requestURI": "/api/v1/nodes?watch",
			"objectRef": {"resource": resource}}
	begins, ends = watch(2, "ResponseStarted", 1), watch(8, "ResponseComplete", 1)
	assert listening([begins, ends, watch(9, "ResponseStarted", 2)], []) == [(2.5, 8.5), (9.5, float("inf"))]
	assert listening([begins, watch(9, "ResponseStarted", 2)], [5.0, 20.0]) == [(2.5, 5.0), (9.5, 20.0)]
	assert listening([watch(2, "ResponseStarted", 1, "admin"), watch(2, "ResponseStarted", 1, resource="pods")], []) == []


def test_audit_log_tells_who_cordoned_a_node_and_who_took_that_off():
	def event(second, user, verb="patch", code=200, notes=None, **spec):
		body = {"requestObject": {"spec": spec, "metadata": {"annotations": notes or {}}}} if verb == "patch" else {}
		at = f"1970-01-01T00:00:{second:02}"
		return {"verb": verb, "user": {"username": user}, "responseStatus": {"code": code}, "objectRef": {"resource": "nodes", "name": "n1"},
			"requestReceivedTimestamp": at + ".000000Z", "stageTimestamp": at + ".500000Z", **body}
	on, off = {"unschedulable": True}, {"unschedulable": None}
	ours, gone = {"slurm-k8s.io/drain-owner": "slurm"}, {"slurm-k8s.io/drain-owner": None}
	assert cordons([event(1, "admin", **on), event(2, "admin", **on), event(3, US, code=409, **off), event(4, "admin", **off)]) == [
		Cordon("n1", 1.5, 4, "admin", False, [])]
	assert cordons([event(1, "admin", **on), event(2, US, **off)])[0].off == US
	taint = {**event(2, US), "requestObject": [{"op": "add", "path": "/spec/taints"}]}
	assert cordons([event(1, "admin", **on), taint, event(3, "admin", **off)]) == [Cordon("n1", 1.5, 3, "admin", False, [])]
	assert cordons([event(1, US, notes=ours, **on), event(2, "admin", **on), event(3, US, notes=gone, **off)]) == []
	assert cordons([event(1, US, notes=ours, **on), event(2, "admin", **off), event(3, "admin", **on), event(4, US, notes=gone, **off)]) == [
		Cordon("n1", 3.5, 4, US, True, [])]
	assert cordons([event(1, "admin", **on), event(2, US, notes=ours, **on), event(3, US, notes=gone, **off)]) == [
		Cordon("n1", 1.5, 2, None, False, [])]  # the server was killed before it had written who took it off
	assert cordons([event(1, "admin", **on), event(2, US, notes={"slurm-k8s.io/resumed-in-slurm": "cordoned"}), event(3, "admin", "delete")]) == [
		Cordon("n1", 1.5, 3, "admin", False, [2])]


def test_last_minute_of_a_long_play_is_without_faults_and_full_of_what_is_done_to_nodes():
	faults = {*plan.DAEMON_FAULTS, *plan.NETWORK_FAULTS}
	steps = {seconds: plan.make(3, seconds, "real") for seconds in (45, 300)}
	last = {seconds: max(step.at for step in steps[seconds] if step.verb in faults) for seconds in steps}
	assert last[300] < 240 and last[45] > 35
	assert sum(step.verb in plan.ON_NODES and step.at > 240 for step in steps[300]) > 8
