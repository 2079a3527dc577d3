# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Slurm's own cgroups (proctrack/cgroup, task/cgroup) for slurmds that have one machine: Slurm names its cgroup after the node,
and other stands have nodes of that name. So each slurmd has a cgroup namespace, and hierarchies that begin at a cgroup of its
stand."""
import os

from . import cgroup
from .waiting import StandError

SETTINGS = {"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup,task/affinity", "PrologFlags": "Contain"}


def write_conf(etc, mounts):
	if cgroup.is_v2():
		raise StandError("--cgroups needs hierarchies of cgroup v1, and this machine has v2")
	with open(os.path.join(etc, "cgroup.conf"), "w", encoding="utf-8") as file:
		file.write(f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={mounts}\n"
			"ConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainDevices=yes\n")


def confined(name, mounts, argv):
	"""argv, as a command that runs it in the cgroup NAME and sees it as the root. mounts: where, in its machine."""
	cgroup.create(name)
	found = [os.path.basename(base) for base in cgroup.hierarchies() if os.path.exists(f"{base}/release_agent")]
	enter = "".join(f"echo 0 > {cgroup.BASE}/{hierarchy}/{name}/cgroup.procs; " for hierarchy in found)
	mount = "".join(f"mkdir -p {mounts}/{hierarchy}; mountpoint -q {mounts}/{hierarchy} || "
		f"mount -t cgroup -o {hierarchy} none {mounts}/{hierarchy}; " for hierarchy in found if hierarchy != "systemd")
	return ["sh", "-ec", f"{enter} exec unshare --cgroup sh -ec '{mount} exec \"$@\"' sh \"$@\"", "sh", *argv]
