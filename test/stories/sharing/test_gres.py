# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GPUs of pods: asked for in Slurm, given to nobody else until the pod is gone, and those of foreign pods neither."""
import base64
import contextlib
import json
import os
import re

import pytest
from command import findings, status, tool
from conftest import lent, with_conf
from mixed import ETC, NAMESPACE, PODS, mixing, reservations, restore, set_resources, share, wait_no_reservation, wait_reservation
from outage import saved
from stands.gres import devices
from stands.replays import once_only
from stands.waiting import wait_for
from world import POLITE, STUBBORN

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


def in_slurm(stand, job_id):
	return devices(stand.scontrol("-d", "show", "job", str(job_id)))


def of_job(job):
	return in_slurm(job.stand, job.id)


def of_its_job(found):
	return in_slurm(found.stand, found.job_id)


def of_pod(found):
	return devices(found.get()["metadata"]["annotations"]["slurm-k8s.io/gres-devices"])


def used(stand):
	return re.search(r"GresUsed=(\S+)", stand.scontrol("-d", "show", "node", "n1"))[1]


def batch(stand, number, *options):
	return stand.batch(1, options=(f"--gres=gpu:{number}", *options))


@once_only
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


def has_gpus(stand, node, number):
	"""What its kubelet says: without a device plugin it copies the capacity."""
	amount = {GPU: str(number)}
	stand.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"capacity": amount, "allocatable": amount}})


def masked_gres(stand, node):
	return [mask["gres"] for mask in status(stand, "--node", node)["masks"] if mask["node"] == node]


def test_gpu_that_its_kubelet_has_lost_is_kept_from_jobs_until_it_is_back(gpus):
	has_gpus(gpus, "n1", 3)
	wait_for("the mask", lambda: masked_gres(gpus, "n1") == ["gpu:1"], 60)
	assert masked_gres(gpus, "n2") == []
	three = batch(gpus, 3, "-w", "n1")
	three.wait("RUNNING")
	four = batch(gpus, 4, "-w", "n1")
	row, = (line.split() for line in tool(gpus, "gres", "--node", "n1").splitlines() if line.startswith("n1 "))
	assert (row[-3].split(",")[0], row[-2].split(",")[0], row[-1]) == ("gpu:3", "gpu:4", "gpu:1")
	assert "NodeName=n1 Name=gpu Count=3\n" in tool(gpus, "gres", "--format=slurm")
	assert "devices are gone or not well" in tool(gpus, "status", "--node", "n1")
	gpus.reconfigure()
	wait_for("the mask", lambda: masked_gres(gpus, "n1") == ["gpu:1"], 60)
	gpus.restart_slurmctld(kill=False)
	wait_for("the mask", lambda: masked_gres(gpus, "n1") == ["gpu:1"], 60)
	assert "DRAIN" not in gpus.run("scontrol", "show", "node", "n1")
	three.cancel()
	gpus.scheduled()
	assert four.state == "PENDING"
	has_gpus(gpus, "n1", 4)
	four.wait("RUNNING")
	assert masked_gres(gpus, "n1") == []


def test_gpu_that_is_gone_is_no_jobs_over_a_start_of_slurmctld_without_api_server(gpus):
	has_gpus(gpus, "n1", 3)
	wait_for("the mask", lambda: masked_gres(gpus, "n1") == ["gpu:1"], 60)
	with gpus.paused("apiserver"):
		gpus.restart_slurmctld()
		three = batch(gpus, 3, "-w", "n1")
		three.wait("RUNNING")
		four = batch(gpus, 4, "-w", "n1")
		three.cancel()
		gpus.scheduled()
		assert four.state == "PENDING" and masked_gres(gpus, "n1") == ["gpu:1"]
	gpus.scheduled()
	assert four.state == "PENDING"
	has_gpus(gpus, "n1", 4)
	four.wait("RUNNING")
	assert of_job(four) == {0, 1, 2, 3}


def test_what_is_only_counted_comes_and_goes_with_the_kubelet_up_to_slurms_number(gpus):
	def has(number):
		amount = {TOKEN: None if number is None else str(number)}
		gpus.api.patch("/api/v1/nodes/n1/status", {"status": {"capacity": amount, "allocatable": amount}})

	def fits(number):
		job = gpus.batch(1, options=("-w", "n1", f"--gres=token:{number}"))
		job.wait("RUNNING")
		more = gpus.batch(1, options=("-w", "n1", "--gres=token:1"))
		gpus.scheduled()
		assert more.state == "PENDING"
		for one in (more, job):
			one.cancel()
		wait_for("their end", lambda: not gpus.run("squeue", "-h").strip(), 60)
	before = set_resources(gpus, [{"kubernetes": TOKEN, "gres": "token", "missing": "all"}])
	try:
		has(None)
		wait_for("the mask", lambda: masked_gres(gpus, "n1") == ["token:5"], 60)
		assert not [line for line in findings(gpus)["warning"] if "token" in line]
		waits = gpus.batch(1, options=("-w", "n1", "--gres=token:1"))
		gpus.scheduled()
		assert waits.state == "PENDING"
		waits.cancel()
		for number in (2, 4, 3):
			has(number)
			wait_for("the mask", lambda n=number: masked_gres(gpus, "n1") == [f"token:{5 - n}"], 60)
			fits(number)
		gpus.restart_slurmctld(kill=False)
		wait_for("the mask", lambda: masked_gres(gpus, "n1") == ["token:2"], 60)
		has(5)
		wait_for("no mask", lambda: masked_gres(gpus, "n1") == [], 60)
		fits(5)
	finally:
		restore(gpus, before)


