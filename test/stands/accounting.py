# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A throw-away MariaDB and slurmdbd, with accounts, users and QOS in it."""
import os
import shutil

from .process import Daemon, run
from .slurm import USERS, search_path, stock_plugins
from .waiting import StandError, wait_for


def settings(port, enforce, munge_socket):
	"""What slurm.conf has more with accounting."""
	return {
		# what AuthInfo is for slurmctld
		"AccountingStoragePass": f"socket={munge_socket}",
		"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": "127.0.0.1",
		"AccountingStoragePort": port, "AccountingStorageEnforce": enforce, "AccountingStoreFlags": "job_comment",
		"PriorityType": "priority/multifactor", "PriorityWeightFairshare": 100000, "PriorityWeightQOS": 10000,
		"PriorityWeightPartition": 1000, "PriorityWeightAge": 1000, "PriorityCalcPeriod": 1,
	}


class Accounting:
	def __init__(self, slurm, port):
		self.slurm, self.port = slurm, port
		self.home = os.path.join(slurm.folder, "accounting")
		self.socket = os.path.join(self.home, "mysql.sock")

	def start_database(self):
		"""Only over a socket in a folder that is root's: so without password."""
		os.makedirs(self.home, mode=0o700)
		daemon = shutil.which("mariadbd", path=search_path())
		if not daemon:
			raise StandError("mariadbd is missing; run script/install-deps accounting")
		# Its temporary tables are named by its pid, which another stand's MariaDB has as well in a pid namespace of its own.
		tmp = os.path.join(self.home, "tmp")
		os.mkdir(tmp, mode=0o700)
		run(["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={self.home}/data", "--skip-test-db",
			"--auth-root-authentication-method=normal", "--skip-name-resolve"], {"PATH": search_path(), "TMPDIR": tmp})
		# slurmdbd would make it, but with libmariadb 11.8.9 (Debian 13) a connection that was refused for lack of it
		# takes no column of any result from then on, and slurmdbd ends.
		begin = os.path.join(self.home, "begin.sql")
		with open(begin, "w", encoding="utf-8") as file:
			file.write("CREATE DATABASE IF NOT EXISTS slurm_accounting;\n")
		Daemon(self.slurm.folder, "mariadb").start([daemon, "--no-defaults", "--user=root", f"--datadir={self.home}/data",
			f"--socket={self.socket}", f"--tmpdir={tmp}", "--skip-networking", "--skip-log-bin", f"--pid-file={self.home}/mariadb.pid",
			f"--init-file={begin}", "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0"])

	def start(self):
		"""After start_database() and the writing of slurm.conf, before slurmctld."""
		database = Daemon(self.slurm.folder, "mariadb")
		wait_for("MariaDB", lambda: database.check() and os.path.exists(self.socket), 60, database.hint)
		conf = os.path.join(self.slurm.etc, "slurmdbd.conf")
		with open(os.open(conf, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
			file.write(f"""AuthType=auth/munge
AuthInfo=socket={self.slurm.munge_socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={self.port}
SlurmUser=root
LogFile={self.slurm.folder}/log/slurmdbd.log
PidFile={self.home}/slurmdbd.pid
PluginDir={stock_plugins()}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=slurm_accounting
StorageUser=root
""")
		# the client library's name for "which socket", as slurmdbd.conf has none
		env = {**self.slurm.env, "MYSQL_UNIX_PORT": self.socket}
		daemon = self.slurm.daemon("slurmdbd").start(["slurmdbd", "-D"], env)

		def answers():
			daemon.check()
			try:
				self.manage("show", "cluster", "-n")
			except StandError as error:
				raise OSError(str(error)) from error
			return True
		wait_for("slurmdbd", answers, 60, daemon.hint)
		self.manage("add", "cluster", "stand")
		self.manage("add", "qos", "high", "priority=100")
		self.manage("add", "account", ",".join(sorted(set(USERS.values()))), "cluster=stand", "fairshare=1")
		for user, account in USERS.items():
			self.manage("add", "user", user, f"account={account}", f"defaultaccount={account}", "fairshare=1",
				"qos=normal,high")
		self.manage("modify", "user", "root", "set", "adminlevel=admin")
		self.manage("add", "user", "root", "account=general", "defaultaccount=general", "qos=normal,high")

	def manage(self, *words):
		return self.slurm.command("sacctmgr", "-i", *words)
