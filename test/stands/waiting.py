# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Messages, errors, and waiting for a condition with a bound."""
import sys
import time

PROGRAM = "stand"


class StandError(Exception):
	"""One sentence that says what is wrong and what to do."""


def say(text):
	print(f"{PROGRAM}: {text}", file=sys.stderr, flush=True)


def wait_for(what, condition, seconds=60, hint=None):
	"""Waits until condition() is true and returns its value.

	condition may raise OSError for "not yet". After 2 seconds a line says what is
	waited for. hint() is asked for more text when the time is over; hint may also
	raise StandError earlier, through condition, if waiting has become pointless.
	"""
	start = time.monotonic()
	told = False
	pause = 0.02
	last = None
	while True:
		try:
			value = condition()
			if value:
				return value
		except OSError as error:
			last = error
		passed = time.monotonic() - start
		if passed > seconds:
			more = f" ({last})" if last else ""
			more += "\n" + hint() if hint else ""
			raise StandError(f"{what}: not within {seconds} s{more}")
		if passed > 2 and not told:
			say(f"waiting for {what}")
			told = True
		time.sleep(pause)
		# Most conditions are a command of Slurm's: one that takes long is not asked so often that it takes longer for that.
		pause = min(pause * 1.5, 0.25 if passed < 3 else 0.5)
