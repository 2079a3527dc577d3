# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Daemons of a stand: started detached, found again by a record in DIR/run.

A record is JSON: argv, env, log, inside, pid, and the pid's start time, so that a pid
which the kernel gave to somebody else is never touched.
"""
import ctypes
import json
import os
import signal
import subprocess

from .waiting import StandError, wait_for

LIBC = ctypes.CDLL(None, use_errno=True)
# In the environment of each daemon, and so of all that it starts: the stand's folder.
MEMBER = "SK8_STAND_MEMBER"
CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000


def heed_interrupt():
	"""For preexec_fn: shells have what they run in the background ignore SIGINT, and its children inherit that."""
	signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_time(pid):
	"""Clock ticks since boot at which pid started, None if it is gone or a zombie.

	A killed process can be a zombie while its other threads still hold its sockets.
	"""
	try:
		with open(f"/proc/{pid}/stat", "rb") as file:
			fields = file.read().rsplit(b")", 1)[1].split()
	except OSError:
		return None
	return None if fields[0] in (b"Z", b"X") and _threads(pid) <= 1 else int(fields[19])


def _threads(pid):
	try:
		return len(os.listdir(f"/proc/{pid}/task"))
	except OSError:
		return 0


def descendants(pid):
	"""All processes below pid, by host pid."""
	children = {}
	for name in os.listdir("/proc"):
		if name.isdigit():
			try:
				with open(f"/proc/{name}/stat", "rb") as file:
					parent = int(file.read().rsplit(b")", 1)[1].split()[1])
			except OSError:
				continue
			children.setdefault(parent, []).append(int(name))
	found, queue = [], [pid]
	while queue:
		for child in children.get(queue.pop(), []):
			found.append(child)
			queue.append(child)
	return found


def host_pid(init, number):
	"""The host's pid of the process that has the pid `number` in the machine of `init`."""
	for pid in descendants(init):
		try:
			with open(f"/proc/{pid}/status", encoding="utf-8") as file:
				inside = next(line for line in file if line.startswith("NSpid:")).split()[-1]
		except (OSError, StopIteration):
			continue
		if int(inside) == number:
			return pid
	raise StandError(f"process {number} of the machine has ended; see the stand's log folder")


def tail(path, lines=12):
	try:
		with open(path, "rb") as file:
			file.seek(0, os.SEEK_END)
			file.seek(max(0, file.tell() - 16384))
			text = file.read().decode(errors="replace")
	except OSError:
		return ""
	return "".join(f"    {line}\n" for line in text.splitlines()[-lines:])


def _enter(pid):
	"""Makes this process a member of pid's mounts; its next child lives in pid's pid namespace."""
	for name, flag in (("pid", CLONE_NEWPID), ("mnt", CLONE_NEWNS)):
		fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
		if LIBC.setns(fd, flag) != 0:
			raise OSError(ctypes.get_errno(), f"setns {name}")
		os.close(fd)


def _spawn(argv, env, log, inside):
	"""Starts argv as a session of its own, in the machine whose init is `inside` (or None). Its host pid.

	A middle process forks it and ends, so that nobody here has to reap it: the
	machine's init does, or the host's.
	"""
	reader, writer = os.pipe()
	middle = os.fork()
	if middle == 0:
		try:
			os.close(reader)
			out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
			null = os.open("/dev/null", os.O_RDONLY)
			if inside:
				_enter(inside)
			pid = os.fork()
			if pid:
				os.write(writer, str(pid).encode())
				os._exit(0)
			os.setsid()
			os.chdir("/")
			os.dup2(null, 0)
			os.dup2(out, 1)
			os.dup2(out, 2)
			os.closerange(3, 256)
			signal.signal(signal.SIGPIPE, signal.SIG_DFL)
			os.execvpe(argv[0], argv, env)
		except BaseException as error:  # pylint: disable=broad-except
			os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
		os._exit(127)
	os.close(writer)
	os.waitpid(middle, 0)
	with os.fdopen(reader, "rb") as file:
		text = file.read()
	if not text:
		raise StandError(f"cannot start {argv[0]}, see {log}")
	return int(text)


