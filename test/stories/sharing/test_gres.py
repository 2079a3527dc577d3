# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GPUs of pods: asked for in Slurm, given to nobody else until the pod is gone, and those of foreign pods neither."""
import re

import pytest
from command import status, tool
from conftest import lent, with_conf
from mixed import mixing, wait_no_reservation, wait_reservation
from replays import once_only
from stands.gres import devices
from stands.waiting import wait_for

STUBBORN = "trap '' TERM; while :; do sleep 1; done"
POLITE = "trap 'exit 0' TERM; sleep 600 & wait"
GPU, TOKEN = "nvidia.com/gpu", "example.com/token"


def with_gpus(*what):
	"""Each node has four GPUs, which Slurm knows as devices and Kubernetes by a number, and five tokens."""
	for stand in lent(*what, "--gres", "gpu@0-7:4,token:5"):
		for name in ("n1", "n2"):
			has = {GPU: "4", TOKEN: "5"}
			stand.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": has, "allocatable": has}})
		yield stand


@pytest.fixture(name="gpus")
def gpus_fixture(request, session_stands, api):
	yield from with_gpus(request, session_stands, api)


@pytest.fixture(name="mixed_gpus")
def mixed_gpus_fixture(request, session_stands, api):
	for stand in with_gpus(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s")):
		yield from mixing(stand)


def asks(number, resource=GPU):
	return {resource: str(number)}


def pod(stand, name, number, command=POLITE, resource=GPU, **more):
	return stand.pod(name, command, node="n1", limits=asks(number, resource), requests=asks(number, resource), **more)


def foreign(stand, name, number, command=POLITE, **more):
	return stand.pod(name, command, schedulerName="default-scheduler", nodeName="n1", limits=asks(number),
		requests=asks(number), **more)


def of_job(job):
	return devices(job.stand.scontrol("-d", "show", "job", str(job.id)))


def of_pod(found):
	return devices(found.get()["metadata"]["annotations"]["slurm-k8s.io/gres-devices"])


def used(stand):
	return re.search(r"GresUsed=(\S+)", stand.scontrol("-d", "show", "node", "n1"))[1]


def batch(stand, number, *options):
	return stand.batch(1, options=(f"--gres=gpu:{number}", *options))


def test_two_gpus_of_a_foreign_pod_leave_two_for_jobs_until_it_has_ended(gpus):
	theirs = foreign(gpus, "monitor", 2)
	theirs.wait_running()
	wait_for("the mask", lambda: "gpu:2" in status(gpus, "--node", "n1")["masks"][0]["gres"], 30)
	assert "gpu:2" in tool(gpus, "status", "--node", "n1")
	wait_for("two GPUs to be shown as used", lambda: devices(used(gpus)) == {2, 3}, 30)
	two = batch(gpus, 2)
	two.wait("RUNNING")
	assert of_job(two) == {0, 1}
	two.cancel()
	three = batch(gpus, 3)
	gpus.scheduled()
	assert three.state == "PENDING"
	theirs.delete()
	three.wait("RUNNING")
	assert three.wait_started() > theirs.runs()[0].stop


def test_pod_has_gpus_that_no_job_has_and_keeps_them_while_it_is_leaving(gpus):
	job = batch(gpus, 1)
	job.wait("RUNNING")
	mine = pod(gpus, "mine", 2, STUBBORN, grace=6)
	mine.wait_running()
	held = of_pod(mine)
	assert len(held) == 2 and not held & of_job(job)
	assert devices(used(gpus)) == held | of_job(job)
	wide = batch(gpus, 2)  # one is free
	gpus.run("scancel", str(mine.job_id))
	small = batch(gpus, 1)
	small.wait("RUNNING")
	assert not of_job(small) & (held | of_job(job))
	assert mine.get() and wide.state == "PENDING"
	assert devices(used(gpus)) == {0, 1, 2, 3}
	wide.wait("RUNNING")
	assert wide.wait_started() > mine.runs()[0].stop
	assert of_job(wide) == held


def test_what_leaving_and_foreign_pods_hold_of_gpus_survives_a_restart_of_slurmctld(gpus):
	mine = pod(gpus, "mine", 1, STUBBORN, grace=15)
	mine.wait_running()
	held = of_pod(mine)
	foreign(gpus, "theirs", 1).wait_running()
	wait_for("the mask", lambda: len(devices(used(gpus))) == 2, 30)
	gpus.run("scancel", str(mine.job_id))
	wait_for("the pod to be leaving", lambda: "masked" in str(status(gpus, "--node", "n1")["clusters"][0]["pods"]), 30)
	with gpus.paused("apiserver"):
		gpus.cluster("restart", "slurmctld")
		job = batch(gpus, 2)
		job.wait("RUNNING")
		assert not of_job(job) & held and len(of_job(job)) == 2
		third = batch(gpus, 1)
		gpus.scheduled()
		assert third.state == "PENDING"
	mine.wait_gone()
	third.wait("RUNNING")


def test_what_is_only_counted_is_charged_too(gpus):
	mine = pod(gpus, "mine", 3, resource=TOKEN)
	mine.wait_running()
	assert mine.get()["metadata"]["annotations"]["slurm-k8s.io/gres-devices"] == "token:3"
	three = gpus.batch(1, options=("--gres=token:3",))
	two = gpus.batch(1, options=("--gres=token:2",))
	two.wait("RUNNING")
	gpus.scheduled()
	assert three.state == "PENDING"
	mine.delete()
	two.cancel()
	three.wait("RUNNING")


def test_pod_that_asks_for_a_resource_without_a_mapping_is_refused(gpus):
	strange = pod(gpus, "strange", 1, resource="example.com/fpga")
	strange.wait("a refusal", lambda: "example.com/fpga: resources other than" in strange.condition().get("message", ""))


@once_only
def test_gpus_of_a_job_are_requested_by_its_pod_and_counted_once(mixed_gpus):
	job = batch(mixed_gpus, 2, "--gres=gpu:2,token:1")
	job.wait_started()
	asked = wait_reservation(mixed_gpus, job.id)["spec"]["containers"][0]["resources"]
	assert (asked["requests"][GPU], asked["limits"][GPU], asked["requests"][TOKEN]) == ("2", "2", "1")
	assert len(devices(used(mixed_gpus))) == 2
	late = foreign(mixed_gpus, "late", 3)  # its kubelet knows of the two
	late.wait_phase("Failed")
	assert late.get()["status"]["reason"] == "OutOf" + GPU
	small = foreign(mixed_gpus, "small", 2)
	small.wait_running()
	wait_for("all to be used", lambda: len(devices(used(mixed_gpus))) == 4, 30)
	another = batch(mixed_gpus, 1)
	mixed_gpus.scheduled()
	assert another.state == "PENDING" and job.state == "RUNNING"
	job.cancel()
	wait_no_reservation(mixed_gpus, job.id)
	another.wait_started()
