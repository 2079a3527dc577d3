# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""srun --x11: programs find the display of who runs srun, in containers as without. Slurm's forwarding, X11's own library as the
client, kubelet, containerd and slurmd are real; the server is a few lines that know the cookie."""
import contextlib
import io
import os
import pwd
import secrets
import socketserver
import struct
import subprocess
import tarfile
import threading

import pytest
from conftest import with_conf
from stands.process import Machine
from test_commands import run_with_a_tmp
from test_container import OPTIONS, containing
from test_template import job_container, side, write

pytestmark = pytest.mark.apis("real")

HERE = os.path.dirname(os.path.abspath(__file__))
USER = "backup"  # whose home every Debian has
PLAIN = ("--mem=100", "-n1", "-D", "/tmp")
KIND = b"MIT-MAGIC-COOKIE-1"
FIRST_PORT = 6000
# Its standard input is the client with all its libraries: an image has none.
CLIENT = """folder=$(mktemp -d /tmp/x11.XXXXXX) && cd $folder && tar -x -f - && ./loader --library-path . ./client; rc=$?
cd /; rm -r $folder
echo "$DISPLAY $XAUTHORITY"; stat -c '%a %u' $XAUTHORITY; exit $rc"""
HANDED = "/.slurm-k8s/Xauthority"


# Slurm does not forward X11 with the way of finding processes that other stands have (read_config.c).
FORWARDS = with_conf("PrologFlags=X11", "ProctrackType=proctrack/pgid")


@pytest.fixture
def forwarding(request, session_stands):
	yield from containing(request, session_stands, *FORWARDS, templates={"allow": True})


@pytest.fixture(name="slurms_tmp")
def slurms_tmp_fixture(request, session_stands):
	yield from containing(request, session_stands, "--private-tmp", *FORWARDS)


def give(path):
	"""To the user."""
	about = pwd.getpwnam(USER)
	os.chown(path, about.pw_uid, about.pw_gid)


class Display(socketserver.ThreadingTCPServer):
	"""An X server as far as its first answer goes (X11 protocol, 8: Connection Setup). heard: who came with which cookie."""
	daemon_threads = True

	def __init__(self, folder):
		super().__init__(("127.0.0.1", 0), Setup)
		self.cookie, self.heard = secrets.token_hex(16), []
		self.name = f"localhost:{self.server_address[1] - FIRST_PORT}"
		self.xauthority = os.path.join(folder, "of-who-runs-srun")
		with open(self.xauthority, "wb"):
			pass
		give(folder)  # xauth locks it by a file beside it
		give(self.xauthority)
		subprocess.run(["runuser", "-u", USER, "--", "xauth", "-q", "-f", self.xauthority, "add", self.name, ".", self.cookie],
			check=True)


class Setup(socketserver.StreamRequestHandler):
	"""One connection."""

	def handle(self):
		order, _, kind_size, cookie_size, _ = struct.unpack("<cx I HH H", self.rfile.read(12))
		assert order == b"l"
		kind, cookie = (self.rfile.read((size + 3) // 4 * 4)[:size] for size in (kind_size, cookie_size))
		self.server.heard.append((kind, cookie.hex()))
		if self.server.heard[-1] == (KIND, self.server.cookie):
			body = struct.pack("<4I HH 8B 4x", 1, 0x200000, 0x1fffff, 0, 0, 65535, 0, 0, 0, 0, 32, 32, 8, 255)
			self.wfile.write(struct.pack("<Bx 3H", 1, 11, 0, len(body) // 4) + body)
			self.rfile.read(1)  # until it goes
		else:
			self.wfile.write(struct.pack("<BB 3H", 0, 8, 11, 0, 2) + b"no entry")


@pytest.fixture
def display(tmp_path):
	folder = tmp_path / "display"
	folder.mkdir()
	for above in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
		above.chmod(0o755)
	with Display(folder) as server:
		threading.Thread(target=server.serve_forever, daemon=True).start()
		yield server
		server.shutdown()


def libraries(program):
	"""{name: path}; "loader": what runs it."""
	told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
	words = [line.split() for line in told.splitlines()]
	return {**{line[0]: line[2] for line in words if "=>" in line},
		"loader": next(line[0] for line in words if line[0].startswith("/"))}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
	"""The bytes of a tar archive."""
	program = str(tmp_path_factory.mktemp("client") / "client")
	subprocess.run(["cc", "-O1", "-o", program, f"{HERE}/x11_client.c", libraries("/usr/bin/xauth")["libxcb.so.1"]], check=True)
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w", dereference=True) as tar:
		for name, path in {**libraries(program), "client": program}.items():
			tar.add(path, name)
	return out.getvalue()


def run(stand, display, *words, sent=b"", **env):
	"""srun of the user that has this display. env: more of his."""
	env = {"DISPLAY": display.name, "XAUTHORITY": display.xauthority, **env}
	done = subprocess.run(["runuser", "-u", USER, "--", "env", *(f"{name}={value}" for name, value in env.items()), "srun", *words],
		env={**os.environ, **stand.env}, input=sent, capture_output=True, check=False, timeout=90)
	return done.stdout.decode().splitlines(), (done.returncode, done.stderr.decode())


def forwarded(said):
	"""What a task has said that found the display, if that is one of Slurm's: the number, and its file."""
	where, _, file = said[1].partition(" ")
	host, _, number = where.removesuffix(".0").partition(":")
	assert said[0] == "connected" and host == "localhost" and 20 <= int(number) <= 99, said  # setup_x11_forward()
	assert said[2:] == [f"600 {pwd.getpwnam(USER).pw_uid}"], said
	return file