@contextlib.contextmanager
def gpus_in_slurm(stand, number):
	"""Another number of them, as its administrator does it: slurm.conf, gres.conf, and in the order that check says all daemons: slurmctld
	drains nodes of slurmds with fewer."""
	folder = os.path.dirname(stand.env["SLURM_CONF"])
	files = {os.path.join(folder, name): None for name in ("slurm.conf", "gres.conf")}
	for path in files:
		with open(path, encoding="utf-8") as file:
			files[path] = file.read()
	lines = re.findall(r"Name=gpu File=\S+ Cores=\S+\n", files[os.path.join(folder, "gres.conf")])
	wanted = [lines[0].replace(device_file(stand, 0), device_file(stand, i)) for i in range(number)]
	for i in range(number):
		if not os.path.lexists(device_file(stand, i)):
			os.symlink("/dev/null", device_file(stand, i))

	def write(change):
		for path, text in files.items():
			with open(path, "w", encoding="utf-8") as file:
				file.write(change(text))
	write(lambda text: text.replace("Gres=gpu:4,", f"Gres=gpu:{number},").replace("".join(lines), "".join(wanted)))
	more, fewer = ("slurmd-n1", "slurmd-n2", "slurmctld"), ("slurmctld", "slurmd-n1", "slurmd-n2")
	for name in more if number > len(lines) else fewer:
		stand.cluster("restart", name)
	try:
		yield
	finally:
		write(lambda text: text)
		for name in fewer if number > len(lines) else more:
			stand.cluster("restart", name)


def device_file(stand, index):
	return os.path.join(stand.folder, "slurm", "devices", f"gpu{index}")


def test_slurmd_that_starts_while_a_device_is_gone_drains_no_node_and_check_says_what_to_do(gpus):
	gone = device_file(gpus, 3)

	def said():
		return [line for line in findings(gpus)["warning"] if "Kubernetes has" in line and "on n1" in line]

	def slurmd_says(part):
		with open(os.path.join(gpus.folder, "log", "slurmd-n1.log"), encoding="utf-8") as file:
			text = file.read()
		return f"{part} {gone}" in text or f"gres.conf file {gone} {part}" in text
	os.unlink(gone)
	try:
		has_gpus(gpus, "n1", 3)
		gpus.cluster("restart", "slurmd-n1")
		wait_for("slurmd to look for its file", lambda: slurmd_says("Waiting for gres.conf file"), 30)
		word, = wait_for("check's word", said, 60)
		assert f"Kubernetes has 3 of gpu ({GPU}) on n1 and Slurm 4: " in word, word
		assert "take what is gone for good from slurm.conf and gres.conf, then restart slurmctld, and slurmd after it" in word, word
		assert "devices are gone or not well" in tool(gpus, "status", "--node", "n1")
		assert "DRAIN" not in gpus.run("scontrol", "show", "node", "n1")
	finally:
		os.symlink("/dev/null", gone)
	wait_for("slurmd to go on", lambda: slurmd_says("now exists"), 30)
	three = batch(gpus, 3, "-w", "n1")
	three.wait("RUNNING")
	three.cancel()
	with gpus_in_slurm(gpus, 3):  # as it says, for good
		wait_for("nothing to say of it", lambda: not said(), 60, said)
		three = batch(gpus, 3, "-w", "n1")
		three.wait("RUNNING")
		assert masked_gres(gpus, "n1") == [] and "DRAIN" not in gpus.run("scontrol", "show", "node", "n1")
		three.cancel()
		wait_for("its end", lambda: not gpus.run("squeue", "-h").strip(), 60)


def test_gpu_that_was_added_is_reported_by_check_until_slurmd_has_it_and_drains_no_node(gpus):
	def words():
		return [line for line in findings(gpus)["warning"] if "Kubernetes has" in line and "on n1" in line]
	wait_for("nothing to say of it", lambda: words() == [], 60, words)  # slurmds register again when slurmctld has started
	has_gpus(gpus, "n1", 5)
	word = wait_for("a word of it", lambda: next(iter(words()), None), 60)
	assert f"Kubernetes has 5 of gpu ({GPU}) on n1 and Slurm 4: give Slurm the others by Gres= in slurm.conf and gres.conf" in word and "restart slurmd, and slurmctld after it" in word
	gpus.cluster("restart", "slurmd-n1")
	job = batch(gpus, 4, "-w", "n1")
	job.wait("RUNNING")
	job.cancel()
	with gpus_in_slurm(gpus, 5):
		wait_for("nothing to say of it", lambda: words() == [], 60, words)
		job = batch(gpus, 5, "-w", "n1")
		job.wait("RUNNING")
		assert of_job(job) == {0, 1, 2, 3, 4}
		job.cancel()
		wait_for("its end", lambda: not gpus.run("squeue", "-h").strip(), 60)
	assert "DRAIN" not in gpus.run("scontrol", "show", "node", "n1")


