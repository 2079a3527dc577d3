# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine, logging at all levels, with credentials that go wrong in every way: no secret is in its log.

Run: /usr/bin/python3 -m pytest test/engine -k secret
"""
import base64
import concurrent.futures
import contextlib
import http.server
import json
import os
import ssl
import subprocess
import threading

import pytest
from test_engine import BUILD, api_server

CANARY = "canary7hJ2"
TOKEN = f"eyJhbGciOi.{CANARY}-and-more"
KEY = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"


class Echo(http.server.BaseHTTPRequestHandler):
	"""An API server, or a proxy before it, that sends back what it was sent."""
	protocol_version = "HTTP/1.1"
	status = 401

	def answer(self):
		length = int(self.headers.get("Content-Length") or 0)
		self.rfile.read(length)
		self.server.heard.append(self.headers.get("Authorization"))
		text = json.dumps({"kind": "Status", "message": f"refused: {self.headers.get('Authorization')}"}).encode()
		self.send_response(self.server.status)
		self.send_header("Content-Type", "application/json")
		self.send_header("Content-Length", str(len(text)))
		self.end_headers()
		self.wfile.write(text)

	do_GET = do_POST = do_PATCH = do_DELETE = answer

	def log_message(self, *_):
		pass


@contextlib.contextmanager
def echo_server(folder, status):
	"""Serves HTTPS with kubesim's certificate; heard: what it was sent as Authorization."""
	found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
	tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	tls.load_cert_chain(f"{folder}/pki/server.crt", f"{folder}/pki/server.key")
	found.socket = tls.wrap_socket(found.socket, server_side=True)
	found.heard, found.status, found.folder = [], status, folder
	thread = threading.Thread(target=found.serve_forever)
	thread.start()
	try:
		yield found
	finally:
		found.shutdown()
		thread.join()
		found.server_close()


def kubeconfig(echo, user, cluster=""):
	with open(f"{echo.folder}/pki/ca.crt", "rb") as file:
		ca = base64.b64encode(file.read()).decode()
	return f"""current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters:
- name: c
  cluster: {{server: "https://127.0.0.1:{echo.server_address[1]}", certificate-authority-data: {ca}{cluster}}}
users:
- name: u
  user: {{{user}}}
"""


def log_of(folder, config, mode=0o600, seconds=3):
	"""What the engine says in so many seconds with this kubeconfig. folder: its own."""
	os.makedirs(f"{folder}/state")
	for name, text, bits in (("kc", config, mode), ("slurm-k8s.yaml", f"clusters: [{{name: sim, kubeconfig: {folder}/kc, "
			"namespaces: [{match: default, user: daemon}]}]\n", 0o600)):
		path = os.path.join(folder, name)
		with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
			file.write(text)
		os.chmod(path, bits)
	# no pod to wait for: its cancellations, 50 to 150 ms each, are what takes the time
	done = subprocess.run([f"{BUILD}/test/engine/engine_host", f"{folder}/slurm-k8s.yaml", f"{folder}/state", "1", "1", "0",
		str(seconds * 10), "1"], capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "ENGINE_HOST_DEBUG": "1"})
	assert done.returncode == 0, done.stderr[-3000:]
	return done.stderr


def check_secret(log, said):
	assert said in log, log[-3000:]
	assert CANARY not in log, log[-3000:]
	assert base64.b64encode(KEY.encode()).decode()[40:80] not in log


# what is wrong -> what is said
BROKEN = {
	"basic": (f"username: admin, password: {CANARY}", "", 0o600, "Kubernetes no longer accepts passwords"),
	"not base64": (f"client-key-data: '{CANARY} !', client-certificate-data: '{CANARY}'", "", 0o600, "is not base64"),
	"not PEM": ("client-key-data: {0}, client-certificate-data: {0}".format(base64.b64encode(CANARY.encode()).decode()), "", 0o600,
		"is not in PEM form"),
	"not YAML": (f"token: '{TOKEN}", "", 0o600, "not YAML"),
	"a list for a key": (f"token: {TOKEN}, [", "", 0o600, "a key must be a plain word"),
	"a token of two lines": (f'token: "{TOKEN}\\n{TOKEN}"', "", 0o600, "the token has characters that no token has"),
	"readable by all": (f"token: {TOKEN}", "", 0o644, "can be read by everybody (mode 0644)"),
	"a proxy that is not there": (f"token: {TOKEN}", f', proxy-url: "http://me:{CANARY}@127.0.0.1:1"', 0o600, "cannot list"),
	"exec": (f"exec: {{command: c, env: [{{name: A, value: {CANARY}}}]}}", "", 0o600, "an exec plugin cannot run"),
}
STATUS = [401, 403, 500]


def key_refused(echo):
	"""A kubeconfig with a client key that is none."""
	key = base64.b64encode(KEY.encode()).decode()
	with open(f"{echo.folder}/pki/admin.crt", "rb") as file:
		certificate = base64.b64encode(file.read()).decode()
	return kubeconfig(echo, f"client-key-data: {key}, client-certificate-data: {certificate}")


@pytest.fixture(scope="module")
def played():
	"""{scenario: (future of its log, its server)}: engines side by side, as they mostly wait."""
	with api_server() as folder, contextlib.ExitStack() as servers:
		echoes = {status: servers.enter_context(echo_server(folder, status)) for status in STATUS}
		echo = echoes[401]
		work = {status: (one, kubeconfig(one, f'token: "{TOKEN}"')) for status, one in echoes.items()}
		work["key"] = echo, key_refused(echo)
		work |= {name: (echo, kubeconfig(echo, user, cluster), mode, 1) for name, (user, cluster, mode, _) in BROKEN.items()}
		with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
			yield {name: (pool.submit(log_of, f"{folder}/secret{i}", *how), one)
				for i, (name, (one, *how)) in enumerate(work.items())}


@pytest.mark.parametrize("status", STATUS)
def test_token_that_a_server_sends_back_is_not_in_the_log(played, status):
	log, echo = played[status]
	check_secret(log.result(), "refused: Bearer [secret]")
	assert f"Bearer {TOKEN}" in echo.heard


def test_secret_client_key_that_tls_refuses_is_not_in_the_log(played):
	check_secret(played["key"][0].result(), "cannot list")


@pytest.mark.parametrize("name", BROKEN)
def test_secret_of_a_kubeconfig_that_is_wrong_is_not_in_the_log(played, name):
	check_secret(played[name][0].result(), BROKEN[name][3])
