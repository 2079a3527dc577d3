# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GPUs with a device plugin and a real kubelet, which chooses: no device is with two, as their users see it from inside."""
import os
import random
import re
import signal

import pytest
from command import findings, status, tool
from device_plugin import A100, DEVICES, FPGA, NVIDIA, OF_EACH, with_known_gpus, with_plugins
from had import batch, beside, by_job, by_pod, is_with_one
from mixed import reservations, wait_reservation
from outage import saved
from stands.gres import devices
from stands.replays import once_only
from stands.waiting import wait_for
from world import POLITE, seconds_of

pytestmark = pytest.mark.apis("real")

NODES = ("n1", "n2")


@pytest.fixture(name="plugged")
def plugged_fixture(request, session_stands):
	yield from with_plugins(request, session_stands, "n1")


@pytest.fixture(name="two_nodes")
def two_nodes_fixture(request, session_stands):
	for stand, _ in with_plugins(request, session_stands, *NODES):
		yield stand


@pytest.fixture(name="known_gpus")
def known_gpus_fixture(request, session_stands):
	yield from with_known_gpus(request, session_stands)


def pod(stand, name, number, command, resource=A100, **more):
	"""Its log says which devices it has."""
	return stand.pod(name, f"env | grep -o '^TEST_DEVICE_[0-9]*'; {command}", limits={resource: str(number)},
		requests={resource: str(number)}, **more)


def foreign(stand, name, number, command=POLITE, resource=A100, node="n1"):
	return pod(stand, name, number, command, resource, cpu="0", schedulerName="default-scheduler", nodeName=node)


def said(found):
	return found.stand.api.call("GET", found.path + "/log", raw=True)


def inside(found):
	return {int(n) for n in re.findall(r"TEST_DEVICE_(\d+)", said(found))}


def in_slurm(stand, job_id):
	return devices(stand.scontrol("-d", "show", "job", str(job_id)))


WORD = "exec 3<>$SLURM_K8S_DEVICES && env"


class Steps:
	"""A job of n1 whose script makes steps one after the other, each when it is asked for. They do not inherit what the script, which
	is a task as well, has been told of devices when it began."""

	def __init__(self, stand, *options):
		stand.count += 1
		self.stand, self.made, self.file = stand, 0, os.path.join(stand.jobs_folder, f"{stand.count}.steps")
		os.mkfifo(self.file)
		self.fifo = open(os.open(self.file, os.O_RDWR), "w", buffering=1, encoding="utf-8")  # there, and not empty, before its script is
		forget = r"for known in $(env | sed -n 's/^\(TEST_DEVICE_[0-9]*\|SLURM_K8S_DEVICES\)=.*/\1/p'); do unset $known; done"
		step = f"srun -n1 sh -c '{WORD}' < /dev/null > $out.new 2>&1; mv $out.new $out"
		self.job = int(stand.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-N", "1", "-n", "1", "--mem", "100", "-w", "n1", *options, "--wrap",
			f"{forget}; exec 3<>{self.file}; while read -r out <&3 && [ $out != end ]; do {step}; done"))

	def devices(self):
		"""(names of the plugin's variables, nodes) of another step of it."""
		self.made += 1
		out = f"{self.file}.{self.made}"
		print(out, file=self.fifo)
		wait_for(f"step {self.made} of job {self.job}", lambda: os.path.exists(out), 60, lambda: self.stand.scontrol("show", "job", str(self.job)))
		with open(out, encoding="utf-8") as file:
			text = file.read()
		assert "SLURM_K8S_DEVICES=" in text, text
		return set(re.findall(r"^TEST_DEVICE_\d+", text, re.MULTILINE)), re.search("^SLURM_K8S_DEVICES=(.*)$", text, re.MULTILINE)[1]

	def wait_possible(self):
		"""Slurm makes none before the slurmd of its node has registered again, and srun then waits for two minutes, until another step ends."""
		probe = ("timeout", "5", "srun", f"--jobid={self.job}", "--overlap", "--gres=none", "-n1", "true")
		wait_for("Slurm to make steps", lambda: not self.stand.run(*probe, check=False).returncode, 60)

	def end(self):
		print("end", file=self.fifo)
		wait_for("its end", lambda: self.stand.job(self.job)["JobState"] == "COMPLETED", 60)
		self.fifo.close()