def test_node_that_slurm_drains_for_a_slurmd_with_fewer_devices_says_why_in_status(gpus):
	path = os.path.join(os.path.dirname(gpus.env["SLURM_CONF"]), "gres.conf")
	with open(path, encoding="utf-8") as file:
		text = file.read()

	def slurmd_reads(gres_conf):
		with open(path, "w", encoding="utf-8") as file:
			file.write(gres_conf)
		gpus.cluster("restart", "slurmd-n1")
	try:
		slurmd_reads(re.sub(f".*File={device_file(gpus, 3)} .*\n", "", text))
		wait_for("Slurm's own reason", lambda: "gres/gpu count reported lower than configured" in tool(gpus, "status", "--node", "n1"), 60,
			lambda: tool(gpus, "status", "--node", "n1"))
	finally:
		slurmd_reads(text)
		wait_for("a node that is resumed", lambda: not gpus.run("scontrol", "update", "NodeName=n1", "State=RESUME", check=False).returncode or
			"DRAIN" not in gpus.run("scontrol", "show", "node", "n1"), 60, lambda: gpus.run("scontrol", "show", "node", "n1"))
	wait_for("a node for all", lambda: "in use" in tool(gpus, "status", "--node", "n1") and not gpus.node("n1")["spec"].get("unschedulable"), 60,
		lambda: tool(gpus, "status", "--node", "n1"))


KNOWN = {"nvidia.com/mig-1g.5gb": ("2", "gpu:1g.5gb:2"), "gpu.intel.com/i915": ("1", "gpu:i915:1"), "rdma/hca": ("3", "rdma:hca:3")}
ODD = {"amd.com/gpu": ("1", f"is gpu as {GPU}, and pods of Slurm's own jobs request that one alone; give it a GRES or a type of its own under resources"),
	"rdma/many": ("1e12", "is left out: 1000000000000 is no number of devices, there are 0 to 1000000")}
REFUSED = {"rdma/a,b": ("1", "is left out: it makes no name of a GRES; give it one under resources in slurm-k8s.yaml")}  # by the real API server


def test_resources_that_make_no_gres_or_one_with_others_are_told_of_and_jobs_get_what_does(gpus):
	odd, known = (ODD, KNOWN) if gpus.kind == "real" else (ODD | REFUSED, KNOWN | {"rdma/half": ("500m", "rdma:half:1")})
	amounts = {resource: amount for resource, (amount, _) in (odd | known).items()}
	try:
		gpus.api.patch("/api/v1/nodes/n1/status", {"status": {"capacity": amounts, "allocatable": amounts}})
		for resource, (_, part) in known.items():
			wait_for(f"{resource} to be {part}", lambda part=part: part in tool(gpus, "gres", "--node", "n1"), 30, lambda: tool(gpus, "gres", "--node", "n1"))
		shown, told = tool(gpus, "gres", "--node", "n1"), "\n".join(findings(gpus)["warning"])
		for resource, (_, why) in odd.items():
			assert f"node n1: {resource} {why}" in shown and f"n1: {resource} {why}" in told, resource
		batch(gpus, 1, "-w", "n1").wait("RUNNING")
	finally:
		none = dict.fromkeys(amounts)
		gpus.api.patch("/api/v1/nodes/n1/status", {"status": {"capacity": none, "allocatable": none}})


@once_only
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


@once_only
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


@once_only
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


@once_only
def test_gpus_of_a_job_are_requested_by_its_pod_though_resources_names_none(mixed_gpus):
	before = set_resources(mixed_gpus, [])
	try:
		job = batch(mixed_gpus, 3, "-w", "n1")
		job.wait_started()
		assert wait_reservation(mixed_gpus, job.id)["spec"]["containers"][0]["resources"]["limits"][GPU] == "3"
		late = foreign(mixed_gpus, "late", 2)  # a pod could have got a GPU of the job
		late.wait_phase("Failed")
		assert late.get()["status"]["reason"] == "OutOf" + GPU
		foreign(mixed_gpus, "small", 1).wait_running()
		wait_for("all to be used", lambda: len(devices(used(mixed_gpus))) == 4, 30)
		said = f"what Slurm's own jobs have of {GPU} on n1, n2 no pod of theirs requests"
		assert not [line for line in findings(mixed_gpus)["warning"] if said in line]
		unshared = share(mixed_gpus, sharing="none")
		assert [line for line in findings(mixed_gpus)["warning"] if said in line]
		restore(mixed_gpus, unshared)
	finally:
		restore(mixed_gpus, before)


