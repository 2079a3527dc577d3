# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A job in the gate gets the devices that a kubelet has given its pod, instead of those that Slurm chose."""
import re

import pytest
from conftest import Cluster
from stands.gres import indices
from stands.replays import once_only
from stands.waiting import wait_for
from test_gate import CONF, kept
from test_gres import end, of_job, used

# with a topology, without one, with types
GRES = {"alone": "gpu:4", "at cores": "gpu@0-7:4,shard:16", "typed": "gpu:a100:2,gpu:h100:2"}


@pytest.fixture(scope="module", name="gpus_of_module", params=list(GRES))
def gpus_of_module_fixture(request):
	cluster = Cluster(nodes=["n1"], conf=CONF, gres=GRES[request.param])
	yield cluster
	cluster.down()


def all_given_back(cluster):
	assert not re.search(r"gpu[^,]*:[1-9]\d*\(", used(cluster)), used(cluster)
	log = cluster.log()
	assert "underflow" not in log and "overallocated" not in log and "not allocated" not in log


@pytest.fixture(name="gpus")
def gpus_fixture(gpus_of_module):
	gpus_of_module.tell("gate", "keeps")
	yield gpus_of_module
	gpus_of_module.tell("gate", "opens")
	gpus_of_module.clean()
	all_given_back(gpus_of_module)


def gives(cluster, job, devices, **more):
	"""Empty, or why not."""
	words = cluster.tell("devices", job, "n1", "gpu", devices, *(f"{key}={value}" for key, value in more.items()))
	return "" if "rc=0 " in words else words.partition("text=")[2]


def asks(number):
	return ("-n1", "--mem=10", f"--gres=gpu:{number}")


@once_only
@pytest.mark.parametrize("gpus_of_module", ["at cores"], indirect=True)
def test_device_of_which_another_job_has_a_part_is_given_to_nobody(gpus):
	gpus.tell("gate", "opens")
	others = gpus.batch(*asks(3))
	gpus.becomes(others, "RUNNING")
	part = gpus.batch("-n1", "--mem=10", "--gres=shard:1")  # of 3
	gpus.becomes(part, "RUNNING")
	end(gpus, others)
	gpus.tell("gate", "keeps")
	job = kept(gpus, *asks(1))
	assert of_job(gpus, job) == {0}
	assert "part" in gives(gpus, job, "3")
	assert of_job(gpus, job) == {0}
	assert not gives(gpus, job, "1")


@once_only
def test_job_runs_on_the_devices_that_it_was_given_and_others_get_the_rest(gpus, tmp_path):
	told = tmp_path / "told"
	before = gpus.events().count("gate")
	job = int(gpus.run("sbatch", "--parsable", "-D", "/", "-o", str(told), *asks(2), "--wrap", "echo $SLURM_JOB_GPUS; sleep 600"))
	wait_for("the job in the gate", lambda: gpus.events().count("gate") > before, 30)
	assert of_job(gpus, job) == {0, 1}
	if "a100" in used(gpus):  # a job of two has both of the first type
		assert "type" in gives(gpus, job, "2,3")
		gpus.run("scancel", str(job))
		job = kept(gpus, "-n1", "--mem=10", "--gres=gpu:a100:1,gpu:h100:1")
		assert of_job(gpus, job) == {0, 2}
		assert not gives(gpus, job, "1,3")
		assert of_job(gpus, job) == {1, 3}
		gpus.tell("answer", job, "open")
	else:
		assert not gives(gpus, job, "3,1")
		gpus.tell("answer", job, "open")
		wait_for("the job's word", lambda: told.exists() and told.read_text().endswith("\n"), 30)
		assert indices(told.read_text().strip()) == {1, 3}
	assert of_job(gpus, job) == {1, 3}
	gpus.tell("gate", "opens")
	other = gpus.batch(*asks(2))
	gpus.becomes(other, "RUNNING")
	assert of_job(gpus, other) == {0, 2}
	third = gpus.batch(*asks(1))
	gpus.scheduled()
	assert gpus.show(third)["JobState"] == "PENDING"
	end(gpus, job)
	gpus.becomes(third, "RUNNING")
	assert of_job(gpus, third) < {1, 3}


@once_only
def test_nothing_changes_when_it_cannot_have_them(gpus):
	gpus.tell("gate", "opens")
	first = gpus.batch(*asks(1))
	gpus.becomes(first, "RUNNING")
	assert of_job(gpus, first) == {0}
	gpus.tell("gate", "keeps")
	job = kept(gpus, *asks(1))
	assert of_job(gpus, job) == {1}
	assert "another job has one" in gives(gpus, job, "0")
	assert "no such device" in gives(gpus, job, "4")
	assert "not so many" in gives(gpus, job, "1,2")
	assert "no such devices" in gives(gpus, job, "1", submit_time=7)
	assert "no such devices" in gives(gpus, 999999, "1")
	assert of_job(gpus, job) == {1}
	gpus.tell("answer", job, "open")
	wait_for("its run", lambda: gpus.run("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "RUNNING", 30)
	assert "not in the gate" in gives(gpus, job, "2")
	assert "not in the gate" in gives(gpus, first, "2")
	assert of_job(gpus, job) == {1}


def test_what_is_shown_of_pods_is_no_jobs(gpus):
	job = kept(gpus, *asks(1))
	gpus.tell("mask", "n1", "gres=gpu::1@1")
	assert "gpu" in used(gpus)
	assert not gives(gpus, job, "1")  # whether a pod has it is for the engine to say
	assert of_job(gpus, job) == {1}
	gpus.tell("unmask")
	gpus.tell("answer", job, "refuse")
	gpus.tell("gate", "opens")
