# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Where make was run, and what it installs."""
import contextlib
import fcntl
import os
import subprocess

from .waiting import StandError

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_folder():
	"""SK8_BUILD, else build/ beside the sources, else the sources' own folder. In another Debian: what was built in it."""
	debian = os.environ.get("SK8_DEBIAN")
	usual = [os.path.join(TOP, "build", "debian-" + debian)] if debian else [os.path.join(TOP, "build"), TOP]
	for folder in (os.environ.get("SK8_BUILD"), *usual):
		if folder and os.path.exists(os.path.join(folder, "Makefile")):
			return folder
	raise StandError("no build folder; build first, or name it by SK8_BUILD")


def slurm_headers():
	"""What a compiler needs for plugins of the Slurm that this build is for."""
	build = build_folder()
	with open(os.path.join(build, "Makefile"), encoding="utf-8") as file:
		flags = next(line for line in file if line.startswith("SLURM_CPPFLAGS = "))
	return flags.partition("= ")[2].replace("$(top_builddir)", build).split()


@contextlib.contextmanager
def made(build, stage, *targets, once=False):
	"""make TARGET... in the folder `build`, with DESTDIR=stage. Until the block ends no other process installs from
	there: libtool links again to install, into the build folder.

	once: whoever builds nothing any more sets SK8_RUN to a word of its own (script/test does); then the first one makes it for
	all, for that takes two seconds of a processor."""
	run, mark = os.environ.get("SK8_RUN") if once else None, stage + ".run"
	with open(os.path.join(build, ".stage.lock"), "w", encoding="utf-8") as lock:
		fcntl.flock(lock, fcntl.LOCK_EX)
		if not run or _read(mark) != run:
			done = subprocess.run(["make", "-C", build, "-s", *targets, f"DESTDIR={stage}"], stdin=subprocess.DEVNULL,
				stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
			if done.returncode:
				raise StandError(f"make {' '.join(targets)} in {build} failed:\n{done.stdout[-2000:]}")
			if run:
				with open(mark, "w", encoding="utf-8") as file:
					file.write(run)
		yield


def _read(path):
	try:
		with open(path, encoding="utf-8") as file:
			return file.read()
	except FileNotFoundError:
		return None