@pytest.fixture(name="dedicated_gpus")
def dedicated_gpus_fixture(request, session_stands, api):
	for stand in with_gpus(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s")):
		yield from mixing(stand, "dedicated")


@once_only
def test_on_dedicated_nodes_a_kubelet_gives_no_pod_the_gpus_of_a_job_and_its_cores_are_not_asked_for(dedicated_gpus):
	plain = dedicated_gpus.batch(2)
	plain.wait_started()
	job = batch(dedicated_gpus, 2)
	job.wait_started()
	asked = wait_reservation(dedicated_gpus, job.id)["spec"]["containers"][0]["resources"]
	assert (asked["requests"][GPU], asked["limits"][GPU], asked["requests"]["cpu"]) == ("2", "2", "0")
	assert not [key for key in reservations(dedicated_gpus) if key[0] == plain.id]
	late = foreign(dedicated_gpus, "late", 3)
	late.wait_phase("Failed")
	assert late.get()["status"]["reason"] == "OutOf" + GPU
	mine = pod(dedicated_gpus, "mine", 2)  # through Slurm, and beside the job
	mine.wait_running()
	assert not of_pod(mine) & of_job(job)
	job.cancel()
	wait_no_reservation(dedicated_gpus, job.id)


# -- device plugins: the agent tells what the kubelet gave to pods, in an annotation of the node

DEVICES = "slurm-k8s.io/devices"
IDS = ["gpu0", "gpu1", "gpu2", "gpu3"]


def tell_devices(stand, **pods):
	"""As the agent of n1 does. pods: uid and positions, by any word."""
	said = {"ids": {GPU: IDS}, "pods": {uid: {GPU: positions} for uid, positions in pods.values()}}
	stand.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: json.dumps(said)}}})


@pytest.fixture(name="plugged")
def plugged_fixture(gpus):
	"""n1 has an agent that tells of GPUs."""
	tell_devices(gpus)
	yield gpus
	gpus.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: None}}})


@pytest.fixture(name="mixed_plugged")
def mixed_plugged_fixture(mixed_gpus):
	tell_devices(mixed_gpus)
	yield mixed_gpus
	mixed_gpus.run("scancel", "--quiet", "-u", "root", check=False)
	mixed_gpus.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: None}}})


def in_gate(stand, *jobs):
	for job in jobs:
		wait_for(f"job {job.id} in the gate", lambda job=job: job.state == "CONFIGURING" and wait_reservation(stand, job.id), 30, job.why)
	return [wait_reservation(stand, job.id)["metadata"]["uid"] for job in jobs]


@once_only
def test_foreign_pod_keeps_the_devices_that_its_kubelet_gave_it(plugged):
	theirs = foreign(plugged, "monitor", 2)
	theirs.wait_running()
	tell_devices(plugged, theirs=(theirs.uid, [0, 2]))
	wait_for("these GPUs to be shown as used", lambda: devices(used(plugged)) == {0, 2}, 30, lambda: used(plugged))
	assert "gpu:2(0,2)" in tool(plugged, "status", "--node", "n1")
	two = batch(plugged, 2)
	two.wait("RUNNING")
	assert of_job(two) == {1, 3}
	saved(plugged)
	starts = plugged.engine_starts()
	plugged.restart_slurmctld()
	wait_for("the same again", lambda: devices(used(plugged)) == {0, 1, 2, 3}, 60, lambda: used(plugged))
	# a pod that is deleted before it is listed is only missed
	wait_for("all pods to be known", lambda: plugged.engine_starts() > starts, 60)
	theirs.delete()
	wait_for("the pod's to be free", lambda: devices(used(plugged)) == {1, 3}, 60, lambda: used(plugged))


@once_only
def test_slurm_counts_for_pods_the_devices_that_their_kubelet_gave_them(plugged):
	first, second = (pod(plugged, name, 1, STUBBORN, grace=6) for name in ("first", "second"))
	first.wait_running()
	second.wait_running()
	chosen = (of_pod(first), of_pod(second))
	assert set.union(*chosen) == {0, 1}
	# the kubelet did it the other way round, and then another agent tells
	tell_devices(plugged, first=(first.uid, list(chosen[1])), second=(second.uid, list(chosen[0])))
	wait_for("the pods' own", lambda: (of_pod(first), of_pod(second)) == (chosen[1], chosen[0]), 60)
	assert of_its_job(first) == chosen[1] and of_its_job(second) == chosen[0]
	tell_devices(plugged, first=(first.uid, list(chosen[1])), second=(second.uid, [3]))
	wait_for("the second's", lambda: of_pod(second) == {3}, 60)
	assert devices(used(plugged)) == chosen[1] | {3}
	plugged.run("scancel", str(second.job_id))  # it has them until its last process is gone
	three = batch(plugged, 3)
	two = batch(plugged, 2)
	two.wait("RUNNING")
	assert not of_job(two) & (chosen[1] | {3})
	assert second.get() and three.state == "PENDING"


