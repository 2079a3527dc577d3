# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What one check has found, and all of that for people."""
from collections import namedtuple

# kind: violation, lost or orphan. seen: how many were looked at. wrong, apart: sentences.
Verdict = namedtuple("Verdict", "kind what seen wrong apart")


def table(verdicts):
	"""Lines for people."""
	yield f"{'kind':10} {'what':48} {'seen':>6} {'found':>6} {'apart':>19}"
	for verdict in verdicts:
		yield f"{verdict.kind:10} {verdict.what:48} {verdict.seen:6} {len(verdict.wrong):6} {len(verdict.apart):19}"
	for verdict in verdicts:
		for mark, texts in (("FOUND", verdict.wrong), ("apart", verdict.apart)):
			yield from (f"  {mark}: {verdict.what}: {text}" for text in texts)
