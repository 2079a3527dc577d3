# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The small API server of test/kubesim in a stand; to the rest it looks as Kubernetes does."""
import os

from .api import Api
from .kubernetes import RBAC, SHARED_LABEL, SLURM_USER, TOP
from .process import MEMBER, Daemon, host_pid, run
from .waiting import StandError, wait_for


class Kubesim:
	SERVER = "kubesim"

	def __init__(self, folder):
		self.folder = os.path.abspath(folder)
		self.home = os.path.join(self.folder, "kubesim")
		self.admin = os.path.join(self.home, "admin.conf")
		self.slurm = os.path.join(self.home, SLURM_USER + ".conf")
		self.audit = os.path.join(self.home, "audit.log")

	def start(self, machine, build, port, real, fake, options):
		"""real: names of nodes that run pods' commands; fake: how many there are whose pods are timers.

		All of it lives in `machine`: pods' processes outlive the server, but not the stand.
		"""
		program = os.path.join(build, "test", "kubesim", "kubesim")
		if not os.path.exists(program):
			raise StandError(f"{program} is missing; run make, or name the build folder with --build")
		log = os.path.join(self.folder, "log", "kubesim.log")
		words = [os.path.join(TOP, "test/kubesim/up"), "--kubesim", program, "--user", SLURM_USER, "--rbac", RBAC,
			"--port", str(port), "--node-cpus", str(options.cpus), "--node-memory", f"{options.memory}Mi", "--node-pods", str(options.max_pods)]
		words += ["--nodes", ",".join(real)] if real else []
		words += ["--fake-nodes", str(fake)] if fake else []
		os.makedirs(os.path.join(self.home, "log"), exist_ok=True)
		if not os.path.lexists(os.path.join(self.home, "log", "kubesim.log")):
			os.symlink(log, os.path.join(self.home, "log", "kubesim.log"))
		run(["nsenter", "--target", str(machine.pid), "--mount", "--pid", *words, self.home], {MEMBER: self.folder})
		with open(os.path.join(self.home, "kubesim.pid"), encoding="utf-8") as file:
			self.daemon().adopt(host_pid(machine.pid, int(file.read())), machine)

	def finish(self):
		self.wait_ready()
		api = self.api()
		for node in api.get("/api/v1/nodes")["items"]:
			api.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": {SHARED_LABEL: "true"}}})

	def daemon(self):
		return Daemon(self.folder, self.SERVER)

	def api(self):
		return Api(self.admin)

	def wait_ready(self, seconds=30):
		api, server = self.api(), self.daemon()
		wait_for("kubesim", lambda: server.check() and api.ready(), seconds, server.hint)

	def runtime_logs(self, _names):
		return [os.path.join(self.home, "runtime.log")]

	def down(self):
		"""After the machine has been halted, and the server with it."""
		self.daemon().forget()

	def left(self):
		return []