def test_job_runs_on_the_devices_that_the_kubelet_gave_its_pod(mixed_plugged):
	first, second = batch(mixed_plugged, 2), batch(mixed_plugged, 1)
	uid, other = in_gate(mixed_plugged, first, second)
	assert of_job(first) == {0, 1} and of_job(second) == {2}
	tell_devices(mixed_plugged, first=(uid, [1, 3]))
	first.wait_started()
	assert of_job(first) == {1, 3}
	assert second.state == "CONFIGURING"  # nobody knows yet what its pod has
	tell_devices(mixed_plugged, first=(uid, [1, 3]), second=(other, [0]))
	second.wait_started()
	assert of_job(second) == {0} and devices(used(mixed_plugged)) == {0, 1, 3}
	third = batch(mixed_plugged, 1)
	uid_of_third, = in_gate(mixed_plugged, third)
	assert of_job(third) == {2}
	tell_devices(mixed_plugged, first=(uid, [1, 3]), second=(other, [0]), third=(uid_of_third, [2]))
	third.wait_started()


@once_only
def test_job_in_the_gate_waits_for_its_devices_over_restarts_of_slurmctld(mixed_plugged):
	job = batch(mixed_plugged, 2)
	uid, = in_gate(mixed_plugged, job)
	for kill in (False, True):
		saved(mixed_plugged)
		starts = mixed_plugged.engine_starts()
		mixed_plugged.restart_slurmctld(kill=kill)
		wait_for("all pods to be known", lambda starts=starts: mixed_plugged.engine_starts() > starts, 60)
		mixed_plugged.scheduled()
		assert in_gate(mixed_plugged, job) == [uid] and job.stamps() == (None, None)
		assert of_job(job) == {0, 1} and int(job.show()["Restarts"]) == 0
	three = batch(mixed_plugged, 3)
	mixed_plugged.scheduled()
	assert three.state == "PENDING"
	tell_devices(mixed_plugged, first=(uid, [1, 3]))
	job.wait_started()
	assert of_job(job) == devices(used(mixed_plugged)) == {1, 3}


@once_only
def test_job_is_not_launched_on_a_device_of_another_and_comes_again(mixed_plugged):
	first = batch(mixed_plugged, 1)
	uid, = in_gate(mixed_plugged, first)
	tell_devices(mixed_plugged, first=(uid, [0]))
	first.wait_started()
	second = batch(mixed_plugged, 1)
	other, = in_gate(mixed_plugged, second)
	tell_devices(mixed_plugged, first=(uid, [0]), second=(other, [0]))  # what no kubelet says of two
	wait_for("its pod to go", lambda: int(second.show()["Restarts"]) == 1, 60, second.why)
	again = wait_for("another pod of it", lambda: in_gate(mixed_plugged, second)[0] != other and in_gate(mixed_plugged, second), 60, second.why)
	tell_devices(mixed_plugged, first=(uid, [0]), second=(again[0], [3]))
	second.wait_started()
	assert of_job(second) == {3}


@once_only
def test_pod_made_anew_is_exchanged_until_it_has_the_devices_that_its_job_goes_on_using(mixed_plugged):
	job = batch(mixed_plugged, 1)
	uid, = in_gate(mixed_plugged, job)
	tell_devices(mixed_plugged, first=(uid, [0]))
	job.wait_started()

	def another(than):
		return wait_for("another pod", lambda: (lambda now: now != than and now)(
			wait_reservation(mixed_plugged, job.id)["metadata"]["uid"]), 60, job.why)
	mixed_plugged.api.delete(f"{PODS}/{wait_reservation(mixed_plugged, job.id)['metadata']['name']}")
	second = another(uid)
	tell_devices(mixed_plugged, second=(second, [2]), holder=("somebody", [0]))
	wait_for("the pod's device to be nobody else's", lambda: devices(used(mixed_plugged)) == {0, 2}, 60, lambda: used(mixed_plugged))
	wait_for("its event", lambda: [e for e in mixed_plugged.api.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
		if e["involvedObject"].get("uid") == second and e["reason"] == "SlurmOtherDevices"], 60)
	said = tool(mixed_plugged, "status", "--node", "n1")
	assert f"of job {job.id}, made anew, gpu:1(2), and the job goes on using gpu:1(0)" in said, said
	three = batch(mixed_plugged, 3)
	mixed_plugged.scheduled()
	assert three.state == "PENDING"
	tell_devices(mixed_plugged, second=(second, [2]))  # the job's device is free for the kubelet now
	third = another(second)
	tell_devices(mixed_plugged, third=(third, [0]))
	wait_for("nothing to be said", lambda: "made anew" not in tool(mixed_plugged, "status", "--node", "n1"), 60)
	assert wait_reservation(mixed_plugged, job.id)["metadata"]["uid"] == third
	assert job.state == "RUNNING" and of_job(job) == {0}
	in_gate(mixed_plugged, three)


