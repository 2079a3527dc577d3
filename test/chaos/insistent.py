# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Somebody whose commands must get through, whatever is broken at the moment."""
import subprocess
import threading
import time

from stands.api import Api, ApiError
from stands.waiting import StandError

PATIENCE = 120  # seconds until they give up
PAUSE = 0.5  # seconds before the next try


class Insistent:
	"""Thread safe."""

	def __init__(self, stand):
		self.stand = stand
		self.local = threading.local()  # a connection is for one thread

	@property
	def api(self):
		if not hasattr(self.local, "api"):
			self.local.api = Api(self.stand.env["KUBECONFIG"], timeout=10)
		return self.local.api

	def _insist(self, call):
		"""Until the API server or Slurm has answered; the last words if it does not."""
		end = time.monotonic() + PATIENCE
		while True:
			try:
				return call()
			except ApiError as error:
				if error.status < 500 and error.status != 429 or time.monotonic() > end:
					raise
			except (OSError, StandError, subprocess.TimeoutExpired):
				if time.monotonic() > end:
					raise
			time.sleep(PAUSE)
