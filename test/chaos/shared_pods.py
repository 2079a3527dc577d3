# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What the API server's audit log tells of the pod that the small jobs of a node share (reservations.shared)."""
import re
from collections import defaultdict, namedtuple

from mixed import NAMESPACE
from reservations import US
from world import seconds_of

NAME = "slurm-shared-"
NOTHING = (0, 0)
MEBI = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}

# One request that had an effect, or one word of a kubelet. what: asked (created, or resized), status, over, taken, removed: as
# in reservations.Told. about: of what was asked (cores, MiB), of a status what its kubelet says.
Told = namedtuple("Told", "when what about")


def amount(requests):
	"""(cores, MiB) of a container's requests."""
	cpu, (number, unit) = requests["cpu"], re.fullmatch(r"(\d+)(\D*)", requests["memory"]).groups()
	cores = int(cpu[:-1]) / 1000 if cpu.endswith("m") else int(cpu)
	return cores, int(number) * MEBI[unit] if unit else int(number) / (1 << 20)


def _less(one, other):
	return tuple(map(min, one, other))


class SharedPod:
	"""One pod, from its creation to its end.

	kept: [(from when on, what its kubelet keeps for it at least)]: what it has told to have set aside, and no more than what it was
	asked for since, as it may follow that at any moment. asked: [(when, amount)]; a removal asks for nothing."""

	def __init__(self):
		self.uid, self.kept, self.asked = None, [], []
		self.end, self.removed = None, False  # when others had it taken, or its kubelet ended it; whether we did
		self.seen, self.allocated, self.pending, self.admitted = 0, None, (0, False), False

	def tell(self, told):
		if self.end is not None or self.removed:
			return
		self.removed = told.what == "removed"
		if told.what in ("asked", "removed"):
			if not self.asked or told.about != self.asked[-1][1]:  # else it is no other generation
				self.asked.append((told.when, told.about))
			self._keep(told.when, _less(self.kept[-1][1], told.about) if self.kept else NOTHING)
		elif told.what == "status":
			self._status(told)
		else:
			self.end = told.when
			self._keep(told.when, NOTHING)

	def _status(self, told):
		"""Words of its kubelet change what it said before."""
		self.seen = told.about.get("seen", self.seen)
		self.allocated = told.about.get("allocated", self.allocated)
		self.pending = told.about.get("pending", self.pending)  # (the generation, whether it puts that off)
		self.admitted |= told.about["admitted"]
		if not self.admitted or not 0 < self.seen:
			return
		# of containers that its runtime does not have yet it tells nothing: then it is what it has seen and does not put off
		put_off = self.pending[1] and self.pending[0] >= self.seen
		has = self.allocated or (None if put_off or self.seen > len(self.asked) else self.asked[self.seen - 1][1])
		if has:
			for _, later in self.asked[self.seen:]:
				has = _less(has, later)
			self._keep(told.when, has)

	def _keep(self, when, what):
		if not self.kept or self.kept[-1][1] != what:
			self.kept.append((when, what))


class SharedPods:
	"""All that one node had, the first one first."""

	def __init__(self, words):
		self.pods = []
		for what in words:
			uid = what.about.get("uid") if what.what == "status" else None
			created = what.what == "asked" and what.about[2:]
			# of one whose creation is in no log, as the server was killed with it, its kubelet tells first
			if created or not self.pods or uid and self.pods[-1].uid not in (None, uid):
				self.pods.append(SharedPod())
			self.pods[-1].uid = uid or self.pods[-1].uid
			self.pods[-1].tell(what._replace(about=what.about[:2]) if created else what)

	def kept(self, when):
		"""The amount that the node's kubelet keeps for it at least."""
		return next((what for pod in reversed(self.pods) for since, what in reversed(pod.kept) if since <= when), NOTHING)

	def last_kept(self, when):
		"""The same, or if others have ended the pod before: what it was until then. Who was let out by then starts yet."""
		pod = next((pod for pod in reversed(self.pods) if pod.kept and pod.kept[0][0] <= when), None)
		if not pod:
			return NOTHING
		before = pod.end if pod.end is not None and pod.end <= when else float("inf")
		return next((what for since, what in reversed(pod.kept) if since <= when and since < before), NOTHING)

	def changes(self):
		return [when for pod in self.pods for when, _ in pod.kept]

	def asked(self):
		return [asked for pod in self.pods for asked in pod.asked]


def _status(patch):
	"""What a kubelet says of a pod: only what has changed, but statuses of containers all or none, and conditions by their type."""
	body = patch.get("status", {})
	found = {"admitted": any(condition.get("type") == "Initialized" for condition in body.get("conditions", [])),
		"uid": patch.get("metadata", {}).get("uid")}
	if "observedGeneration" in body:
		found["seen"] = body["observedGeneration"]
	if "containerStatuses" in body:
		has = [status.get("allocatedResources") for status in body["containerStatuses"]]
		found["allocated"] = amount(has[0]) if has and has[0] else None
	for condition in body.get("conditions", []):
		if condition.get("type") == "PodResizePending":
			found["pending"] = condition.get("observedGeneration", 0), condition.get("$patch") != "delete" and condition.get("status") != "False"
	return found


def _asked(event, created):
	requests = event["requestObject"]["spec"]["containers"][0]["resources"]["requests"]
	return (*amount(requests), "created") if created else amount(requests)


def told(event):
	"""(node, Told) of an event of the audit log, or None if it is about something else."""
	ref = event.get("objectRef", {})
	name, by, verb, part = ref.get("name", ""), event["user"]["username"], event["verb"], ref.get("subresource")
	if (ref.get("namespace") != NAMESPACE or ref.get("resource") != "pods" or not name.startswith(NAME) or
			event.get("responseStatus", {}).get("code", 500) >= 300):
		return None
	body, about = event.get("requestObject") or {}, None
	if part == "status" and by.startswith("system:node:"):
		what, about = "status", _status(body)
		if body.get("status", {}).get("phase") in ("Failed", "Succeeded"):
			what = "over"
	elif part == "resize" or verb == "create" and not part:
		what, about = "asked", _asked(event, not part)
	elif part == "eviction" or verb == "delete" and not part:
		what, about = ("removed", NOTHING) if by == US else ("taken", None)
	else:
		return None
	return name[len(NAME):], Told(seconds_of(event["requestReceivedTimestamp"]), what, about)


def shared_pods(events):
	"""{node: SharedPods}"""
	words = defaultdict(list)
	for node, what in filter(None, map(told, events)):
		words[node].append(what)
	return {node: SharedPods(sorted(found, key=lambda what: what.when)) for node, found in words.items()}