# -- what needs no settings

DEFAULTS = {"nvidia.com/gpu": ("2", "gpu:nvidia-a100-sxm4-80gb:2"), "nvidia.com/mig-1g.5gb": ("3", "gpu:1g.5gb:3"),
	"amd.com/gpu": ("1", "gpu:amd_instinct_mi300x:1"), "gpu.intel.com/i915": ("1", "gpu:i915:1"), "rdma/hca": ("4", "rdma:hca:4"),
	"hugepages-2Mi": ("64Mi", "hugepages:2Mi:32")}
PRODUCTS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "amd.com/gpu.product-name": "AMD_Instinct_MI300X"}


@pytest.mark.apis("sim")  # a real kubelet counts huge pages itself
def test_devices_that_everybody_knows_are_gres_without_any_settings_and_check_says_what_slurm_lacks(request, session_stands, api):
	has = {resource: count for resource, (count, _) in DEFAULTS.items()}
	for stand in lent_with(has, [], request, session_stands, api, "gpu:4"):
		stand.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": PRODUCTS}})
		shown = wait_for("the products", lambda: "mi300x" in tool(stand, "gres", "--node", "n1") and tool(stand, "gres", "--node", "n1"), 30)
		assert set(re.split(r"[\s,]+", shown)) >= {gres for _, gres in DEFAULTS.values()}, shown
		said = " ".join(findings(stand)["warning"])
		assert re.search(r"Kubernetes has 7 of gpu \([^)]*\) on n1 and Slurm 4: give Slurm the others", said), said
		for resource in ("nvidia.com/mig-1g.5gb", "gpu.intel.com/i915"):
			assert f"what pods have of {resource} on n1, n2 is not kept from Slurm's jobs" in said, said
		stand.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": dict.fromkeys(PRODUCTS)}})


# -- types, and shares of a device

A100, H100, SHARD = "example.com/a100", "example.com/h100", "example.com/shard"


def lent_with(has, resources, request, session_stands, api, gres, *more):
	"""A stand whose nodes have these extended resources, of which slurm-k8s.yaml says this."""
	for stand in lent(request, session_stands, api, "--gres", gres, *more):
		for name in ("n1", "n2"):
			stand.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": has, "allocatable": has}})
		before = set_resources(stand, resources)
		yield stand
		stand.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: None}}})
		restore(stand, before)


@pytest.fixture(name="typed")
def typed_fixture(request, session_stands, api):
	"""Two A100 and, behind them, two H100, which a device plugin each hands out."""
	yield from lent_with({A100: "2", H100: "2"}, [{"kubernetes": A100, "gres": "gpu", "type": "a100"},
		{"kubernetes": H100, "gres": "gpu", "type": "h100", "devices": [{"first": 2}]}], request, session_stands, api,
		"gpu@0-7:a100:2,gpu@0-7:h100:2")


@pytest.fixture(name="shares")
def shares_fixture(request, session_stands, api):
	"""Two GPUs with four shares each."""
	yield from lent_with({GPU: "2", SHARD: "8"}, [{"kubernetes": GPU, "gres": "gpu"}, {"kubernetes": SHARD, "gres": "shard"}],
		request, session_stands, api, "gpu@0-7:2,shard:8")


FPGA = "example.com/fpga"


@pytest.fixture(name="fpgas")
def fpgas_fixture(request, session_stands, api):
	"""Two of them on each node, as on both sides."""
	yield from lent_with({FPGA: "2"}, [{"kubernetes": FPGA, "gres": "fpga"}], request, session_stands, api, "fpga:2")


def test_what_is_only_counted_is_as_many_as_its_kubelet_says_up_to_slurm_conf(fpgas):
	one = on(fpgas, "fpga:1")
	for number, masked in (("1", ["fpga:1"]), ("3", [])):
		has = {FPGA: number}
		fpgas.api.patch("/api/v1/nodes/n1/status", {"status": {"capacity": has, "allocatable": has}})
		wait_for("the mask", lambda masked=masked: masked_gres(fpgas, "n1") == masked, 60)
		if masked:
			wide = fpgas.batch(1, options=("--gres=fpga:1",))
			fpgas.scheduled()
			assert wide.state == "PENDING" and "DRAIN" not in fpgas.run("scontrol", "show", "node", "n1")
	wide.wait("RUNNING")
	one.cancel()


