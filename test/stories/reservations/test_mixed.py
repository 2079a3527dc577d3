# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""sharing: mixed: Slurm's own jobs hold reservation pods, and the kubelet decides who came first."""
import contextlib
import time

import pytest
from command import status, tool
from conftest import lent, with_conf
from mixed import (IMAGE, PODS, drain, evict, mixing, on_eviction, refusals, reservations, restore, share, wait_no_reservation, wait_reservation,
	wait_reservations_known, why_ended)
from node import OURS, Node, taints
from outage import saved
from stands.replays import once_only
from stands.waiting import wait_for
from foreign import POLITE, allocated, foreign, masked, of_daemon_set, wait_masked
from world import STUBBORN, seconds_of


@pytest.mark.each_release
def test_job_is_launched_when_the_kubelet_has_admitted_a_pod_with_what_it_holds_and_the_pod_goes_with_it(mixed):
	job = mixed.batch(3, options=("-A", "physics & co"))
	job.wait_started()
	pod = wait_reservation(mixed, job.id)
	assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3", "memory": "100Mi"}
	assert pod["metadata"]["labels"] == {"slurm-k8s.io/job": str(job.id), "slurm-k8s.io/user": "root",
		"slurm-k8s.io/account": "physics___co"}
	assert not masked(mixed) and allocated(mixed) == (3, 100)  # the job has it already
	job.cancel()
	wait_no_reservation(mixed, job.id)
	wait_for("a free node", lambda: allocated(mixed)[0] == 0, 30)


@pytest.mark.each_release
@pytest.mark.apis("real")
def test_kubectl_shows_the_running_jobs_of_mixed_nodes_that_squeue_shows(mixed):
	"""With the command of doc/sharing.md; kubesim has not all that kubectl asks for."""
	jobs = [mixed.batch(2, options=("-A", "physics")), mixed.batch(3, node="n2", options=("-A", "biology"))]
	for job in jobs:
		job.wait_started()
	foreign(mixed, "others").wait_running()
	pod = mixed.pod("through-slurm", POLITE)
	pod.wait_running()
	keys = ("job", "user", "account")
	rows = mixed.run("kubectl", f"--kubeconfig={mixed.env['KUBECONFIG']}", "get", "pods", "-A", "-l", "slurm-k8s.io/job", "-L",
		",".join(f"slurm-k8s.io/{key}" for key in keys), "-o", "wide", "--no-headers").splitlines()
	running = mixed.run("squeue", "-h", "-t", "R", "-o", "%A %u %a %N").splitlines()
	squeue = [line for line in running if line.split()[0] != str(pod.job_id)]  # that one is seen as itself
	assert len(running) == len(squeue) + 1
	shown = [(*line.split()[-3:], node) for line in rows for node in ("n1", "n2") if node in line.split()]
	assert sorted(shown) == sorted(tuple(line.split()) for line in squeue) and len(shown) == len(jobs) == len(rows), rows
	assert {line.split()[3] for line in rows} == {"Running"}


@pytest.mark.parametrize("what, job, late, small", [
	("cpu", ("-n", "7"), {"cpu": "2"}, {"cpu": "500m"}),
	("memory", ("--mem", "15000"), {"cpu": "100m", "memory": "2Gi"}, {"cpu": "100m", "memory": "500Mi"})])
@once_only
@pytest.mark.each_release
def test_no_foreign_pod_gets_the_cores_or_the_memory_of_a_job(mixed, what, job, late, small):
	job = mixed.batch(1, options=job)
	job.wait_started()
	late = foreign(mixed, "late", **late)
	late.wait_phase("Failed")
	assert late.get()["status"]["reason"] == "OutOf" + what
	small = foreign(mixed, "small", **small)
	small.wait_running()
	assert job.state == "RUNNING"


def test_jobs_one_after_the_other_get_the_same_cores(mixed):
	jobs = [mixed.batch(8, seconds=1) for _ in range(3)]
	for job in jobs:
		job.wait("COMPLETED", seconds=90)
	runs = [job.stamps() for job in jobs]
	assert all(before[1] <= after[0] for before, after in zip(runs, runs[1:]))
	wait_for("no reservation", lambda: not reservations(mixed), 30)


# -- beside the pods that each node has

