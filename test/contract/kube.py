# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The client of the contract tests: plain HTTPS, so that nothing is hidden."""
import base64
import http.client
import json
import ssl
import tempfile
import urllib.parse

import yaml

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Answer:
	"""code, body (decoded, or text), headers."""

	def __init__(self, code, text, headers):
		self.code = code
		self.headers = headers
		try:
			self.body = json.loads(text)
		except ValueError:
			self.body = text

	def __getitem__(self, key):
		return self.body[key]

	def __repr__(self):
		return f"{self.code} {self.body}"


class Kube:
	def __init__(self, kubeconfig):
		with open(kubeconfig, encoding="utf-8") as file:
			config = yaml.safe_load(file)
		cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
		url = urllib.parse.urlparse(cluster["server"])
		self.host, self.port = url.hostname, url.port
		self.ca = self._data(cluster, "certificate-authority").decode()
		self.tls = ssl.create_default_context(cadata=self.ca)
		with tempfile.NamedTemporaryFile() as pem:
			pem.write(self._data(user, "client-certificate") + self._data(user, "client-key"))
			pem.flush()
			self.tls.load_cert_chain(pem.name)
		self.headers = {}
		self.connection = None

	@staticmethod
	def _data(section, name):
		if name + "-data" in section:
			return base64.b64decode(section[name + "-data"])
		with open(section[name], "rb") as file:
			return file.read()

	def _clone(self):
		other = Kube.__new__(Kube)
		other.__dict__.update(self.__dict__)
		other.headers = dict(self.headers)
		other.connection = None
		return other

	def impersonating(self, user, *groups):
		other = self._clone()
		other.headers["Impersonate-User"] = user
		other.groups = groups
		return other

	def without_certificate(self, token=None):
		other = self._clone()
		other.tls = ssl.create_default_context(cadata=self.ca)
		if token:
			other.headers["Authorization"] = "Bearer " + token
		return other

	def connect(self, timeout=30):
		return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)

	def call(self, method, path, body=None, kind=JSON, accept=JSON, **query):
		if self.connection is None:
			self.connection = self.connect()
		if query:
			path += "?" + urllib.parse.urlencode(query)
		text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
		self.connection.request(method, path, text, {"Content-Type": kind, "Accept": accept, **self.headers})
		answer = self.connection.getresponse()
		return Answer(answer.status, answer.read().decode(), answer.headers)

	def get(self, path, **query):
		return self.call("GET", path, **query)

	def post(self, path, body, **query):
		return self.call("POST", path, body, **query)

	def put(self, path, body, **query):
		return self.call("PUT", path, body, **query)

	def patch(self, path, body, kind=MERGE, **query):
		return self.call("PATCH", path, body, kind, **query)

	def delete(self, path, body=None, **query):
		return self.call("DELETE", path, body, **query)

	def watch(self, path, timeout=20, accept=JSON, **query):
		return Watch(self, path, timeout, accept, {"watch": "1", **query})


class Watch:
	"""Iterates over decoded events until the server ends the stream."""

	def __init__(self, kube, path, timeout, accept, query):
		self.connection = kube.connect(timeout)
		self.connection.request("GET", path + "?" + urllib.parse.urlencode(query), headers={"Accept": accept, **kube.headers})
		self.answer = self.connection.getresponse()
		self.code = self.answer.status

	def __iter__(self):
		return self

	def __next__(self):
		line = self.answer.readline()
		if not line:
			raise StopIteration
		return json.loads(line)

	def next(self, count):
		"""The next events as (type, name, resourceVersion)."""
		return [brief(next(self)) for _ in range(count)]

	def close(self):
		self.connection.close()

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.close()


def brief(event):
	return event["type"], event["object"]["metadata"].get("name")


def failure(answer, code, reason, message, **details):
	"""Asserts the whole Status object of a refusal. details: all members, or none given: not looked at."""
	status = answer.body
	assert answer.code == code, status
	assert status["kind"] == "Status" and status["apiVersion"] == "v1"
	assert status["status"] == "Failure" and status["code"] == code and "metadata" in status
	assert status.get("reason", "") == reason
	assert status["message"] == message
	if details:
		assert status["details"] == details


def pod(name, **spec):
	"""A minimal pod. meta: more of metadata; the rest: more of spec."""
	meta = spec.pop("meta", {})
	spec.setdefault("containers", [{"name": "c", "image": "localhost/busybox:test", "command": ["sleep", "1"]}])
	return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": spec}


def binding(name, node="contract-node", **meta):
	return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **meta},
		"target": {"apiVersion": "v1", "kind": "Node", "name": node}}
