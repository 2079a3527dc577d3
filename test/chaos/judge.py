# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Verdicts from evidence.py. Each check gives what is wrong, and apart from that what Slurm itself has forgotten."""
from collections import namedtuple

from evidence import US, first_after
from plan import CORES, MEMORY, NODES

ENDED = ("COMPLETED", "FAILED", "CANCELLED")
# Ends of jobs that are Slurm's own decision, which pods must follow.
SLURMS = ("TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL")

# kind: violation, lost or orphan. seen: how many were looked at. wrong, apart: sentences.
Verdict = namedtuple("Verdict", "kind what seen wrong apart")
# Who uses how much of a node, and when. stop: None while it does. by: its name; forgotten: a job that Slurm forgot.
# since: when Slurm had decided that; of a foreign pod, which asks nobody, when slurm-k8s knew of it (None: never).
Use = namedtuple("Use", "node start stop cores memory by forgotten since foreign")


# -- no double booking

def pod_uses(evidence):
	for name, uid in evidence.users.pods.items():
		runs, about = evidence.runs[uid], evidence.steps[name]
		if runs:
			stop = None if any(run.stop is None for run in runs) else max(run.stop for run in runs)
			since = min(filter(None, (evidence.started(name), runs[0].start)))
			yield Use(runs[0].node, runs[0].start, stop, about["cores"], about["memory"], name, False, since, False)


def foreign_uses(evidence):
	for name, uid in evidence.users.foreign.items():
		about = evidence.steps[name]
		for run in evidence.runs[uid]:
			yield Use(run.node, run.start, run.stop, about["cores"], about["memory"], name, False, evidence.told(name), True)


def job_uses(evidence):
	for name, batch in evidence.users.jobs.items():
		start, stop = batch.stamps()
		about = evidence.steps[name]
		if start:
			stop = stop or first_after(evidence.slurmd_ends[str(batch.id)], start) or start
			since = min(filter(None, (evidence.started(name), start)))
			yield Use(about["node"], start, stop, about["cores"], about["memory"], name, not evidence.jobs[name], since, False)


def overbooked(uses):
	"""[(when, what, names)] of moments at which more was in use than the node has, each combination once.

	A foreign pod may come second to what Slurm started; it counts if Slurm started anything of that later than it was
	known. Slurm tells whole seconds only."""
	found = []
	for node in NODES:
		here = [use for use in uses if use.node == node]
		for moment in sorted({use.start for use in here}):
			at_once = [use for use in here if use.start <= moment and (use.stop is None or use.stop > moment)]
			last = max((use.since for use in at_once if not use.foreign), default=0)
			at_once = [use for use in at_once if not use.foreign or use.since and use.since < int(last)]
			cores, memory = (sum(getattr(use, what) for use in at_once) for what in ("cores", "memory"))
			if cores > CORES or memory > MEMORY:
				found.append((moment, f"{cores} cores and {memory} MiB on {node}", sorted(use.by for use in at_once)))
	return found


def check_overbooking(evidence):
	uses = [*pod_uses(evidence), *job_uses(evidence), *foreign_uses(evidence)]
	ours = {(moment, tuple(names)) for moment, _, names in overbooked([use for use in uses if not use.forgotten])}
	wrong, apart = [], []
	for moment, what, names in overbooked(uses):
		known = tuple(name for name in names if name not in {use.by for use in uses if use.forgotten})
		(wrong if (moment, known) in ours else apart).append(f"{moment:.3f}: {what}: {', '.join(names)}")
	return Verdict("violation", "more in use at once than a node has", len(uses), wrong, apart)


def check_bindings(evidence):
	wrong = []
	for name, uid in evidence.users.pods.items():
		bound, ran = evidence.bindings.get(uid, []), {run.node for run in evidence.runs[uid]}
		if len(bound) > 1 or len(ran) > 1 or bound and ran and set(bound) != ran:
			wrong.append(f"{name}: bound to {bound}, ran on {sorted(ran)}")
	return Verdict("violation", "pod bound twice, or run elsewhere than bound", len(evidence.users.pods), wrong, [])


def check_deletions(evidence):
	wrong, apart, seen = [], [], 0
	for name, uid in evidence.users.pods.items():
		if US in evidence.deleted[name]:
			seen += 1
			jobs = evidence.pod_jobs[uid]
			if any(job["JobId"] in evidence.log.reused for job in jobs):
				apart.append(f"{name}: the end of a forgotten job with the same id {jobs[-1]['JobId']} ended its job")
			elif not evidence.touched(name) and not any(job["JobState"] in SLURMS for job in jobs):
				wrong.append(f"{name}: nobody asked for it; its jobs: {[_told(job) for job in jobs]}")
	return Verdict("violation", "pod deleted by slurm-k8s without a reason", seen, wrong, apart)


# -- nothing lost

def _told(job):
	return f"{job['JobId']} {job['JobState']} {job['ExitCode']}"


def _expected(code):
	return ("FAILED", f"{code}:0") if code else ("COMPLETED", "0:0")


def exit_code(pod):
	"""Of its container, by the kubelet; None if it does not say."""
	for status in pod["status"].get("containerStatuses", []):
		if "terminated" in status.get("state", {}):
			return status["state"]["terminated"]["exitCode"]
	return None


def _foreign_came_first(evidence, name, uid):
	"""Whether a foreign pod can have been there first, which slurm-k8s did not know of when the pod's job started."""
	started, bound = evidence.started(name), evidence.bindings.get(uid, [None])[0]
	told = {other: evidence.told(other) for other in evidence.users.foreign if evidence.steps[other]["node"] == bound}
	return any(evidence.runs[evidence.users.foreign[other]] and (not when or not started or when > started - 1)
		for other, when in told.items())