@pytest.fixture
def roomy(request, session_stands):
	"""slurm.conf sets a core and 2000 MB aside for DaemonSets."""
	for stand in lent(request, session_stands, "real", "--cpus", "8", "--memory", "16000", "--kubelets", "1",
			"--node-conf", "CoreSpecCount=1 MemSpecLimit=2000", *with_conf("PrEpPlugins=prep/script,prep/k8s")):
		yield from mixing(stand)


@pytest.mark.each_release
@pytest.mark.apis("real")
def test_job_for_the_whole_node_and_all_its_memory_runs_beside_daemon_sets_and_waits_for_other_pods(roomy):
	of_daemon_set(roomy, "daemon", "500m", memory="1Gi")
	job = roomy.batch(1, options=("--exclusive", "--mem=0"))
	job.wait_started()
	pod = wait_reservation(roomy, job.id)
	assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "7", "memory": "14000Mi"}
	assert int(job.show()["Restarts"]) == 0
	job.cancel()
	wait_no_reservation(roomy, job.id)
	guest = foreign(roomy, "guest")
	guest.wait_running()
	wait_masked(roomy, "daemon", "guest")
	waits = roomy.batch(1, options=("--exclusive", "--mem=0"))
	roomy.scheduled()
	assert waits.state == "PENDING"
	guest.delete()
	waits.wait_started()


# -- groups of nodes

@pytest.fixture
def grouped(mixed):
	"""n1 is in a group of its own, which is mixed; the other nodes are dedicated."""
	mixed.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"pool": "gpu"}}})
	share(mixed, sharing="dedicated", groups=[{"selector": "pool=gpu", "sharing": "mixed"}])
	Node(mixed, "n2").wait("tainted", lambda: OURS in taints(Node(mixed, "n2")))
	wait_reservations_known(mixed)
	yield mixed
	mixed.run("scancel", "--quiet", "-u", "root", check=False)
	share(mixed, sharing="mixed", groups=[])
	mixed.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"pool": None}}})
	Node(mixed, "n2").wait("no taint of ours", lambda: OURS not in taints(Node(mixed, "n2")))


def test_node_that_a_job_gives_back_while_it_runs_has_no_pod_of_it_any_more(mixed):
	job = mixed.batch(16, node="n1,n2", options=("-N", "2"))
	job.wait_started()
	wait_reservation(mixed, job.id, "n2")
	mixed.run("sh", "-c", f"cd {mixed.folder} && scontrol update JobId={job.id} NodeList=n1")  # leaves a script where it is
	other = mixed.batch(8, node="n2")
	other.wait_started()
	wait_for("the pods that jobs have", lambda: set(reservations(mixed)) == {(job.id, "n1"), (other.id, "n2")}, 30)
	assert job.state == "RUNNING"


def test_group_of_nodes_is_mixed_while_the_others_are_dedicated(grouped):
	assert OURS not in taints(Node(grouped, "n1"))
	jobs = {name: grouped.batch(1, node=name) for name in ("n1", "n2")}
	for job in jobs.values():
		job.wait_started()
	wait_reservation(grouped, jobs["n1"].id, "n1")
	assert list(reservations(grouped)) == [(jobs["n1"].id, "n1")]


def test_node_that_gets_the_label_of_a_group_changes_under_its_jobs(grouped):
	node = Node(grouped, "n2")
	job = grouped.batch(1, node="n2")
	job.wait_started()
	grouped.api.patch("/api/v1/nodes/n2", {"metadata": {"labels": {"pool": "gpu"}}})
	try:
		node.wait("not tainted", lambda: OURS not in taints(node))
		wait_reservation(grouped, job.id, "n2")
	finally:
		grouped.api.patch("/api/v1/nodes/n2", {"metadata": {"labels": {"pool": None}}})
	node.wait("tainted again", lambda: OURS in taints(node))
	wait_no_reservation(grouped, job.id)
	assert job.state == "RUNNING"


def test_pods_of_jobs_go_when_no_node_is_mixed_any_more_and_the_jobs_go_on(mixed):
	job = mixed.batch(3)
	job.wait_started()
	wait_reservation(mixed, job.id)
	before = share(mixed, sharing="none")
	try:
		wait_no_reservation(mixed, job.id)
		wait_for("nothing masked beside the job", lambda: not masked(mixed) and allocated(mixed)[0] == 3, 30,
			lambda: f"{masked(mixed)} {allocated(mixed)}")
		assert job.state == "RUNNING"
	finally:
		restore(mixed, before)
	wait_reservation(mixed, job.id)  # it goes on, and the kubelet knows of it again


