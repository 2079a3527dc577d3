# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Device claims in the template of a job: they get just the devices that Slurm gave the job, before the kubelet has its pod."""
import contextlib
import os
import re

import pytest
from claims import PREPARED, containers_see_devices, with_drivers
from conftest import lent, with_conf
from mixed import NAMESPACE, PODS, allow_containers, mixing, restore, share, wait_no_reservation, wait_reservation
from outage import saved
from stands.gres import devices
from stands.replays import once_only
from stands.waiting import wait_for
from test_container import Batch, told
from test_template import OPTIONS, USER, job_container, mounts, side, srun, write

pytestmark = pytest.mark.apis("real")

DEVICES = 4
TELLS = "env | grep TEST_DEVICE_ > /shared/part; mv /shared/part /shared/devices; sleep 600"


@pytest.fixture(name="claiming")
def claiming_fixture(request, session_stands):
	"""(stand, its drivers, claim()): the nodes are dedicated."""
	for stand in lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", "2",
			"--gres", f"gpu@0-1:{DEVICES}", *with_conf("PrEpPlugins=prep/script,prep/k8s")):
		for found in with_drivers(stand):
			for _ in mixing(stand, sharing="dedicated", pausePath=os.path.join(stand.folder, "inst", "pause"),
					templates={"allow": True, "resourceClaims": ["team-*"]}):
				allow_containers(stand)
				yield found
				stand.run("scancel", "--quiet", "-u", USER, check=False)


def claiming_template(folder, **claim):
	"""The container of tasks and one beside it have the claim; that tells the tasks what it sees of it, in /shared/devices."""
	gpus = [{"name": "gpus"}]
	beside = side(TELLS, volumeMounts=mounts("shared"))
	return write(folder, resourceClaims=[{"name": "gpus", **claim}], volumes=[{"name": "shared", "emptyDir": {}}],
		containers=[job_container(volumeMounts=mounts("shared"), resources={"claims": gpus}),
			{**beside, "resources": {**beside["resources"], "claims": gpus}}])


def in_slurm(stand, job_id):
	return devices(stand.scontrol("-d", "show", "job", str(job_id)))


def record_of(driver, node, what, name):
	return {device for did, device, claim in driver.record(node) if (did, claim) == (what, name)}


def unbound(stand):
	"""The pods of jobs that have no node yet."""
	return [pod for pod in stand.api.get(PODS)["items"] if not pod["spec"].get("nodeName")]


