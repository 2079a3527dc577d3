# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A few calls to a Kubernetes API server, for stands and tests. One connection, not for threads."""
import base64
import http.client
import json
import os
import re
import ssl
import tempfile
import time

# Seconds after which a connection is made anew: a kube-apiserver closes one that is not used for 90.
IDLE = 60


class ApiError(OSError):
	"""An answer that is no success. status: the HTTP status; reason, body: the server's."""

	def __init__(self, status, body, what):
		self.status = status
		self.body = body
		self.reason = body.get("reason", "") if isinstance(body, dict) else ""
		message = body.get("message", body) if isinstance(body, dict) else body
		super().__init__(f"{what}: {status} {message}")


class Api:
	def __init__(self, kubeconfig, timeout=30):
		with open(kubeconfig, encoding="utf-8") as file:
			text = file.read()
		self.timeout = timeout
		self.host, self.port = re.search(r"server: https://([^:\s]+):(\d+)", text).groups()
		self.tls = ssl.create_default_context(cadata=self._data(text, "certificate-authority").decode())
		with tempfile.TemporaryDirectory() as folder:
			for kind in ("certificate", "key"):
				with open(os.open(f"{folder}/{kind}", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
					file.write(self._data(text, "client-" + kind))
			self.tls.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
		self.connection, self.used = None, 0

	@staticmethod
	def _data(text, name):
		inline = re.search(rf"\b{name}-data: (\S+)", text)
		if inline:
			return base64.b64decode(inline.group(1))
		with open(re.search(rf"\b{name}: (\S+)", text).group(1), "rb") as file:
			return file.read()

	def call(self, method, path, body=None, kind="application/json", raw=False):
		"""The decoded answer; ApiError if its status is 400 or more, OSError if there is none."""
		if self.connection and time.monotonic() - self.used > IDLE:
			self.connection.close()
			self.connection = None
		self.used = time.monotonic()
		if self.connection is None:
			self.connection = http.client.HTTPSConnection(self.host, int(self.port), timeout=self.timeout,
				context=self.tls)
		try:
			self.connection.request(method, path, json.dumps(body) if body is not None else None,
				{"Content-Type": kind, "Accept": "application/json"})
			answer = self.connection.getresponse()
			text = answer.read().decode()
		except (OSError, http.client.HTTPException) as error:
			self.connection.close()
			self.connection = None
			raise OSError(f"{method} {path}: {error}") from error
		if answer.status >= 400:
			try:
				decoded = json.loads(text)
			except ValueError:
				decoded = text
			raise ApiError(answer.status, decoded, f"{method} {path}")
		return text if raw else json.loads(text)

	def get(self, path):
		return self.call("GET", path)

	def post(self, path, body):
		return self.call("POST", path, body)

	def delete(self, path, body=None):
		return self.call("DELETE", path, body)

	def patch(self, path, body, kind="application/merge-patch+json"):
		return self.call("PATCH", path, body, kind)

	def ready(self):
		return self.call("GET", "/readyz", raw=True) == "ok"
