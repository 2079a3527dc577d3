# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What happened when, in a file for people and as progress on the terminal."""
import threading
import time

from plan import words

EVERY = 5  # seconds between two lines of progress


class Story:
	"""Thread safe. path: of the file; a line is: seconds since the beginning, what was done, what became of it."""

	def __init__(self, path, title):
		self.path, self.began, self.next = path, time.monotonic(), 0
		self.lock = threading.Lock()
		self.file = open(path, "w", encoding="utf-8")  # pylint: disable=consult-using-with
		self.tell(title)

	@property
	def now(self):
		return time.monotonic() - self.began

	def write(self, text):
		with self.lock:
			self.file.write(text + "\n")
			self.file.flush()

	def step(self, step, began, outcome):
		self.write(f"{began:7.2f} .. {self.now:7.2f}  {words(step)}: {outcome}")

	def tell(self, text):
		"""Also on the terminal."""
		print(f"chaos: {self.now:4.0f} s: {text}", flush=True)
		self.write(f"{self.now:7.2f}  -- {text}")

	def progress(self, text):
		"""text(): asked for every few seconds."""
		if self.now >= self.next:
			self.next = self.now + EVERY
			self.tell(text())

	def close(self):
		self.file.close()
