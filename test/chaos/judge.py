# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Verdicts from evidence.py. Each check gives what is wrong, and apart from that what Slurm itself has forgotten."""
from evidence import pod_set_down, set_down
from judge_nodes import check_closed, check_cordons, check_nodes
from plan import NODES, ON_RESERVATIONS
from reservations import US
from shared_runs import SharedRuns, ends_for_slurm, has_share, launches
from uses import REFUSED, all_uses, moments, too_much, uses_of_plugins
from verdict import Verdict

ENDED = ("COMPLETED", "FAILED", "CANCELLED")
# Ends of jobs that are Slurm's own decision, which pods must follow.
SLURMS = ("TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL")
ADMITTED = 10  # seconds from an admission to a start, on a busy machine
UNTOLD = 60  # seconds: an API server that ended so long before a launch may have taken the admission with it

# -- no double booking: who uses what is in uses.py

def overbooked(uses):
	"""[(when, what, names)] of moments at which more was in use than the node has, each combination once.

	A foreign pod may come second to what Slurm started; it counts if Slurm started anything of that later than it was
	known. Slurm tells whole seconds only."""
	found = []
	for node, moment, at_once in moments(uses):
		last = max((use.since for use in at_once if not use.foreign), default=0)
		at_once = [use for use in at_once if not use.foreign or use.since and use.since < int(last)]
		if what := too_much(at_once):
			found.append((moment, f"{what} on {node}", sorted(use.by for use in at_once)))
	return found


def twice(uses):
	"""The same of moments at which a GPU was in use twice, as far as it is known which ones are used."""
	found = []
	for node, moment, at_once in moments(uses):
		for index in sorted(frozenset().union(*(use.devices for use in at_once if use.devices))):
			names = sorted(use.by for use in at_once if index in (use.devices or ()))
			if len(names) > 1:
				found.append((moment, f"GPU {index} of {node}", names))
	return found


def over_admitted(uses):
	"""The same of moments at which more was in use than the node has of all that its kubelet counts, whoever came first."""
	found = []
	for node, moment, at_once in moments(uses, [(use.node, gap[1]) for use in uses for gap in use.gaps or ()]):
		counted = [use for use in at_once if use.gaps is not None and not any(begin <= moment < end for begin, end in use.gaps)]
		if what := too_much(counted):
			found.append((moment, f"{what} on {node}", sorted(use.by for use in counted)))
	return found


def _check(what, found_in, uses):
	"""found_in(uses): as overbooked(). What is too much only with jobs that Slurm forgot counts apart."""
	ours = found_in([use for use in uses if not use.forgotten])
	known = {moment for moment, _, _ in ours}
	apart = [found for found in found_in(uses) if found[0] not in known]
	return Verdict("violation", what, len(uses), *([f"{moment:.3f}: {text}: {', '.join(names)}" for moment, text, names in found]
		for found in (ours, apart)))


def check_overbooking(evidence):
	return _check("more in use at once than a node has", overbooked, all_uses(evidence))


def check_devices(evidence):
	uses = uses_of_plugins(evidence) if evidence.plugins else (use for use in all_uses(evidence) if use.devices)
	return _check("GPU in use twice", twice, list(uses))


def check_numbers_of_devices(evidence):
	"""Who asked for GPUs has seen so many."""
	wrong = [f"{use.by} asked for {use.gpus} and had {sorted(use.devices)}" for use in all_uses(evidence)
		if use.devices is not None and use.gpus != len(use.devices)]
	return Verdict("violation", "other GPUs than asked for", sum(use.gpus > 0 for use in all_uses(evidence)), wrong, [])


# -- sharing: mixed

def _as_admitted(evidence, use):
	"""A kubelet whose Node is not there knows no GPUs, as the Node says how many there are, and counts none."""
	blind = any(node == use.node and begin <= use.start <= end + ADMITTED for begin, end, node in evidence.gone)
	return use._replace(gpus=0) if blind else use


def check_admitted(evidence):
	return _check("more in use than a kubelet admits", over_admitted, [_as_admitted(evidence, use) for use in all_uses(evidence)])


def check_gate(evidence):
	wrong, apart, seen = [], [], 0
	for name, run, pod in launches(evidence):
		if has_share(evidence, name, pod):
			continue
		seen += 1
		if not pod or not pod.admitted or pod.admitted[0][0] > run.start:
			text = f"{name}: it ran from {run.start:.3f}, its pod was admitted at {pod and [f'{when:.3f}' for when, _ in pod.admitted]}"
			(apart if evidence.server_ended(run.start - UNTOLD, run.start) else wrong).append(text)
	return Verdict("violation", "job launched before its pod was admitted", seen, wrong, apart)


def check_removed(evidence):
	"""The pod of a job is there until its last process is gone."""
	wrong, seen = [], 0
	for name, run, pod in launches(evidence):
		seen += bool(pod)
		stop = ends_for_slurm(evidence, name, run)
		early = [f"{when:.3f}" for when in (pod.removed if pod else ()) if run.start < when < stop]
		if early and not evidence.log.forgot([run.start]) and not any(job["JobState"] == "NODE_FAIL" for job in evidence.jobs[name]):
			wrong.append(f"{name}: it ran from {run.start:.3f} to {stop:.3f}, slurm-k8s removed its pod at {early}")
	return Verdict("violation", "pod removed under its job", seen, wrong, [])


