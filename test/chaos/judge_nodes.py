# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Verdicts on the state of nodes: what is done to them on one side is heard of on the other one, and undone by nobody else."""
from reservations import US
from verdict import Verdict

PROMPT = 3  # seconds from a cordon to a drain, and back, on a busy machine
NOTED = 1  # second: an API server notes the end of a request later than its watches tell what came of it, on a busy machine
HEARD_AGAIN = 30  # seconds from the end of a fault to the next try of what had failed


def without(spans, taken):
	"""What is left of spans, both [(from, to)]."""
	for low, high in taken:
		spans = [part for begin, end in spans for part in ((begin, min(end, low)), (max(begin, high), end)) if part[0] < part[1]]
	return spans


# -- cordoned in Kubernetes, and no job is started

def _deaf(evidence):
	"""[(from, to)] while we had no watch of nodes, or it brought nothing, and until we can have done what was missed."""
	absent, at = [], 0
	for begin, end in evidence.listening:
		if begin > at:
			absent.append((at, begin))
		at = max(at, end)
	absent += [(at, float("inf"))] if at < float("inf") else []
	lost = [(begin, end + HEARD_AGAIN) for begin, end in evidence.behind]  # a server that lags behind its etcd watches on
	return lost + [(begin, end + PROMPT) for begin, end in absent + evidence.broken]


def _heard(evidence, cordon):
	"""[(from, to)] while Slurm must have been told of a cordon: it listens, or has drained the node for it and not started anew since."""
	there = [(cordon.begin + PROMPT, cordon.end)]
	resumes = [(when, when + PROMPT) for when, node in evidence.drains.resumed if node == cordon.node]
	drained = [(max(when, cordon.begin), min([cordon.end, *(start for start in evidence.drains.starts if start > when)]))
		for when, node in evidence.drains.cordoned if node == cordon.node and cordon.begin - NOTED < when < cordon.end]
	return without(without(there, _deaf(evidence)) + drained, resumes)


def check_cordons(evidence):
	"""No job starts on a node that is cordoned, but by its administrator's decision, who resumed it."""
	wrong, seen = [], 0
	for cordon in evidence.cordons:
		decided = min(cordon.resumed, default=float("inf"))
		heard = [] if cordon.marked else _heard(evidence, cordon)
		seen += bool(heard)
		wrong += [f"JobId={job.job} at {job.when:.3f} on {cordon.node}, cordoned from {cordon.begin:.3f} to {cordon.end:.3f}" for job in
			evidence.started_jobs if job.node == cordon.node and any(begin < job.when < end for begin, end in heard) and job.when < decided]
	if not seen and evidence.last_cordon:
		wrong.append("no cordon was there long enough to say anything, not even the last one")
	return Verdict("violation", "job started on a cordoned node", seen, wrong, [])


# -- what others did stands

def check_nodes(evidence):
	"""What others did to a node stands. A cordon that was put on where the mark of ours was cannot be told from ours."""
	taken = [cordon for cordon in evidence.cordons if cordon.off == US]
	texts = {marked: [f"{cordon.end:.3f}: {cordon.node} is uncordoned, which others had cordoned at {cordon.begin:.3f}" for cordon in taken
		if cordon.marked == marked] for marked in (False, True)}
	drains = [f"{drain.when:.3f}: {drain.node} was in {drain.state} for \"{drain.reason}\"" for drain in evidence.drains.undone]
	false = [f"{when:.3f}: {cordon.node} says that somebody has resumed it" for cordon in evidence.cordons for when in cordon.resumed[:1]
		if not any(node == cordon.node and at < when for at, node in evidence.drains.resumed)]
	return Verdict("violation", "cordon, drain or DOWN of others undone by slurm-k8s", len(evidence.cordons) + len(evidence.drains.resumed),
		texts[False] + drains + false, texts[True])


# -- without jobs in Slurm, and cordoned

def _in(when, spans):
	return any(begin < when < end for begin, end in spans)


def check_closed(evidence):
	"""What Slurm's administrators keep jobs away from is cordoned, unless somebody has taken just that off; and by us it stays so also while
	nobody can tell whether a cordon was tried, but for what was asked before a fault and comes through in it."""
	wrong, seen = [], 0
	late = [(begin, end + HEARD_AGAIN) for begin, end in evidence.broken + evidence.behind]
	delayed = [(begin, end + PROMPT) for begin, end in evidence.broken]
	for closed in evidence.drains.closed:
		all_of_it = [(closed.begin + PROMPT, closed.end)]
		must, stays = without(all_of_it, late), without(all_of_it, delayed)
		seen += bool(stays)
		for begin, end, by in evidence.uncordoned.get(closed.node, [(0, float("inf"), None)]):
			missing = any(max(begin + PROMPT, low) < min(end, high) for low, high in must)
			if missing or by == US and _in(begin, stays):
				wrong.append(f"{closed.node} is {'DOWN' if closed.down else 'drained'} from {closed.begin:.3f} to {closed.end:.3f} for "
					f"\"{closed.reason}\", and not cordoned from {begin:.3f} to {end:.3f}" + (", by slurm-k8s" if by == US else ""))
	return Verdict("violation", "node without jobs in Slurm, not cordoned", seen, wrong, [])
