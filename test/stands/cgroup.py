# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A cgroup per stand, in every hierarchy that the host has (v1 and v2)."""
import os

from .waiting import StandError, wait_for

BASE = "/sys/fs/cgroup"


def is_v2():
	return os.path.exists(f"{BASE}/cgroup.controllers")


def hierarchies():
	"""The folders in which a cgroup is made: one with v2; one per controller with v1, and its empty v2 beside."""
	if is_v2():
		return [BASE]
	found = []
	with open("/proc/mounts", encoding="utf-8") as file:
		for line in file:
			_, path, kind, _ = line.split(" ", 3)
			if kind in ("cgroup", "cgroup2") and path.startswith(BASE):
				found.append(path)
	if not found:
		raise StandError(f"no cgroups are mounted below {BASE}; mount them to run kubelets")
	return found


def _write(path, text):
	with open(path, "w", encoding="utf-8") as file:
		file.write(text)


def _read(path):
	with open(path, encoding="utf-8") as file:
		return file.read().strip()


def create(name):
	"""Makes the cgroup NAME (may be nested) with all controllers usable in it."""
	for base in hierarchies():
		path = base
		for part in name.strip("/").split("/"):
			if is_v2():
				for controller in _read(f"{path}/cgroup.controllers").split():
					try:
						_write(f"{path}/cgroup.subtree_control", "+" + controller)
					except OSError:
						pass  # cpu with realtime processes around: kubelet says what it misses
			parent, path = path, os.path.join(path, part)
			os.makedirs(path, exist_ok=True)
			for file in ("cpuset.cpus", "cpuset.mems"):  # v1: empty in a new cgroup, and then no process fits
				if not is_v2() and os.path.exists(f"{path}/{file}") and not _read(f"{path}/{file}"):
					_write(f"{path}/{file}", _read(f"{parent}/{file}"))


def _folders(name):
	found = []
	for base in hierarchies() if os.path.isdir(BASE) else []:
		for folder, _, _ in os.walk(os.path.join(base, name.strip("/")), topdown=False):
			found.append(folder)
	return found


def remove(name):
	"""Removes the cgroup NAME and all below it; its processes are dead or dying."""
	def try_all():
		for folder in _folders(name):
			try:
				os.rmdir(folder)
			except OSError:
				pass
		return not _folders(name)
	wait_for(f"removal of cgroup {name}", try_all, 15)


def left(name):
	return _folders(name)
