# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What the API server's audit log tells of the pods that stand for Slurm's own jobs on nodes shared as mixed."""
import re
from collections import defaultdict, namedtuple

from mixed import NAMESPACE
from world import seconds_of

US = "slurm-k8s"
# One request that had an effect. when: it was received; what came of it was seen by others later. what: created; status:
# its kubelet tells of its containers, so it has admitted it (is_admitted() in lib/kube/objects.h); seen: it tells nothing of these; over: its kubelet refuses it or has ended it; taken: somebody else deletes it; removed: we do.
Told = namedtuple("Told", "when what")


class Reservation:
	"""The pods of one run of one job on one node: one, and another one for each that was taken or refused."""

	def __init__(self, asked, told):
		"""asked: when the job was submitted, or went back into the queue; seconds since 1970."""
		self.asked, self.removed = asked, []
		self.admitted = []  # (from, to) while a kubelet counted one; to: None if nobody told of an end
		fresh, last = False, 0
		for when, what in sorted(told):
			if what == "created":
				fresh = True
			elif what == "status" and fresh:
				self.admitted.append((when, None))
				fresh = False
			elif what not in ("status", "seen"):
				fresh = False
				self._ends(last if what == "over" else when)  # of a refusal nobody knows when others got its room
				self.removed += [when] if what == "removed" else []
			last = when

	def _ends(self, when):
		if self.admitted and self.admitted[-1][1] is None:
			self.admitted[-1] = (self.admitted[-1][0], when)

	def gaps(self, start, stop):
		"""Parts of start .. stop (None: for ever) in which no kubelet counted it, as (from, to)."""
		found, at = [], start
		for begin, end in self.admitted:
			if begin > at:
				found.append((at, begin))
			at = max(at, float("inf") if end is None else end)
		found.append((at, float("inf")))
		last = float("inf") if stop is None else stop
		return [(begin, min(end, last)) for begin, end in found if begin < min(end, last)]


def told(event):
	"""(name of the pod, Told) of an event of the audit log, or None if it is about something else."""
	ref = event.get("objectRef", {})
	if ref.get("namespace") != NAMESPACE or ref.get("resource") != "pods" or event.get("responseStatus", {}).get("code", 500) >= 300:
		return None
	by, verb, part = event["user"]["username"], event["verb"], ref.get("subresource")
	if part == "status" and by.startswith("system:node:"):
		status = event.get("requestObject", {}).get("status", {})
		admitted = any(condition.get("type") == "Initialized" for condition in status.get("conditions", []))
		what = "over" if status.get("phase") in ("Failed", "Succeeded") else "status" if admitted else "seen"
	elif part == "eviction" or verb == "delete" and not part:
		what = "removed" if by == US else "taken"
	else:
		what = "created" if verb == "create" and not part else None
	return what and (ref.get("name", ""), Told(seconds_of(event["requestReceivedTimestamp"]), what))


def reservations(events):
	"""{(job id, node): [Reservation of each of its runs, the first one first]}"""
	by_name, found = defaultdict(list), defaultdict(list)
	for name, what in filter(None, map(told, events)):
		by_name[name].append(what)
	for name, words in by_name.items():
		if match := re.fullmatch(r"slurm-(\d+)-([0-9a-f]+)-(.+)", name):
			found[int(match[1]), match[3]].append(Reservation(int(match[2], 16), words))
	for runs in found.values():
		runs.sort(key=lambda run: run.asked)
	return found
