# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What the API server's audit log tells of cordons and of who hears of them, and slurmctld's log of jobs that start, nodes that get none
and who took that back."""
import re
from collections import namedtuple

from node import OWNER, RESUMED
from reservations import US
from world import seconds_of

# A cordon that somebody else put on. begin: it stood; end: somebody asked for it to go (inf: nobody); off: who did.
# marked: it was put on where the mark of a cordon of ours still was, so that it cannot be told from ours.
# resumed: when we noted that Slurm's administrator has resumed the node despite it.
Cordon = namedtuple("Cordon", "node begin end off marked resumed")
Started = namedtuple("Started", "when job node")
# We took a drain or DOWN of others back, or gave it another reason. reason, state: those that it had.
Undone = namedtuple("Undone", "when node reason state")
# Slurm's administrators let it start nothing there. end: somebody resumed it, or nobody can tell any more. down: it ended what ran.
Closed = namedtuple("Closed", "node begin end reason down")
KEPT_AWAY = ("DRAIN", "FAIL", "DOWN")
MARK = "k8s: "
CORDONED = MARK + "cordoned"
TOLD_LATER = 1  # second: the engine logs what the Slurm thread did for it


class _Node:
	def __init__(self):
		self.by, self.begin, self.marked, self.mark, self.resumed = None, 0, False, False, []


def _off(name, node, when, who, found):
	if node.by not in (None, US):
		found.append(Cordon(name, node.begin, when, who, node.marked, node.resumed))
	node.by = None


def _patched(name, node, event, found):
	body, user = event.get("requestObject") or {}, event["user"]["username"]
	if isinstance(body, list):  # a JSON patch, by which only taints are changed
		return
	asked, done = (seconds_of(event[key]) for key in ("requestReceivedTimestamp", "stageTimestamp"))
	spec, notes = body.get("spec") or {}, (body.get("metadata") or {}).get("annotations") or {}
	if "unschedulable" in spec and not spec["unschedulable"]:
		_off(name, node, asked, user, found)
	elif "unschedulable" in spec and user == US:  # only ever where no other cordon is: the one that we know of has gone unseen
		_off(name, node, asked, None, found)
		node.by = US
	elif "unschedulable" in spec and node.by is None:
		node.by, node.begin, node.marked, node.resumed = user, done, node.mark, []
	if OWNER in notes:
		node.mark = notes[OWNER] == "slurm"
	if "cordoned" in (notes.get(RESUMED) or "").split(","):
		node.resumed.append(asked)


def cordons(events):
	"""[Cordon] in the order in which they ended."""
	nodes, found = {}, []
	for event in events:
		ref = event.get("objectRef", {})
		if ref.get("resource") != "nodes" or ref.get("subresource") or event.get("responseStatus", {}).get("code", 500) >= 300:
			continue
		name = ref.get("name", "")
		node = nodes.setdefault(name, _Node())
		if event["verb"] == "delete":
			_off(name, node, seconds_of(event["requestReceivedTimestamp"]), event["user"]["username"], found)
			nodes[name] = _Node()
		elif event["verb"] == "patch":
			_patched(name, node, event, found)
	for name, node in nodes.items():
		_off(name, node, float("inf"), None, found)
	return found


def started(lines):
	"""[Started] of all jobs, pods' too. lines: (when, text) of slurmctld's log."""
	ways = re.compile(r"sched: Allocate JobId=(\d+) NodeList=(\S+)|_start_job: Started JobId=(\d+) in \S+ on (\S+)")
	found = ((when, ways.search(text)) for when, text in lines)
	return [Started(when, match[1] or match[3], match[2] or match[4]) for when, match in found if match]


def listening(events, ends):
	"""[(from, to)] while we had a watch of nodes. ends: when API servers ended, and no watch is said to have ended."""
	begun, found = {}, []
	for event in events:
		if event["verb"] != "watch" or event["user"]["username"] != US or event.get("objectRef", {}).get("resource") != "nodes":
			continue
		key, when = (event["requestReceivedTimestamp"], event["requestURI"]), seconds_of(event["stageTimestamp"])
		if event["stage"] == "ResponseStarted":
			begun[key] = when
		elif key in begun:
			found.append((begun.pop(key), when))
	found += [(when, float("inf")) for when in begun.values()]
	return sorted((begin, min([end, *(when for when in ends if when > begin)])) for begin, end in found)


class _Schedulable:
	"""Of one node. It is there, and not cordoned, from the beginning."""

	def __init__(self):
		self.spans, self.since, self.by, self.cordoned, self.marked = [], 0, None, False, False

	def closes(self, when):
		if self.since is not None:
			self.spans.append((self.since, when, self.by))
		self.since = None

	def opens(self, when, by):
		if self.since is None:
			self.since, self.by = when, by

	def told(self, event):
		body = event.get("requestObject") or {}
		asked, done = (seconds_of(event[key]) for key in ("requestReceivedTimestamp", "stageTimestamp"))
		if event["verb"] == "delete":
			self.cordoned = self.marked = False
			self.closes(asked)
		elif event["verb"] == "create":
			self.opens(done, event["user"]["username"])
		elif event["verb"] == "patch" and isinstance(body, dict):
			spec, notes = body.get("spec") or {}, (body.get("metadata") or {}).get("annotations") or {}
			self.cordoned = bool(spec.get("unschedulable", self.cordoned))
			self.marked = bool(notes.get(OWNER, self.marked))
			if self.cordoned or self.marked:
				self.closes(asked)
			elif "unschedulable" in spec or OWNER in notes:
				self.opens(done, event["user"]["username"])


def uncordoned(events):
	"""{node: [(from, to, who began it)]} while it could be had and nobody has decided so: who takes a cordon of ours off has decided,
	until we have taken its mark off."""
	nodes = {}
	for event in events:
		ref = event.get("objectRef", {})
		if ref.get("resource") == "nodes" and not ref.get("subresource") and event.get("responseStatus", {}).get("code", 500) < 300:
			nodes.setdefault(ref.get("name", ""), _Schedulable()).told(event)
	for node in nodes.values():
		node.closes(float("inf"))
	return {name: node.spans for name, node in nodes.items()}


def _words(states):
	return " and ".join(sorted(states))


class Drains:
	"""Who did what to Slurm's nodes, as far as slurmctld tells: each life of it forgets some of that."""

	def __init__(self, lines):
		self.undone, self.resumed = [], []  # [Undone]; (when, node) of whoever's resumes
		self.cordoned, self.starts = [], []  # (when, node) of our drains of cordoned ones; when slurmctld started
		self.closed, self.downs = [], []  # [Closed]; (when, node) of all that were set DOWN
		# {node: reason}; {node: those of KEPT_AWAY}; {node: (when, reason and state before the last change)}; {node: Closed}
		self._reasons, self._states, self._before, self._open = {}, {}, {}, {}
		last = 0
		for when, text in lines:
			if text.startswith("slurmctld version"):
				self._starts(when, last)
			else:
				self._line(when, text)
			last = when
		for node in list(self._open):
			self._opens(node, last)

	def _starts(self, when, last):
		self.starts.append(when)
		self._reasons, self._states, self._before = {}, {}, {}
		for node in list(self._open):
			self._opens(node, last)

	def _opens(self, node, when):
		if node in self._open:
			self.closed.append(self._open.pop(node)._replace(end=when))

	def _line(self, when, text):
		if match := re.match(r"update_node: node (\S+) reason set to: (.*)", text):
			self._renamed(when, match[1], match[2], self._reasons.get(match[1]))
			self._reasons[match[1]] = match[2]
			if match[2].startswith(CORDONED):
				self.cordoned.append((when, match[1]))
		elif match := re.match(r"update_node: node (\S+) state set to (\S+)", text):
			self._set(when, match[1], match[2])
		elif match := re.search(r"\bnode (\S+) returned to service", text):
			self._answers(when, match[1])
		elif match := re.search(r"slurm-k8s: node [^/]+/(\S+): resumed in Slurm; it was ", text):
			at, reason, state = self._before.get(match[1], (0, None, ()))
			if reason and not reason.startswith(MARK) and when - at < TOLD_LATER:
				self.undone.append(Undone(at, match[1], reason, _words(state)))

	def _answers(self, when, node):
		"""Its slurmd, and Slurm itself takes a DOWN back (ReturnToService); it keeps the reason of what else there is."""
		self._states.get(node, set()).discard("DOWN")
		if not self._states.get(node):
			self._states.pop(node, None)
			self._reasons.pop(node, None)
			self._opens(node, when)

	def _set(self, when, node, state):
		reason = self._reasons.get(node, "")
		if not state.startswith(KEPT_AWAY):
			self.resumed.append((when, node))
			self._before[node] = when, self._reasons.pop(node, None), self._states.pop(node, set())
			self._opens(node, when)
			return
		self._states.setdefault(node, set()).add(next(word for word in KEPT_AWAY if state.startswith(word)))
		if state.startswith("DOWN"):
			self.downs.append((when, node))
		if not reason.startswith(MARK):
			self._opens(node, when)
			self._open[node] = Closed(node, when, None, reason, state.startswith("DOWN"))

	def _renamed(self, when, node, reason, old):
		if old and reason.startswith(MARK) and not old.startswith(MARK):
			self.undone.append(Undone(when, node, old, _words(self._states.get(node, ()))))