class Daemon:
	"""One daemon. folder: the stand's folder with run/ and log/."""

	def __init__(self, folder, name):
		self.folder, self.name = folder, name
		self.file = os.path.join(folder, "run", name + ".json")
		self.log = os.path.join(folder, "log", name + ".log")
		self.record = None
		try:
			with open(self.file, encoding="utf-8") as file:
				self.record = json.load(file)
			self.log = self.record.get("log", self.log)
		except (OSError, ValueError):
			pass

	@property
	def pid(self):
		"""Its host pid while it runs, else None."""
		record = self.record or {}
		if record.get("started") and start_time(record["pid"]) == record["started"]:
			return record["pid"]
		return None

	def start(self, argv, env=None, inside=None):
		"""env: added to ours. inside: the Machine it lives in, or None."""
		self._must_not_run()
		os.makedirs(os.path.dirname(self.file), exist_ok=True)
		os.makedirs(os.path.dirname(self.log), exist_ok=True)
		self.record = {"argv": argv, "env": env or {}, "log": self.log, "inside": inside.name if inside else None}
		self._start(inside)
		return self

	def _must_not_run(self):
		if self.pid:
			raise StandError(f"{self.name} runs already, as process {self.pid}")

	def _start(self, inside):
		self._must_not_run()
		env = {**os.environ, **self.record["env"], MEMBER: os.path.abspath(self.folder)}
		pid = _spawn(self.record["argv"], env, self.log, inside.pid if inside else None)
		self.record.update(pid=pid, started=start_time(pid))
		self._save()

	def _save(self):
		with open(self.file + ".new", "w", encoding="utf-8") as file:
			json.dump(self.record, file)
		os.rename(self.file + ".new", self.file)

	def adopt(self, pid, inside):
		"""Takes charge of a process that something else started in the machine `inside`."""
		def words(file):
			with open(f"/proc/{pid}/{file}", "rb") as stream:
				return stream.read().decode().rstrip("\0").split("\0")
		env = dict(pair.split("=", 1) for pair in words("environ") if "=" in pair)
		self.record = {"argv": words("cmdline"), "env": env, "inside": inside.name, "pid": pid,
			"started": start_time(pid)}
		self._save()

	def start_again(self):
		if not self.record:
			raise StandError(f"{self.name} was never started in {self.folder}")
		inside = self.record["inside"]
		self._start(Machine(self.folder, inside) if inside else None)

	def send(self, number):
		if self.pid:
			os.kill(self.pid, number)

	def stop(self, number=signal.SIGTERM, seconds=20):
		"""Stops it and waits for its end; after `seconds` by SIGKILL. True if that was needed."""
		pid, killed = self.pid, False
		if pid:
			os.kill(pid, number)
			try:
				wait_for(f"the end of {self.name}", lambda: not self.pid, seconds)
			except StandError:
				killed = True
				self.send(signal.SIGKILL)
				wait_for(f"the end of {self.name} after SIGKILL", lambda: not self.pid, 20)
		return killed

	def stacks(self):
		"""Where the threads of a daemon are that has crash_trace.c: its words. Threads that block signals, as our own, say nothing."""
		before, begin = 0, os.path.getsize(self.log)

		def said():
			with open(self.log, "rb") as file:
				file.seek(begin)
				return file.read().decode(errors="replace")

		def words():
			return said().count("stack of thread")
		for thread in sorted(os.listdir(f"/proc/{self.pid}/task"), key=int):
			try:
				with open(f"/proc/{self.pid}/task/{thread}/status", encoding="utf-8") as file:
					blocked = int(next(line for line in file if line.startswith("SigBlk:")).split()[1], 16)
			except (FileNotFoundError, ProcessLookupError):
				continue  # it has ended meanwhile
			if blocked >> (signal.SIGRTMAX - 1) & 1 or LIBC.tgkill(self.pid, int(thread), int(signal.SIGRTMAX)):
				continue
			path = f"/proc/{self.pid}/task/{thread}"
			wait_for(f"thread {thread} of {self.name}", lambda path=path: words() > before or not os.path.exists(path), 10)
			before = words()
		return said()

	def forget(self):
		try:
			os.unlink(self.file)
		except FileNotFoundError:
			pass
		self.record = None

	def check(self):
		"""For conditions that are waited for: raises if the daemon has ended."""
		if not self.pid:
			raise StandError(f"{self.name} ended at once; the end of {self.log}:\n{tail(self.log)}")
		return True

	def hint(self):
		return f"the end of {self.log}:\n{tail(self.log)}"


