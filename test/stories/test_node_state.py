# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A node that takes no more work on one side takes none on the other, and neither administrator is run over."""
import contextlib

import pytest
from command import status, tool
from foreign import allocated, foreign, masked, wait_masked
from node import BY, CORDONER, OWNER, REASON, RESUMED, Node
from slurm_conf import slurm_conf
from stands.replays import once_only


@pytest.fixture
def node(stand):
	found = Node(stand)
	yield found
	found.settle()


def test_cordon_drains_the_node_in_slurm_and_uncordon_gives_it_back(node):
	job = node.stand.batch(2)
	job.wait("RUNNING")
	node.cordon("fan is broken")
	by = f" by {CORDONER}" if node.stand.kind == "real" else ""  # kubesim notes no field managers
	node.wait_drained(f"k8s: cordoned{by}: fan is broken")
	assert job.state == "RUNNING"
	node.wait_condition("False", "1 job of Slurm left: k8s: cordoned")
	waits = node.stand.batch(1)
	node.stand.scheduled()
	assert waits.state == "PENDING"
	job.cancel()
	node.wait_condition("True", "no job of Slurm left", 30)
	assert node.note(OWNER) is None
	node.uncordon()
	waits.wait("RUNNING", seconds=60)
	assert not node.drained and node.reason == ""
	node.wait_condition("False", "Slurm gives this node jobs")
	waits.cancel()


def test_drain_in_slurm_cordons_and_says_draining_then_drained_and_resume_uncordons(node):
	job = node.stand.batch(1)
	job.wait("RUNNING")
	node.drain("bad disk")
	node.wait("cordoned", lambda: node.cordoned)
	assert (node.note(OWNER), node.note(REASON)) == ("slurm", "bad disk")
	assert node.note(BY).startswith("root (uid 0)")
	node.wait_condition("False", "1 job of Slurm left: bad disk, by root (uid 0)")
	job.cancel()
	node.wait_condition("True", "no job of Slurm left: bad disk", 30)
	assert node.reason == "bad disk"
	node.resume()
	node.wait("uncordoned", lambda: not node.cordoned)
	assert [node.note(name) for name in (OWNER, REASON, BY)] == [None] * 3
	node.wait_condition("False", "Slurm gives this node jobs")
	node.stays("resumed, and not cordoned", lambda: not node.drained and not node.cordoned)


def test_node_that_fails_in_slurm_is_cordoned_with_reason_and_who_until_it_is_resumed(node):
	job = node.stand.batch(1)
	job.wait("RUNNING")
	node.drain("smoke", "fail")
	node.wait("cordoned", lambda: node.cordoned)
	assert (node.note(OWNER), node.note(REASON), node.note(BY)) == ("slurm", "smoke", "root (uid 0)")
	node.wait_condition("False", "1 job of Slurm left: smoke, by root (uid 0)")
	assert job.state == "RUNNING" and "FAIL" in node.slurm()["State"]
	job.cancel()
	node.wait_condition("True", "no job of Slurm left: smoke, by root (uid 0)", 30)
	node.resume()
	node.wait_not_cordoned_by_us()


def test_node_that_is_set_down_in_slurm_is_cordoned_with_reason_and_who_until_it_is_resumed(node):
	# with the stand's 2 it is up again as soon as its slurmd says a word, and one may be on its way
	with slurm_conf(node.stand, "ReturnToService=1"):
		job = node.stand.batch(1, options=("--no-requeue",))
		job.wait("RUNNING")
		node.drain("smoke", "down")
		job.wait("NODE_FAIL")
		node.wait("cordoned", lambda: node.cordoned)
		assert (node.note(OWNER), node.note(REASON), node.note(BY)) == ("slurm", "smoke", "root (uid 0)")
		node.wait_condition("True", "no job of Slurm left: smoke, by root (uid 0)", 30)
		node.resume()
		node.wait_not_cordoned_by_us()


def test_node_of_a_maintenance_reservation_is_cordoned_as_long_as_that_lasts(node):
	job = node.stand.batch(1)
	job.wait("RUNNING")
	with node.maintained():
		node.wait("cordoned", lambda: node.cordoned, 30)  # Slurm looks every 5 s
		# Slurm does not keep who made a reservation
		assert (node.note(OWNER), node.note(REASON), node.note(BY)) == ("slurm", "maintenance reservation", None)
		node.wait_condition("False", "1 job of Slurm left: maintenance reservation")
		assert job.state == "RUNNING"
		job.cancel()
		node.wait_condition("True", "no job of Slurm left: maintenance reservation", 30)
	node.wait_not_cordoned_by_us()


