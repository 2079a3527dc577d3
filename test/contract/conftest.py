# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""One suite for both API servers: kubesim and a real kube-apiserver.

  /usr/bin/python3 -m pytest test/contract --server sim      starts kubesim
  /usr/bin/python3 -m pytest test/contract --server real     starts etcd and kube-apiserver
  ... --kubeconfig FILE [--server sim|real]                  uses one that runs

What is asserted is what a real server was seen to do. The user of the kubeconfig
must be a member of system:masters. Each test has a namespace of its own.
"""
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import uuid

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from kube import Kube  # noqa: E402


def pytest_addoption(parser):
	parser.addoption("--kubeconfig", help="of a server that runs; else one is started")
	parser.addoption("--server", choices=["sim", "real"], default="sim")
	parser.addoption("--kubesim", help="the program of --server sim, if it is not beside its sources")


class Server:
	"""forget: makes it forget all changes so far; None: we do not know how."""

	def __init__(self, kind, kubeconfig, forget=None):
		self.kind = kind
		self.kubeconfig = kubeconfig
		self.forget = forget


def _start_sim(program, folder):
	argv = [os.path.join(TOP, "test/kubesim/up"), *(["--kubesim", program] if program else []), folder]
	subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
	return Server("sim", os.path.join(folder, "admin.conf"))


def _start_real(folder):
	from stands.kubernetes import Kubernetes
	kubernetes = Kubernetes(folder)
	kubernetes.start()
	kubernetes.wait_ready()

	def forget():
		"""etcd drops old revisions; the server, whose cache would still know them, is restarted."""
		now = kubernetes.api().get("/api/v1/namespaces")["metadata"]["resourceVersion"]
		argv = kubernetes.daemon("etcd").record["argv"]
		url = urllib.parse.urlparse(argv[argv.index("--listen-client-urls") + 1])
		etcd = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
		etcd.request("POST", "/v3/kv/compaction", json.dumps({"revision": now, "physical": True}))
		assert etcd.getresponse().status == 200
		apiserver = kubernetes.daemon("kube-apiserver")
		apiserver.stop()
		apiserver.start_again()
		kubernetes.wait_ready()

	return kubernetes, Server("real", kubernetes.admin, forget)


@pytest.fixture(scope="session")
def server(request):
	option = request.config.getoption
	if option("--kubeconfig"):
		yield Server(option("--server"), option("--kubeconfig"))
		return
	folder = tempfile.mkdtemp(prefix="contract-")
	if option("--server") == "sim":
		yield _start_sim(option("--kubesim"), folder)
		subprocess.run([os.path.join(TOP, "test/kubesim/down"), folder], check=True)
	else:
		kubernetes, started = _start_real(folder)
		yield started
		kubernetes.down()
	shutil.rmtree(folder)


@pytest.fixture(scope="session")
def kube(server):
	return Kube(server.kubeconfig)


@pytest.fixture
def forget(server, kube):
	"""A function that makes the server forget all changes so far."""
	def act():
		if server.kind == "sim":
			assert kube.post("/kubesim/faults", {"action": "expire-watches"}).code == 200
			return
		if not server.forget:
			pytest.skip("needs a server that this suite has started")
		server.forget()
		kube.connection = None
	return act


class Namespace:
	def __init__(self, kube, name):
		self.kube = kube
		self.name = name

	def path(self, resource="pods", name=None, sub=None, group=None):
		path = f"/apis/{group}/v1" if group else "/api/v1"
		return "/".join(filter(None, [f"{path}/namespaces/{self.name}/{resource}", name, sub]))

	def add(self, body, resource="pods", group=None):
		answer = self.kube.post(self.path(resource, group=group), body)
		assert answer.code == 201, answer
		return answer.body

	def list_rv(self, resource="pods"):
		return self.kube.get(self.path(resource))["metadata"]["resourceVersion"]


@pytest.fixture
def ns(kube):
	name = "contract-" + uuid.uuid4().hex[:8]
	assert kube.post("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
	yield Namespace(kube, name)
	# No controller empties it on the real server.
	for pod in kube.get(f"/api/v1/namespaces/{name}/pods")["items"]:
		path = f"/api/v1/namespaces/{name}/pods/{pod['metadata']['name']}"
		kube.patch(path, {"metadata": {"finalizers": None}})
		kube.delete(path, {"gracePeriodSeconds": 0})
	kube.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def node(kube):
	"""The name of a node that nobody runs."""
	name = "contract-" + uuid.uuid4().hex[:8]
	assert kube.post("/api/v1/nodes", {"metadata": {"name": name}}).code == 201
	yield name
	kube.delete(f"/api/v1/nodes/{name}")
