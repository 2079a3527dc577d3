# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""sharing: mixed: Slurm's own jobs hold reservation pods, and the kubelet decides who came first."""
import pytest
from command import tool
from mixed import PODS, refusals, reservations, share, wait_no_reservation, wait_reservation, wait_reservations_known
from stands.waiting import wait_for
from test_foreign import allocated, foreign, masked, wait_masked


def test_job_is_launched_when_the_kubelet_has_admitted_a_pod_with_what_it_holds_and_the_pod_goes_with_it(mixed):
	job = mixed.batch(3)
	job.wait_started()
	pod = wait_reservation(mixed, job.id)
	assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3", "memory": "100Mi"}
	assert pod["metadata"]["labels"]["slurm-k8s.io/user"] == "root"
	assert not masked(mixed) and allocated(mixed) == (3, 100)  # the job has it already
	job.cancel()
	wait_no_reservation(mixed, job.id)
	wait_for("a free node", lambda: allocated(mixed)[0] == 0, 30)


def test_no_foreign_pod_gets_the_cores_of_a_job(mixed):
	job = mixed.batch(7)
	job.wait_started()
	late = foreign(mixed, "late", cpu="2")
	late.wait_phase("Failed")
	assert late.get()["status"]["reason"] == "OutOfcpu"
	small = foreign(mixed, "small", cpu="500m")
	small.wait_running()
	assert job.state == "RUNNING"


def test_jobs_one_after_the_other_get_the_same_cores(mixed):
	jobs = [mixed.batch(8, seconds=1) for _ in range(3)]
	for job in jobs:
		job.wait("COMPLETED", seconds=90)
	runs = [job.stamps() for job in jobs]
	assert all(before[1] <= after[0] for before, after in zip(runs, runs[1:]))
	wait_for("no reservation", lambda: not reservations(mixed), 30)


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


def test_batch_job_that_is_refused_goes_back_into_the_queue_and_starts_soon_after_there_is_room(crowded):
	stand, pod = crowded
	job = stand.batch(8)
	wait_for("refusals", lambda: int(job.show()["Restarts"]) >= 2, 30, job.why)
	assert not job.stamps()[0]
	pod.delete()
	pod.wait_gone()
	assert job.wait_started(seconds=30) > pod.runs()[0].stop  # by itself Slurm would wait two minutes


def test_srun_that_is_refused_waits_in_the_gate_and_starts_when_there_is_room(crowded):
	stand, pod = crowded
	with stand.start("srun", "-w", "n1", "-n", "1", "-c", "8", "--mem", "100", "date", "+%s.%N") as srun:
		wait_for("a job in the gate", lambda: "CONFIGURING" in stand.run("squeue", "-h", "-o", "%T"), 20)
		wait_for("a refusal", lambda: refusals(stand), 20)
		pod.delete()
		out, _ = srun.communicate(timeout=60)
	assert srun.returncode == 0 and float(out) > pod.runs()[0].stop


def test_srun_that_never_gets_room_ends_after_gate_timeout_and_its_user_reads_why(crowded):
	stand, _ = crowded
	share(stand, gateTimeout="10s")  # a busy machine's kubelet needs some seconds to refuse
	wait_reservations_known(stand)
	done = stand.run("srun", "-w", "n1", "-n", "1", "-c", "8", "--mem", "100", "true", check=False, seconds=60)
	assert done.returncode != 0
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


# -- restarts and outages

def test_running_jobs_keep_their_pods_when_slurmctld_dies_and_one_whose_job_is_gone_is_deleted(mixed):
	stays, goes = mixed.batch(2), mixed.batch(2, seconds=3)
	for job in (stays, goes):
		job.wait_started()
	before = wait_reservation(mixed, stays.id)["metadata"]["uid"]
	wait_reservation(mixed, goes.id)
	mixed.cluster("stop", "slurmctld")
	goes_until = goes.stamps()
	wait_for("its end", lambda: goes.stamps()[1], 30)
	assert goes_until
	mixed.cluster("start", "slurmctld")
	wait_no_reservation(mixed, goes.id, 60)
	assert wait_reservation(mixed, stays.id)["metadata"]["uid"] == before
	assert stays.state == "RUNNING" and allocated(mixed)[0] == 2


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