def test_pod_that_may_use_a_maintenance_reservation_runs_there_although_the_node_is_cordoned_for_it(node):
	with node.maintained():
		node.wait("cordoned", lambda: node.cordoned and node.note(OWNER) == "slurm", 30)
		pod = node.stand.pod("upkeep", node=node.name, ns="team-a", annotations={"slurm-k8s.io/reservation": "for-pods-upkeep"})
		pod.wait_phase("Succeeded")
		assert pod.job()["Reservation"] == "for-pods-upkeep" and node.cordoned
	node.wait_not_cordoned_by_us()


def test_node_that_kubernetes_has_no_more_is_drained_until_it_is_there_again(node):
	job = node.stand.batch(1)
	job.wait("RUNNING")
	with node.deleted():
		node.wait_drained("k8s: deleted: Kubernetes has no such node")
		waits = node.stand.batch(1)
		node.stand.scheduled()
		assert (waits.state, job.state) == ("PENDING", "RUNNING")
	waits.wait("RUNNING")
	assert not node.drained and node.reason == "" and job.state == "RUNNING" and not node.cordoned
	node.wait("no condition that says otherwise", lambda: (node.condition() or ("False",))[0] == "False")  # it is a new object
	pod = node.stand.pod("again", cpu="1", node="n1")
	pod.wait_phase("Succeeded")
	for one in job, waits:
		one.cancel()


@once_only
@pytest.mark.apis("real")
def test_what_pods_of_a_dead_node_had_is_nobodys_though_kubernetes_has_deleted_all_of_them_until_it_is_released(node):
	stand = node.stand
	pods = [stand.pod("placed", "sleep 600", cpu="2", node="n1", grace=1).wait_running(), foreign(stand, "guest", cpu="2").wait_running()]
	wait_masked(stand, "guest")
	stand.cluster("stop", "kubelet-n1")
	try:
		with node.deleted():
			node.wait_drained("k8s: deleted: Kubernetes has no such node")
			for pod in pods:
				pod.delete(now=True)
				if pod.get():
					stand.api.patch(pod.path, {"metadata": {"finalizers": None}})
				pod.wait_gone()
			node.stays("cores of both", lambda: allocated(stand)[0] == 4, 5)
			shown = status(stand, "--node", "n1")["clusters"][0]
			assert [(row["name"], row["pod"]) for row in shown["pods"]] == [("placed", "lost")]
			assert [(row["name"], row["why"]) for row in shown["foreign"]] == [("guest", "its object vanished before the kubelet had reported its containers gone")]
			for pod, cores in zip(pods, (2, 0)):
				assert "holds on node n1 is free" in tool(stand, "release", pod.uid)
				node.wait("its cores free", lambda left=cores: allocated(stand)[0] == left)
	finally:
		stand.cluster("start", "kubelet-n1")


def test_an_administrators_drain_is_never_undone_by_uncordon(node):
	node.cordon()
	node.wait_drained("k8s: cordoned")
	node.drain("I look after it")
	node.uncordon()
	# Slurm keeps it, and so Kubernetes gets to know of that
	node.wait("cordoned for Slurm", lambda: node.cordoned and node.note(OWNER) == "slurm")
	node.stays("the administrator's drain", lambda: node.drained and node.reason == "I look after it")


def test_resume_does_not_undo_a_cordon_that_is_not_ours(node):
	node.cordon()
	node.wait_drained("k8s: cordoned")
	node.resume()
	node.wait("noted", lambda: node.note(RESUMED) == "cordoned")
	node.stays("cordoned and resumed", lambda: node.cordoned and not node.drained)
	node.uncordon()
	node.wait("forgotten", lambda: node.note(RESUMED) is None)
	node.cordon()  # another decision
	node.wait_drained("k8s: cordoned")


def test_uncordon_of_what_slurm_drained_stands_until_slurm_has_another_reason(node):
	node.drain("bad disk")
	node.wait("cordoned", lambda: node.cordoned)
	node.uncordon()
	node.wait("known", lambda: node.note(OWNER) == "kubernetes")
	node.stays("uncordoned though drained", lambda: not node.cordoned and node.drained)
	node.drain("bad memory")
	node.wait("cordoned again", lambda: node.cordoned and node.note(REASON) == "bad memory")
	node.resume()
	node.wait("uncordoned", lambda: not node.cordoned and node.note(OWNER) is None)