def _shared(evidence):
	"""SharedRuns of each node that has some."""
	found = [SharedRuns(evidence, node) for node in NODES if node in evidence.shared]
	return [runs for runs in found if runs.runs]


def check_shared_gate(evidence):
	"""Who shares a pod is launched when its kubelet keeps enough for all of them."""
	wrong, apart = [], []
	nodes = {evidence.steps[name]["node"] for name, _, pod in launches(evidence) if has_share(evidence, name, pod)}
	wrong += [f"{node}: small jobs ran, and no pod was there for them" for node in sorted(nodes - set(evidence.shared))]
	for runs in _shared(evidence):
		for run, kept, need in runs.launched_early():
			text = f"{run.name}: it ran from {run.start:.3f}, its kubelet kept {kept} for jobs with {need} by then"
			(apart if evidence.server_ended(run.start - UNTOLD, run.start) else wrong).append(text)
	return Verdict("violation", "job launched before its share was admitted", sum(len(runs.runs) for runs in _shared(evidence)), wrong, apart)


def check_shared_removed(evidence):
	"""The pod that jobs share is asked for as much as their processes have, until the last one of each is gone."""
	wrong = [f"{when:.3f}: slurm-k8s asked for {asked} for {', '.join(names)} with {need}" for runs in _shared(evidence)
		for when, asked, need, names in runs.asked_too_little()]
	return Verdict("violation", "share removed under its job", sum(len(runs.pods.asked()) for runs in _shared(evidence)), wrong, [])


def check_sharing(evidence):
	checks = [check_admitted, check_gate, check_removed] if evidence.sharing == "mixed" else []
	checks += [check_shared_gate, check_shared_removed] if evidence.shared is not None else []
	return [check(evidence) for check in checks]


# -- what becomes of pods

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
	pod, jobs, touched = evidence.objects.get(uid), evidence.pod_jobs[uid], evidence.touched(name) or pod_set_down(evidence, uid)
	if pod is None and not touched:
		return "its object is gone"
	if pod and pod["status"].get("phase") not in ("Succeeded", "Failed"):
		return f"it is {pod['status'].get('phase')}"
	if pod and pod["status"].get("reason") == "OutOfnvidia.com/gpu" and "capacity: 0" in pod["status"].get("message", ""):
		return None  # its kubelet had just started, and its device plugin had not
	if pod and evidence.plugins and "no healthy devices present" in pod["status"].get("message", ""):
		return None  # the same
	if pod and pod["status"].get("reason", "").startswith(REFUSED):
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
	jobs, runs = evidence.jobs[name], batch.runs()
	if not jobs:
		return "Slurm knows it no more"
	if evidence.touched(name) - set(ON_RESERVATIONS):  # for the sake of its pod no job ends
		return None if jobs[-1]["JobState"] in ENDED + SLURMS else _told(jobs[-1])
	if not runs:
		refused = not evidence.steps[name]["requeue"] and evidence.log.all(f"job {batch.id} of cluster", ": not started: ")
		return None if refused and jobs[-1]["JobState"] in ENDED else f"it never ran, and ended as {_told(jobs[-1])}"
	start, stop, _ = runs[-1]
	if jobs[-1]["JobState"] == "NODE_FAIL" and set_down(evidence, name, runs[-1]) is not None:
		return None
	if not stop or (jobs[-1]["JobState"], jobs[-1]["ExitCode"]) != _expected(evidence.steps[name]["code"]):
		return f"its process ran from {start:.3f} to {stop}, Slurm tells {_told(jobs[-1])}"
	return None


def check_jobs(evidence):
	"""What happens to a job of Slurm's own is not ours to promise: a wrong end counts only if Slurm could have known."""
	wrong, apart = [], []
	for name, batch in evidence.users.jobs.items():
		problem = _job_problem(evidence, name, batch)
		if problem:
			times = [stamp for run in batch.runs() for stamp in run[:2] if stamp] + evidence.log.about(f"JobId={batch.id} ")
			never_launched = not batch.runs() and evidence.jobs[name] and evidence.jobs[name][-1]["JobState"] in SLURMS
			(apart if never_launched or evidence.log.forgot(times) else wrong).append(f"{name} (JobId={batch.id}): {problem}")
	return Verdict("lost", "Slurm job without its true end", len(evidence.users.jobs), wrong, apart)


# -- no orphans

def check_left(game, evidence):
	what = {"containers": "container without pod", "jobs": "job that lives on", "pods": "pod that lives on",
		"reservations": "reservation pod that stays",
		"finalizers": "finalizer that stays", "holds": "hold that stays", "nodes": "node not free", "cordons": "cordon that stays",
		"taints": "taint that is missing, or that stays", "answers": "no answer"}
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
	return [check_overbooking(evidence), check_devices(evidence), check_numbers_of_devices(evidence), *check_sharing(evidence),
		check_bindings(evidence), check_deletions(evidence), check_cordons(evidence), check_nodes(evidence), check_closed(evidence), check_daemons(game),
		check_pods(evidence), check_jobs(evidence), *check_left(game, evidence), check_lost(game),
		check_free(game)]
