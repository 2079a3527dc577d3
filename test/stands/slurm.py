# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A throw-away Slurm in a folder: munge with its own key, slurmctld, a slurmd per node.

Everything runs as root, which is Slurm's user, too: then jobs can run as any user
of the host, and nothing of the host has to be changed for it.
"""
import glob
import os
import re
import shutil
import signal
import socket

from . import reserve, slurm_cgroups
from .build import made
from .gres import gres_lines
from .private_tmp import private_tmp
from .process import Daemon, run
from .waiting import StandError, wait_for

# Users that every Debian has; which namespace is whose: see mapping() below.
USERS = {"daemon": "general", "games": "team-a", "news": "team-b", "mail": "teams"}
# Daemons and, with --backup, the hosts that they believe to be on.
PRIMARY, BACKUP = "slurmctld", "slurmctld-backup"
CONTROLLERS = {"controller1": "127.0.0.1", "controller2": "127.0.0.2"}
# Where munge looks for munged if nobody says another place. 22.05 may do so while a daemon reads slurm.conf anew: AuthInfo is freed
# first (free_slurm_conf() in read_config.c), and who checks a message just then asks there, for two seconds. If that message is of
# the end of a step it comes again a minute later (_one_step_complete_msg() of slurmstepd), and so long its job is completing.
MUNGE = "/run/munge"
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def search_path():
	"""PATH with the folders of daemons: they must be started as slurmctld and slurmd, without a folder."""
	parts = os.environ.get("PATH", "/usr/bin:/bin").split(":")
	return ":".join(parts + [part for part in SBIN if part not in parts])


def version():
	if not shutil.which("slurmctld", path=search_path()):
		raise StandError("slurmctld is missing; run script/install-deps slurm")
	return run(["slurmctld", "-V"], {"PATH": search_path()}).split()[1]


def starts_again(release):
	"""Does a reconfigure make a new slurmctld? From 23.11 on."""
	return not release.startswith("22.05")


def misses_wakeup(daemon):
	"""Does this slurmctld wait for ever for an answer that it has had?

	_wait_for_script_resp() in slurmscriptd.c of releases before 26.05 does not look whether the answer has come before it waits:
	on a busy machine a reconfigure, or the end of slurmctld, may hang with stock Slurm as well."""
	return bool(daemon.pid) and "slurmscriptd_flush" in daemon.stacks()


def has_external(release):
	"""Has it external jobs and nodes, of which no slurmd hears? From 25.05 on."""
	return tuple(map(int, release.split(".")[:2])) >= (25, 5)


def stock_plugins():
	"""The folder of Slurm's own plugins: of that Slurm whose slurmctld comes first in PATH."""
	slurmctld = shutil.which("slurmctld", path=search_path()) or "/usr/sbin/slurmctld"
	prefix = os.path.dirname(os.path.dirname(os.path.realpath(slurmctld)))
	for pattern in ("lib/*/slurm-wlm", "lib/*/slurm", "lib64/slurm", "lib/slurm"):
		for path in glob.glob(os.path.join(prefix, pattern)):
			if os.path.exists(f"{path}/select_cons_tres.so"):
				return path
	raise StandError("Slurm's plugins (select_cons_tres.so) are missing; run script/install-deps slurm")