def test_program_without_a_container_finds_the_display_as_slurm_forwards_it(forwarding, display, client):
	said, told = run(forwarding, display, "--x11", *PLAIN, "sh", "-c", CLIENT, sent=client)
	assert told[0] == 0, (said, told)
	assert forwarded(said).startswith("/tmp/.Xauthority-") and display.heard == [(KIND, display.cookie)], (said, told)


@pytest.mark.each_release
def test_each_program_in_a_container_finds_the_display_and_the_cookie_that_is_its_users_alone(forwarding, display, client):
	said, told = run(forwarding, display, "--x11", *OPTIONS, "-n2", "--label", "sh", "-c", CLIENT, sent=client)
	assert told[0] == 0, (said, told)
	for task in "01":
		assert forwarded([line.removeprefix(f"{task}: ") for line in said if line.startswith(f"{task}: ")]) == HANDED
	assert display.heard == [(KIND, display.cookie)] * 2, display.heard


def test_program_in_another_container_of_the_jobs_pod_finds_the_display(forwarding, display, client, tmp_path):
	template = write(tmp_path, containers=[job_container(), side()])
	words = ("--x11", "--mem=200", *PLAIN[1:], template, "--k8s-container=side", "sh", "-c", CLIENT)
	said, told = run(forwarding, display, *words, sent=client)
	assert told[0] == 0 and forwarded(said) == HANDED and display.heard == [(KIND, display.cookie)], (said, told)


def test_program_in_the_network_of_its_pod_does_not_reach_the_display(forwarding, display, client):
	said, told = run(forwarding, display, "--x11", *OPTIONS, "--k8s-network", "sh", "-c", CLIENT, sent=client)
	assert said[0] == "refused" and told[0] == 1 and not display.heard, (said, told)


@contextlib.contextmanager
def home_xauthority(stand, folder):
	"""X11Parameters=home_xauthority on the node, where the user's home is this folder."""
	about, conf = pwd.getpwnam(USER), stand.env["SLURM_CONF"]
	give(folder)
	inside = ["nsenter", "-m", "-t", str(Machine(stand.folder, "n1").pid)]
	with open(conf, encoding="utf-8") as file:
		before = file.read()

	def start(text):
		with open(conf, "w", encoding="utf-8") as file:
			file.write(text)
		stand.cluster("restart", "slurmd-n1")
	subprocess.run([*inside, "mount", "--bind", folder, about.pw_dir], check=True)
	try:
		start(before + "X11Parameters=home_xauthority\n")
		yield about.pw_dir
	finally:
		start(before)
		subprocess.run([*inside, "umount", about.pw_dir], check=True)


def test_cookie_in_the_home_is_found_there_if_that_is_in_the_container_and_else_as_any_other(forwarding, display, client, tmp_path):
	with home_xauthority(forwarding, tmp_path) as home:
		for words, file in (("--k8s-mount-home",), f"{home}/.Xauthority"), ((), HANDED):
			said, told = run(forwarding, display, "--x11", *OPTIONS, *words, "sh", "-c", CLIENT, sent=client, HOME=home)
			assert told[0] == 0 and forwarded(said) == file, (said, told)
	assert display.heard == [(KIND, display.cookie)] * 2, display.heard


@pytest.mark.parametrize("where", [(), OPTIONS[-1:]])
def test_cookie_in_a_tmp_that_slurm_gave_the_job_is_found(slurms_tmp, display, client, where):
	words = ("--x11", *PLAIN, "-D", "/", *where, "sh", "-c", CLIENT)
	said, told = run_with_a_tmp(slurms_tmp, lambda: run(slurms_tmp, display, *words, sent=client))
	assert told[0] == 0 and (forwarded(said) == HANDED) == bool(where), (said, told)
	assert (KIND, display.cookie) in display.heard, display.heard


def test_what_its_user_may_not_read_or_is_no_file_of_cookies_stays_on_the_node(forwarding, display, tmp_path):
	closed, huge = tmp_path / "closed", tmp_path / "huge"
	for file, size, mode in ((closed, 9, 0o600), (huge, 65537, 0o644)):
		file.write_bytes(b"x" * size)
		file.chmod(mode)
	look = ("sh", "-c", f"test ! -e {HANDED} && echo $XAUTHORITY")
	for file, why in ((closed, "Permission denied"), (huge, "File too large"), (tmp_path, "Invalid argument")):
		said, told = run(forwarding, display, *OPTIONS, *look, DISPLAY="localhost:1", XAUTHORITY=file)
		assert said == [str(file)] and told[1].count(f"slurm-k8s: X11: {file}: {why}") == 1, (said, told)


def test_cookies_of_no_forwarded_display_stay_on_the_node(forwarding, display):
	for where in (":0", "unix:0", "elsewhere:1"):
		said, told = run(forwarding, display, *OPTIONS, "sh", "-c", f"test -e {HANDED} || echo $XAUTHORITY", DISPLAY=where)
		assert said == [display.xauthority] and "X11" not in told[1], (said, told)