# -- refusals: the kubelet knows of a pod that Slurm has been told to forget

@pytest.fixture
def crowded(mixed):
	"""One core of n1 is taken, and Slurm does not know."""
	pod = foreign(mixed, "hidden", cpu="1")
	pod.wait_running()
	wait_masked(mixed, "hidden")
	tool(mixed, "release", "--force", "default/hidden")
	wait_for("no mask", lambda: not masked(mixed), 10)
	mixed.scheduled()
	yield mixed, pod


@pytest.mark.each_release
def test_batch_job_that_is_refused_goes_back_into_the_queue_and_starts_soon_after_there_is_room(crowded):
	stand, pod = crowded
	job = stand.batch(8)
	wait_for("refusals", lambda: int(job.show()["Restarts"]) >= 2, 30, job.why)
	assert not job.stamps()[0]
	pod.delete()
	pod.wait_gone()
	assert job.wait_started(seconds=30) > pod.runs()[0].stop  # by itself Slurm would wait two minutes


@pytest.mark.each_release
@pytest.mark.apis("real")
def test_job_is_not_launched_by_what_a_kubelet_that_has_just_started_says_before_it_refuses(crowded):
	"""As long as it does not know yet what runs it says only that it has seen the pod: is_admitted() in lib/kube/objects.h."""
	stand, pod = crowded
	stand.cluster("stop", "kubelet-n1")
	job = stand.batch(8)
	wait_reservation(stand, job.id)
	stand.cluster("start", "kubelet-n1")
	wait_for("a refusal", lambda: int(job.show()["Restarts"]) >= 1 or job.stamps()[0], 60, job.why)
	assert not job.stamps()[0]
	pod.delete()
	pod.wait_gone()
	assert job.wait_started(seconds=30) > pod.runs()[0].stop


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_who_waits_for_a_job_that_is_refused_waits_in_the_gate_until_there_is_room(crowded, command):
	stand, pod = crowded
	with stand.start(command, "-w", "n1", "-n", "1", "-c", "8", "--mem", "100", "date", "+%s.%N") as waits:
		wait_for("a job in the gate", lambda: "CONFIGURING" in stand.run("squeue", "-h", "-o", "%T"), 20)
		wait_for("a refusal", lambda: refusals(stand), 20)
		pod.delete()
		out, _ = waits.communicate(timeout=60)
	assert waits.returncode == 0 and float(out) > pod.runs()[0].stop


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_who_waits_for_a_job_that_never_gets_room_reads_why_when_it_ends_after_gate_timeout(crowded, command):
	stand, _ = crowded
	share(stand, gateTimeout="10s")  # a busy machine's kubelet needs some seconds to refuse
	wait_reservations_known(stand)
	began = time.monotonic()
	done = stand.run(command, "-w", "n1", "-n", "1", "-c", "8", "--mem", "100", "echo", "ran", check=False, seconds=60)
	assert time.monotonic() - began >= 10  # not at the first refusal
	assert done.returncode != 0 and "ran" not in done.stdout
	assert "slurm-k8s: the job was not started: the kubelet of node n1 refuses the job's reservation pod (OutOfcpu)" in done.stderr
	wait_for("no reservation", lambda: not reservations(stand), 30)


def test_job_that_is_cancelled_in_the_gate_leaves_nothing(crowded):
	stand, pod = crowded
	with stand.start("srun", "-w", "n1", "-n", "1", "-c", "8", "--mem", "100", "true") as srun:
		wait_for("a job in the gate", lambda: "CONFIGURING" in stand.run("squeue", "-h", "-o", "%T"), 20)
		job_id = stand.run("squeue", "-h", "-o", "%i")
		stand.run("scancel", job_id)
		srun.communicate(timeout=30)
	wait_no_reservation(stand, int(job_id))
	pod.delete()
	again = stand.batch(8)
	again.wait_started()


# -- pod slots

