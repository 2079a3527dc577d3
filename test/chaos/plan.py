# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What a seed means: when which pod and job comes, what users do to them, what breaks for how long.

Pure: the same seed, length, kind of API server and of sharing give the same steps.
"""
import random
from collections import namedtuple

# at: seconds since the beginning. verb: a method of users.Users or nodes.Nodes, or a fault of faults.py.
# target: a pod, a job, a daemon. about: what the verb needs besides.
Step = namedtuple("Step", "at verb target about")

NODES = ("n1", "n2")
GPU = "nvidia.com/gpu"
CORES, MEMORY, GPUS = 4, 16000, 3  # of a node, MiB; few, so that they are always in use
# Seconds between two, on average. It is a little more than the nodes can take, so that what is freed too early is given
# away at once.
GAP = {"pod": 1.5, "job": 4.0, "foreign_pod": 6.0, "fault": 3.0, "reconfigure": 15.0, "node": 12.0}
MIXED_GAP = {**GAP, "pod": 2.5, "job": 2.5, "foreign_pod": 4.0}
CALM, CALM_GAP = 60, 4.0  # seconds; the latter between two things done to nodes then
HUSH = 0.2  # part of a play: at its end nothing breaks that keeps one side from hearing of what is done to nodes last on the other one
HELD = 5  # seconds that the other side has that one
DEAF = 0.3  # part of the pods and jobs that ignores SIGTERM
TOUCHED = 0.5  # part of the pods and jobs that users do something to
WISHES = (0, 0, 1, 2, 3)  # how many GPUs they ask for: together as much of what there is as of cores
SHARED_CPUS = 2  # mixed, odd seeds: jobs of so few, without GPUs, share a pod of their node
REQUEUED = 0.7  # mixed: part of the jobs that may go back into the queue; others wait in the gate, or end there

# {daemon: how often compared with others}
EVERYWHERE = {"slurmctld": 4, "slurmd-n1": 1, "slurmd-n2": 1, "network": 3}
DAEMONS = {
	"sim": {**EVERYWHERE, "kubesim": 4},
	"real": {**EVERYWHERE, "kube-apiserver": 3, "etcd": 2, "kubelet-n1": 1.5, "kubelet-n2": 1.5,
		"containerd-n1": 0.7, "containerd-n2": 0.7},
}
# Without them nobody hears anything of nodes.
NEAR = ("slurmctld", "network", "kubesim", "kube-apiserver", "etcd")
# {fault: (shortest, longest) seconds}; a killed daemon is down for so long
DAEMON_FAULTS = {"kill": (0.1, 6), "stop": (0.5, 10)}
NETWORK_FAULTS = {"cut": (0.5, 10), "hang": (0.5, 12), "mute": (0.3, 5)}
ON_PODS = ("delete", "delete", "force", "scancel", "scancel", "hold")
ON_JOBS = ("scancel", "scancel", "hold")
ON_RESERVATIONS = ("evict", "take")  # mixed: what others do to the pods that stand for a job
ON_FOREIGN = ("delete", "delete", "force")
# {what its administrators do, or what becomes of it: (shortest, longest) seconds}
ON_NODES = {"cordon": (1, 15), "drain": (1, 8), "fail": (1, 8), "set_down": (1, 8), "condition": (1, 8), "maintain": (1, 8), "not_ready": (1, 10),
	"delete_node": (0.5, 15)}
ON_DEDICATED = {**ON_NODES, "untaint": (0, 0)}


def shares_pods(seed, sharing):
	"""Whether small jobs share a pod (reservations.shared)."""
	return sharing == "mixed" and seed % 2 == 1


def down_lasts(seed):
	"""Whether what is DOWN stays so until it is resumed; else (ReturnToService=2) until its slurmd answers, as it does at once if jobs
	are ended there."""
	return seed % 2 == 0


def has_plugins(seed, api, sharing):
	"""Whether the GPUs are a device plugin's: the kubelets, which are not on kubesim, choose who gets which."""
	return api == "real" and sharing == "mixed" and seed % 3 == 0


def calm(seconds):
	"""So long nothing breaks at the end of a long play: only then each side must hear of what is done to nodes on the other one."""
	return CALM if seconds >= 3 * CALM else 0


def hush(seconds):
	"""So long at the end of a play only what is far from both sides' servers breaks."""
	return min(seconds * HUSH, 12)


def moments(dice, gap, until):
	"""Random times before `until`, `gap` seconds apart on average."""
	at = dice.expovariate(1 / gap)
	while at < until:
		yield at
		at += dice.expovariate(1 / gap)


def _pod(dice):
	return {"seconds": round(dice.uniform(0.2, 8), 1), "code": dice.choice((0, 0, 0, 3, 7, 42)),
		"cores": dice.choice((1, 1, 1, 2, 3)), "memory": dice.choice((100, 500, 2000, 5000)),
		"deaf": dice.random() < DEAF, "grace": dice.choice((2, 5, 8)), "gpus": dice.choice(WISHES)}


