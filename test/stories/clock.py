# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""How long calls from slurmctld's hooks into our engine took: see hook_clock.c."""
import os
import struct
import subprocess
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROW = struct.Struct("32sQQQQQQQQ")

# Times in milliseconds. wall, cpu: of the longest call. waited: of the longest call that gave up its processor of its own
# accord, without locked: what one call waited for mutexes at most. slow: calls of more than 1 ms of processor time. late: calls
# that gave it up and took more than 1 ms without mutexes. contended: calls that waited more than 1 ms for mutexes.
Row = namedtuple("Row", "count slow late contended wall cpu waited locked")


def build(folder):
	"""Compiles hook_clock.c; the environment of a slurmctld that is measured, results in folder/hooks."""
	library, results = os.path.join(folder, "hook_clock.so"), os.path.join(folder, "hooks")
	subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", os.path.dirname(os.path.dirname(HERE)), "-o", library,
		os.path.join(HERE, "hook_clock.c")], check=True)
	os.mkdir(results)
	return {"LD_PRELOAD": library, "SK8_HOOK_CLOCK": results}


def read(folder):
	"""{function: Row} over all slurmctlds that ran."""
	found = {}
	for name in os.listdir(os.path.join(folder, "hooks")):
		with open(os.path.join(folder, "hooks", name), "rb") as file:
			for text, count, wall, cpu, waited, locked, *numbers in ROW.iter_unpack(file.read()):
				key = text.rstrip(b"\0").decode()
				old = found.get(key, Row(*[0] * len(Row._fields)))
				found[key] = Row(*(a + b for a, b in zip(old, [count, *numbers])),
					*(max(a, b / 1e6) for a, b in zip(old[4:], [wall, cpu, waited, locked])))
	return found


def few(count):
	"""Of so many calls the machine may have held up so many."""
	return max(1, count // 1000)


def verdict(row):
	"""What is wrong with these calls, or None.

	A virtual machine counts as a thread's time what its host took away meanwhile, and interrupts: with all processors busy
	one of 24,056 calls of sk8_masks_get, mostly a copy of a pointer, had 2.7 ms. So one call in a thousand may look slow,
	or one at all. What is slow by itself is so each time. And a short lock is a long one for him who waits when the kernel takes
	the processor from its holder (one of 16,080 calls, 2 ms): the same goes for it.
	"""
	return ("takes 1 ms of processor time" if row.slow > few(row.count) else
		"waits" if row.late > row.count // 1000 or row.waited >= 50 else
		"waits for a mutex" if row.contended > few(row.count) or row.locked >= 50 else None)


def check(folder, used):
	"""No call waits or takes 1 ms of processor time, see verdict(). used: functions that must have been called."""
	rows = read(folder)
	told = {name: f"{name}: {row.count} calls, longest {row.wall:.3f} ms, processor {row.cpu:.3f} ms ({row.slow} over 1 ms), "
		f"with waiting {row.waited:.3f} ms ({row.late} over 1 ms), mutexes {row.locked:.3f} ms ({row.contended} over 1 ms)"
		for name, row in rows.items()}
	print("\n".join(told.values()))
	assert all(rows[name].count for name in used), f"not called: {[name for name in used if not rows[name].count]}"
	wrong = [f"{verdict(row)}: {told[name]}" for name, row in rows.items() if verdict(row)]
	assert not wrong, "; ".join(wrong) # in one line: the summary shows no more
	return rows