class Slurm:
	"""folder: the stand's. conf: its slurm.conf."""

	def __init__(self, folder):
		self.folder = os.path.abspath(folder)
		self.home = os.path.join(self.folder, "slurm")
		self.etc = os.path.join(self.folder, "etc")
		self.conf = os.path.join(self.etc, "slurm.conf")
		self.k8s_conf = os.path.join(self.etc, "slurm-k8s.yaml")
		self.backup_conf = os.path.join(self.etc, "slurm-backup.conf")
		self.cgroup_mounts = os.path.join(self.home, "cgroup")
		self.munge_socket = os.path.join(self.folder, "run", "munge", "munge.socket.2")

	def daemon(self, name):
		"""Slurm's daemons write log/NAME.log themselves; what they print before is in log/NAME.out."""
		daemon = Daemon(self.folder, name)
		daemon.log = os.path.join(self.folder, "log", name + ".out")
		return daemon

	@property
	def env(self):
		return {"SLURM_CONF": self.conf, "PATH": search_path()}

	def command(self, *argv, seconds=60):
		return run(list(argv), self.env, seconds)

	# -- the pieces, in the order in which they start

	def munge(self):
		os.makedirs(self.home, exist_ok=True)
		os.makedirs(self.etc, exist_ok=True)
		os.makedirs(os.path.dirname(self.munge_socket), exist_ok=True)
		key = os.path.join(self.home, "munge.key")
		with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
			file.write(os.urandom(1024))
		daemon = self.daemon("munged").start(["munged", "--foreground", "--force", f"--key-file={key}",
			f"--socket={self.munge_socket}", f"--pid-file={self.home}/munged.pid", f"--seed-file={self.home}/munge.seed",
			f"--log-file={self.folder}/log/munged.log", "--num-threads=4"], {"PATH": search_path()})
		wait_for("munged", lambda: daemon.check() and os.path.exists(self.munge_socket), 20, daemon.hint)

	def munge_setup(self):
		"""Shell commands for who has mounts of its own: our munged is there where munge looks for one. After configure(), which
		has that folder removed again; who starts a daemon again in another Debian (script/debian-root) has a / that knows nothing of it."""
		return f"mkdir -p {MUNGE}; mount --bind '{os.path.dirname(self.munge_socket)}' {MUNGE};"

	def configure(self, nodes, options, accounting=None):
		"""Writes slurm.conf. nodes: names; options: see test/cluster; accounting: lines of it.

		With options.backup there are two controllers, on hosts of their own with names and addresses that only they
		know. Slurm reads names of files from slurm.conf, so the second one has another slurm.conf beside the first.
		"""
		ports = reserve.ports(self.folder, 1 + len(nodes))
		reserve.host_folder(MUNGE)
		plugin_dir = stock_plugins()
		if options.plugin:
			plugin_dir = os.path.join(self.install(options.build), "plugins") + ":" + plugin_dir
		log = os.path.join(self.folder, "log")
		settings = {
			"ClusterName": "stand",
			"SlurmctldHost": f"{socket.gethostname().split('.')[0]}(127.0.0.1)",
			"SlurmUser": "root", "SlurmdUser": "root",
			"AuthType": "auth/munge", "AuthInfo": f"socket={self.munge_socket}", "CredType": "cred/munge",
			"SlurmctldPort": ports[0], "SlurmdPort": ports[1] if nodes else 1,
			"StateSaveLocation": f"{self.home}/state", "SlurmdSpoolDir": f"{self.home}/spool/%n",
			"SlurmctldPidFile": f"{self.home}/slurmctld.pid", "SlurmdPidFile": f"{self.home}/slurmd-%n.pid",
			"SlurmctldLogFile": f"{log}/slurmctld.log", "SlurmdLogFile": f"{log}/slurmd-%n.log",
			"SlurmctldSyslogDebug": "quiet", "SlurmdSyslogDebug": "quiet", "SlurmctldDebug": "verbose",
			"LogTimeFormat": "iso8601_ms",
			"PluginDir": plugin_dir,
			"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory",
			"ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "MpiDefault": "none",
			"JobAcctGatherType": "jobacct_gather/none", "JobCompType": "jobcomp/none",
			"AccountingStorageType": "accounting_storage/none",
			"ReturnToService": 2, "SlurmdParameters": "config_overrides", "MaxJobCount": 30000, "KillWait": 5,
			"SchedulerType": "sched/backfill",
			"SchedulerParameters": "sched_interval=2,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,bf_continue",
			"PriorityType": "priority/basic",
		}
		if has_external(version()):
			settings["DebugFlags"] = "HetJob"  # else backfill's log names no job that it started
		if options.plugin and "job_submit_k8s.so" in os.listdir(plugin_dir.split(":", maxsplit=1)[0]):
			settings["JobSubmitPlugins"] = "k8s"
		lines = [f"NodeName=DEFAULT CPUs={options.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={options.cpus} "
			f"ThreadsPerCore=1 RealMemory={options.memory} State=UNKNOWN {getattr(options, 'node_conf', '')}"]
		if getattr(options, "gres", None):
			of_node, settings["GresTypes"], conf = gres_lines(options.gres, os.path.join(self.home, "devices"), getattr(options, "cgroups", False))
			lines[0] += " " + of_node
			with open(os.path.join(self.etc, "gres.conf"), "w", encoding="utf-8") as file:
				file.write(conf)
		if getattr(options, "private_tmp", False):
			settings.update(private_tmp(self.folder, self.etc, stock_plugins()))
		if getattr(options, "cgroups", False):
			settings.update(slurm_cgroups.SETTINGS)
		for name, port in zip(nodes, ports[1:]):
			lines.append(f"NodeName={name} NodeAddr=127.0.0.1 Port={port}")
		if nodes:
			every = "Nodes=" + ",".join(nodes)
			lines += [f"PartitionName=DEFAULT {every} MaxTime=INFINITE DefMemPerCPU=100 State=UP",
				"PartitionName=batch Default=YES PriorityTier=10",
				"PartitionName=low PriorityTier=1",
				"PartitionName=short PriorityTier=10 MaxTime=1 DefaultTime=1"]
		settings.update(accounting or {})
		for text in options.slurm_conf or []:
			_merge(settings, lines, text)
		os.makedirs(f"{self.home}/state", exist_ok=True)
		for name in nodes:
			os.makedirs(f"{self.home}/spool/{name}", exist_ok=True)
		if options.backup:
			settings["SlurmctldHost"] = "\nSlurmctldHost=".join(f"{name}({address})" for name, address in CONTROLLERS.items())
			settings["CommunicationParameters"] = "NoCtldInAddrAny"  # each listens at its own address only
			with open(os.path.join(self.etc, "hosts"), "w", encoding="utf-8") as file:
				file.writelines(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **CONTROLLERS}.items())
			_write_conf(self.backup_conf, {**settings, "SlurmctldPidFile": f"{self.home}/{BACKUP}.pid",
				"SlurmctldLogFile": f"{log}/{BACKUP}.log"}, lines)
		_write_conf(self.conf, settings, lines)
		with open(os.path.join(self.etc, "cgroup.conf"), "w", encoding="utf-8") as file:
			file.write(_cgroup_conf(version()))
		if getattr(options, "cgroups", False):
			slurm_cgroups.write_conf(self.etc, self.cgroup_mounts)

	def install(self, build):
		"""A copy of what `build` built, as it will be installed. Returns its folder with plugins/ in it."""
		if not os.path.exists(os.path.join(build, "Makefile")):
			raise StandError(f"{build} is no build folder; build first, or name it with --build, or use --no-plugin")
		stage = os.path.join(build, "stage")
		with made(build, stage, "install-pkglibLTLIBRARIES", "install-pluginLTLIBRARIES", "install-nodePROGRAMS", "install-data-hook", once=True):
			found = glob.glob(f"{stage}/**/plugins/select_cons_tres.so", recursive=True)
			if not found:
				raise StandError(f"make install in {build} brought no select_cons_tres.so; was it configured --without-slurm?")
			inst = os.path.join(self.folder, "inst")
			shutil.copytree(os.path.dirname(os.path.dirname(found[0])), inst, symlinks=True)
		return inst

	def mapping(self, kubeconfig, text=None):
		"""Writes slurm-k8s.yaml: text, or a default that maps a few namespaces to users of the host."""
		allow = "allow: {partition: [batch, low, short], qos: [normal, high]}"
		text = text or f"""clusters:
  - name: stand
    kubeconfig: {kubeconfig}
    schedulerNames: [slurm]
    nodes: {{selector: "slurm-k8s.io/shared=true"}}
    namespaces:
      - {{match: default, user: daemon, account: general, {allow}}}
      - {{match: team-a, user: games, account: team-a, {allow}}}
      - {{match: team-b, user: news, account: team-b, {allow}}}
      - {{match: "team-*", user: mail, account: teams, {allow}}}
"""
		with open(os.open(self.k8s_conf, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
			file.write(text.replace("@KUBECONFIG@", kubeconfig))

	def controller(self, extra=None, under=()):
		"""extra: more environment for slurmctld. under: the command that it is an argument of, as a list."""
		inst = os.path.join(self.folder, "inst")
		env = {**self.env, "SLURM_K8S_CONF": self.k8s_conf, **(extra or {})}
		if not under:
			env["LD_PRELOAD"] = ":".join(filter(None, [self._crash_trace(), env.get("LD_PRELOAD")]))
		if os.path.isdir(inst):
			# installed somewhere else than configured: that is where the private library is
			env["LD_LIBRARY_PATH"] = ":".join(filter(None, [inst, os.environ.get("LD_LIBRARY_PATH")]))
		if not os.path.exists(self.backup_conf):
			self.daemon(PRIMARY).start(self._with_mounts("", [*under, "slurmctld", "-D"]), env)
			self.wait_controller(seconds=300 if under else 60)
			return
		for name, conf in ((PRIMARY, self.conf), (BACKUP, self.backup_conf)):
			self.daemon(name).start(self._on_host(name), {**env, "SLURM_CONF": conf})
			self.wait_controller(name)

	def _crash_trace(self):
		"""Compiled: a crash of slurmctld leaves the place in its output. None without a compiler."""
		library = os.path.join(self.folder, "crash_trace.so")
		if not shutil.which("cc"):
			return None
		run(["cc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(os.path.dirname(__file__), "crash_trace.c")])
		return library

	def _on_host(self, name):
		"""slurmctld on a host of this name: the same process, with a host name and /etc/hosts of its own."""
		host = list(CONTROLLERS)[(PRIMARY, BACKUP).index(name)]
		return self._with_mounts(f"hostname {host}; mount --bind {self.etc}/hosts /etc/hosts;", ["slurmctld", "-D"], "--uts")

	def _with_mounts(self, setup, argv, *more):
		"""argv, as a command that becomes it: with mounts of its own, our munged among them. setup: shell commands; more: of unshare."""
		return ["unshare", *more, "--mount", "--propagation", "slave", "sh", "-ec", f'{setup} {self.munge_setup()} exec "$@"', "sh", *argv]

	def wait_controller(self, name=PRIMARY, seconds=60):
		daemon = self.daemon(name)
		# "Slurmctld(primary) at HOST is UP", "Slurmctld(backup) at HOST is UP"
		row = re.compile(r"\(backup\d*\) at .* is UP" if name == BACKUP else r"\(primary\) at .* is UP")
		wait_for(name, lambda: daemon.check() and row.search(self._try("scontrol", "ping")), seconds, daemon.hint)

	def reconfigure(self):
		"""scontrol reconfigure, until slurmctld is ready again: from 23.11 on it starts again, and hears no signal meanwhile."""
		def starts():
			with open(os.path.join(self.folder, "log", "slurmctld.log"), encoding="utf-8") as file:
				return file.read().split(" started on cluster ")
		before, daemon = len(starts()), self.daemon(PRIMARY)
		try:
			self.command("scontrol", "reconfigure")
		except StandError:
			if not misses_wakeup(daemon):
				raise
			daemon.stop(signal.SIGKILL)
			daemon.start_again()
			self.wait_controller()
		if starts_again(version()):
			wait_for("slurmctld to start again", lambda: daemon.check() and "Running as primary" in "".join(starts()[before:]), 30,
				daemon.hint)

	def agent_conf(self, name):
		return os.path.join(self.etc, f"slurm-k8s-node-{name}.yaml")

	def agent(self, name, kubeconfig, cgroup_root):
		"""The next slurmd of this node has an agent."""
		with open(os.path.join(self.etc, "plugstack.conf"), "w", encoding="utf-8") as file:
			file.write(f"optional {self.folder}/inst/plugins/spank_k8s.so\n")
		with open(self.agent_conf(name), "w", encoding="utf-8") as file:
			file.write(f"kubeconfig: {kubeconfig}\ncgroupRoot: {cgroup_root}\n")

	def slurmd(self, machine, cgroup=None):
		"""cgroup: where it is to be, and to make its own."""
		env = dict(self.env)
		if os.path.exists(self.agent_conf(machine.name)):
			inst = os.path.join(self.folder, "inst")
			env.update(SLURM_K8S_NODE_CONF=self.agent_conf(machine.name),
				LD_LIBRARY_PATH=":".join(filter(None, [inst, os.environ.get("LD_LIBRARY_PATH")])))
		argv = ["slurmd", "-D", "-N", machine.name]
		if cgroup:
			argv = slurm_cgroups.confined(cgroup, self.cgroup_mounts, argv)
		self.daemon(f"slurmd-{machine.name}").start(argv, env, inside=machine)

	def wait_nodes(self, names, seconds=60):
		def idle():
			for name in names:
				self.daemon(f"slurmd-{name}").check()
			lines = self._try("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
			state = dict(line.split() for line in lines if line)
			return all(state.get(name) == "idle" for name in names)
		wait_for("Slurm's nodes", idle, seconds, lambda: self._try("sinfo", "-N", "-l") + self._try("sinfo", "-R"))

	def _try(self, *argv):
		try:
			return self.command(*argv)
		except StandError:
			return ""


def _write_conf(path, settings, lines):
	with open(path, "w", encoding="utf-8") as file:
		file.writelines(f"{key}={value}\n" for key, value in settings.items())
		file.writelines(line + "\n" for line in lines)


def _cgroup_conf(release):
	# 22.05 looks for the hierarchies whatever the plugins are; later releases can do without
	return "CgroupMountpoint=/sys/fs/cgroup\n" if release.startswith("22.05") else "CgroupPlugin=disabled\n"


def _merge(settings, lines, text):
	"""text: a file's name or lines of slurm.conf. A key that is there already gets the new value."""
	if os.path.exists(text):
		with open(text, encoding="utf-8") as file:
			text = file.read()
	known = {key.lower(): key for key in settings}
	for line in text.splitlines():
		line = line.strip()
		key, equals, value = line.partition("=")
		if not line or line.startswith("#"):
			continue
		if not equals:
			raise StandError(f"--slurm-conf: '{line}' is neither a file nor a line Key=Value")
		if key.lower() in ("nodename", "partitionname", "downnodes", "nodeset"):
			lines.append(line)
		else:
			settings[known.get(key.lower(), key)] = value
