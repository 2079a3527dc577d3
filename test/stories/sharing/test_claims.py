# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GPUs with a DRA driver: a pod's claim has just those that Slurm chose, and nobody else has them meanwhile."""
import json
import os
import random
import re
import shutil
import tempfile
import time

import pytest
from claims import CLASS, DEVICES, PREPARED, containers_see_devices, uses, with_drivers
from command import TOOL, findings, status, tool
from conftest import lent
from had import batch as gpu_job
from had import beside, by_job, by_pod, is_with_one
from mixed import restore, set_resources
from outage import saved
from stands.gres import devices
from stands.process import Daemon
from stands.replays import once_only
from stands.waiting import wait_for
from world import POLITE, fields



@pytest.fixture(name="drivers")
def drivers_fixture(request, session_stands, api):
	for stand in lent(request, session_stands, api, "--gres", f"gpu@0-7:{DEVICES}"):
		yield from with_drivers(stand)


def in_slurm(stand, job_id):
	return devices(stand.scontrol("-d", "show", "job", str(job_id)))


def batch(stand, number, *options):
	return stand.batch(1, options=(f"--gres=gpu:{number}", *options))


def inside(pod):
	"""The devices that its container sees."""
	return {int(n) for n in re.findall(r"TEST_DEVICE_(\d+)=", pod.stand.api.call("GET", pod.path + "/log", raw=True))}


