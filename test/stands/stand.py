# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The folder of a stand, its nodes, and its end."""
import os
import shlex
import shutil

from . import debian, reserve
from .accounting import Accounting, settings
from .kubernetes import Kubernetes
from .kubesim import Kubesim
from .process import Daemon, Machine, daemons, processes_of
from .slurm import BACKUP, PRIMARY, Slurm, search_path
from .slurm import version as slurm_version
from .waiting import StandError, say, wait_for

MARK = ".stand"
# What a stand writes into its folder; a new one in the same folder starts without it.
PARTS = ("run", "log", "kubernetes", "kubesim", "nodes", "slurm", "etc", "inst", "accounting", "env", "bin")
MOST_SLURMDS = 16  # more fake nodes have none: Slurm calls them down until something else keeps them up
LONGEST = 60  # sockets live in the folder, and their names end at 107 bytes


def prepare_folder(folder):
	"""Makes an empty stand in folder. Refuses a folder that is in use or holds something else."""
	if len(folder) > LONGEST:
		raise StandError(f"{folder}: a stand's folder has at most {LONGEST} characters (its sockets' names get too long)")
	for text in "' \n,:=":
		if text in folder:
			raise StandError(f"{folder}: no '{text}' in the name of a stand's folder")
	if os.path.isdir(folder) and os.listdir(folder) and not os.path.exists(os.path.join(folder, MARK)):
		raise StandError(f"{folder} is not empty and no stand; name another folder")
	running = [daemon.name for daemon in daemons(folder) if daemon.pid]
	if running:
		raise StandError(f"a stand runs in {folder} ({', '.join(running)}); stop it with: test/cluster down {folder}")
	for part in PARTS:
		path = os.path.join(folder, part)
		if os.path.isdir(path):
			shutil.rmtree(path)
		elif os.path.exists(path):
			os.unlink(path)
	os.makedirs(os.path.join(folder, "run"))
	os.makedirs(os.path.join(folder, "log"))
	with open(os.path.join(folder, MARK), "w", encoding="utf-8"):
		pass
	# jobs of other users read slurm.conf and write their output
	os.chmod(folder, 0o755)


def machines(folder):
	return [Machine(folder, name) for name in sorted(os.listdir(os.path.join(folder, "nodes")))] \
		if os.path.isdir(os.path.join(folder, "nodes")) else []


def boot(folder, name, setup=""):
	"""A machine without anything in it yet."""
	os.makedirs(os.path.join(folder, "nodes", name), exist_ok=True)
	return Machine(folder, name).boot(setup)


def real_node(folder, name, cpus, memory, pods=110):
	kubernetes = Kubernetes(folder)
	machine = boot(folder, name, Slurm(folder).munge_setup() + kubernetes.node_setup(name, cpus, memory))
	kubernetes.node(machine, pods)
	return machine


def server_of(folder):
	"""Its API server: Kubernetes or Kubesim."""
	return Kubesim(folder) if os.path.isdir(os.path.join(folder, "kubesim")) else Kubernetes(folder)


def apiserver_name(folder):
	return server_of(folder).SERVER


def up(options):
	"""Starts what test/cluster's options say. What was started stays for a look if something fails."""
	folder = options.folder
	slurm, release = Slurm(folder), slurm_version()
	if options.agent and options.api == "sim":
		raise StandError("--agent needs real kubelets: use --api real")
	if options.cgroups and options.api == "sim":
		raise StandError("--cgroups needs a real Kubernetes, which removes them with its own: use --api real")
	if options.slurm and not release.startswith(options.slurm):
		raise StandError(f"Slurm {release} is installed, not {options.slurm}")
	prepare_folder(folder)
	real = [f"n{i}" for i in range(1, options.kubelets + 1)]
	fake = [f"f{i}" for i in range(1, options.fake_nodes + 1)]
	if options.api == "sim":
		server = Kubesim(folder)
		server.start(boot(folder, "kubesim-pods"), options.build, reserve.ports(folder, 1)[0], real, len(fake), options)
	else:
		server = Kubernetes(folder)
		server.start()
	slurm.munge()
	accounting = Accounting(slurm, reserve.ports(folder, 1)[0]) if options.accounting else None
	if accounting:
		accounting.start_database()
	slurm.configure(real + fake, options, settings(accounting.port, options.enforce, slurm.munge_socket) if accounting else None)
	if accounting:
		accounting.start()
	server.finish()
	if options.api == "real":
		server.fake_nodes(fake, options.cpus, options.memory)
		for name in real:
			real_node(folder, name, options.cpus, options.memory, options.max_pods)
	text = None
	if options.config:
		with open(options.config, encoding="utf-8") as file:
			text = file.read()
	slurm.mapping(server.slurm, text)
	slurm.controller(dict(pair.split("=", 1) for pair in options.slurmctld_env), shlex.split(options.slurmctld_under))
	for name in real if options.agent else []:
		slurm.agent(name, *server.agent(name))
	for name in real + fake[:MOST_SLURMDS]:
		slurm.slurmd(Machine(folder, name) if Machine(folder, name).pid else boot(folder, name, slurm.munge_setup()),
			f"{server.cgroup}/slurm-{name}" if options.cgroups else None)
	slurm.wait_nodes(real + fake[:MOST_SLURMDS])
	write_env(folder, slurm, server, options, real, fake)