def test_node_whose_condition_is_chosen_is_drained_with_its_message(node):
	node.say("GpuBroken", "True", "GPU 3 fell off the bus")
	node.wait_drained("k8s: GpuBroken: GPU 3 fell off the bus")
	node.say("GpuBroken", "False", "")
	node.wait("resumed", lambda: not node.drained)


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_node_that_stays_not_ready_is_drained_also_across_a_restart_of_slurmctld_until_it_is_ready(node):
	node.say("Ready", "Unknown", "Kubelet stopped posting node status.")
	node.stays("time is given", lambda: not node.drained, 10)
	node.wait("drained", lambda: node.drained and node.reason.startswith("k8s: NotReady: Kubelet stopped"), 60)
	node.stand.restart_slurmctld(kill=False)
	node.stays("drained as before", lambda: node.drained, 5)
	assert not [line for line in node.stand.log(node.stand.log_began).splitlines() if "n1: resumed in Slurm; it was k8s: NotReady" in line]
	node.say("Ready", "True", "kubelet is posting ready status")
	node.wait("resumed", lambda: not node.drained)


@pytest.fixture
def impatient(node):
	"""Who is not ready is drained soon."""
	with node.stand.changing_settings() as (good, write):
		write(good.replace("[GpuBroken]}", "[GpuBroken], notReady: {after: 5s}}"))
		node.stand.reconfigure()
		yield node


@contextlib.contextmanager
def dead_kubelet(node):
	"""Of the node, until it starts again. Nobody here but the story says what node-controller does; on kubesim that is all that is seen."""
	real = node.stand.kind == "real"
	if real:
		node.stand.cluster("stop", f"kubelet-{node.name}", "--kill")
	try:
		node.say("Ready", "Unknown", "Kubelet stopped posting node status.")
		yield
	finally:
		if real:
			node.stand.cluster("start", f"kubelet-{node.name}")
		else:
			node.say("Ready", "True", "kubelet is posting ready status")
	node.wait("resumed", lambda: not node.drained, 60)


@once_only
def test_pods_of_a_kubelet_that_is_dead_are_masked_and_said_until_an_administrator_releases_them(impatient):
	node, stand = impatient, impatient.stand
	deaf = "trap '' TERM; while :; do sleep 1; done"
	pod = stand.pod("silent", deaf, cpu="4", memory="1Gi", node="n1", grace=600).wait_running()
	guest = foreign(stand, "guest", deaf, cpu="2", memory="2Gi", grace=600).wait_running()
	wait_masked(stand, "guest")
	with dead_kubelet(node):
		node.wait("drained", lambda: node.drained, 30)
		assert node.reason == "k8s: NotReady: Kubelet stopped posting node status. (what its pods hold stays masked)"
		stand.run("scancel", str(pod.job_id))
		guest.delete()
		pod.wait_job("CANCELLED")
		node.stays("what both hold", lambda: allocated(stand) == (6, 3 * 1024))
		shown = status(stand, "--node", "n1")
		assert [row["pod"] for row in shown["clusters"][0]["pods"]] == ["leaving"], shown
		assert shown["masks"] and set(masked(stand)) == {"guest"}, shown
		assert "NotReady: Kubelet stopped" in tool(stand, "status", "--node", "n1")
		for name, left in (("silent", (2, 2 * 1024)), ("guest", (0, 0))):
			assert "holds on node n1 is free" in tool(stand, "release", f"default/{name}")
			node.wait(f"what {name} held free", lambda left=left: allocated(stand) == left)
		assert status(stand)["masks"] == []
	for one in pod, guest:
		one.delete(now=True)


def test_what_both_administrators_did_while_slurmctld_was_away_is_made_up_for(node):
	node.cordon()
	node.wait_drained("k8s: cordoned")
	other = Node(node.stand, "n2")
	other.drain("bad disk")
	other.wait("cordoned", lambda: other.cordoned)
	try:
		node.stand.cluster("stop", "slurmctld")
		node.uncordon()
		node.stand.cluster("start", "slurmctld")
		node.wait("resumed", lambda: not node.drained, 30)
		other.stays("drained and cordoned as before", lambda: other.drained and other.cordoned)
		assert other.note(OWNER) == "slurm"
	finally:
		other.settle()


def test_both_administrators_at_once_keep_what_they_did_and_both_sides_come_to_rest(node):
	node.cordon()
	node.drain("bad disk")
	node.wait("both", lambda: node.cordoned and node.drained)
	node.wait_condition("True", "bad disk" if node.reason == "bad disk" else "k8s: cordoned")
	first = node.reason
	node.stays("one reason", lambda: node.reason == first)
	node.resume()
	node.uncordon()
	# a look at Slurm is up to 250 ms old, so that the drain may have been heard of once more
	node.wait_condition("False", "Slurm gives this node jobs")
	node.wait("in use on both sides", lambda: not node.cordoned and not node.drained and node.note(OWNER) is None)
	node.stays("in use on both sides", lambda: not node.cordoned and not node.drained)
