# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""How long calls from slurmctld's hooks into our engine took: see hook_clock.c."""
import os
import struct
import subprocess
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROW = struct.Struct("32sQQQQQQ")

# Times in milliseconds. wall, cpu: of the longest call. waited: of the longest call that gave up its processor of its own
# accord. slow: calls of more than 1 ms of processor time. late: calls that gave it up and took more than 1 ms.
Row = namedtuple("Row", "count slow late wall cpu waited")


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
			for text, count, *times, slow, late in ROW.iter_unpack(file.read()):
				key = text.rstrip(b"\0").decode()
				old = found.get(key, Row(0, 0, 0, 0, 0, 0))
				found[key] = Row(old.count + count, old.slow + slow, old.late + late,
					*(max(a, b / 1e6) for a, b in zip(old[3:], times)))
	return found


def check(folder, used):
	"""No call waited 1 ms, and none takes 1 ms of processor time. used: functions that must have been called.

	A virtual machine counts as a thread's time what its host took away meanwhile, and interrupts: with all processors busy
	one of 24,056 calls of sk8_masks_get, mostly a copy of a pointer, had 2.7 ms. So one call in a thousand may look slow,
	or one at all. What is slow by itself is so each time. And a short lock is a long one for him who waits when the kernel takes
	the processor from its holder (one of 16,080 calls, 2 ms): one call in a thousand, but none of those that are few.
	"""
	rows = read(folder)
	for name, row in rows.items():
		print(f"{name}: {row.count} calls, longest {row.wall:.3f} ms, processor {row.cpu:.3f} ms ({row.slow} over 1 ms), "
			f"with waiting {row.waited:.3f} ms ({row.late} over 1 ms)")
	assert all(rows[name].count for name in used)
	assert all(row.late <= row.count // 1000 and row.waited < 50 and row.slow <= max(1, row.count // 1000) for row in rows.values())
	return rows