@pytest.fixture
def slots(request, session_stands, api):
	"""Each node can have two pods."""
	for found in lent(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s"), "--max-pods", "2"):
		yield from mixing(found)


def test_node_that_has_all_its_pods_is_given_to_no_job_that_gets_a_pod_there(slots):
	pods = [foreign(slots, name, STUBBORN, cpu="100m", grace=4) for name in ("first", "second")]
	for pod in pods:
		pod.wait_running()
	wait_for("no room for pods", lambda: "has all the pods" in tool(slots, "status", "--node", "n1"), 30)
	job, elsewhere = slots.batch(1), slots.batch(1, node="n2")
	elsewhere.wait_started()
	of_pod = slots.pod("mine", cpu="1", node="n1")
	of_pod.wait_job("PENDING")
	slots.scheduled()
	assert job.state == "PENDING" and of_pod.job()["JobState"] == "PENDING"
	assert int(job.show()["Restarts"]) == 0 and not job.stamps()[0]  # no kubelet was asked
	for pod in pods:
		pod.delete()
	assert job.wait_started() > min(pod.runs()[0].stop for pod in pods)  # who is leaving has its slot
	assert int(job.show()["Restarts"]) == 0
	of_pod.wait_phase("Succeeded")
	assert "has all the pods" not in tool(slots, "status", "--node", "n1")


def test_of_two_jobs_that_want_the_last_pod_of_a_node_at_once_one_runs_after_the_other(slots):
	foreign(slots, "only", cpu="100m").wait_running()
	wait_masked(slots, "only")
	slots.scontrol("update", "PartitionName=batch", "State=DOWN")
	jobs = [slots.batch(1, seconds=None) for _ in range(2)]
	slots.scontrol("update", "PartitionName=batch", "State=UP")
	first = wait_for("one that runs", lambda: next((job for job in jobs if job.stamps()[0]), None), 60, jobs[0].why)
	second = jobs[first == jobs[0]]
	second.wait("PENDING")  # by itself, or its pod was refused
	slots.scheduled()
	assert not second.stamps()[0] and list(reservations(slots)) == [(first.id, "n1")]
	first.finish()
	assert second.wait_started(90) > first.stamps()[1]
	second.finish()


# -- restarts and outages

@pytest.mark.each_release
def test_running_jobs_keep_their_pods_when_slurmctld_dies_and_one_whose_job_is_gone_is_deleted(mixed):
	stays, goes = mixed.batch(2), mixed.batch(2, seconds=None)
	for job in (stays, goes):
		job.wait_started()
	before = wait_reservation(mixed, stays.id)["metadata"]["uid"]
	wait_reservation(mixed, goes.id)
	saved(mixed)
	mixed.cluster("stop", "slurmctld", "--kill")
	assert not goes.stamps()[1]
	goes.finish()
	wait_for("its end", lambda: goes.stamps()[1], 30)
	mixed.cluster("start", "slurmctld")
	wait_no_reservation(mixed, goes.id, 60)
	assert wait_reservation(mixed, stays.id)["metadata"]["uid"] == before
	assert stays.state == "RUNNING" and allocated(mixed)[0] == 2


def test_job_keeps_its_pod_while_kubernetes_has_no_such_node_also_if_slurmctld_starts_meanwhile(mixed):
	job, node = mixed.batch(2), Node(mixed)
	job.wait_started()
	before = wait_reservation(mixed, job.id)["metadata"]["uid"]

	def keeps():
		return job.state == "RUNNING" and wait_reservation(mixed, job.id)["metadata"]["uid"] == before
	with node.deleted():
		node.wait_drained("k8s: deleted: Kubernetes has no such node")
		node.stays("its pod", keeps, 3)
		mixed.cluster("stop", "slurmctld")
		mixed.cluster("start", "slurmctld")
		node.stays("its pod", keeps, 5)
	node.wait("resumed", lambda: not node.drained)
	node.stays("its pod", keeps, 3)


def test_pod_that_somebody_deletes_is_made_again_and_its_job_goes_on(mixed):
	job = mixed.batch(2)
	job.wait_started()
	before = wait_reservation(mixed, job.id)
	mixed.api.delete(f"{PODS}/{before['metadata']['name']}")
	wait_for("another pod", lambda: wait_reservation(mixed, job.id)["metadata"]["uid"] != before["metadata"]["uid"], 30)
	assert job.state == "RUNNING"


def test_job_waits_in_the_gate_while_the_api_server_hangs_and_goes_back_into_the_queue_in_time(mixed):
	share(mixed, gateTimeout="4s")
	wait_reservations_known(mixed)
	with mixed.paused("apiserver"):
		job = mixed.batch(2)
		wait_for("the gate", lambda: job.state == "CONFIGURING", 20, job.why)
		wait_for("the queue", lambda: int(job.show()["Restarts"]) >= 1, 20, job.why)
		assert not job.stamps()[0]
	job.wait_started(seconds=60)


@pytest.mark.each_release
def test_job_in_the_gate_is_in_it_again_after_a_restart_of_slurmctld(crowded):
	stand, pod = crowded
	with stand.start("salloc", "-w", "n1", "-n", "8", "--mem", "100", "true"):
		wait_for("a job in the gate", lambda: "CONFIGURING" in stand.run("squeue", "-h", "-o", "%T"), 20)
		job_id = int(stand.run("squeue", "-h", "-o", "%i"))
		stand.restart_slurmctld(kill=False)
		assert stand.job(job_id)["JobState"] == "CONFIGURING"
		pod.delete()
		wait_for("an open gate", lambda: stand.job(job_id)["JobState"] != "CONFIGURING", 40)
		stand.run("scancel", str(job_id), check=False)


# -- reservations.eviction

def test_job_whose_pod_is_evicted_goes_back_into_the_queue_and_says_why(mixed):
	on_eviction(mixed, "requeue")
	job = mixed.batch(2, options=("--requeue",))
	job.wait_started()
	evict(mixed, wait_reservation(mixed, job.id))
	wait_for("the queue", lambda: int(job.show()["Restarts"]) == 1, 30, job.why)
	assert why_ended(job) == "slurm-k8s: its reservation pod on node n1 was evicted through the Kubernetes API"
	wait_no_reservation(mixed, job.id)
	wait_for("its end on the node", lambda: job.state == "PENDING", 30, job.why)
	mixed.update(job.id, "StartTime=now")
	job.wait("RUNNING")
	wait_reservation(mixed, job.id)


def test_job_whose_pod_is_deleted_is_cancelled_and_who_waits_for_it_reads_why(mixed):
	on_eviction(mixed, "cancel")
	with mixed.start("srun", "-w", "n1", "-n", "1", "--mem", "100", "sleep", "600") as srun:
		wait_for("a step", lambda: mixed.run("squeue", "-h", "-s"), 30)
		job_id = int(mixed.run("squeue", "-h", "-t", "R", "-o", "%A"))
		pod = wait_reservation(mixed, job_id)
		mixed.api.delete(f"{PODS}/{pod['metadata']['name']}")
		_, said = srun.communicate(timeout=60)
	assert srun.returncode != 0 and "the job is ended: its reservation pod on node n1 was deleted" in said
	wait_for("its end on the node", lambda: mixed.job(job_id)["JobState"] == "CANCELLED", 30)
	wait_no_reservation(mixed, job_id)


@pytest.mark.apis("real")  # kubesim's kubelets make room for nobody
def test_job_whose_room_a_kubelet_gives_to_a_critical_pod_yields(mixed):
	on_eviction(mixed, "requeue")
	job = mixed.batch(8, options=("--requeue",))
	job.wait_started()
	wait_reservation(mixed, job.id)
	critical = mixed.pod("critical", "sleep 600", ns="kube-system", cpu="2", schedulerName="default-scheduler", nodeName="n1",
		priorityClassName="system-node-critical")
	wait_for("the queue", lambda: int(job.show()["Restarts"]) == 1, 60, job.why)
	assert "was ended by its kubelet for a more important pod" in why_ended(job)
	critical.wait_running()
	critical.delete()
	critical.wait_gone()


@once_only
@pytest.mark.each_release
@pytest.mark.apis("real")
def test_preemptor_takes_one_job_though_a_silent_kubelet_keeps_the_pod_of_that(mixed_preempting):
	stand = mixed_preempting
	low = [stand.batch(1, options=("-p", "low")) for _ in range(8)]
	for job in low:
		job.wait_started()
	with stand.paused("kubelet-n1"):
		high = stand.batch(1)
		victim, = wait_for("a victim", lambda: [job for job in low if job.state != "RUNNING"], 20)
		ends = time.monotonic() + 35  # Slurm would choose again each KillWait + MessageTimeout = 11 s
		while time.monotonic() < ends:
			stand.scheduled()
			assert [job for job in low if job.state != "RUNNING"] == [victim] and high.state == "PENDING"
	high.wait_started(60)
	assert [job for job in low if job.state != "RUNNING"] == [victim]


@pytest.mark.apis("real")
def test_kubelet_that_starts_again_ends_no_job(mixed):
	on_eviction(mixed, "cancel")
	job = mixed.batch(2)
	job.wait_started()
	before = wait_reservation(mixed, job.id)["metadata"]
	before, created = before["uid"], seconds_of(before["creationTimestamp"])
	mixed.cluster("restart", "kubelet-n1")
	# It admits what it finds in the order of their age, of which Kubernetes knows seconds.
	wait_for("another second than that of the reservation", lambda: time.time() >= created + 1, 5)
	late = foreign(mixed, "late", cpu="7")  # whoever was first keeps the room
	late.wait_phase("Failed")
	assert wait_reservation(mixed, job.id)["metadata"]["uid"] == before
	assert job.state == "RUNNING" and not why_ended(job)


def test_pod_that_goes_while_its_node_is_not_heard_of_ends_no_job(mixed):
	on_eviction(mixed, "cancel")
	job = mixed.batch(2)
	job.wait_started()
	before = wait_reservation(mixed, job.id)
	silent = mixed.paused("kubelet-n1") if mixed.kind == "real" else contextlib.nullcontext()
	with silent:
		Node(mixed).say("Ready", "Unknown", "Kubelet stopped posting node status.")
		# nodes and pods have watches of their own: the one may be told of before the other
		wait_for("known", lambda: "ready" in status(mixed, "--node", "n1")["clusters"][0]["node"]["in_kubernetes"].lower())
		mixed.api.delete(f"{PODS}/{before['metadata']['name']}", {"gracePeriodSeconds": 0})
		wait_for("another pod", lambda: wait_reservation(mixed, job.id)["metadata"]["uid"] != before["metadata"]["uid"], 30)
	Node(mixed).say("Ready", "True", "kubelet is posting ready status")
	assert job.state == "RUNNING" and not why_ended(job)
	# nobody reports the end of a pod that was deleted by force
	assert "is free" in tool(mixed, "release", "--force", before["metadata"]["uid"])


# -- kubectl drain

@pytest.fixture
def node(mixed):
	found = Node(mixed)
	yield found
	found.settle()


def test_drain_ends_no_job_and_the_node_is_drained_when_the_last_one_has_ended_by_itself(mixed, node):
	job = mixed.batch(2, seconds=None)
	job.wait_started()
	before = wait_reservation(mixed, job.id)["metadata"]
	assert not before.get("ownerReferences")  # why kubectl wants --force, as slurm-k8s(7) says
	guest, placed = foreign(mixed, "guest"), mixed.pod("placed", "sleep 600", node="n1")
	for pod in (guest, placed):
		pod.wait_running()
	node.cordon()
	assert drain(mixed, "n1") == {before["name"], "guest", "placed"}
	again = wait_reservation(mixed, job.id)["metadata"]
	assert again["uid"] != before["uid"]
	node.wait_condition("False", "1 job of Slurm left: k8s: cordoned", 30)  # that of the pod ends with it
	late = mixed.batch(1, seconds=0)
	mixed.scheduled()
	assert (job.state, late.state) == ("RUNNING", "PENDING")
	assert node.drained and not job.stamps()[1] and int(job.show()["Restarts"]) == 0
	job.finish()
	job.wait("COMPLETED")
	node.wait_condition("True", "no job of Slurm left", 30)
	wait_no_reservation(mixed, job.id)
	assert late.state == "PENDING"
	node.uncordon()
	late.wait("COMPLETED")
	assert not node.drained and late.stamps()[0] > job.stamps()[1]


# -- hostile

def test_pod_that_only_looks_like_a_reservation_is_masked_as_any_other(mixed):
	job = mixed.batch(2)
	job.wait_started()
	labels = {"slurm-k8s.io/job": str(job.id), "slurm-k8s.io/user": "root"}
	name = wait_reservation(mixed, job.id)["metadata"]["name"]
	foreign(mixed, "claims", cpu="2", labels=labels).wait_running()
	foreign(mixed, name, cpu="1").wait_running()  # of that name, elsewhere
	wait_masked(mixed, "claims", name)
	assert allocated(mixed)[0] == 5
