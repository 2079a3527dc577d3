# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A bare Debian in a folder (script/debian-root --bare), as a host on which an administrator installs packages.

There is no init in it: packages start nothing (policy-rc.d), what systemd would start is started here. It shares the
network with this host.
"""
import os
import platform
import subprocess

from stands.build import TOP
from stands.waiting import wait_for

SLURM_CONF = """\
ClusterName=stock
SlurmctldHost=localhost
SlurmUser=slurm
SlurmctldPort={port}
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
NodeName={node} NodeAddr=127.0.0.1 Port={slurmd_port} CPUs=4 CoresPerSocket=4 RealMemory=8000
PartitionName=batch Nodes={node} Default=YES DefMemPerCPU=100
"""


# it shares the processes' numbers with this host, too: nothing is ended by its name
PID_FILES = {"slurmctld": "/run/slurmctld.pid", "slurmd": "/run/slurmd.pid", "munged": "/run/munge/munged.pid"}


SCRIPT = os.path.join(TOP, "script/debian-root")


def releases():
	"""Of Debian, oldest first."""
	return [line.split()[0] for line in subprocess.run([SCRIPT, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]


def is_host(release):
	return platform.freedesktop_os_release().get("VERSION_ID") == release


class Machine:
	def __init__(self, release):
		self.process = subprocess.Popen([SCRIPT, "--bare", release, "sh", "-c",
			"mount -t tmpfs tmpfs /run && mkdir -p /run/lock && printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d &&"
			" chmod +x /usr/sbin/policy-rc.d && echo up && exec sleep infinity"],
			stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
		if self.process.stdout.readline() != "up\n":
			raise AssertionError("no bare Debian: see above")

	def close(self):
		"""Ends what was started in it; what was installed is forgotten with it."""
		self.run(f"kill -9 $(cat {' '.join(PID_FILES.values())} 2>&-)", check=False)
		self.process.kill()
		self.process.wait()

	def run(self, command, check=True, **env):
		"""What a shell in it prints, stderr included; a failure fails the test, with that."""
		done = subprocess.run(["nsenter", "--target", str(self.process.pid), "--mount", "--root", "env", "-i", "-C", "/", "HOME=/root",
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
			*(f"{name}={value}" for name, value in env.items()), "sh", "-ec", command],
			stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
		assert not check or done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout[-3000:]}"
		return done.stdout

	def write(self, path, text, mode="644", owner="root"):
		self.run('printf %s "$TEXT" > "$FILE"; chmod "$MODE" "$FILE"; chown "$OWNER" "$FILE"', TEXT=text, FILE=path, MODE=mode, OWNER=owner)

	def install(self, *packages):
		return self.run("apt-get install -y -q --no-install-recommends " + " ".join(packages))

	# -- Slurm as its packages bring it

	def configure(self, node, port, slurmd_port):
		self.write("/etc/slurm/slurm.conf", SLURM_CONF.format(node=node, port=port, slurmd_port=slurmd_port))
		self.run("install -d -o slurm /var/lib/slurm/slurmctld /var/log/slurm /var/lib/slurm/slurmd; install -d -o munge /run/munge;"
			" runuser -u munge munged")
		self.node = node

	def start(self, daemon):
		self.run({"slurmctld": "slurmctld", "slurmd": f"slurmd -N {self.node}"}[daemon])
		wait_for(f"{daemon} in the fresh Debian", self.is_idle if daemon == "slurmd" else self.answers, 60, self.log)

	def stop(self, daemon):
		pid = self.run(f"cat {PID_FILES[daemon]}").strip()
		self.run(f"kill {pid}")
		wait_for(f"{daemon}'s end", lambda: not os.path.exists(f"/proc/{pid}"), 60, self.log)

	def answers(self):
		return " is UP" in self.run("scontrol ping", check=False)

	def is_idle(self):
		return self.run("sinfo -h -o %T", check=False).strip() in ("idle", "mixed", "allocated")

	def log(self):
		return self.run("tail -n 30 /var/log/slurm/*.log", check=False)

	def job(self, number):
		return self.run(f"scontrol show job {number}")

	def is_over(self, number):
		return "JobState=COMPLETED" in self.job(number)

	def runs_a_job(self):
		"""sbatch, and the job's end."""
		number = self.run("cd /tmp && sbatch --parsable -o /dev/null --wrap true").strip()
		wait_for(f"the end of job {number}", lambda: self.is_over(number), 60, self.log)
