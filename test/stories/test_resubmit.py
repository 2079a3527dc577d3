# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Slurm takes a pod its node that no controller makes anew: it is made again under its name, when its last process is gone,
and queues with the age that its job had."""
import time

import pytest
from command import findings
from resubmit import FROM, allow, forbid, resubmitting, wait_made_again
from test_preemption import LOW, POLITE, STUBBORN, deletions, partition, stop_of


@pytest.fixture
def stand(preempting):
	yield from resubmitting(preempting)


@pytest.fixture
def multifactor(aging):
	yield from resubmitting(aging)


def accrued(job):
	"""Since when it gains age; one that starts at once has none in Slurm's records."""
	return job["EligibleTime"] if job["AccrueTime"] == "Unknown" else job["AccrueTime"]


def preempt(stand, pod):
	"""A job that needs all that the pod has."""
	batch = stand.batch(8, seconds=600)
	pod.wait("deletion", lambda: deletions(pod), 30)
	return batch


def test_preempted_bare_pod_is_made_again_and_keeps_its_age_and_priority(stand):
	with partition(stand, "low", GraceTime=20):
		pod = stand.pod("victim", POLITE, cpu="8", node="n1", annotations=LOW, labels={"app": "x"}).wait_running()
		before = pod.job()
		batch = preempt(stand, pod)
		again = wait_made_again(pod)
		event = again.wait_event("SlurmResubmitted")
		assert event[0] == "Normal" and pod.uid in event[2]
		meta = again.get()["metadata"]
		assert meta["labels"] == {"app": "x"} and set(meta["annotations"]) == {FROM, *LOW}
		assert pod.wait_job("PREEMPTED")["JobId"] == before["JobId"]
		batch.wait_started()
		job = again.wait_job("PENDING")
		assert job["JobId"] != before["JobId"] and job["AccrueTime"] == accrued(before)
		if stand.scontrol("show", "config").find("PriorityType            = priority/basic") >= 0:
			assert job["Priority"] == before["Priority"]
		younger = stand.pod("younger", POLITE, cpu="8", node="n1", annotations=LOW)
		younger.wait_job("PENDING")
		batch.cancel()
		again.wait_running()
		assert again.runs()[0].start > stop_of(pod)
		assert younger.job()["JobState"] == "PENDING"


def test_pod_is_made_again_though_slurmctld_dies_while_it_leaves(stand):
	with partition(stand, "low", GraceTime=15):
		pod = stand.pod("victim", STUBBORN, cpu="8", node="n1", annotations=LOW).wait_running()
		since = accrued(pod.job())
		preempt(stand, pod)
		stand.restart_slurmctld()
		again = wait_made_again(pod, 120)
		assert accrued(again.wait_job()) == since
		assert again.get()["metadata"]["annotations"][FROM] == pod.uid


def test_computed_priority_has_the_age_of_the_former_job_at_once_and_a_given_one_stays(multifactor):
	given = multifactor.pod("given", POLITE, cpu="8", node="n2", annotations=LOW).wait_running()
	multifactor.update(given.job_id, "Priority=12345")
	pod = multifactor.pod("victim", POLITE, cpu="8", node="n1", annotations=LOW).wait_running()
	time.sleep(3)  # seconds of age are what is compared
	# Before it has started, 22.05 gives its node at once to who comes then with as high a priority: of partitions' tiers
	# only its scheduler knows.
	multifactor.batch(8, node="n2")
	preempt(multifactor, pod).wait_started()
	younger = multifactor.pod("younger", POLITE, cpu="8", node="n1", annotations=LOW)
	younger.wait_job("PENDING")
	again = wait_made_again(pod)
	assert int(again.wait_job("PENDING")["Priority"]) > int(younger.job()["Priority"])
	assert wait_made_again(given).wait_job("PENDING")["Priority"] == "12345"


@pytest.mark.parametrize("why", ["it says so", "it has a controller"])
def test_pod_that_is_not_to_be_made_again_just_ends(stand, why):
	annotations, owner = dict(LOW), []
	if why == "it says so":
		annotations["slurm-k8s.io/requeue"] = "false"
	else:
		owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "5", "controller": True}]
	pod = stand.pod("victim", POLITE, cpu="8", node="n1", annotations=annotations, owners=owner).wait_running()
	batch = preempt(stand, pod)
	pod.wait_gone()
	batch.wait_started()
	assert not [item for item in stand.pods() if item["metadata"]["name"] == pod.name]


def test_pod_that_ends_well_before_its_grace_has_begun_has_its_result(stand):
	pod = stand.pod("done", "exit 0", cpu="8", node="n1", annotations=LOW)
	pod.wait_phase("Succeeded")
	pod.wait_job("COMPLETED")
	stand.batch(8).wait_started()
	assert pod.phase == "Succeeded" and not deletions(pod)


def test_missing_right_is_found_by_check_and_the_pod_is_made_as_soon_as_it_is_given(stand):
	pod = stand.pod("victim", POLITE, cpu="8", node="n1", annotations=LOW).wait_running()
	forbid(stand)
	preempt(stand, pod)
	pod.wait_gone()
	found = findings(stand)
	assert any("is not made again" in line or "no pod is made again" in line or "are not made again" in line
		for line in found["problem"] + found["warning"]), found
	allow(stand)
	wait_made_again(pod, 90)


def test_pod_that_wants_it_where_nobody_allows_it_is_told_so(preempting):
	pod = preempting.pod("hopes", POLITE, annotations={"slurm-k8s.io/requeue": "true"})
	pod.wait_event("SlurmRefused", "namespaces[].barePods")
