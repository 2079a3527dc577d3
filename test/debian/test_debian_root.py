# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories of script/debian-root: a Debian of another release, for its Slurm.

Run: /usr/bin/python3 -m pytest test/debian   (root; takes some minutes if build/cache has no Debian 13 yet)
"""
import os
import signal
import subprocess
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test"))
from stands.process import heed_interrupt  # noqa: E402

SCRIPT = os.path.join(TOP, "script", "debian-root")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a chroot needs root")


def root(*words, code=0, **more):
	done = subprocess.run([SCRIPT, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
		timeout=900, **more)
	assert done.returncode == code, done.stderr + done.stdout
	return done


def test_a_command_runs_in_debian_13_with_its_slurm_in_the_directory_where_it_was_given():
	said = root("13", "sh", "-c", "pwd; . /etc/os-release; echo $VERSION_ID; slurmctld -V", cwd=os.path.join(TOP, "test"))
	assert said.stdout.splitlines()[:2] == [os.path.join(TOP, "test"), "13"]
	assert "24.11." in said.stdout


def test_what_a_command_writes_to_the_system_is_forgotten_and_to_a_folder_of_the_machine_is_kept(tmp_path):
	outside = os.path.join(TOP, "build", "kept")  # neither below /tmp nor bound by itself
	try:
		root("13", "--", "true", code=127)  # everything behind RELEASE is the command
		root("13", "sh", "-c", f"echo 1 > /etc/forgotten; echo 2 > {tmp_path}/kept; echo 3 > {outside}")
		assert (tmp_path / "kept").read_text() == "2\n" and os.path.exists(outside)
		root("13", "test", "-e", "/etc/forgotten", code=1)
		assert not os.path.exists(os.path.join(root("13").stdout.strip(), "etc/forgotten"))
	finally:
		os.unlink(outside)


def test_a_command_s_end_is_the_script_s_end_and_no_mount_is_left():
	before = open("/proc/self/mountinfo", encoding="utf-8").read()
	root("13", "sh", "-c", "exit 7", code=7)
	root("13", "sh", "-c", "kill -9 $$", code=-signal.SIGKILL)
	assert open("/proc/self/mountinfo", encoding="utf-8").read() == before


def test_an_interrupted_making_leaves_nothing_that_could_be_taken_for_a_debian(tmp_path):
	env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
	making = subprocess.Popen([SCRIPT, "13"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
		stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_interrupt)
	while "Retrieving" not in (line := making.stderr.readline()):
		assert line, "it ended before it took a package"
	os.killpg(making.pid, signal.SIGINT)
	said = making.communicate(timeout=60)[0]
	assert making.returncode != 0 and not said
	assert [name for name in os.listdir(tmp_path / "slurm-k8s") if name.startswith("debian-13-")] == []
	assert [name for name in os.listdir(tmp_path / "slurm-k8s") if ".tmp." in name] == []


def test_a_release_that_is_not_known_is_refused_with_those_that_are():
	assert "there are: 12 13" in root("7", code=2).stderr
	assert "--help" in root("--nonsense", "13", code=2).stderr
