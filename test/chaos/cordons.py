# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What the API server's audit log tells of cordons, and slurmctld's log of jobs that start, drains and who took them back."""
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
# We took a drain of others back, or gave it another reason. reason: the one that it had.
Undone = namedtuple("Undone", "when node reason")
KEPT_AWAY = ("DRAIN", "FAIL", "DOWN")
MARK = "k8s: "
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


class Drains:
	"""Who did what to Slurm's nodes, as far as slurmctld tells: each life of it forgets some of that."""

	def __init__(self, lines):
		self.undone, self.resumed = [], []  # [Undone]; (when, node) of whoever's resumes
		reasons, before = {}, {}  # {node: reason}; {node: (when, the one before the last change)}
		for when, text in lines:
			if text.startswith("slurmctld version"):
				reasons, before = {}, {}
			elif match := re.match(r"update_node: node (\S+) reason set to: (.*)", text):
				self._renamed(when, match[1], match[2], reasons.get(match[1]))
				reasons[match[1]] = match[2]
			elif match := re.match(r"update_node: node (\S+) state set to (\S+)", text):
				if not match[2].startswith(KEPT_AWAY):
					self.resumed.append((when, match[1]))
					before[match[1]] = when, reasons.pop(match[1], None)
			elif match := re.search(r"slurm-k8s: node [^/]+/(\S+): resumed in Slurm; it was ", text):
				at, reason = before.get(match[1], (0, None))
				if reason and not reason.startswith(MARK) and when - at < TOLD_LATER:
					self.undone.append(Undone(at, match[1], reason))

	def _renamed(self, when, node, reason, old):
		if old and reason.startswith(MARK) and not old.startswith(MARK):
			self.undone.append(Undone(when, node, old))