def write_env(folder, slurm, server, options, real, fake):
	names = {
		"STAND": folder, "STAND_API": options.api, "KUBECONFIG": server.admin, "SLURM_CONF": slurm.conf,
		"SLURM_K8S_CONF": slurm.k8s_conf, "STAND_SLURM_KUBECONFIG": server.slurm,
		"PATH": ":".join(filter(None, [debian.settle(folder), search_path()])),
		"STAND_LOGS": f"{folder}/log", "STAND_SLURMCTLD_LOG": f"{folder}/log/slurmctld.log",
		**({"STAND_BACKUP_LOG": f"{folder}/log/{BACKUP}.log"} if options.backup else {}),
		"STAND_AUDIT_LOG": server.audit, "STAND_KUBELETS": " ".join(real), "STAND_FAKE_NODES": " ".join(fake),
		# one per kubelet: what its containers did, from containerd
		"STAND_RUNTIME_LOGS": " ".join(server.runtime_logs(real)),
	}
	with open(os.path.join(folder, "env"), "w", encoding="utf-8") as file:
		file.writelines(f"export {name}='{value}'\n" for name, value in names.items())


def read_env(folder):
	"""DIR/env as a dict."""
	with open(os.path.join(folder, "env"), encoding="utf-8") as file:
		pairs = (line.removeprefix("export ").rstrip("\n").split("=", 1) for line in file)
		return {name: value.strip("'") for name, value in pairs}


def start_again(folder, daemon):
	"""Starts a daemon as it was started; returns when it is ready."""
	daemon.start_again()
	if daemon.name in (PRIMARY, BACKUP):
		Slurm(folder).wait_controller(daemon.name)
	elif daemon.name in ("kube-apiserver", "etcd", "kubesim"):
		server_of(folder).wait_ready()


def down(folder):
	"""Ends the stand in folder. 0 if nothing of it is left, else 1 and a list on stderr."""
	if not os.path.exists(os.path.join(folder, MARK)):
		if os.path.isdir(folder):
			raise StandError(f"{folder} holds no stand")
		return 0
	server = server_of(folder)
	# Servers first: what they would do about dying nodes is of no interest.
	for name in (BACKUP, PRIMARY, "slurmdbd", "mariadb"):
		_end(folder, name)
	for machine in machines(folder):
		machine.halt()
		machine.forget()
	for daemon in reversed(daemons(folder)):
		if daemon.name not in (server.SERVER, "etcd"):
			daemon.stop()
			daemon.forget()
	server.down()
	for machine in os.listdir(os.path.join(folder, "nodes")) if os.path.isdir(os.path.join(folder, "nodes")) else []:
		shutil.rmtree(os.path.join(folder, "nodes", machine), ignore_errors=True)
	try:
		wait_for("the end of all processes", lambda: not processes_of(folder), 10)
	except StandError:
		pass
	reserve.release(folder)
	left = leftovers(folder)
	for line in left:
		say(f"left: {line}")
	return 1 if left else 0


def _end(folder, name):
	daemon = Daemon(folder, name)
	if daemon.pid and daemon.stop(seconds=30):
		say(f"{name} had to be killed; the end of its log may say why: {daemon.log}")
	daemon.forget()


def leftovers(folder):
	"""What of a stopped stand is still there, one line each."""
	left = [f"process {pid} {command}" for pid, command in processes_of(folder)]
	with open("/proc/mounts", encoding="utf-8") as file:
		left += [f"mount {line.split(' ')[1]}" for line in file if line.split(" ")[1].startswith(folder + "/")]
	return left + server_of(folder).left()
