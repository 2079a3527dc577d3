# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A network of its own for a client, which forgets connections without a word to anybody: half-open ones, as after a
power cut of the peer or in a firewall that was restarted."""
import ctypes
import os
import socket
import subprocess
import threading

CLONE_NEWNET = 0x40000000


class DeadNetwork:
	"""Needs root, iproute2 and iptables. The host's network stays as it is."""

	def __init__(self):
		self.namespace = self.listener = None
		made = threading.Thread(target=self._make)  # a thread may be in a network of its own
		made.start()
		made.join()
		assert self.listener, "no network namespace could be made"
		self.port = self.listener.getsockname()[1]
		# Words that start a program in it.
		self.inside = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.namespace}", "--"]

	def _make(self):
		libc = ctypes.CDLL(None, use_errno=True)
		if libc.unshare(CLONE_NEWNET):
			return
		self.namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
		subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
		self.listener = socket.create_server(("127.0.0.1", 0))

	def run(self, *argv, **more):
		return subprocess.run([*self.inside, *argv], capture_output=True, text=True, check=True, **more).stdout

	def connections(self):
		"""Ports of clients whose connections are up."""
		rows = [line.split() for line in self.run("cat", "/proc/net/tcp").splitlines()[1:]]
		return [int(row[1].split(":")[1], 16) for row in rows if row[2].endswith(f":{self.port:04X}") and row[3] == "01"]

	def forget(self):
		"""All connections that there are; new ones are served. Returns how many."""
		ports = self.connections()
		rules = [f"-A INPUT -p tcp {way} {port} -j DROP" for port in ports for way in ("--sport", "--dport")]
		self.run("iptables-restore", "--noflush", input="\n".join(["*filter", *rules, "COMMIT", ""]))
		return len(ports)

	def close(self):
		os.close(self.namespace)