def make_claims(stand, claim, count):
	"""As kube-controller-manager does for pods without a node: [Claim]."""
	made = []
	for pod in unbound(stand):
		name = pod["metadata"]["name"]
		made.append(claim(name, count, namespace=NAMESPACE, owner=pod))
		stand.api.patch(f"{PODS}/{name}/status", {"status": {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": name}]}})
	return made


def start(stand, folder, *options):
	"""A job of an ordinary user that says "ready" and then what it sees of its devices, and goes on until there is folder/go."""
	return Batch(stand, folder, "echo ready", "srun sh -c 'until test -e /shared/devices; do sleep 0.1; done; cat /shared/devices'", "echo seen",
		f"while ! test -e {folder / 'go'}; do sleep 0.2; done", options=(*OPTIONS, *options), user=USER)


@contextlib.contextmanager
def batch_job(stand, folder, *options):
	"""The same, until this is over."""
	batch = start(stand, folder, *options)
	yield batch
	(folder / "go").touch()
	batch.wait_end()
	wait_no_reservation(stand, batch.job)


@once_only
def test_containers_of_a_job_have_just_the_devices_that_slurm_gave_it_until_its_end(claiming, tmp_path):
	stand, driver, claim = claiming
	ours = stand.batch(1, options=("--gres=gpu:1", "-w", "n1"))
	ours.wait_started()
	two = claim("team-two", 2, namespace=NAMESPACE)
	with batch_job(stand, tmp_path, "-n1", "-w", "n1", "--gres=gpu:2", claiming_template(tmp_path, resourceClaimName="team-two")) as batch:
		batch.wait_line("seen", PREPARED)
		has, pod = in_slurm(stand, batch.job), wait_reservation(stand, batch.job)
		assert len(has) == 2 and not has & in_slurm(stand, ours.id)
		assert two.devices() == has and {node for node, _ in two.results()} == {"n1"}
		assert two.get()["status"]["reservedFor"] == [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}]
		assert record_of(driver, "n1", "prepared", "team-two") == has
		seen = {int(n) for n in re.findall(r"TEST_DEVICE_(\d+)=", "\n".join(batch.says()))}
		assert seen == (has if containers_see_devices() else set()), seen
	assert record_of(driver, "n1", "unprepared", "team-two") == has
	ours.cancel()
	all_of_them = stand.batch(1, options=(f"--gres=gpu:{DEVICES}", "-w", "n1"))
	all_of_them.wait("RUNNING")
	assert in_slurm(stand, all_of_them.id) == set(range(DEVICES))


def test_each_node_of_a_job_has_a_claim_of_the_template_also_when_slurmctld_was_killed_meanwhile(claiming, tmp_path):
	stand, driver, claim = claiming
	template = claiming_template(tmp_path, resourceClaimTemplateName="team-one")
	with batch_job(stand, tmp_path, "-N2", "-n2", "--gres=gpu:1", template) as batch:
		wait_for("its pods", lambda: len(unbound(stand)) == 2, 60)
		pods = {pod["metadata"]["uid"] for pod in unbound(stand)}
		saved(stand)  # else Slurm knows of no such job
		stand.restart_slurmctld(kill=True)
		made = make_claims(stand, claim, 1)
		batch.wait_line("seen", PREPARED)
		assert "step creation temporarily disabled" not in batch.err.read_text()  # its nodes had registered before its launch
		assert {wait_reservation(stand, batch.job, node)["metadata"]["uid"] for node in ("n1", "n2")} == pods
		assert sorted(node for one in made for node, _ in one.results()) == ["n1", "n2"]
		for one in made:
			(node, device), = one.results()
			assert record_of(driver, node, "prepared", one.name) == {device} == in_slurm(stand, batch.job)


def test_claim_for_another_number_than_the_job_has_cancels_it_with_one_sentence(claiming, tmp_path):
	stand, _, claim = claiming
	claim("team-two", 2, namespace=NAMESPACE)
	for number, name, says in ((1, "team-two", "its resource claims want 2 of Slurm's gpu, and the job has 1 on node n1: ask for as many by --gres"),
			(1, "alien", f"ResourceClaim alien is not allowed for user {USER}"),
			(1, "team-none", f"resource claim team-none does not exist in namespace {NAMESPACE}")):
		done = srun(stand, "-n1", "-w", "n1", f"--gres=gpu:{number}", claiming_template(tmp_path, resourceClaimName=name), "true")
		job = stand.jobs()[-1]
		assert done.returncode and job["JobState"] == "CANCELLED" and told(done, f"--k8s-template: {says}", job), (done, job)
		wait_for("no pod", lambda: not stand.api.get(PODS)["items"], 30)


@once_only
def test_second_job_with_the_same_claim_waits_with_a_sentence_until_the_first_one_is_over(claiming, tmp_path):
	stand, driver, claim = claiming
	one = claim("team-one", 1, namespace=NAMESPACE)
	template = claiming_template(tmp_path, resourceClaimName="team-one")
	options, says = ("-n1", "-w", "n1", "--gres=gpu:1", template), "resource claim team-one is in use by another pod"
	folder = tmp_path / "second"
	folder.mkdir()
	with batch_job(stand, tmp_path, *options) as first:
		first.wait_line("seen", PREPARED)
		had = in_slurm(stand, first.job)
		before = share(stand, gateTimeout="10s")  # who gets the claim may need longer on a busy machine
		done = srun(stand, *options[:-1], template, "true")
		assert done.returncode and told(done, says, stand.jobs()[-1]), (done, stand.jobs()[-1])
		second = start(stand, folder, *options)
		job = wait_for("its word, and the job in the queue", lambda: is_told(stand.job(second.job), says), 60, lambda: str(stand.job(second.job)))
		assert job["SystemComment"].startswith("slurm-k8s: the job was not started: "), job
		assert one.devices() == had and not second.says()
		wait_for("the job to be held", lambda: is_held(stand, second.job), 60)  # else it may be in the gate, where it has the ten seconds
		restore(stand, before)
	one.free()
	stand.scontrol("release", str(second.job))
	second.wait_line("seen", PREPARED)
	assert one.devices() == in_slurm(stand, second.job)
	assert [what for what, _, name in driver.record("n1") if name == "team-one"] == ["prepared", "unprepared", "prepared"]
	(folder / "go").touch()
	second.wait_end()


def is_held(stand, job):
	stand.run("scontrol", "hold", str(job), check=False)  # in vain while it is in the gate
	return stand.job(job)["JobState"] == "PENDING" and stand.job(job)["Priority"] == "0"


def is_told(job, says):
	return job if job["JobState"] == "PENDING" and says in job.get("SystemComment", "") else None


def test_job_that_is_cancelled_while_its_claim_is_not_made_leaves_nothing(claiming, tmp_path):
	stand, _, _ = claiming
	template = claiming_template(tmp_path, resourceClaimTemplateName="team-one")
	batch = start(stand, tmp_path, "-n1", "--gres=gpu:1", template)
	wait_for("its pod", lambda: len(unbound(stand)) == 1, 60)
	assert stand.job(batch.job)["JobState"] == "CONFIGURING"
	stand.run("scancel", str(batch.job))
	wait_for("no pod", lambda: not stand.api.get(PODS)["items"], 30)