def _job(dice):
	return {**_pod(dice), "node": dice.choice(NODES), "cores": dice.choice((1, 1, 2, 4)), "requeue": False}


def _mixed_job(dice):
	return {**_job(dice), "requeue": dice.random() < REQUEUED}


def _small_job(dice):
	"""Where small jobs share a pod there are more of them."""
	return {**_mixed_job(dice), "cores": dice.choice((1, 1, 1, 2, 4)), "gpus": dice.choice((0, 0, 0, 1, 2))}


def _foreign(dice):
	"""A pod that somebody else placed: it asks nobody, and may come second."""
	return {**_pod(dice), "node": dice.choice(NODES), "cores": dice.choice((1, 1, 2))}


# {verb: (what it is about, what users do to it)}
LOAD = {"pod": (_pod, ON_PODS), "job": (_job, ON_JOBS), "foreign_pod": (_foreign, ON_FOREIGN)}
# {how nodes are shared, or "shared" where small jobs share pods on mixed ones: (GAP, LOAD, ON_NODES)}
SHARING = {"none": (GAP, LOAD, ON_NODES), "dedicated": (GAP, LOAD, ON_DEDICATED),
	"mixed": (MIXED_GAP, {**LOAD, "job": (_mixed_job, ON_JOBS + ON_RESERVATIONS)}, ON_NODES),
	"shared": (MIXED_GAP, {**LOAD, "job": (_small_job, ON_JOBS + ON_RESERVATIONS)}, ON_NODES)}


def _touch(dice, verbs, name, born, until):
	"""What users do to one pod or job, if anything."""
	if dice.random() < TOUCHED:
		verb = dice.choice(verbs)
		at = born + dice.uniform(0, 30)
		if at < until:
			yield Step(at, verb, name, {"seconds": round(dice.uniform(0.5, 6), 1)} if verb == "hold" else {})


def load(seed, until, sharing):
	gap, what, on_nodes = SHARING["shared" if shares_pods(seed, sharing) else sharing]
	for kind, (about, verbs) in what.items():
		dice = random.Random(f"{seed} {kind}")
		for number, at in enumerate(moments(dice, gap[kind], until)):
			name = f"{kind.split('_')[0]}{number}"
			yield Step(at, kind, name, about(dice))
			yield from _touch(dice, verbs, name, at, until)
	dice = random.Random(f"{seed} administrator")
	for at in moments(dice, GAP["reconfigure"], until):
		yield Step(at, "reconfigure", "slurmctld", {})
	yield from _on_nodes(random.Random(f"{seed} nodes"), gap["node"], until, on_nodes)
	yield from _last(random.Random(f"{seed} last"), until, "DOWN" if down_lasts(seed) else "DRAIN")


def _last(dice, until, state):
	"""What is done to nodes last: one is cordoned, the other one has that state in Slurm."""
	cordoned, closed = dice.sample(NODES, 2)
	yield Step(until - hush(until) + 0.5, "last_cordon", cordoned, {"seconds": HELD})
	yield Step(until - hush(until) + 0.5, "last_close", closed, {"seconds": HELD, "state": state})


def _on_nodes(dice, gap, until, on_nodes):
	"""Over before the last is done."""
	loud = until - calm(until)
	for at in (*moments(dice, gap, loud), *(loud + at for at in moments(dice, CALM_GAP, until - loud))):
		verb, node = dice.choice(list(on_nodes)), dice.choice(NODES)
		seconds = round(dice.uniform(*on_nodes[verb]), 1)
		if at + seconds < until - hush(until):
			yield Step(at, verb, node, {"seconds": seconds})


def faults(seed, until, api):
	"""Each daemon has one fault at a time; several daemons may have theirs at once."""
	dice, busy = random.Random(f"{seed} faults"), {}
	quiet = until - hush(until)
	for at in moments(dice, GAP["fault"], until - calm(until)):
		free = {name: weight for name, weight in DAEMONS[api].items() if busy.get(name, 0) <= at and (at < quiet or name not in NEAR)}
		if not free:
			continue
		target = dice.choices(list(free), list(free.values()))[0]
		known = NETWORK_FAULTS if target == "network" else DAEMON_FAULTS
		verb = dice.choice(list(known))
		seconds = round(dice.uniform(*known[verb]), 1)
		if target in NEAR:
			seconds = round(min(seconds, max(quiet - at, 0.1)), 1)
		busy[target] = at + seconds + 0.5
		yield Step(at, verb, target, {"seconds": seconds})


def make(seed, seconds, api, sharing="none"):
	"""All steps, in their order."""
	return sorted([*load(seed, seconds, sharing), *faults(seed, seconds, api)], key=lambda step: step.at)


def words(step):
	"""A step as one reads it."""
	about = " ".join(f"{key}={value}" for key, value in step.about.items())
	return f"{step.verb} {step.target} {about}".rstrip()