def _pod_problem(evidence, name, uid):
	"""What is wrong with the end of a pod and its job, or None."""
	pod, jobs, touched = evidence.objects.get(uid), evidence.pod_jobs[uid], evidence.touched(name)
	if pod is None and not touched:
		return "its object is gone"
	if pod and pod["status"].get("phase") not in ("Succeeded", "Failed"):
		return f"it is {pod['status'].get('phase')}"
	if pod and pod["status"].get("reason", "").startswith("OutOf"):
		return None if _foreign_came_first(evidence, name, uid) else f"its kubelet did not take it: {pod['status'].get('message')}"
	if len([job for job in jobs if job["JobState"] not in ENDED + SLURMS]) > 0:
		return f"its jobs are {[_told(job) for job in jobs]}"
	if not jobs:
		return "Slurm knows no job of it" if evidence.runs[uid] else None
	if touched:
		return None
	code = exit_code(pod)
	if code != evidence.steps[name]["code"] and code not in (137, 255):
		return f"its container told {code}, not {evidence.steps[name]['code']}"
	if code is not None and (jobs[-1]["JobState"], jobs[-1]["ExitCode"]) != _expected(code):
		return f"it ended with {code}, its job with {_told(jobs[-1])}"
	return None


def check_pods(evidence):
	wrong, apart = [], []
	for name, uid in evidence.users.pods.items():
		problem = _pod_problem(evidence, name, uid)
		if problem:
			times = [stamp for run in evidence.runs[uid] for stamp in (run.start, run.stop) if stamp] + evidence.log.about(uid)
			reused = any(job["JobId"] in evidence.log.reused for job in evidence.pod_jobs[uid])
			(apart if reused or evidence.log.forgot(times) else wrong).append(f"{name} ({uid}): {problem}")
	return Verdict("lost", "pod without its true end", len(evidence.users.pods), wrong, apart)


def _job_problem(evidence, name, batch):
	"""What is wrong with the end of a Slurm job, or None."""
	jobs, (start, stop) = evidence.jobs[name], batch.stamps()
	if not jobs:
		return "Slurm knows it no more"
	if evidence.touched(name):
		return None if jobs[-1]["JobState"] in ENDED + SLURMS else _told(jobs[-1])
	if not start:
		return f"it never ran, and ended as {_told(jobs[-1])}"
	if not stop or (jobs[-1]["JobState"], jobs[-1]["ExitCode"]) != _expected(evidence.steps[name]["code"]):
		return f"its process ran from {start:.3f} to {stop}, Slurm tells {_told(jobs[-1])}"
	return None


def check_jobs(evidence):
	"""What happens to a job of Slurm's own is not ours to promise: a wrong end counts only if Slurm could have known."""
	wrong, apart = [], []
	for name, batch in evidence.users.jobs.items():
		problem = _job_problem(evidence, name, batch)
		if problem:
			times = [stamp for stamp in batch.stamps() if stamp] + evidence.log.about(f"JobId={batch.id} ")
			never_launched = not batch.stamps()[0] and evidence.jobs[name] and evidence.jobs[name][-1]["JobState"] in SLURMS
			(apart if never_launched or evidence.log.forgot(times) else wrong).append(f"{name} (JobId={batch.id}): {problem}")
	return Verdict("lost", "Slurm job without its true end", len(evidence.users.jobs), wrong, apart)


# -- no orphans

def check_left(game, evidence):
	what = {"containers": "container without pod", "jobs": "job that lives on", "pods": "pod that lives on",
		"finalizers": "finalizer that stays", "holds": "hold that stays", "nodes": "node not free", "cordons": "cordon that stays",
		"answers": "no answer"}
	seen = sum(len(runs) for runs in evidence.runs.values())
	return [Verdict("orphan", text, seen if key == "containers" else len(evidence.users.pods), game.left.get(key, []), [])
		for key, text in what.items() if key != "answers" or game.left.get(key)]


def check_free(game):
	"""Whole nodes can be had by jobs: nothing is masked in memory either."""
	return Verdict("orphan", "node of which a part stays masked", len(NODES), game.masked(), [])


def check_lost(game):
	"""What nobody can prove after a crash is kept for a person (slurm-k8s release): no damage, but not healed either."""
	return Verdict("orphan", "pod deleted around a crash, lost", len(game.users.pods), [], [f"{uid} on {node}: its cores were "
		"masked until slurm-k8s release" for uid, node in game.lost.items()])


def check_daemons(game):
	return Verdict("violation", "daemon of Slurm that ended by itself", len(game.faults.names), game.faults.crashed, [])


def judge(game, evidence):
	return [check_overbooking(evidence), check_bindings(evidence), check_deletions(evidence), check_daemons(game),
		check_pods(evidence), check_jobs(evidence), *check_left(game, evidence), check_lost(game),
		check_free(game)]


def table(verdicts):
	"""Lines for people."""
	yield f"{'kind':10} {'what':48} {'seen':>6} {'found':>6} {'apart':>19}"
	for verdict in verdicts:
		yield f"{verdict.kind:10} {verdict.what:48} {verdict.seen:6} {len(verdict.wrong):6} {len(verdict.apart):19}"
	for verdict in verdicts:
		for mark, texts in (("FOUND", verdict.wrong), ("apart", verdict.apart)):
			yield from (f"  {mark}: {verdict.what}: {text}" for text in texts)