@pytest.mark.apis("sim")
def test_gres_conf_that_is_written_is_read_by_slurmd(fpgas):
	etc = os.path.dirname(fpgas.env["SLURM_CONF"])
	written, own = os.path.join(etc, "gres-k8s.conf"), os.path.join(etc, "gres.conf")
	with open(own, encoding="utf-8") as file:
		before = file.read()
	with open(os.path.join(ETC, "gres.conf"), encoding="utf-8") as file:
		example = file.read()
	refused = tool(fpgas, "gres", "--write", own, check=False)
	assert refused.returncode == 1 and "name another file" in refused.stderr
	assert f"{written}: written, lines for 2 nodes" in tool(fpgas, "gres", "--write", written)
	assert f"{written}: unchanged, lines for 2 nodes" in tool(fpgas, "gres", "--write", written)
	try:
		with open(own, "w", encoding="utf-8") as file:
			file.write(example.replace("/etc/slurm/gres-k8s.conf", written))
		done = fpgas.run("slurmd", "-G", "-N", "n1", check=False)
		assert "Name=fpga" in done.stderr and "Count=2" in done.stderr and not done.returncode, done
		with open(written, "w", encoding="utf-8") as file:  # slurm.conf alone would say as much
			file.write("NodeName=n1 Name=fpga Odd=2\n")
		done = fpgas.run("slurmd", "-G", "-N", "n1", check=False)
		assert done.returncode and "Odd=2" in done.stderr, done
	finally:
		with open(own, "w", encoding="utf-8") as file:
			file.write(before)


def foreign_with(stand, name, resource, number):
	theirs = stand.pod(name, POLITE, schedulerName="default-scheduler", nodeName="n1", limits=asks(number, resource),
		requests=asks(number, resource))
	theirs.wait_running()
	return theirs


def on(stand, gres):
	job = stand.batch(1, options=(f"--gres={gres}",))
	job.wait("RUNNING")
	return job


def waits(stand, gres):
	job = stand.batch(1, options=(f"--gres={gres}",))
	stand.scheduled()
	assert job.state == "PENDING", gres
	return job


@once_only
def test_typed_devices_of_foreign_pods_are_nobody_elses(typed):
	first, second = foreign_with(typed, "first", H100, 1), foreign_with(typed, "second", A100, 1)
	wait_for("two to be used", lambda: len(devices(used(typed))) == 2, 30, lambda: used(typed))
	said = {"ids": {A100: ["a", "b"], H100: ["x", "y"]}, "pods": {first.uid: {H100: [0]}, second.uid: {A100: [0]}}}
	typed.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: json.dumps(said)}}})
	wait_for("these two to be used", lambda: devices(used(typed)) == {0, 2}, 30, lambda: used(typed))
	waits(typed, "gpu:h100:2").cancel()
	h100, a100 = on(typed, "gpu:h100:1"), on(typed, "gpu:a100:1")
	assert of_job(h100) == {3} and of_job(a100) == {1}
	late = waits(typed, "gpu:1")
	second.delete()
	late.wait("RUNNING")
	assert of_job(late) == {0} and late.wait_started() > second.runs()[0].stop


@once_only
@pytest.mark.usefixtures("api")
@pytest.mark.parametrize("which, resource, gres, has, beside, more", [
	("typed", A100, "gpu:a100", 1, 1, 1), ("shares", SHARD, "shard", 3, 4, 2)])
def test_devices_of_a_type_and_shares_that_a_pod_has_are_no_jobs_while_it_is_leaving(request, which, resource, gres, has, beside, more):
	stand = request.getfixturevalue(which)
	mine = pod(stand, "mine", has, STUBBORN, resource, grace=2).wait_running()
	on(stand, f"{gres}:{beside}")
	late = stand.batch(1, options=(f"--gres={gres}:{more}",))
	stand.run("scancel", str(mine.job_id))
	mine.wait_job("CANCELLED")
	assert late.wait_started() > mine.runs()[0].stop


@once_only
def test_two_plugins_that_count_from_0_are_said_and_nobody_is_believed_to_have_the_others_device(typed):
	before = set_resources(typed, [{"kubernetes": A100, "gres": "gpu", "type": "a100"}, {"kubernetes": H100, "gres": "gpu", "type": "h100"}])
	theirs = foreign_with(typed, "theirs", H100, 1)
	wait_for("one to be used", lambda: len(devices(used(typed))) == 1, 30, lambda: used(typed))
	told = typed.log_size()
	said = {"ids": {A100: ["a", "b"], H100: ["x", "y"]}, "pods": {theirs.uid: {H100: [0]}}}
	typed.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: json.dumps(said)}}})
	text = f"index 0 of gpu is device a of {A100} and device x of {H100}; which of Slurm's devices they are is not known"
	wait_for("a line in the log", lambda: text in typed.log(told), 30)
	warnings = findings(typed)["warning"]
	assert [found for found in warnings if f"n1: {text}" in found], warnings
	both = on(typed, "gpu:a100:2")  # its device is none of the other type
	assert of_job(both) == {0, 1}
	waits(typed, "gpu:h100:2").cancel()
	restore(typed, before)
	wait_for("the third to be used", lambda: devices(used(typed)) == {0, 1, 2}, 30, lambda: used(typed))


@once_only
def test_types_of_foreign_pods_of_which_only_the_number_is_known_are_counted(typed):
	theirs = foreign_with(typed, "theirs", H100, 2)
	wait_for("two to be used", lambda: devices(used(typed)) == {2, 3}, 30, lambda: used(typed))
	both = on(typed, "gpu:a100:2")
	assert of_job(both) == {0, 1}
	late = waits(typed, "gpu:h100:1")
	theirs.delete()
	late.wait("RUNNING")
	assert of_job(late) < {2, 3}


