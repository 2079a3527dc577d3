# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""reservations.shared: the small jobs of a node have one reservation pod, which is resized in place."""
import pytest
from command import tool
from mixed import (IMAGE, PODS, drain, evict, names, reservations, restore, share, shared_pod, wait_requests, wait_reservation,
	wait_reservations_known)
from stands.waiting import wait_for
from foreign import allocated, foreign, masked
from node import Node

CORES = 8  # of a node


@pytest.mark.each_release
def test_as_many_small_jobs_as_cores_share_a_pod_that_grows_and_shrinks_with_them(sharing):
	jobs = [sharing.batch(1) for _ in range(CORES)]
	for job in jobs:
		job.wait_started()
	pod = shared_pod(sharing)
	assert pod["metadata"]["labels"]["slurm-k8s.io/shared-reservation"] == "n1" and not reservations(sharing)
	wait_requests(sharing, str(CORES), f"{CORES * 100}Mi")
	ids = ",".join(str(job.id) for job in jobs)
	wait_for("its jobs in an annotation", lambda: shared_pod(sharing)["metadata"]["annotations"]["slurm-k8s.io/jobs"] == ids, 20)
	assert not masked(sharing) and allocated(sharing)[0] == CORES
	for job in jobs[2:]:
		job.cancel()
	wait_requests(sharing, "2", "200Mi")
	wait_for("free cores", lambda: allocated(sharing)[0] == 2 and not masked(sharing), 30, lambda: str(allocated(sharing)))
	assert shared_pod(sharing)["metadata"]["uid"] == pod["metadata"]["uid"]
	again = sharing.batch(1)
	again.wait_started()
	wait_requests(sharing, "3", "300Mi")
	for job in (*jobs[:2], again):
		job.cancel()
	wait_for("no pod", lambda: not names(sharing), 60, lambda: str(names(sharing)))
	wait_for("a free node", lambda: allocated(sharing)[0] == 0, 30)


def test_larger_job_has_a_pod_of_its_own_beside_it(sharing):
	small, large = sharing.batch(2), sharing.batch(4)
	for job in (small, large):
		job.wait_started()
	wait_reservation(sharing, large.id)
	assert list(reservations(sharing)) == [(large.id, "n1")]
	wait_requests(sharing, "2", "100Mi")


def test_shared_pod_goes_when_no_node_is_mixed_any_more_and_its_jobs_go_on(sharing):
	jobs = [sharing.batch(1), sharing.batch(2)]
	for job in jobs:
		job.wait_started()
	before = share(sharing, sharing="none")
	try:
		wait_for("no pod", lambda: not names(sharing), 30, lambda: str(names(sharing)))
		wait_for("nothing masked beside the jobs", lambda: not masked(sharing) and allocated(sharing)[0] == 3, 30,
			lambda: f"{masked(sharing)} {allocated(sharing)}")
		assert all(job.state == "RUNNING" for job in jobs)
	finally:
		restore(sharing, before)
	wait_requests(sharing, "3", "200Mi")


def test_one_label_selects_the_pods_of_all_jobs_and_who_drains_without_them_ends_none(sharing):
	share(sharing, {"image": IMAGE, "shared": {"maxCpus": 2}, "eviction": "cancel"})
	wait_reservations_known(sharing)
	jobs = [sharing.batch(2), sharing.batch(2), sharing.batch(3)]
	for job in jobs:
		job.wait_started()
	before = {pod["metadata"]["uid"] for pod in (shared_pod(sharing), wait_reservation(sharing, jobs[2].id))}

	def selected():
		found = sharing.api.get("/api/v1/pods?labelSelector=slurm-k8s.io%2Fjob")["items"]
		return {pod["metadata"]["uid"] for pod in found if pod["spec"]["nodeName"] == "n1"}
	assert selected() == before
	foreign(sharing, "guest").wait_running()
	node = Node(sharing)
	node.cordon()
	try:
		assert drain(sharing, "n1", "!slurm-k8s.io/job") == {"guest"}
		sharing.scheduled()
		assert selected() == before and all(job.state == "RUNNING" for job in jobs)
	finally:
		node.settle()


