# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Ports and addresses that several stands at once do not take from each other.

Each stand notes what it took in one file per stand in a folder of the host; a
note whose stand is gone is removed. Ports are below the kernel's ephemeral
range, so that no client connection takes one between choice and use.
"""
import fcntl
import hashlib
import json
import os
import random
import socket
from contextlib import contextmanager

from .waiting import StandError

NOTES = "/run/slurm-k8s-stands" if os.geteuid() == 0 else f"/tmp/slurm-k8s-stands-{os.geteuid()}"
PORTS = range(20000, 32000)
HOSTS = range(10, 250)


def stand_id(folder):
	"""Short name of a stand, the same in every process: for links and cgroups."""
	return hashlib.sha256(os.path.abspath(folder).encode()).hexdigest()[:8]


def _port_is_free(port):
	with socket.socket() as sock:
		sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		try:
			sock.bind(("0.0.0.0", port))
		except OSError:
			return False
	return True


def _mine(folder):
	return os.path.join(NOTES, stand_id(folder) + ".json")


@contextmanager
def _notes():
	"""Holds the lock; yields {path of a note: note} of the stands that exist."""
	os.makedirs(NOTES, exist_ok=True)
	with open(os.path.join(NOTES, "lock"), "w", encoding="utf-8") as lock:
		fcntl.flock(lock, fcntl.LOCK_EX)
		notes = {}
		for name in os.listdir(NOTES):
			path = os.path.join(NOTES, name)
			if name.endswith(".json"):
				try:
					with open(path, encoding="utf-8") as file:
						note = json.load(file)
				except (OSError, ValueError):
					note = {"folder": ""}
				if os.path.isdir(note["folder"]):
					notes[path] = note
				else:
					os.unlink(path)
		yield notes


def _take(folder, kind, count, candidates):
	with _notes() as notes:
		taken = {value for note in notes.values() for value in note[kind]}
		free = []
		for value in candidates:
			if value not in taken and (kind != "ports" or _port_is_free(value)):
				free.append(value)
				if len(free) == count:
					break
		else:
			raise StandError(f"{count} free {kind} are not to be had; stop some stands")
		note = notes.get(_mine(folder)) or {"folder": os.path.abspath(folder), "ports": [], "hosts": []}
		note[kind] += free
		with open(_mine(folder), "w", encoding="utf-8") as file:
			json.dump(note, file)
		return free


def ports(folder, count):
	"""`count` TCP ports that nobody listens on and no other stand was given."""
	return _take(folder, "ports", count, random.sample(PORTS, len(PORTS)))


def hosts(folder, count):
	"""`count` numbers, unique among the stands, that addresses are made of (the last byte)."""
	return _take(folder, "hosts", count, HOSTS)


def host_folder(path):
	"""Makes a folder of the host that nodes mount over, noted so that the last stand removes it again."""
	with _notes():
		made = []
		while not os.path.isdir(path):
			made.append(path)
			path = os.path.dirname(path)
		for folder in reversed(made):
			os.mkdir(folder)
			with open(os.path.join(NOTES, "folders"), "a", encoding="utf-8") as file:
				file.write(folder + "\n")


def release(folder):
	"""Gives everything back; the last stand also removes the folders that stands made on the host."""
	with _notes() as notes:
		if notes.pop(_mine(folder), None):
			os.unlink(_mine(folder))
		made = os.path.join(NOTES, "folders")
		if notes or not os.path.exists(made):
			return
		with open(made, encoding="utf-8") as file:
			folders = file.read().split()
		for path in reversed(folders):
			try:
				os.rmdir(path)
			except OSError:
				pass  # not ours alone any more
		os.unlink(made)
