# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Plays rounds with memcheck around slurmctld, and looks at its heap after each one."""
import os
import shutil
import tempfile
import time

import verdict
from day import Day
from memcheck import Memcheck
from stands.build import build_folder

WARM_UP = 2  # rounds: what is made once and kept


def play(pods, per_round, tell=print):
	"""Until so many pods have come and gone, and long enough for a verdict. Its sentences."""
	folder = tempfile.mkdtemp(prefix="sk8-leaks-", dir="/tmp")
	memcheck, day = Memcheck(folder), None
	try:
		day = Day(memcheck, os.path.join(build_folder(), "tools", "slurm-k8s"))
		tell("round   pods  seconds  heap after it  grown by, with a frame of ours")
		looks, began = [], None
		for _ in range(WARM_UP):
			look(day, memcheck, per_round, tell)
		began = time.monotonic()
		while day.pods < pods or len(looks) < verdict.LEAST or time.monotonic() - began < verdict.LONG_ENOUGH:
			looks.append(look(day, memcheck, per_round, tell))
		errors = memcheck.errors()
		tell(f"{day.pods} pods in {day.rounds} rounds; {len(errors)} errors of memory in slurmctld, "
			f"{len(verdict.wrong(errors))} of them with a frame of ours")
		return verdict.sentences(looks, errors)
	finally:
		if day:
			day.close()
		if os.environ.get("SK8_KEEP"):
			tell(f"memcheck's log is kept in {folder}")
		else:
			shutil.rmtree(folder, ignore_errors=True)


def look(day, memcheck, per_round, tell):
	began = time.monotonic()
	day.round(per_round)
	grown, in_use = memcheck.look(day.pid)
	sizes = verdict.by_stack(grown)
	tell(f"{day.rounds:5}  {day.pods:5}  {time.monotonic() - began:7.0f}  {in_use:13,}  {sum(sizes.values()):9,} in {len(sizes)} places")
	return grown