def test_foreign_pod_that_comes_for_the_cores_of_small_jobs_is_refused_by_the_kubelet(sharing):
	jobs = [sharing.batch(1) for _ in range(CORES - 1)]
	for job in jobs:
		job.wait_started()
	late = foreign(sharing, "late", cpu="2")
	late.wait_phase("Failed")
	assert late.get()["status"]["reason"] == "OutOfcpu"
	assert all(job.state == "RUNNING" for job in jobs)


def test_small_job_for_which_the_kubelet_has_no_room_goes_back_and_starts_when_there_is(sharing):
	first = sharing.batch(1)
	first.wait_started()
	hidden = foreign(sharing, "hidden", cpu=str(CORES - 1))
	hidden.wait_running()
	wait_for("its mask", lambda: masked(sharing), 30)
	tool(sharing, "release", "--force", "default/hidden")
	wait_for("no mask", lambda: not masked(sharing), 10)
	job = sharing.batch(1)
	wait_for("a refusal", lambda: int(job.show()["Restarts"]) >= 1, 60, job.why)
	assert not job.stamps()[0] and first.state == "RUNNING"
	wait_requests(sharing, "1", "100Mi")
	hidden.delete()
	hidden.wait_gone()
	assert job.wait_started(seconds=150) > hidden.runs()[0].stop


@pytest.mark.each_release
def test_small_jobs_and_their_pod_find_each_other_when_slurmctld_restarts_in_between(sharing):
	stay = [sharing.batch(1) for _ in range(3)]
	for job in stay:
		job.wait_started()
	before = shared_pod(sharing)["metadata"]["uid"]
	late = [sharing.batch(1) for _ in range(3)]  # some of them in the gate
	sharing.restart_slurmctld(kill=False)  # a killed one forgets which of them it had launched
	for job in late:
		job.wait_started(seconds=90)
	wait_requests(sharing, "6", "600Mi")
	assert shared_pod(sharing)["metadata"]["uid"] == before and not reservations(sharing)
	wait_for("nothing masked", lambda: not masked(sharing) and allocated(sharing)[0] == 6, 30, lambda: str(allocated(sharing)))
	assert all(job.state == "RUNNING" for job in stay)


def test_shared_pod_that_somebody_deletes_is_made_again_for_all_its_jobs(sharing):
	jobs = [sharing.batch(1) for _ in range(3)]
	for job in jobs:
		job.wait_started()
	before = shared_pod(sharing)["metadata"]
	sharing.api.delete(f"{PODS}/{before['name']}")
	wait_for("another pod", lambda: (shared_pod(sharing) or {"metadata": before})["metadata"]["uid"] != before["uid"], 30)
	wait_requests(sharing, "3", "300Mi")
	assert all(job.state == "RUNNING" for job in jobs)


def test_all_jobs_of_a_shared_pod_that_is_evicted_are_cancelled_and_say_why(sharing):
	share(sharing, {"image": IMAGE, "shared": {"maxCpus": 2}, "eviction": "cancel"})
	wait_reservations_known(sharing)
	jobs, large = [sharing.batch(1), sharing.batch(2)], sharing.batch(3)
	for job in (*jobs, large):
		job.wait_started()
	wait_requests(sharing, "3", "200Mi")
	evict(sharing, shared_pod(sharing))
	for job in jobs:
		ended = job.wait("CANCELLED")
		assert ended["SystemComment"] == "slurm-k8s: its reservation pod on node n1 was evicted through the Kubernetes API"
	wait_for("the pod of the other job alone", lambda: list(reservations(sharing)) == [(large.id, "n1")] and len(names(sharing)) == 1, 30,
		lambda: str(names(sharing)))
	assert large.state == "RUNNING"


def test_short_jobs_one_after_the_other_use_one_pod(sharing):
	uids = set()
	for _ in range(4):
		job = sharing.batch(1, seconds=0)
		job.wait("COMPLETED", seconds=60)
		uids.add(shared_pod(sharing)["metadata"]["uid"])
	assert len(uids) == 1