@once_only
def test_device_of_a_foreign_pod_has_no_shares_and_one_with_shares_of_a_pod_is_no_jobs(shares):
	whole = foreign_with(shares, "whole", GPU, 1)
	tell = {"ids": {GPU: ["x", "y"]}, "pods": {whole.uid: {GPU: [0]}}}
	shares.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {DEVICES: json.dumps(tell)}}})
	wait_for("the first to be used", lambda: devices(used(shares)) == {0}, 30, lambda: used(shares))
	three = on(shares, "shard:3")
	waits(shares, "gpu:1").cancel()
	late = waits(shares, "shard:2")  # one is left of the second
	foreign_with(shares, "part", SHARD, 1)
	wait_for("the last share to be hidden", lambda: "shard:1" in tool(shares, "status", "--node", "n1"), 30)
	waits(shares, "shard:1").cancel()
	three.cancel()
	late.wait("RUNNING")
	whole.delete()
	four = shares.batch(1, options=("--gres=shard:4",))
	four.wait("RUNNING")
	waits(shares, "gpu:1").cancel()


# -- devices that only Kubernetes knows

HCA = "rdma/hca"


def message(number, *parts):
	"""A field of protobuf."""
	data = b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)
	assert len(data) < 128
	return bytes([number << 3 | 2, len(data)]) + data


ANSWER = message(1, message(1, "RDMA_DEVICE"), message(2, "mlx5_0")) + message(1, message(1, "LD_PRELOAD"), message(2, "/x.so")) + \
	message(3, message(1, "/dev/uverbs0"), message(2, "/dev/infiniband/uverbs0"), message(3, "rw"))


def given(folder, uid):
	"""What the device manager of a kubelet keeps when it has given this pod an HCA."""
	entry = {"PodUID": uid, "ContainerName": "reservation", "ResourceName": HCA, "DeviceIDs": {"0": ["hca0"]},
		"AllocResp": base64.b64encode(ANSWER).decode()}
	path = os.path.join(folder, "kubelet_internal_checkpoint")
	with open(path + ".new", "w", encoding="utf-8") as file:
		json.dump({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {HCA: ["hca0", "hca1"]}}, "Checksum": 0}, file)
	os.rename(path + ".new", path)


@pytest.fixture(name="hcas")
def hcas_fixture(request, session_stands, api):
	"""Two HCAs of each node, which only Kubernetes knows. n1 has an agent that looks for checkpoints in a folder of the test's."""
	for stand in lent_with({HCA: "2"}, [{"kubernetes": HCA, "gres": "k8s", "type": "rdma_hca"}], request, session_stands, api,
			"k8s:rdma_hca:2", "--agent", *with_conf("PrEpPlugins=prep/script,prep/k8s")):
		stand.checkpoints = os.path.join(stand.folder, "device-plugins")
		os.makedirs(stand.checkpoints, exist_ok=True)
		conf = os.path.join(os.path.dirname(stand.env["SLURM_CONF"]), "slurm-k8s-node-n1.yaml")
		with open(conf, encoding="utf-8") as file:
			before = file.read()
		with open(conf, "w", encoding="utf-8") as file:
			file.write(f"{before}devicePluginDir: {stand.checkpoints}\n")
		stand.cluster("restart", "slurmd-n1")
		yield from mixing(stand, "dedicated")
		with open(conf, "w", encoding="utf-8") as file:
			file.write(before)


@pytest.mark.apis("real")
def test_steps_are_told_what_the_device_plugin_answered_for_the_pod_of_their_job(hcas):
	ask = ("-p", "batch", "-w", "n1", "-n1", "--mem=10")
	with contextlib.ExitStack() as until_given:
		until_given.enter_context(hcas.paused("kubelet-n1"))  # it gives devices before it says that it has admitted the pod
		with hcas.start("srun", *ask, "--gres=k8s:rdma_hca:1", "env") as step:
			pod_of_job = wait_for("the job's pod", lambda: next(iter(reservations(hcas).values()), None), 60)
			given(hcas.checkpoints, pod_of_job["metadata"]["uid"])
			until_given.close()
			out, err = step.communicate(timeout=120)
	assert step.returncode == 0, err
	assert pod_of_job["spec"]["containers"][0]["resources"]["requests"][HCA] == "1"
	found = dict(line.partition("=")[::2] for line in out.splitlines())
	assert (found.get("RDMA_DEVICE"), found.get("SLURM_K8S_DEVICES")) == ("mlx5_0", "/dev/infiniband/uverbs0"), out + err
	assert "LD_PRELOAD" not in found
	plain = hcas.run("srun", *ask, "env")
	assert "RDMA_DEVICE" not in plain and "SLURM_K8S_DEVICE" not in plain