@once_only
def test_pods_and_jobs_have_in_slurm_what_the_device_plugin_gave_them(plugged):
	stand, _ = plugged
	mine = pod(stand, "mine", 1, POLITE)
	mine.wait_running()
	wait_for("its device", lambda: in_slurm(stand, mine.job_id) == inside(mine) == {3}, 60, mine.about)
	theirs = foreign(stand, "theirs", 1)
	theirs.wait_running()
	assert inside(theirs) == {2}
	wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"]] == ["gpu:a100:1(2)"], 60)
	job = stand.batch(1, options=("--gres=gpu:a100:1",))
	job.wait_started()
	has = in_slurm(stand, job.id)
	assert has == {1}  # its pod has it; Slurm had chosen 0
	for again in (stand.reconfigure, lambda: stand.restart_slurmctld(kill=False)):
		again()
		wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"]] == ["gpu:a100:1(2)"], 60)
		assert in_slurm(stand, mine.job_id) == {3} and in_slurm(stand, job.id) == has
		job.cancel()
		job = stand.batch(1, options=("--gres=gpu:a100:1",))
		job.wait_started()
		assert in_slurm(stand, job.id) in ({0}, {1})  # the kubelet may not have had 1 back yet
		has = in_slurm(stand, job.id)


@once_only
def test_steps_get_what_the_plugin_answers_for_a_device_that_only_kubernetes_knows_and_no_pods_one(plugged):
	stand, _ = plugged
	theirs = foreign(stand, "theirs", OF_EACH - 1, resource=FPGA)
	theirs.wait_running()
	wait_for("the mask", lambda: [m["gres"].split("(")[0] for m in status(stand, "--node", "n1")["masks"]] == [f"k8s:fpga:{OF_EACH - 1}"], 60,
		lambda: str(status(stand, "--node", "n1")["masks"]))
	two = stand.batch(1, options=("--gres=k8s:fpga:2",))
	stand.scheduled()
	assert two.state == "PENDING"
	two.cancel()
	last, = set(range(2 * OF_EACH, 3 * OF_EACH)) - inside(theirs)
	env = stand.run("srun", "-w", "n1", "-n1", "--mem=100", "--gres=k8s:fpga:1", "sh", "-c", WORD, seconds=120).splitlines()
	assert {line.partition("=")[0] for line in env if line.startswith("TEST_DEVICE_")} == {f"TEST_DEVICE_{last}"}
	assert "SLURM_K8S_DEVICES=/dev/null" in env  # the plugin's node of the host


@once_only
def test_steps_of_a_job_have_its_devices_whatever_becomes_of_slurmctld_between_them(plugged):
	stand, _ = plugged
	steps = Steps(stand, "--gres=k8s:fpga:2")
	has = steps.devices()
	assert len(has[0]) == 2 and has[1] == "/dev/null", has
	its = reservations(stand)[steps.job, "n1"]["metadata"]["uid"]
	saved(stand, node="n1")  # a crash would lose a younger job
	for again in (stand.reconfigure, stand.restart_slurmctld, lambda: stand.restart_slurmctld(kill=False)):
		again()
		steps.wait_possible()
		assert steps.devices() == has
		assert reservations(stand)[steps.job, "n1"]["metadata"]["uid"] == its
		three = stand.batch(1, seconds=0, options=("--gres=k8s:fpga:3",))
		stand.scheduled()
		assert three.state == "PENDING"  # they are still counted, too
		three.cancel()
	steps.end()


def test_device_that_is_not_well_is_no_jobs_and_a_plugin_that_dies_takes_none_from_whoever_has_one(plugged):
	stand, plugin = plugged
	plugin.not_well(1)
	wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"]] == ["gpu:a100:1(1)"], 60)
	job = stand.batch(1, options=("--gres=gpu:a100:3",))
	job.wait_started()
	assert in_slurm(stand, job.id) == {0, 2, 3}
	plugin.daemon.stop(signal.SIGKILL)
	plugin.wait_devices(0)
	told = "its kubelet has less than Slurm, devices are gone or not well, and no job gets so many: gpu:a100:4"
	wait_for("word of it", lambda: told in tool(stand, "status", "--node", "n1"), 60, lambda: tool(stand, "status", "--node", "n1"))
	assert [line for line in findings(stand)["warning"] if "a100" in line] == [f"devices of stand: Kubernetes has 0 of gpu:a100 ({A100}) on n1 and "
		"Slurm 4: the others are kept from jobs until the kubelet has them again; look at the device plugin and the devices there, and take "
		"what is gone for good from slurm.conf and gres.conf, then restart slurmctld, and slurmd after it"]
	stand.batch(1, seconds=0).wait("COMPLETED")
	assert job.state == "RUNNING"
	more = stand.batch(1, options=("--gres=gpu:a100:1",))
	job.cancel()
	wait_for("its end", lambda: job.state not in ("RUNNING", "COMPLETING"), 60)
	stand.scheduled()
	assert more.state == "PENDING"
	plugin.not_well()
	more.wait_started()
	assert in_slurm(stand, more.id) == {3}
	assert not [line for line in findings(stand)["warning"] if "a100" in line]


