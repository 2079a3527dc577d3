# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What stories of outages have in common: pods in every state before one, and what must have become of them."""
import glob
import os
import shutil
import time

from stands.waiting import wait_for

US = "slurm-k8s"


def in_every_state(stand, tag):
	"""Pods that wait, start, run and end, on eight cores: {name: (pod, exit code)}."""
	made = {}

	def add(name, command, code, **more):
		made[name] = stand.pod(f"{tag}-{name}", command, node="n1", **more), code
	add("runs", "sleep 20; exit 5", 5, cpu="2")
	add("runs2", "sleep 14", 0, cpu="2")
	add("ends", "sleep 8; exit 7", 7, cpu="2")
	for name in ("runs", "runs2", "ends"):
		made[name][0].wait_running()
	saved(stand)
	add("starts", "sleep 14; exit 3", 3, cpu="2")
	add("waits", "sleep 1; exit 4", 4, cpu="8")
	add("waits2", "exit 0", 0)
	made["waits"][0].wait_job("PENDING")
	return made


def saved(stand, *options, node="n2"):
	"""Slurm has saved the state of its jobs, as it does five seconds after a change: what is older survives a crash."""
	stand.batch(seconds=0, node=node, options=options)
	now = time.time()
	file = os.path.join(stand.folder, "slurm", "state", "job_state")
	wait_for("the saved state", lambda: os.path.getmtime(file) > now, 30)


def restart_without(stand, what):
	"""What Slurm has saved of its jobs, or "everything", is lost. After this its job ids begin at 1."""
	stand.cluster("stop", "slurmctld")
	state = os.path.join(stand.folder, "slurm", "state")
	for path in glob.glob(state + ("/*" if what == "everything" else "/job_state*")):
		shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
	stand.cluster("start", "slurmctld")


def ended_unseen(stand, pod):
	"""Its containers had stopped when slurmctld, after its last start, knew all pods, or when it could make a job for it: Slurm
	makes none on a node whose slurmd it has not heard of yet."""
	return f"uid {pod.uid} job none: no job could be made where it runs" in stand.log() or \
		all(run.stop and run.stop < stand.engine_started_at() for run in pod.runs())


def converge(stand, made, audit_may_lack=False, forgotten=()):
	"""All ran once, to their own end, bound once, untouched by us; their jobs tell the truth.

	audit_may_lack: the API server was killed, perhaps before it wrote down what it did. forgotten: names of pods whose
	jobs were made less than five seconds before slurmctld was killed, which it may have forgotten. A pod that still runs
	is adopted; one that had ended meanwhile has no job at all, as nothing is left for which Slurm could count one. A job
	that Slurm knows tells the truth in any case, also if Slurm had forgotten that it was started.
	"""
	for pod, code in made.values():
		pod.wait_phase("Failed" if code else "Succeeded", seconds=120)
	for name, (pod, code) in made.items():
		wanted = {("FAILED", f"{code}:0")} if code else {("COMPLETED", "0:0")}
		may_lack = name in forgotten and ended_unseen(stand, pod)
		pod.wait("the true end of its job",
			lambda pod=pod, wanted=[wanted, set()] if may_lack else [wanted]:
				{(job["JobState"], job["ExitCode"]) for job in pod.jobs()[-1:]} in wanted)
	bindings = stand.bindings()
	for pod, code in made.values():
		assert [run.code for run in pod.runs()] == [code]
		assert len(bindings.get(pod.uid, [])) == 1 or audit_may_lack and pod.uid not in bindings
	names = {pod.name for pod, _ in made.values()}
	assert [event for event in stand.audit() if event.get("verb") == "delete" and event["user"]["username"] == US
		and event["objectRef"].get("name") in names] == []


def stand_job(stand, pod):
	"""Id of the pod's newest job, without the API server."""
	return [job["JobId"] for job in stand.jobs() if job.get("AdminComment", "").endswith(pod.uid)][-1]
