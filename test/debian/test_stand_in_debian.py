# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories of test/cluster up --slurm: a stand with another Slurm than the machine's.

Run: /usr/bin/python3 -m pytest test/debian   (root; builds for Slurm 24.11 first, if need be)
"""
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test"))
from stands import stand  # noqa: E402
from stands.waiting import wait_for  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a stand needs root")


def cluster(*words, code=0):
	done = subprocess.run([os.path.join(TOP, "test", "cluster"), *words], stdin=subprocess.DEVNULL, capture_output=True,
		text=True, check=False, timeout=900)
	assert done.returncode == code, done.stderr + done.stdout
	return done


@pytest.fixture
def folder():
	# neither below /tmp nor in the repository: places that every Debian shares with the machine
	made = tempfile.mkdtemp(prefix="sk8-", dir="/var/tmp")
	yield made
	if os.path.exists(os.path.join(made, ".stand")):
		cluster("down", made)
		assert not stand.leftovers(made)
	shutil.rmtree(made)


@pytest.fixture(scope="module")
def built():
	"""For Slurm 24.11. If another run is at it this waits."""
	done = subprocess.run([os.path.join(TOP, "script", "test"), "--slurm", "24.11", "--setup-only"], stdin=subprocess.DEVNULL,
		stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
	assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.usefixtures("built")
def test_a_stand_with_slurm_24_11_is_used_from_the_machine_as_any_other(folder):
	cluster("up", "--slurm", "24.11", "--api", "sim", folder)
	env = {**os.environ, **stand.read_env(folder)}

	def said(*argv):
		return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
	assert said("scontrol", "-V").startswith("slurm-wlm 24.11.")
	job = said("sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "--wrap", "sleep 300")
	wait_for("the job", lambda: said("squeue", "-h", "-o", "%i %T") == f"{job} RUNNING", 20)
	cluster("restart", folder, "slurmctld")
	assert said("squeue", "-h", "-o", "%i %T") == f"{job} RUNNING"
	with open(env["STAND_SLURMCTLD_LOG"], encoding="utf-8") as log:
		assert log.read().count("slurmctld version 24.11.") == 2
	said("scancel", job)


def test_a_slurm_that_no_debian_has_is_refused_with_those_that_there_are(folder):
	assert "no Debian with Slurm 19.05 is known; there are: 22.05, 24.11" in cluster("up", "--slurm", "19.05", folder, code=1).stderr
