# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""valgrind's memcheck around a slurmctld: what the heap has grown by, and what was read and written wrongly."""
import os
import re
import shutil
import subprocess
from collections import namedtuple

from stands.build import TOP
from stands.slurm import search_path
from stands.waiting import StandError

# A stack of frames, innermost first. place: "file.cc:12", or "in /path" of an object without debugging information.
Frame = namedtuple("Frame", "function place")
# kind: "definitely lost", "still reachable" ...; grown: bytes since the look before, fewer are negative; blocks as well.
Growth = namedtuple("Growth", "kind grown blocks frames")
# what: "Invalid read of size 8" ...
Error = namedtuple("Error", "what frames")

PREFIX = re.compile(r"^==\d+== ?")
LOSS = re.compile(r"^ *[\d,]+ \(\+?(-?[\d,]+)\) .*bytes in [\d,]+ \(\+?(-?[\d,]+)\) blocks are (.*) in loss record")
FRAME = re.compile(r"^ +(?:at|by) 0x[0-9A-F]+: (.*?)(?: \(((?:in )?[^()]*)\))?$")
ERROR = re.compile(r"^(?:Invalid |Conditional jump|Use of uninit|Syscall param|Mismatched free|Source and destination|"
	r"Jump to the invalid|Process terminating|Argument )")
IN_USE = re.compile(r"^ *(?:definitely lost|indirectly lost|possibly lost|still reachable): ([\d,]+)")

LIBRARIES = re.compile(r"/(?:libsk8core\.so[.\d]*|sk8_slurmctld\.so|job_submit_k8s\.so|inst/plugins/select_cons_tres\.so)$")
SOURCES = {name for part in ("lib", "plugins") for _, _, names in os.walk(os.path.join(TOP, part)) for name in names
	if name.endswith((".c", ".cc", ".h"))}


def is_ours(frame):
	return bool(LIBRARIES.search(frame.place)) or frame.place.rsplit(":", 1)[0] in SOURCES


def number(text):
	return int(text.replace(",", ""))


def read_frames(lines, at):
	"""The stack that begins at lines[at]."""
	frames = []
	while at < len(lines) and (found := FRAME.match(lines[at])):
		frames.append(Frame(found[1], found[2] or ""))
		at += 1
	return frames


def read_growth(text):
	"""(what has grown, bytes in use in all) of memcheck's answer to leak_check."""
	lines = [PREFIX.sub("", line) for line in text.splitlines()]
	grown = [Growth(found[3], number(found[1]), number(found[2]), read_frames(lines, at + 1))
		for at, line in enumerate(lines) if (found := LOSS.match(line))]
	return grown, sum(number(found[1]) for line in lines if (found := IN_USE.match(line)))


def read_errors(text):
	lines = [PREFIX.sub("", line) for line in text.splitlines()]
	return [Error(line.strip(), read_frames(lines, at + 1)) for at, line in enumerate(lines) if ERROR.match(line)]


class Memcheck:
	"""folder: for its log and its pipes; short, and its own."""

	def __init__(self, folder):
		self.log, self.pipes = os.path.join(folder, "memcheck.log"), os.path.join(folder, "vgdb")
		# From 23.11 on slurmctld starts itself again for its scripts, by what it reads of /proc/self/exe into a clean buffer.
		# valgrind 3.24 leaves the end of its own path behind one that is shorter.
		self.programs = os.path.join(folder, "slurmctld-by-a-path-that-is-longer-than-valgrinds")
		if not shutil.which("valgrind"):
			raise StandError("valgrind is missing; run script/install-deps stand")
		os.mkdir(self.programs)
		shutil.copy(shutil.which("slurmctld", path=search_path()) or "/usr/sbin/slurmctld", self.programs)

	def command(self):
		"""What slurmctld is an argument of. --fair-sched: else threads that wait for the turn of another one starve."""
		return ["env", f"PATH={self.programs}:{search_path()}", "valgrind", "--tool=memcheck", "--leak-check=no", "--num-callers=60",
			"--fair-sched=yes", "--error-limit=no", "--vgdb=yes", f"--vgdb-prefix={self.pipes}", f"--log-file={self.log}"]

	def look(self, pid):
		"""(what has changed since the last look, bytes in use) in the process. What shrank, too: a library that frees in one
		place what it had made in another, for the same caller, keeps no more than before."""
		done = subprocess.run(["vgdb", f"--vgdb-prefix={self.pipes}", f"--pid={pid}", "leak_check", "full", "reachable",
			"changed"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
		if "LEAK SUMMARY" not in done.stdout and "no leaks are possible" not in done.stdout:
			raise StandError(f"memcheck gave no answer: {done.stdout[-500:]}{done.stderr[-500:]}; its log is {self.log}")
		return read_growth(done.stdout)

	def errors(self):
		with open(self.log, encoding="utf-8", errors="replace") as file:
			return read_errors(file.read())
