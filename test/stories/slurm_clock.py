# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurmctld's wall clock, which a story steps while slurmctld runs. Nobody else's: the other daemons, munged among them,
have the host's."""
import glob
import os
import re
import time

from stands.waiting import StandError, wait_for


class SlurmClock:
	"""libfaketime, preloaded into slurmctld. Its monotonic clock stays as it is, as the kernel's does at a step. A wait of
	slurmctld's that has begun is not cut by a step."""

	def __init__(self, folder):
		found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
		if not found:
			raise StandError("libfaketime is missing; run script/install-deps stand")
		self.file = os.path.join(folder, "offset")
		self.write(0)
		env = {"LD_PRELOAD": found[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_TIMESTAMP_FILE": self.file,
			"FAKETIME_CACHE_DURATION": "1"}  # seconds until it looks at the file again
		# words of test/cluster up
		self.options = [word for pair in env.items() for word in ("--slurmctld-env", "=".join(pair))]
		# a job that has ended is not forgotten because it is an hour later
		self.options += ["--slurm-conf", "MinJobAge=100000"]

	def write(self, seconds):
		self.seconds = seconds
		with open(self.file + ".new", "w", encoding="ascii") as file:
			file.write(f"{seconds:+d}\n")
		os.rename(self.file + ".new", self.file)

	def begin(self, stand, seconds):
		"""Where a story begins. If the one before has left it ahead of that, slurmctld is started again: its schedulers would stand
		still until then."""
		ahead = self.seconds > seconds
		self.set(stand, seconds)
		if ahead:
			stand.restart_slurmctld(kill=False)

	def set(self, stand, seconds):
		"""From now on it is so many seconds ahead of the host's. Returns when slurmctld has it."""
		def there():
			told = re.search(r"sdiag output at .*\((\d+)\)", stand.run("sdiag"))
			return abs(int(told.group(1)) - seconds - time.time()) < 5
		self.write(seconds)
		wait_for("slurmctld's clock", there, 20)
