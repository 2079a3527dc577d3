# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories about script/demo: what a newcomer's first command shows, and that nothing of it is left."""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEMO = os.path.join(TOP, "script", "demo")
sys.path.insert(0, os.path.join(TOP, "test"))
from stands.process import heed_interrupt  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the demo needs root")

# In this order; what differs from run to run is left out.
STORY = [
	r"^  n1 8 idle$",
	r"^  \$ sbatch --job-name=train",
	r"^  Submitted batch job 1$",
	r"^    schedulerName: slurm$",
	r"^  pod/hello created$",
	r"^ +2 +batch +hello +daemon PD .*\((Resources|Priority|None)\)$",
	r"^  hello +0/1 +Pending ",
	r"SlurmQueued .* queued as Slurm job 2$",
	r"Slurm job 2 is pending in partition batch",
	r"^ +2 +batch +hello +daemon +R .* n1$",
	r"^  hello +1/1 +Running .* n1 ",
	r"^  \$ kubectl logs hello$",
	r"^  hello$",
	r"Scheduled .* Successfully assigned default/hello to n1 by Slurm job 2$",
	r"JobState=FAILED",
	r"ExitCode=7:0",
	r"^  pod/server created$",
	r"^ +3 +batch +server +daemon +R .* n1$",
	r"^  \$ scancel 3$",
	r"SlurmJobEnded +pod/server +Slurm job 3 ended: CANCELLED by root \(uid 0\); the pod is deleted$",
	r"JobState=CANCELLED",
]


@pytest.fixture(autouse=True)
def own_tmp(monkeypatch):
	"""Demos of other runs make their folders elsewhere. Names of sockets are in it: it must be short."""
	with tempfile.TemporaryDirectory(prefix="sk8-", dir="/tmp") as folder:
		os.chmod(folder, 0o755)  # jobs' users
		monkeypatch.setenv("TMPDIR", folder)
		yield


def start(*options):
	"""script/demo in a process group of its own; standard output is a pipe."""
	return subprocess.Popen([DEMO, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, bufsize=1,
		start_new_session=True, preexec_fn=heed_interrupt)


def processes_of(folder):
	found = []
	for path in glob.glob("/proc/[0-9]*/environ"):
		try:
			with open(path, "rb") as file:
				if b"SK8_STAND_MEMBER=" + folder.encode() + b"\0" in file.read() + b"\0":
					found.append(path)
		except OSError:
			pass
	return found


def stands_left():
	return set(glob.glob(os.path.join(os.environ["TMPDIR"], "slurm-k8s.*")))


def check_story(text):
	lines = iter(text.splitlines())
	for pattern in STORY:
		assert any(re.search(pattern, line) for line in lines), f"not told, or not in this order: {pattern}\n{text}"


@pytest.mark.parametrize("options", [[], ["--real"]], ids=["kubesim", "real"])
def test_newcomer_sees_the_pod_wait_start_and_end_in_slurm_and_nothing_is_left(options):
	demo = start(*options)
	text = demo.communicate(timeout=900)[0]
	assert demo.returncode == 0, text
	check_story(text)
	assert stands_left() == set()


def test_ctrl_c_in_the_middle_stops_everything():
	demo = start()
	told = []
	for line in demo.stdout:
		told.append(line)
		if "pod/hello created" in line:
			break
	assert demo.poll() is None, "".join(told)
	stands = stands_left()
	running = [folder for folder in stands if processes_of(folder)]
	assert running
	os.killpg(demo.pid, signal.SIGINT)
	demo.communicate(timeout=120)
	assert demo.returncode == 130
	assert stands_left() == set()
	assert [p for folder in stands for p in processes_of(folder)] == []


def test_keep_leaves_a_stand_that_works_and_can_be_stopped_as_told():
	demo = start("--keep")
	text = demo.communicate(timeout=900)[0]
	env = re.search(r"^  \. (\S+)/env$", text, re.M)
	stop = re.search(r"^  (\S+/test/cluster down \S+ && rm -rf \S+)$", text, re.M)
	assert stop, text
	try:
		assert demo.returncode == 0, text
		words = f". {env.group(1)}/env && squeue -h && kubectl get pod hello -o name"
		done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False, timeout=60)
		assert done.stdout.strip() == "pod/hello", done.stderr
	finally:
		subprocess.run(stop.group(1), shell=True, check=True, timeout=120)
	assert not os.path.exists(env.group(1))
	assert processes_of(env.group(1)) == []


def test_without_root_it_says_so_in_one_sentence():
	done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", DEMO], capture_output=True, text=True,
		check=False, timeout=60)
	if done.returncode == 126 or "Permission denied" in done.stderr:
		pytest.skip("another user cannot read this folder")
	assert done.returncode == 1
	assert re.fullmatch(r"script/demo: error: .* root.*run: sudo script/demo\n", done.stderr)