class Machine(Daemon):
	"""A node: processes and mounts of its own (pid and mount namespaces).

	Its init is the first process in it. When that ends the kernel kills all
	others, and mounts that were made inside go with the last of them: nothing of a
	node can be left behind, whatever ran there.
	"""

	# SIGCHLD ignored: the kernel reaps whoever becomes an orphan.
	SCRIPT = 'trap "" CHLD; {setup} exec sleep infinity'

	def boot(self, setup="", env=None):
		"""setup: shell commands that prepare mounts inside, before anything runs there."""
		ready = self.file + ".ready"
		if os.path.exists(ready):
			os.unlink(ready)
		script = self.SCRIPT.format(setup=f'set -e; {setup} : > "$SK8_READY"; ')
		self.start(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
			"--propagation", "private", "sh", "-c", script], {**(env or {}), "SK8_READY": ready})
		wait_for(f"machine {self.name}", lambda: os.path.exists(ready) or not self.check(), 20, self.hint)
		os.unlink(ready)
		# From here on the record is that of the init itself, not of unshare, its parent.
		children = descendants(self.record["pid"])
		self.record.update(parent=self.record["pid"], pid=children[0], started=start_time(children[0]))
		self._save()
		return self

	def halt(self):
		"""Kills everything inside and waits until it is gone."""
		self.stop(signal.SIGKILL)
		parent = self.record and self.record.get("parent")
		if parent:
			wait_for(f"the end of machine {self.name}", lambda: start_time(parent) is None, 20)


def daemons(folder):
	"""All records of a stand, oldest first."""
	run = os.path.join(folder, "run")
	try:
		names = [name[:-5] for name in os.listdir(run) if name.endswith(".json")]
	except OSError:
		return []
	found = [Daemon(folder, name) for name in names]
	return sorted((d for d in found if d.record), key=lambda d: (d.record["started"] or 0))


def run(argv, env=None, seconds=60, **more):
	"""Runs a command to its end, returns its standard output; StandError with its words if it fails."""
	try:
		done = subprocess.run(argv, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, text=True,
			capture_output=True, timeout=seconds, check=False, **more)
	except FileNotFoundError:
		raise StandError(f"{argv[0]} is missing; run script/install-deps") from None
	except subprocess.TimeoutExpired:
		raise StandError(f"{' '.join(argv)}: no end within {seconds} s") from None
	if done.returncode:
		raise StandError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip() or done.returncode}")
	return done.stdout


def processes_of(folder):
	"""(pid, command) of every process that a daemon of this stand started, however far down."""
	return processes_with(f"{MEMBER}={os.path.abspath(folder)}")


def processes_with(*variables):
	"""(pid, command) of every process that has all of these, as NAME=value, in its environment."""
	wanted, found = {variable.encode() for variable in variables}, []
	for name in os.listdir("/proc"):
		if name.isdigit():
			try:
				with open(f"/proc/{name}/environ", "rb") as file:
					environ = file.read().split(b"\0")
				with open(f"/proc/{name}/cmdline", "rb") as file:
					command = file.read().replace(b"\0", b" ").decode(errors="replace")
			except OSError:
				continue
			if wanted.issubset(environ) and start_time(name) is not None:
				found.append((int(name), command[:100]))
	return found