@once_only
@pytest.mark.each_release
def test_claim_has_just_the_devices_that_slurm_chose_and_its_container_too(drivers):
	stand, driver, claim = drivers
	ours = batch(stand, 1, "-w", "n1")
	ours.wait_started()
	taken = in_slurm(stand, ours.id)
	two = claim("two", 2)
	pod = stand.pod("claims-two", f"env | grep TEST_DEVICE_; {POLITE}", node="n1", **uses(two))
	pod.wait_running(PREPARED)
	has = in_slurm(stand, pod.job_id)
	assert len(has) == 2 and not has & taken
	assert two.devices() == has and {node for node, _ in two.results()} == {"n1"}
	assert two.get()["status"]["reservedFor"] == [{"resource": "pods", "name": pod.name, "uid": pod.uid}]
	assert two.get()["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
	assert devices(pod.get()["metadata"]["annotations"]["slurm-k8s.io/gres-devices"]) == has
	if stand.kind == "real":
		assert {device for what, device, name in driver.record("n1") if (what, name) == ("prepared", "two")} == has
		if containers_see_devices():
			assert inside(pod) == has
	pod.delete()
	pod.wait_gone()
	if stand.kind == "real":
		assert {device for what, device, name in driver.record("n1") if (what, name) == ("unprepared", "two")} == has
	ours.cancel()
	four = batch(stand, DEVICES, "-w", "n1")
	four.wait("RUNNING")
	assert in_slurm(stand, four.id) == set(range(DEVICES))


@once_only
def test_requests_and_claims_of_one_pod_have_together_just_the_devices_of_its_job(drivers):
	stand, driver, claim = drivers
	ours = batch(stand, 1, "-w", "n1")
	ours.wait_started()
	both, single = claim("both", 1, more=(1,)), claim("single")
	pod = stand.pod("claims-both", f"env | grep TEST_DEVICE_; {POLITE}", node="n1", **uses(both, single))
	pod.wait_running(PREPARED)
	has = in_slurm(stand, pod.job_id)
	assert len(has) == 3 and not has & in_slurm(stand, ours.id)
	assert [r["request"] for r in both.allocated()] == ["gpus", "more0"]
	assert len(both.devices()) == 2 and both.devices() | single.devices() == has and not both.devices() & single.devices()
	if stand.kind == "real":
		prepared = {(device, name) for what, device, name in driver.record("n1") if what == "prepared"}
		assert prepared >= {(device, "both") for device in both.devices()} | {(device, "single") for device in single.devices()}
		if containers_see_devices():
			assert inside(pod) == has


def test_claims_that_slurm_cannot_honour_are_refused_and_said(drivers):
	stand, _, claim = drivers
	many = stand.pod("many", **uses(claim("many", DEVICES + 1)))
	many.wait_condition("2 too few devices of class gpu.example.com")
	other = stand.pod("other", **uses(claim("h100", selectors=[{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'h100'"}}])))
	other.wait_condition("not all devices of class gpu.example.com there are as its selector wants")
	odd = stand.pod("odd", **uses(claim("odd", selectors=[{"cel": {"expression": "device.attributes['gpu.example.com'].model.matches('a.*')"}}])))
	odd.wait_condition("matches() with so many arguments is not supported")
	missing = stand.pod("missing", resourceClaims=[{"name": "c", "resourceClaimName": "later"}])
	missing.wait_condition("resource claim later does not exist")
	assert not [p for p in (many, other, odd, missing) if p.jobs()]
	claim("later", selectors=[{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'a100'"}}])
	missing.wait_phase("Succeeded", seconds=PREPARED)


@once_only
def test_devices_of_a_foreign_pods_claim_are_given_to_nobody(drivers):
	stand, _, claim = drivers
	theirs = claim("theirs", 2)
	foreign = stand.pod("theirs", POLITE, schedulerName="default-scheduler", **uses(theirs))
	theirs.allocate("n1", (0, 2), foreign)
	foreign.bind("n1")
	foreign.wait_running(PREPARED)
	wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"]] == ["gpu:1(0),gpu:1(2)"], 60)
	two = batch(stand, 2, "-w", "n1")
	two.wait("RUNNING")
	assert in_slurm(stand, two.id) == {1, 3}
	ours = stand.pod("ours", node="n1", **uses(claim("ours")))
	ours.wait_job("PENDING")
	stand.scheduled()
	assert ours.job()["JobState"] == "PENDING"
	foreign.delete()
	ours.wait_condition("is allocated to resource claim default/theirs")
	theirs.free()
	ours.wait_phase("Succeeded", seconds=PREPARED)


@once_only
def test_device_of_a_claim_that_pods_share_is_kept_until_the_last_of_them_has_ended(drivers):
	stand, _, claim = drivers
	one = claim("one")
	command = f"env | grep TEST_DEVICE_; {POLITE}"
	first = stand.pod("first", command, node="n1", **uses(one))
	first.wait_running(PREPARED)
	has = in_slurm(stand, first.job_id)
	second = stand.pod("second", command, **uses(one))
	second.wait_running(PREPARED)
	assert second.node == "n1" and len(has) == 1 and not in_slurm(stand, second.job_id)
	assert one.devices() == has and {c["uid"] for c in one.get()["status"]["reservedFor"]} == {first.uid, second.uid}
	if stand.kind == "real" and containers_see_devices():
		assert inside(second) == has
	first.delete()
	first.wait_gone()
	stand.reconfigure()
	others = batch(stand, DEVICES - 1, "-w", "n1")
	others.wait("RUNNING")
	assert in_slurm(stand, others.id) == set(range(DEVICES)) - has
	waits = batch(stand, 1, "-w", "n1")
	stand.scheduled()
	assert waits.state == "PENDING"
	stand.restart_slurmctld(kill=False)
	second.wait_job("RUNNING")
	stand.scheduled()
	assert waits.state == "PENDING"
	second.delete()
	waits.wait("RUNNING")
	assert in_slurm(stand, waits.id) == has


@once_only
def test_jobs_of_pods_have_the_devices_of_their_claims_again_when_slurmctld_was_killed(drivers):
	stand, _, claim = drivers
	two, one = claim("two", 2), claim("one")
	own = stand.pod("own", POLITE, node="n1", **uses(two))
	first, second = (stand.pod(name, POLITE, node="n1", **uses(one)) for name in ("first", "second"))
	for pod in (own, first, second):
		pod.wait_running(PREPARED)
	stand.restart_slurmctld(kill=True)  # it may have saved their jobs as they were before, or not at all
	own.wait("its devices", lambda: in_slurm(stand, own.job_id) == two.devices())
	for pod in (first, second):
		pod.wait_job("RUNNING")
	last = batch(stand, 1, "-w", "n1")
	last.wait("RUNNING")
	assert in_slurm(stand, last.id) == set(range(DEVICES)) - two.devices() - one.devices()
	waits = batch(stand, 1, "-w", "n1")
	stand.scheduled()
	assert waits.state == "PENDING"
	assert not [row for row in stand.log().splitlines() if "it may be bound already with other devices" in row]


@pytest.mark.apis("sim")
def test_device_that_its_driver_wants_left_alone_or_has_no_more_is_kept_from_jobs(drivers):
	stand, driver, _ = drivers
	driver.publish("n1", missing={3}, tainted={1})
	wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"] if m["node"] == "n1"] == ["gpu:2(1,3)"], 60)
	rows = [line.split() for line in tool(stand, "gres", "--node", "n1", "--format", "devices").splitlines()[1:]]
	assert [(*row[1:6], row[-1]) for row in rows] == [("gpu", str(i), f"gpu-{i}", f"GPU-n1-{i}", f"0000:0{i}:00.0", "tainted" if i == 1 else "ok")
		for i in range(3)]
	two = batch(stand, 2, "-w", "n1")
	two.wait("RUNNING")
	assert in_slurm(stand, two.id) == {0, 2}
	assert "DRAIN" not in stand.run("scontrol", "show", "node", "n1")
	two.cancel()
	saved(stand)
	stand.api.post("/kubesim/faults", {"match": {"resource": "resourceslices"}, "action": "status", "code": 503})
	try:  # nobody knows yet which of them are back
		stand.restart_slurmctld(kill=False)
		two = batch(stand, 2, "-w", "n1")
		two.wait("RUNNING")
		third = batch(stand, 1, "-w", "n1")
		stand.scheduled()
		assert third.state == "PENDING" and in_slurm(stand, two.id) == {0, 2}
	finally:
		stand.api.delete("/kubesim/faults")
	wait_for("what drivers have", lambda: len(tool(stand, "gres", "--node", "n1", "--format", "devices").splitlines()) == DEVICES, 60)
	stand.scheduled()
	assert third.state == "PENDING"
	for job in third, two:
		job.cancel()
	driver.publish("n1")
	wait_for("no mask", lambda: not status(stand, "--node", "n1")["masks"], 60)


@pytest.mark.apis("sim")
def test_of_two_devices_with_one_index_neither_is_given_to_anybody_and_the_others_are(drivers):
	stand, driver, claim = drivers
	before = set_resources(stand, [{"deviceClass": CLASS, "gres": "gpu", "typeAttribute": "model"}])
	try:
		driver.publish("n1", twins={0})
		wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"] if m["node"] == "n1"] == ["gpu:1(0)"], 60,
			lambda: str(status(stand, "--node", "n1")["masks"]))
		rows = [line.split() for line in tool(stand, "gres", "--node", "n1", "--format", "devices").splitlines()[1:] if line.startswith("n1 ")]
		assert {(row[1], row[2]) for row in rows} >= {("gpu:a100", str(i)) for i in range(1, DEVICES)}, rows
		word = "index 0 of gpu"
		assert [line for line in findings(stand)["warning"] if word in line and "gpu-0" in line and "twin-0" in line]
		assert [line for line in stand.log().splitlines() if word in line and "gpu-0" in line and "twin-0" in line]
		three = batch(stand, 3, "-w", "n1")
		three.wait("RUNNING")
		assert in_slurm(stand, three.id) == {1, 2, 3}
		three.cancel()
		ours = stand.pod("beside-twins", node="n1", **uses(claim("beside-twins", 3)))
		ours.wait_phase("Succeeded", seconds=PREPARED)
	finally:
		driver.publish("n1")
		restore(stand, before)


@pytest.fixture(name="files")
def files_fixture():
	"""Devices of this machine, below /dev, by their name with %d."""
	folder = tempfile.mkdtemp(dir="/dev/shm", prefix="slurm-k8s-gpus-")
	for number in range(DEVICES):
		os.symlink("/dev/null", os.path.join(folder, f"card{number}"))
	yield os.path.join(folder, "card%d")
	shutil.rmtree(folder)


def tell_numa(stand, node, cores):
	"""As the node's agent does; None: it tells nothing."""
	said = json.dumps({"cores": {"0": list(range(cores))}}) if cores else None
	stand.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"slurm-k8s.io/numa": said}}})


def told(stand):
	return fields(stand.run("scontrol", "-o", "show", "node", "n1"))


def cores_shown(stand):
	"""Of all devices of n1."""
	head, *rows = (line.split() for line in tool(stand, "gres", "--node", "n1", "--format", "devices").splitlines())
	return {row[head.index("CORES")] for row in rows}


def written_again(stand, path):
	tool(stand, "gres", "--write", path)
	with open(path, encoding="utf-8") as file:
		return file.read()


@pytest.mark.apis("sim")
def test_gres_conf_has_the_files_of_a_drivers_devices_and_the_cores_that_they_are_near(drivers, files):
	stand, driver, _ = drivers
	etc = os.path.dirname(stand.env["SLURM_CONF"])
	written, own = os.path.join(etc, "gres-drivers.conf"), os.path.join(etc, "gres.conf")
	before = set_resources(stand, [{"deviceClass": CLASS, "gres": "gpu", "file": files}])
	with open(own, encoding="utf-8") as file:
		lines_before = file.read()
	cpus = int(re.search(r"CPUTot=(\d+)", stand.run("scontrol", "show", "node", "n1"))[1])
	try:
		wait_for("its devices", lambda: cores_shown(stand) == {"-"}, 60)
		tell_numa(stand, "n1", cpus)
		wait_for("the cores", lambda: cores_shown(stand) == {f"0-{cpus - 1}"}, 30)
		line = f"NodeName=n1 Name=gpu Count={DEVICES} File={files.replace('%d', f'[0-{DEVICES - 1}]')} Cores=0-{cpus - 1}\n"
		assert line in written_again(stand, written)
		assert line in tool(stand, "gres", "--format", "slurm")
		with open(own, "w", encoding="utf-8") as file:
			file.write(f"Include {written}\n")
		done = stand.run("slurmd", "-G", "-N", "n1", check=False)
		assert f"Count={DEVICES}" in done.stderr and f"Cores=0-{cpus - 1}" in done.stderr, done
		driver.publish("n1", missing={DEVICES - 1})
		wait_for("a driver that tells of fewer", lambda: f"and of {DEVICES - 1} a driver tells" in written_again(stand, written), 30)
		assert line in written_again(stand, written)
		tell_numa(stand, "n1", cpus + 1)
		wait_for("cores that are not Slurm's", lambda: cores_shown(stand) == {"-"}, 30)
	finally:
		with open(own, "w", encoding="utf-8") as file:
			file.write(lines_before)
		tell_numa(stand, "n1", None)
		driver.publish("n1")
		restore(stand, before)


def problems_on(stand, node):
	"""What check --on-node finds there: the host has the node's name."""
	done = stand.run("unshare", "--uts", "sh", "-c", f"hostname {node} && exec {TOOL} check --on-node --json", check=False)
	return [one["text"] for one in json.loads(done.stdout)["findings"] if one["level"] == "problem" and one["about"] == "gres.conf"]


def gpus_of_a_job(stand):
	"""Of one that wants all of n1."""
	return stand.run("srun", "-w", "n1", "--mem=100", f"--gres=gpu:{DEVICES}", "sh", "-c", "echo ${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS}", seconds=90)


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_slurmd_starts_with_the_gres_conf_that_was_written_and_without_a_file_of_it_ends_as_check_says(drivers, files):
	stand, *_ = drivers
	log, etc = os.path.join(stand.folder, "log", "slurmd-n1.log"), os.path.dirname(stand.env["SLURM_CONF"])
	own, every = os.path.join(etc, "gres.conf"), ",".join(map(str, range(DEVICES)))
	with open(own, encoding="utf-8") as file:
		lines_before = file.read()
	before = set_resources(stand, [{"deviceClass": CLASS, "gres": "gpu", "file": files}])
	last = files.replace("%d", str(DEVICES - 1))

	def starts(word):
		began = told(stand)["SlurmdStartTime"]
		wait_for("another second", lambda: time.strftime("%Y-%m-%dT%H:%M:%S") > began, 5)
		stand.cluster(word, "slurmd-n1")
		wait_for("slurmd to register", lambda: told(stand)["SlurmdStartTime"] != began and "*" not in told(stand)["State"], 60, lambda: str(told(stand)))
		assert "DRAIN" not in told(stand)["State"], told(stand)
	try:
		wait_for("its devices", lambda: f"NodeName=n1 Name=gpu Count={DEVICES} File={files.replace('%d', f'[0-{DEVICES - 1}]')}" in
			written_again(stand, os.path.join(etc, "gres-drivers.conf")), 60)
		with open(own, "w", encoding="utf-8") as file:
			file.write(f"Include {os.path.join(etc, 'gres-drivers.conf')}\n")
		assert not problems_on(stand, "n1")
		starts("restart")
		assert gpus_of_a_job(stand) == every
		os.unlink(last)
		text, = problems_on(stand, "n1")
		assert text.startswith(f"{last} (File=, ") and "is not there: a slurmd that starts, or is reconfigured, waits 20 seconds" in text
		assert gpus_of_a_job(stand) == every  # the one that runs does not look again
		size = os.path.getsize(log)
		stand.cluster("restart", "slurmd-n1")
		wait_for("its end", lambda: not Daemon(stand.folder, "slurmd-n1").pid, 60)
		with open(log, encoding="utf-8") as file:
			file.seek(size)
			assert f"can't stat gres.conf file {last}" in file.read()
		os.symlink("/dev/null", last)
		assert not problems_on(stand, "n1")
		starts("start")
		assert gpus_of_a_job(stand) == every
	finally:
		with open(own, "w", encoding="utf-8") as file:
			file.write(lines_before)
		starts("restart")
		restore(stand, before)


@once_only
def test_no_device_is_given_twice_whatever_comes_and_goes(drivers):
	stand, driver, claim = drivers
	seed = int(os.environ.get("SK8_SEED", random.randrange(1 << 32)))
	print(f"SK8_SEED={seed}")
	chance = random.Random(seed)
	pods, jobs, over_with = [], [], []
	theirs, device = claim("theirs"), chance.randrange(DEVICES)  # of a pod that kube-scheduler has placed, for a part of the time
	foreign = stand.pod("theirs", POLITE, schedulerName="default-scheduler", **uses(theirs))
	theirs.allocate("n1", (device,), foreign)
	foreign.bind("n1")
	foreign.wait_running(PREPARED)
	wait_for("the mask", lambda: [m["gres"] for m in status(stand, "--node", "n1")["masks"]] == [f"gpu:1({device})"], 60)
	for i in range(12):
		number = chance.randint(1, 3)
		if i and chance.random() < 0.6:  # a job among the first
			made = claim(f"r{i}", number)
			pods.append((stand.pod(f"r{i}", f"env | grep TEST_DEVICE_; sleep {chance.random() * 3:.1f}", **uses(made)), made, number))
		else:
			jobs.append((*gpu_job(stand, number, chance.random() * 3), number))
	live, compared = {pod.uid: (pod, made, number) for pod, made, number in pods}, set()

	def over():
		"""Looks at all that has devices now, in one answer of Slurm; the end of pods is kube-controller-manager's to notice."""
		seen = {}
		for show in re.split(r"\n(?=JobId=)", stand.scontrol("-d", "show", "jobs")):
			if "JobState=RUNNING" in show:
				node = re.search(r" NodeList=(\S+)", show)[1]
				for index in devices(show):
					other = seen.setdefault((node, index), show)
					assert other is show, f"gpu {index} of {node} twice:\n{other}\n{show}"
		for pod, made, number in list(live.values()):
			if pod.phase == "Running":
				has = in_slurm(stand, pod.job_id)
				if pod.job()["JobState"] == "RUNNING":  # after that: it had them all the time
					compared.add(pod.uid)
					assert made.devices() == has, pod.about()
			if pod.phase in ("Succeeded", "Failed"):
				assert pod.phase == "Succeeded" and len(made.results()) == number, pod.about()
				over_with.append((pod, pod.node, made.devices()))
				if stand.kind == "real" and containers_see_devices():
					assert inside(pod) == made.devices()
				made.free()
				del live[pod.uid]
		return not live and all(stand.job(job)["JobState"] == "COMPLETED" for job, *_ in jobs)
	wait_for("somebody's end beside theirs", lambda: over() or over_with or any(stand.job(job)["JobState"] == "COMPLETED" for job, *_ in jobs), 180)
	foreign.delete()
	foreign.wait_gone()
	theirs.free()
	wait_for("the end of all", over, 180 + PREPARED)
	assert compared
	had = [one for pod, node, has in [*over_with, (foreign, "n1", {device})] for one in by_pod(pod, node, has)]
	for job, file, number in jobs:
		its = by_job(job, file)
		assert len(its) == number, its
		had += its
	is_with_one(had)
	assert beside(had, "theirs")
	for node in driver.records:
		assert not [row for row in driver.record(node) if row[0] == "refused"]