def test_job_waits_while_nobody_can_say_which_devices_its_pod_has(plugged):
	"""One was not well before the agent came, so that it does not know all: of the others nobody knows the numbers."""
	stand, plugin = plugged

	def told(what):
		return f'"{A100}":{what}' in stand.node("n1")["metadata"].get("annotations", {}).get(DEVICES, "")
	plugin.not_well(1)
	wait_for("the agent to know it", lambda: told("[1]"), 60)
	stand.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: None}}})
	wait_for("an agent that does not know all", lambda: told("[]"), 60)
	job = stand.batch(1, options=("--gres=gpu:a100:1",))
	wait_reservation(stand, job.id)
	stand.batch(1, seconds=0).wait("COMPLETED")  # one that needs none
	assert job.state == "CONFIGURING" and job.stamps() == (None, None)
	plugin.not_well()
	job.wait_started()
	assert in_slurm(stand, job.id) == {3}


@once_only
def test_no_pod_gets_a_gpu_of_a_job_though_no_settings_name_them(known_gpus):
	stand = known_gpus
	job = stand.batch(1, options=("--gres=gpu:2",))
	job.wait_started()
	its = in_slurm(stand, job.id)
	assert its == {2, 3}  # the plugin's last ones, which its pod has; Slurm had chosen 0 and 1
	theirs = foreign(stand, "theirs", 2, resource=NVIDIA)
	theirs.wait_running()
	assert inside(theirs) == {0, 1}
	late = foreign(stand, "late", 1, resource=NVIDIA)
	late.wait_phase("Failed")
	assert late.get()["status"]["reason"] == "UnexpectedAdmissionError"
	assert in_slurm(stand, job.id) == its and job.state == "RUNNING"
	assert not [line for line in findings(stand)["warning"] if NVIDIA in line]


def is_foreign(found):
	return found.seen["spec"]["schedulerName"] != "slurm"


KINDS = {pod: "mine", foreign: "theirs"}


def until_a_job_has_ended(stand, ends):
	"""What pods of both kinds have on each node, all the time until then."""
	first = [make(stand, f"{kind}-first-{node}", 1, POLITE, node=node) for make, kind in KINDS.items() for node in NODES]
	for found in first:
		found.wait_running()
	has = [inside(found) for found in first]
	yield
	wait_for("a job's end", ends, 120, lambda: stand.run("squeue"))
	for found in first:
		found.delete()
	for found in first:
		found.wait_gone()
	yield [one for found, devices_of_it in zip(first, has) for one in by_pod(found, found.seen["spec"]["nodeName"], devices_of_it)]


@once_only
def test_no_device_of_two_nodes_is_with_two_whoever_comes_and_goes(two_nodes):
	stand = two_nodes
	seed = int(os.environ.get("SK8_SEED", random.randrange(1 << 32)))
	print(f"SK8_SEED={seed}")
	chance = random.Random(seed)
	pods, jobs = [], []
	first = until_a_job_has_ended(stand, lambda: stand.job(jobs[0][0])["JobState"] == "COMPLETED")
	next(first)
	for i in range(36):
		number, seconds, kind = chance.choice((1, 1, 2, 3)) if i else 1, chance.random() * 3, chance.choice(("a100", "h100"))
		if i % 3 == 0:
			jobs.append((*batch(stand, f"{kind}:{number}", seconds), number, kind))
			continue
		where = {} if i % 3 == 1 else {"node": chance.choice(NODES)}
		make = foreign if where else pod
		pods.append((make(stand, f"{KINDS[make]}{i}", number, f"sleep {seconds:.1f}", resource=f"example.com/{kind}", **where), number, kind))
	had = next(first)
	last_came = max(seconds_of(found.seen["metadata"]["creationTimestamp"]) for found, *_ in pods if is_foreign(found))
	of_kind = {"a100": set(range(OF_EACH)), "h100": set(range(OF_EACH, 2 * OF_EACH))}
	wait_for("the end of all", lambda: all(p.phase in ("Succeeded", "Failed") for p, *_ in pods) and
		all(stand.job(job)["JobState"] == "COMPLETED" for job, *_ in jobs), 240, lambda: stand.run("squeue"))
	bound = stand.bound_at()
	for found, number, kind in pods:
		if found.phase == "Failed":  # there were none, or a foreign one that the kubelet saw before Slurm gave it the node
			assert found.get()["status"]["reason"] == "UnexpectedAdmissionError", found.about()
			assert is_foreign(found) or bound[found.uid] < last_came + 5, found.about()
			continue
		has = inside(found)
		assert len(has) == number and has <= of_kind[kind], said(found)
		had += by_pod(found, found.node, has)
	for job, file, number, kind in jobs:
		its = by_job(job, file)
		assert len(its) == number and {one.device for one in its} <= of_kind[kind], its
		had += its
	is_with_one(had)
	assert {(one.node, re.match("[a-z]+", one.who)[0]) for one in had} == {(node, who) for node in NODES for who in ("job", *KINDS.values())}
	assert all(beside(had, kind) for kind in KINDS.values())
