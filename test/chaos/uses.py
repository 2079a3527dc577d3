# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Who used how much of which node when, of evidence.py."""
from collections import namedtuple

from evidence import set_down, stopped
from plan import CORES, GPUS, MEMORY, NODES
from shared_runs import SharedRuns, has_share

# stop: None while it does. by: its name; forgotten: a job that Slurm forgot, or counts no more. since: when Slurm had decided that; of a foreign
# pod, which asks nobody, when slurm-k8s knew of it (None: never). gpus: how many; devices: which ones, if that is known:
# not of a pod whose object and Binding nobody has, nor of a foreign one, but where a device plugin's kubelet has chosen.
# gaps: (from, to) in which its kubelet does not count it; None: never.
Use = namedtuple("Use", "node start stop cores memory gpus devices by forgotten since foreign gaps")
REFUSED = ("OutOf", "UnexpectedAdmissionError")  # reasons of a kubelet that does not take a pod


def _use(about, node, start, stop, **more):
	return Use(node, start, stop, about["cores"], about["memory"], about["gpus"], **more)


def _gaps(evidence, name, uid):
	"""Of a pod. What is deleted by force its kubelet gives up at once, and what it refuses after its start it had admitted."""
	refused = evidence.objects.get(uid, {}).get("status", {}).get("reason", "").startswith(REFUSED)
	return None if "force" in evidence.touched(name) or refused else []


def pod_uses(evidence):
	for name, uid in evidence.users.pods.items():
		runs = evidence.runs[uid]
		if runs:
			stop = None if any(run.stop is None for run in runs) else max(run.stop for run in runs)
			since = min(filter(None, (evidence.started(name), runs[0].start)))
			yield _use(evidence.steps[name], runs[0].node, runs[0].start, stop, devices=evidence.devices.get(uid), by=name,
				forgotten=False, since=since, foreign=False, gaps=_gaps(evidence, name, uid))


def foreign_uses(evidence):
	for name, uid in evidence.users.foreign.items():
		for run in evidence.runs[uid]:
			devices = evidence.devices.get(uid) if evidence.plugins else None
			yield _use(evidence.steps[name], run.node, run.start, run.stop, devices=devices, by=name, forgotten=False,
				since=evidence.told(name), foreign=True, gaps=_gaps(evidence, name, uid))


def _job_gaps(evidence, shared, name, run, stop):
	"""shared: the SharedRuns of its node, if there are any."""
	pod = evidence.reservation(name, run) if evidence.sharing == "mixed" else None
	if pod:
		return pod.gaps(run.start, stop)
	return shared.gaps(run.start, stop) if shared and has_share(evidence, name, pod) else None


def _start_is_forgotten(evidence, name, run, last):
	"""Of a job that Slurm knows. One that it has started a second time since, or that waited again after a crash and was cancelled then:
	its start is told as later than its process began, in whole seconds."""
	told = evidence.started(name)
	return evidence.log.forgot([run.start]) and (not last or bool(told) and told > run.start + 1)


def job_uses(evidence):
	"""What a run has after its node was set DOWN is counted as forgotten: Slurm gives it to others."""
	shared = {node: SharedRuns(evidence, node) for node in evidence.shared or ()}
	for name, job in evidence.users.jobs.items():
		about, runs = evidence.steps[name], job.runs()
		for run in runs:
			stop, down = stopped(evidence, name, run), set_down(evidence, name, run)
			forgotten = not evidence.jobs[name] or _start_is_forgotten(evidence, name, run, run is runs[-1])
			use = _use(about, about["node"], run.start, stop, devices=run.gpus, by=name, forgotten=forgotten,
				since=min(filter(None, (evidence.started(name), run.start))), foreign=False,
				gaps=_job_gaps(evidence, shared.get(about["node"]), name, run, stop))
			if down is None:
				yield use
			else:
				yield from (use._replace(stop=down),) if down > run.start else ()
				yield use._replace(start=max(down, run.start), forgotten=True)


def uses_of_plugins(evidence):
	"""What a device plugin's kubelet answers for: who is deleted by force it has given up, and a job has of it what its first pod has,
	until others take that one: the next one may get others."""
	for use in all_uses(evidence):
		job = evidence.users.jobs.get(use.by)
		if job and use.devices:
			pod = evidence.reservation(use.by, max(run for run in job.runs() if run.start <= use.start))
			taken = pod.admitted[0][1] if pod and pod.admitted else None
			if taken is None or taken > use.start:
				yield use._replace(stop=min(filter(None, (use.stop, taken)), default=None))
		elif use.devices and use.gaps is not None:
			yield use


def all_uses(evidence):
	return [*pod_uses(evidence), *job_uses(evidence), *foreign_uses(evidence)]


def moments(uses, more=()):
	"""(node, moment, who is at it) whenever somebody begins; more: further (node, moment)."""
	for node in NODES:
		here = [use for use in uses if use.node == node]
		for moment in sorted({use.start for use in here} | {when for at, when in more if at == node}):
			yield node, moment, [use for use in here if use.start <= moment and (use.stop is None or use.stop > moment)]


def too_much(uses):
	"""What together they have more of than a node, or None."""
	cores, memory, gpus = (sum(getattr(use, what) for use in uses) for what in ("cores", "memory", "gpus"))
	if cores > CORES or memory > MEMORY or gpus > GPUS:
		return f"{cores} cores, {memory} MiB and {gpus} GPUs"
	return None
