# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurmctld forgets jobs within seconds, takes no more of them, is reconfigured all the time, or has no slurmdbd."""
import time

import pytest
from outage import converge, in_every_state
from slurm_conf import slurm_conf
from stands.replays import once_only
from stands.waiting import StandError, wait_for

pytestmark = pytest.mark.apis("sim")
STUBBORN = "trap '' TERM; sleep 600"


def forgotten(stand, *ids):
	return not {int(job["JobId"]) for job in stand.jobs()} & set(ids)


def test_job_that_slurm_forgets_while_its_pod_is_leaving_keeps_the_cores_and_is_not_made_again(stand):
	with slurm_conf(stand, "MinJobAge=2"):
		leaves = stand.pod("leaves", STUBBORN, cpu="6", node="n1", grace=60).wait_running()
		ended = stand.pod("ended", "exit 4", node="n2")
		ids = [leaves.job_id, ended.job_id]
		ended.wait_phase("Failed")
		# the API server is away for longer than Slurm remembers: the pod cannot even be told
		with stand.paused("apiserver"):
			stand.run("scancel", str(ids[0]))
			rival = stand.batch(3)
			wait_for("Slurm to forget", lambda: forgotten(stand, *ids), 60)
			stand.scheduled()
			assert rival.state == "PENDING"
		rival.wait_started()
		assert leaves.runs()[0].stop < stand.allocated_at(rival.id)
		leaves.wait_gone()
		assert leaves.jobs() == [] and ended.jobs() == [] and ended.phase == "Failed"
		assert not ended.get()["metadata"].get("finalizers")


def test_pods_wait_with_a_reason_while_slurm_takes_no_more_jobs_and_go_on_by_themselves(stand):
	known = len(stand.jobs())
	with slurm_conf(stand, "MinJobAge=2", f"MaxJobCount={known + 3}"):
		size, began = stand.log_size(), time.monotonic()
		pods = [stand.pod(f"many{i}", "sleep 1", cpu="1") for i in range(12)]
		# whichever is not taken: one that was refused first is not asked for first
		wait_for("a pod that waits", lambda: any("as many jobs as MaxJobCount allows" in pod.condition().get("message", "") for pod in pods),
			60, lambda: str([pod.condition() for pod in pods]))
		for pod in pods:
			pod.wait_phase("Succeeded", seconds=180)
		# nothing is asked hot: Slurm writes a line for each job that it does not take
		assert stand.log(size).count("MaxJobCount limit from slurm.conf reached") < 1.5 * (time.monotonic() - began) + 5
		assert all(len(stand.bindings()[pod.uid]) == 1 for pod in pods)


def test_fifty_reconfigures_with_a_changing_and_broken_configuration_change_nothing_for_pods(stand):
	made = in_every_state(stand, "storm")
	before = {name: pod.job_id for name, (pod, _) in made.items()}
	size = stand.log_size()
	with stand.changing_settings() as (good, write):
		texts = [good, good.replace("killGrace: 8s", "killGrace: 9s"), "clusters: [", good.replace("default, user", "default, usr")]
		for i in range(50):
			write(texts[i % len(texts)])
			stand.reconfigure()
	assert "the former settings stay in force" in stand.log(size) and "no pod is placed" not in stand.log(size)
	converge(stand, made)
	assert {name: [int(job["JobId"]) for job in pod.jobs()] for name, (pod, _) in made.items()} == \
		{name: [job] for name, job in before.items()}


@pytest.mark.parametrize("again", ["reconfigure", "restart"])
def test_pods_run_while_the_configuration_has_a_mistake_and_slurmctld_starts_again(stand, again):
	with stand.changing_settings() as (good, write):
		write(good.replace("schedulerNames", "schedulerName"))
		if again == "restart":
			stand.restart_slurmctld(kill=True)
		else:
			stand.reconfigure()
		pod = stand.pod(f"slip-{again}", "exit 0")
		pod.wait_phase("Succeeded")


@pytest.mark.slow
def test_slurmdbd_that_is_away_at_the_start_and_meanwhile_delays_no_pod_and_hears_of_all_ends(accounted):
	pods = [accounted.pod("first", "exit 0")]
	pods[0].wait_phase("Succeeded")
	accounted.cluster("stop", "slurmdbd", "--kill")
	pods.append(accounted.pod("meanwhile", "exit 6", ns="team-a"))
	pods[1].wait_phase("Failed")
	runs = accounted.pod("runs", "sleep 600", grace=1).wait_running()
	accounted.restart_slurmctld(kill=False)
	pods.append(accounted.pod("after", "exit 7"))
	pods[2].wait_phase("Failed")
	refused = accounted.pod("refused", annotations={"slurm-k8s.io/qos": "no-such-qos"})
	refused.wait_event("SlurmRefused")
	runs.delete()
	runs.wait_job("CANCELLED")
	accounted.cluster("start", "slurmdbd")

	def kept():
		try:
			rows = accounted.run("sacct", "-a", "-X", "-n", "-P", "-o", "admincomment,state,exitcode").splitlines()
		except StandError as error:
			raise OSError(str(error)) from error
		return {row.split("|")[0].rsplit("/", 1)[-1]: row.split("|")[1:] for row in rows}
	wanted = {pods[0].uid: ["COMPLETED", "0:0"], pods[1].uid: ["FAILED", "6:0"], pods[2].uid: ["FAILED", "7:0"]}
	wait_for("sacct", lambda: wanted.items() <= kept().items() and kept().get(runs.uid, [""])[0].startswith("CANCELLED"), 120,
		lambda: str(kept()))
	assert refused.jobs() == [] and all(len(accounted.bindings()[pod.uid]) == 1 for pod in pods)


@once_only
def test_second_job_with_the_mark_of_a_pod_is_ended_and_the_pod_runs_on_with_its_own(stand):
	"""Our job_submit plugin lets nobody give that mark: it is away for a while."""
	pod = stand.pod("one", "sleep 600")
	pod.wait_running()
	before = pod.job()

	def marked(*options):
		job = int(stand.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-n1", "--mem=10", *options, "--wrap", "sleep 600"))
		stand.update(job, f"AdminComment={before['AdminComment']}")
		return job
	with slurm_conf(stand, "JobSubmitPlugins=throttle"):
		seconds = [marked("-H"), marked()]
		for job in seconds:
			wait_for("its end", lambda job=job: stand.job(job)["JobState"] == "CANCELLED", 60, lambda job=job: stand.job(job))
	assert pod.jobs()[0]["JobId"] == before["JobId"] and pod.jobs()[0]["StartTime"] == before["StartTime"]
	assert [job["JobState"] for job in pod.jobs()] == ["RUNNING", "CANCELLED", "CANCELLED"]
	assert pod.phase == "Running" and stand.bindings()[pod.uid] == [pod.node]
