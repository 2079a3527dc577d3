# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A stand with another Slurm than the machine's: it lives in a Debian that has it, see script/debian-root.

test/cluster runs itself in there. The stand's folder, /tmp and the processes are the
machine's own, so that all that only looks or stops works from both sides.
"""
import os
import shutil

from .build import TOP
from .process import run
from .waiting import StandError

HERE = "SK8_DEBIAN"  # in the environment of what script/debian-root runs: the release of Debian
SCRIPT = os.path.join(TOP, "script", "debian-root")
COMMANDS = ("sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "squeue", "srun", "sstat")


def of_slurm(wanted):
	"""The Debian that has a Slurm of this release."""
	rows = [line.split() for line in run([SCRIPT, "--list"]).splitlines()]
	having = {slurm: debian for debian, _, slurm in rows}
	found = having.get(".".join(wanted.split(".")[:2]))
	if not found:
		raise StandError(f"no Debian with Slurm {wanted} is known; there are: {', '.join(having)}")
	return found


def of_stand(folder):
	"""The Debian that this stand lives in, None if it is the machine's own."""
	try:
		with open(os.path.join(folder, "run", "debian"), encoding="utf-8") as file:
			return file.read().strip()
	except OSError:
		return None


def enter(debian, program, argv, folders):
	"""Becomes `program argv` in that Debian, where these folders are, too. Returns if this process is in it."""
	if os.environ.get(HERE) == debian:
		return
	binds = [word for folder in folders for word in ("--bind", folder)]
	os.execv(SCRIPT, [SCRIPT, *binds, debian, program, *argv])


def settle(folder):
	"""Notes where a new stand lives, and makes DIR/bin: Slurm's commands as the machine itself can run them.

	Returns that folder, or None if the stand is on the machine itself.
	"""
	debian = os.environ.get(HERE)
	if not debian:
		return None
	with open(os.path.join(folder, "run", "debian"), "w", encoding="utf-8") as file:
		file.write(debian + "\n")
	commands = os.path.join(folder, "bin")
	os.makedirs(commands)
	for name in COMMANDS:
		real = shutil.which(name)
		if real:
			path = os.path.join(commands, name)
			with open(path, "w", encoding="utf-8") as file:
				file.write(f'#!/bin/sh\n[ "${HERE}" = {debian} ] && exec {real} "$@"\n'
					f'exec {SCRIPT} --bind {folder} {debian} {real} "$@"\n')
			os.chmod(path, 0o755)
	return commands
