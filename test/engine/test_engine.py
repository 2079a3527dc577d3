# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The engine with all its threads against kubesim: what the sanitizers watch.

Run: /usr/bin/python3 -m pytest test/engine
SK8_BUILD names the build folder, SK8_KUBESIM the server if it is of another build.
"""
import collections
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(TEST)
BUILD = os.environ.get("SK8_BUILD") or os.path.join(TOP, "build")
KUBESIM = os.environ.get("SK8_KUBESIM") or f"{BUILD}/test/kubesim/kubesim"
NAMESPACE = "team-a"
NODES, CORES, PODS, CANCELS, SEED = 2, 4, 60, 12, 7


def run(*argv, env=None, stdin=None):
	return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True, timeout=300,
		env={**os.environ, **(env or {})})


def server_up(folder, *options):
	"""options: of kubesim."""
	run(f"{TEST}/kubesim/up", "--kubesim", KUBESIM, "--fake-nodes", str(NODES),
		"--node-cpus", str(CORES), "--user", "slurm-k8s", "--rbac", f"{TOP}/etc/kubernetes-rbac.yaml", folder, "--", *options)


@contextlib.contextmanager
def api_server(*options):
	folder = tempfile.mkdtemp(prefix="sk8-", dir="/tmp")
	server_up(folder, *options)
	try:
		yield folder
	finally:
		run(f"{TEST}/kubesim/down", folder)
	shutil.rmtree(folder)  # if it went well: else its logs may help


@pytest.fixture
def server():
	with api_server() as folder:
		yield folder


def pod(n, chance):
	return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{n}", "namespace": NAMESPACE,
			"annotations": {"kubesim.slurm-k8s.io/run-seconds": f"{chance.uniform(0.1, 0.8):.2f}"}},
		"spec": {"schedulerName": "slurm", "restartPolicy": "Never", "containers": [{"name": "main", "image": "none",
			"resources": {"requests": {"cpu": chance.choice(["200m", "1", "1500m"]), "memory": "16Mi"}}}]}}


def engine_host(server, kubeconfig):
	"""What starts an engine for it (more words follow), and in which environment."""
	config = f"{server}/slurm-k8s.yaml"
	with open(os.open(config, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
		file.write(f"clusters: [{{name: sim, kubeconfig: {kubeconfig}, namespaces: "
			f"[{{match: {NAMESPACE}, user: daemon}}]}}]\n")
	os.makedirs(f"{server}/state", exist_ok=True)
	return [f"{BUILD}/test/engine/engine_host", config, f"{server}/state", str(NODES), str(CORES)], \
		{**os.environ, "TSAN_OPTIONS": "halt_on_error=0 exitcode=66"}


def host(server):
	command, env = engine_host(server, f"{server}/slurm-k8s.conf")
	return subprocess.run([*command, str(PODS), str(CANCELS), str(SEED)], capture_output=True, text=True, check=False,
		timeout=240, env=env)


def bindings(server):
	"""How many successful Bindings each pod uid got, from the audit log."""
	counts = collections.Counter()
	with open(f"{server}/audit.log", encoding="utf-8") as file:
		for line in file:
			entry = json.loads(line)
			if entry.get("objectRef", entry).get("subresource") != "binding":
				continue
			code = entry.get("responseStatus", {}).get("code") or entry.get("code")
			if code == 201:
				counts[entry.get("requestObject", entry.get("requestBody", {}))["metadata"]["uid"]] += 1
	return counts


def test_pods_go_through_all_threads_of_the_engine(server):
	kubectl = {"KUBECONFIG": f"{server}/admin.conf"}
	chance = random.Random(SEED)
	objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
	objects += [pod(n, chance) for n in range(PODS)]
	run("kubectl", "create", "-f", "-", env=kubectl, stdin="\n".join(json.dumps(o) for o in objects))

	done = host(server)
	print(done.stderr[-20000:])
	assert "WARNING: ThreadSanitizer" not in done.stderr
	assert done.returncode == 0, done.stdout + done.stderr[-4000:]
	assert "AddressSanitizer" not in done.stderr and "runtime error" not in done.stderr

	left = json.loads(run("kubectl", "get", "pods", "-n", NAMESPACE, "-o", "json", env=kubectl).stdout)["items"]
	assert not [p["metadata"]["name"] for p in left if p["status"].get("reason", "").startswith("Outof")]
	counts = bindings(server)
	assert counts and max(counts.values()) == 1  # nothing is bound twice
	assert len(left) >= PODS - CANCELS
