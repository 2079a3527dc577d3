# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""kube-scheduler beside Slurm: where it puts what is its own."""
import pytest
from exclusive import TAINT, WANTED, emptying, launched_after, of_replica_set
from foreign import POLITE, wait_masked
from mixed import IMAGE, on_eviction, restore, share, wait_reservation, wait_reservations_known, why_ended
from node import OURS, Node, taints
from stands.kubernetes import Kubernetes
from stands.waiting import wait_for

pytestmark = pytest.mark.apis("real")


@pytest.fixture
def scheduled(mixed):
	"""With a kube-scheduler."""
	scheduler = Kubernetes(mixed.folder).scheduler()
	yield mixed
	scheduler.stop()
	scheduler.forget()


@pytest.fixture
def grouped(scheduled):
	"""n1 is dedicated to Slurm, n2 is open."""
	node = Node(scheduled)
	scheduled.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"pool": "slurm"}}})
	before = share(scheduled, groups=[{"selector": "pool=slurm", "sharing": "dedicated"}])
	node.wait("tainted", lambda: OURS in taints(node))
	yield scheduled
	restore(scheduled, before)
	scheduled.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"pool": None}}})
	node.wait("no taint of ours", lambda: OURS not in taints(node))


def plain(stand, name, cpu, **more):
	return stand.pod(name, POLITE, cpu=cpu, schedulerName="default-scheduler", **more)


def wait_unschedulable(pod, *why):
	pod.wait("a word of kube-scheduler", lambda: all(word in pod.condition().get("message", "") for word in why))
	assert pod.condition()["reason"] == "Unschedulable" and pod.phase == "Pending" and not pod.node


def test_plain_pods_go_to_the_open_node_alone_and_wait_there_beside_a_dedicated_one_that_is_free(grouped):
	pods = [plain(grouped, f"plain{i}", "2") for i in range(3)]
	for pod in pods:
		pod.wait_running()
	assert {pod.node for pod in pods} == {"n2"}
	late = plain(grouped, "late", "4")
	wait_unschedulable(late, "1 Insufficient cpu", "1 node(s) had untolerated taint")
	pods[0].delete()
	late.wait_running()
	assert late.node == "n2"


def test_plain_pod_waits_for_a_mixed_node_that_is_full_of_a_job_and_is_not_refused_there(scheduled):
	job = scheduled.batch(8)
	job.wait_started()
	wait_reservation(scheduled, job.id)
	pod = plain(scheduled, "plain", "2", node="n1")
	wait_unschedulable(pod, "1 Insufficient cpu")
	job.cancel()
	pod.wait_running()
	assert pod.node == "n1" and pod.runs()[0].start > job.stamps()[1]


IDLE = 4  # seconds


@pytest.fixture(name="emptying")
def emptying_fixture(scheduled):
	"""Jobs can have n1 without others' pods; kube-scheduler has it again so long after them."""
	yield from emptying(scheduled, idle=f"{IDLE}s")


def test_plain_pods_stay_away_from_an_exclusive_node_that_has_room_and_come_when_it_is_given_back(emptying):
	web = plain(emptying, "web", "7", node="n1", owners=of_replica_set())
	web.wait_running()
	wait_masked(emptying, "web")
	early = plain(emptying, "early", "2", node="n1")  # comes as soon as web has gone
	wait_unschedulable(early, "1 Insufficient cpu")
	job = emptying.batch(2, seconds=None, options=WANTED)
	launched_after(job, web)
	web.wait_gone()
	late = plain(emptying, "late", "2", node="n1")
	for pod in (early, late):
		wait_unschedulable(pod, "1 node(s) had untolerated taint")
	room = plain(emptying, "room", "3", node="n1", tolerations=[TAINT])
	room.wait_running()  # so it is the taint alone that keeps smaller ones off
	assert job.state == "RUNNING" and not early.node and not late.node
	job.finish()
	for pod in (early, late):
		pod.wait_running()
		assert pod.node == "n1" and emptying.bound_at()[pod.uid] >= job.stamps()[1] + IDLE
	assert TAINT not in taints(Node(emptying))


@pytest.fixture
def precious(scheduled):
	"""The name of a PriorityClass above that of jobs' pods."""
	path = "/apis/scheduling.k8s.io/v1/priorityclasses"
	scheduled.api.post(path, {"metadata": {"name": "precious"}, "value": 1000})
	yield "precious"
	scheduled.api.delete(f"{path}/precious")


def job_on_all(stand):
	"""All cores of n1 are its own."""
	job = stand.batch(8, options=("--requeue", "-w", "n1"))
	job.wait_started()
	wait_reservation(stand, job.id)
	return job


def test_pod_of_a_higher_priority_takes_the_room_of_a_job_that_goes_back_into_the_queue_and_says_why(scheduled, precious):
	on_eviction(scheduled, "requeue")
	job = job_on_all(scheduled)
	pod = plain(scheduled, "precious", "2", node="n1", priorityClassName=precious)
	wait_for("the queue", lambda: int(job.show()["Restarts"]) == 1, 60, job.why)
	assert why_ended(job) == "slurm-k8s: its reservation pod on node n1 was preempted by kube-scheduler"
	pod.wait_running()
	assert pod.runs()[0].start > job.stamps()[1]
	job.cancel()


def test_no_pod_takes_the_room_of_jobs_whose_own_pods_have_as_high_a_priority(scheduled, precious):
	share(scheduled, {"image": IMAGE, "eviction": "cancel", "priorityClass": precious})
	wait_reservations_known(scheduled)
	job = job_on_all(scheduled)
	pod = plain(scheduled, "precious", "2", node="n1", priorityClassName=precious)
	wait_unschedulable(pod, "1 Insufficient cpu", "No preemption victims found for incoming pod")
	assert job.state == "RUNNING"
	job.cancel()
	pod.wait_running()
