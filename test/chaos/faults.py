# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What breaks: daemons that are killed or stopped, and the network; and who starts them again."""
import signal
import threading
import time

from link import Link
from plan import DAEMONS
from stands.api import Api
from stands.process import Daemon
from stands.waiting import StandError, wait_for

# These must never end by themselves. Others may, as kube-apiserver does without etcd.
STEADY = ("slurmctld", "slurmd-n1", "slurmd-n2")
LOOK = 0.2  # seconds between two looks of the keeper


class Faults:
	"""Faults of one stand: a method for each verb of plan.DAEMON_FAULTS and plan.NETWORK_FAULTS; each blocks until the
	fault is over. Thread safe; a target has one fault at a time."""

	def __init__(self, stand):
		self.stand = stand
		self.down = {}  # {target: its fault}
		self.crashed = []  # steady daemons that ended by themselves
		self.ends = []  # (when a daemon was killed or found dead, its name)
		self.spans = []  # (from, to, target) of faults that are over
		self.over = threading.Event()
		self.names = [name for name in DAEMONS[stand.kind] if name != "network"]
		self.names += [f"events-{name}" for name in ("n1", "n2") if f"containerd-{name}" in self.names]
		self.link = Link(int(Api(stand.env["STAND_SLURM_KUBECONFIG"]).port))
		self._reroute()
		self.closing = threading.Event()
		self.keeper = threading.Thread(target=self._keep, daemon=True)
		self.keeper.start()

	def _reroute(self):
		"""slurmctld's way to the API server leads through the link."""
		conf, old = self.stand.env["SLURM_K8S_CONF"], self.stand.env["STAND_SLURM_KUBECONFIG"]
		self.link.kubeconfig(old, old + ".link")
		with open(conf, encoding="utf-8") as file:
			text = file.read()
		with open(conf, "w", encoding="utf-8") as file:
			file.write(text.replace(old, old + ".link"))
		self.stand.ask_to_reconfigure()
		wait_for("slurmctld on its way through the link", lambda: self.link.pairs, 30)

	def _daemon(self, name):
		return Daemon(self.stand.folder, name)

	def _keep(self):
		"""What a service manager does: starts again what has ended."""
		while not self.closing.wait(LOOK):
			for name in self.names:
				if name not in self.down and not self._daemon(name).pid and name not in self.down:
					self.ends.append((time.time(), name))
					if name in STEADY:
						self.crashed.append(name)
					self._daemon(name).start_again()

	def kill(self, step):
		began, self.down[step.target] = time.time(), "killed"
		daemon = self._daemon(step.target)
		self.ends.append((time.time(), step.target))
		daemon.send(signal.SIGKILL)
		try:
			wait_for(f"the end of {daemon.name}", lambda: not daemon.pid, 20)
			self.over.wait(step.about["seconds"])
			self._daemon(step.target).start_again()
		except StandError as error:
			return str(error)
		finally:
			self._over(began, step.target)
		return "again"

	def _over(self, began, target):
		self.spans.append((began, time.time(), target))
		del self.down[target]

	def stop(self, step):
		began, self.down[step.target] = time.time(), "stopped"
		daemon = self._daemon(step.target)
		pid = daemon.pid
		daemon.send(signal.SIGSTOP)
		self.over.wait(step.about["seconds"])
		daemon.send(signal.SIGCONT)
		self._over(began, step.target)
		return "again" if pid else "did not run"

	def _network(self, step):
		began, self.down["network"] = time.time(), step.verb
		self.link.set(step.verb)
		self.over.wait(step.about["seconds"])
		self.link.set("open")
		self._over(began, "network")
		return "again"

	cut = hang = mute = _network

	def restart(self, *names):
		"""As an administrator does it, who waits for the end."""
		for name in names:
			if name not in self.down:
				self.down[name] = "restarted"
				self._daemon(name).stop()
				self._daemon(name).start_again()
				del self.down[name]

	def close(self):
		self.closing.set()
		self.keeper.join()
