# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GRES that pods hold is kept away from Slurm's jobs, shown, and given back as it was."""
import random
import re

import pytest
from conftest import Cluster
from stands.gres import indices
from stands.replays import once_only
from stands.slurm import starts_again, version
from stands.waiting import wait_for
from test_masks import wide_job_has_its_turn

pytestmark = once_only

PODS = "PartitionName=one Nodes=n1 PriorityTier=10\nPartitionName=lowone Nodes=n1 PriorityTier=1\n" \
	"PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"
# how gres.conf says it, and so how Slurm keeps it: with a topology, typed, with shares, by number only
GRES = {"alone": "gpu:4,token:5", "at cores": "gpu@0-7:4,shard:16,token:5"}


def made(gres):
	cluster = Cluster(nodes=["n1"], conf=PODS, gres=gres)
	yield cluster
	cluster.down()


@pytest.fixture(scope="module", name="gpus_of_module", params=list(GRES))
def gpus_of_module_fixture(request):
	yield from made(GRES[request.param])


@pytest.fixture(name="gpus")
def gpus_fixture(gpus_of_module):
	yield gpus_of_module
	gpus_of_module.clean()


@pytest.fixture(scope="module", name="shared_of_module")
def shared_of_module_fixture():
	yield from made(GRES["at cores"])


@pytest.fixture(name="shares")
def shares_fixture(shared_of_module):
	yield shared_of_module
	shared_of_module.clean()


@pytest.fixture(scope="module", name="typed_of_module")
def typed_of_module_fixture():
	yield from made("gpu:a100:2,gpu:h100:2,hca:2,token:red:3,token:blue:2")


@pytest.fixture(name="typed")
def typed_fixture(typed_of_module):
	yield typed_of_module
	typed_of_module.clean()


@pytest.mark.parametrize("gres_conf", ["", "Name=token Count=100 Flags=CountOnly\n"])
def test_slurm_drains_a_node_of_which_more_is_counted_than_slurm_conf_says(gres_conf):
	"""So nothing is ever raised above slurm.conf's number: doc/gres.md, `missing: all`."""
	cluster = Cluster(nodes=["n1"], gres="token:5", files={"gres.conf": gres_conf})
	try:
		cluster.run("scontrol", "update", "NodeName=n1", "Gres=token:8")
		job = cluster.batch("--gres=token:8")
		cluster.becomes(job, "RUNNING")
		cluster.run("scancel", str(job))
		daemon = cluster.slurm.daemon("slurmd-n1")
		daemon.stop()
		daemon.start_again()
		wait_for("a drained node", lambda: "DRAIN" in cluster.node("n1")["State"], 60, lambda: cluster.run("scontrol", "show", "node", "n1"))
		assert "gres/token count" in cluster.run("scontrol", "show", "node", "n1")
	finally:
		cluster.down()


def test_job_held_up_by_gpus_of_pods_only_gets_a_start_time_and_is_not_starved(gpus):
	gpus.tell("mask", "n1", "gres=gpu::2@0,1")
	wide_job_has_its_turn(gpus, ("--gres=gpu:4",), ("--gres=gpu:1",))


def of_job(cluster, job, name="gpu"):
	"""The devices that a job has."""
	found = re.findall(rf"{name}[^,()\s]*\((?:IDX:)?([-\d,]+)\)", cluster.run("scontrol", "-d", "show", "job", str(job)))
	return indices(",".join(found))


def used(cluster):
	return dict(word.partition("=")[::2] for word in cluster.run("scontrol", "-d", "show", "node", "n1").split()
		if "=" in word).get("GresUsed", "")


def shows(cluster, gpus):
	"""GresUsed, which names the devices if Slurm has a topology of them."""
	text = used(cluster)
	found = re.search(r"gpu:(?:\(null\):)?(\d+)(?:\(IDX:([-,\d]+)\))?", text)
	assert found and int(found[1]) == len(gpus), text
	assert not found[2] or indices(found[2]) == gpus, text
	assert "IDX" not in text or found[2] or not gpus, text
	return True


def start(cluster, *options):
	job = cluster.batch("-p", "one", "-n1", "--mem=10", *options)
	cluster.becomes(job, "RUNNING")
	return job


def waits(cluster, *options):
	job = cluster.batch("-p", "one", "-n1", "--mem=10", *options)
	cluster.scheduled()
	assert cluster.show(job)["JobState"] == "PENDING", options
	cluster.run("scancel", str(job))


def all_free(cluster, what):
	"""Without masks and jobs nothing is left of either: a job can have all."""
	cluster.clean()
	job = start(cluster, *what)
	cluster.run("scancel", str(job))
	cluster.cancel_all()
	assert not re.search(r":[1-9]\d*(\(|,|$)", used(cluster)), used(cluster)
	assert "underflow" not in cluster.log() and "overallocated" not in cluster.log() and "overlap" not in cluster.log()


def test_devices_that_pods_hold_are_kept_away_from_jobs_and_shown(gpus):
	gpus.tell("mask", "n1", "gres=gpu::2@0,2")
	waits(gpus, "--gres=gpu:3")
	job = start(gpus, "--gres=gpu:2")
	assert of_job(gpus, job) == {1, 3}
	assert shows(gpus, {0, 1, 2, 3})
	waits(gpus, "--gres=gpu:1")
	more = gpus.batch("-p", "one", "-n1", "--mem=10", "--gres=gpu:2")
	gpus.scheduled()
	gpus.tell("unmask")
	gpus.becomes(more, "RUNNING", 10)
	assert of_job(gpus, more) == {0, 2}
	all_free(gpus, ("--gres=gpu:4",))


def test_job_is_told_the_devices_that_slurm_shows_and_no_pods(gpus, tmp_path):
	gpus.tell("mask", "n1", "gres=gpu::1@1")
	told = tmp_path / "told"
	job = int(gpus.run("sbatch", "--parsable", "-D", "/", "-o", str(told), "-p", "one", "-n1", "--mem=10", "--gres=gpu:2",
		"--wrap", "echo $SLURM_JOB_GPUS; sleep 600"))
	wait_for("the job's word", lambda: told.exists() and told.read_text().endswith("\n"), 20)
	assert indices(told.read_text().strip()) == of_job(gpus, job) == {0, 2}
	all_free(gpus, ("--gres=gpu:4",))


def test_devices_of_foreign_pods_are_the_last_that_no_job_has(gpus):
	gpus.tell("mask", "n1", "gres=gpu::2")
	assert shows(gpus, {2, 3})
	first = start(gpus, "--gres=gpu:1")
	second = start(gpus, "--gres=gpu:1")
	assert of_job(gpus, first) | of_job(gpus, second) == {0, 1}
	waits(gpus, "--gres=gpu:1")
	end(gpus, first)
	third = start(gpus, "--gres=gpu:1")
	assert of_job(gpus, third) == {0}
	all_free(gpus, ("--gres=gpu:4",))


def test_jobs_that_ask_for_no_gres_do_not_wait_for_it_but_those_for_whole_nodes_do(gpus):
	gpus.tell("mask", "n1", "gres=gpu::4+token::5")
	start(gpus)
	gpus.cancel_all()
	waits(gpus, "--exclusive")
	gpus.tell("mask", "n1", "gres=nosuch::4+gpu::0")
	start(gpus, "--exclusive")
	all_free(gpus, ("--gres=gpu:4,token:5",))


def test_what_is_only_counted_is_counted(gpus):
	gpus.tell("mask", "n1", "gres=token::3@+token::1@")
	assert "token:4" in used(gpus)
	waits(gpus, "--gres=token:2")
	start(gpus, "--gres=token:1")
	assert "token:5" in used(gpus)
	gpus.tell("mask", "n1", "gres=token::18446744073709551615@")
	waits(gpus, "--gres=token:1")
	all_free(gpus, ("--gres=token:5",))


def test_device_of_which_a_pod_has_a_share_is_nobodys_but_its_other_shares_are_free(shares):
	shares.tell("mask", "n1", "gres=shard::3@1")
	waits(shares, "--gres=gpu:4")
	whole = start(shares, "--gres=gpu:3")
	assert of_job(shares, whole) == {0, 2, 3}
	waits(shares, "--gres=shard:2")
	start(shares, "--gres=shard:1")
	all_free(shares, ("--gres=shard:4",))


def shows_shares(cluster, expected):
	"""GresUsed. expected: {device: number}; Slurm 22.05 names only the devices."""
	text = used(cluster)
	found = re.search(r"shard:(?:\(null\):)?(\d+)\(([^)]*)\)", text)
	assert found, text
	if found[2].startswith("IDX:"):
		assert (indices(found[2][4:]) if int(found[1]) else set()) == set(expected), text
		return
	numbers = [int(of.partition("/")[0].replace("-", "0")) for of in found[2].split(",")]
	assert {d: n for d, n in enumerate(numbers) if n} == expected and int(found[1]) == sum(numbers), text


def test_shares_that_pods_hold_are_shown_with_those_of_jobs(shares):
	shows_shares(shares, {})
	shares.tell("mask", "n1", "gres=shard::3@1+shard::4@3")
	for _ in range(3):  # what is shown is not counted on top of itself
		shows_shares(shares, {1: 3, 3: 4})
	job = int(shares.submit(tres="shard:4", cpus=1)["job"])
	shares.becomes(job, "RUNNING")
	on = int(re.fullmatch(r"shard::4@([02])", shares.jobs()[job]["gres"])[1])
	shows_shares(shares, {1: 3, 3: 4, on: 4})
	shares.tell("unmask")
	shares.scheduled()
	shows_shares(shares, {on: 4})
	all_free(shares, ("--gres=gpu:4",))


def test_shares_of_a_device_that_a_pod_holds_are_nobodys(shares):
	shares.tell("mask", "n1", "gres=gpu::3@0-2")
	start(shares, "--gres=shard:4")
	waits(shares, "--gres=shard:1")
	all_free(shares, ("--gres=gpu:4",))


def test_job_that_shares_a_gpu_by_mps_gets_one_that_no_pod_has():
	"""Of MPS only one device is used at a time (one_sharing): it must not be the one that is hidden."""
	cluster = Cluster(nodes=["n1"], conf=PODS, gres="gpu@0-7:4,mps:400")
	try:
		cluster.tell("mask", "n1", "gres=gpu::2@0,3")
		start(cluster, "--gres=mps:50")
		start(cluster, "--gres=mps:50")  # on the same one
		cluster.tell("mask", "n1", "gres=gpu::4@0-3")
		waits(cluster, "--gres=mps:10")
	finally:
		cluster.down()


def start_on_3(shares, gres):
	"""Slurm takes the first GPU that is free."""
	others = start(shares, "--gres=gpu:3")
	assert of_job(shares, others) == {0, 1, 2}
	start(shares, f"--gres={gres}")
	shares.run("scancel", str(others))
	shares.becomes(others, "CANCELLED")


@pytest.mark.parametrize("job,pod", [("shard:1", "gpu::1"), ("gpu:1", "shard::2")])
def test_pod_has_no_device_that_a_job_has_by_its_other_name(shares, job, pod):
	start_on_3(shares, job)
	shares.tell("mask", "n1", f"gres={pod}")
	waits(shares, "--gres=gpu:3")
	start(shares, "--gres=gpu:2")
	all_free(shares, ("--gres=gpu:4",))


def test_types_are_kept_apart(typed):
	typed.tell("mask", "n1", "gres=gpu:h100:1+token:red:2")
	waits(typed, "--gres=gpu:h100:2")
	waits(typed, "--gres=token:red:2")
	job = start(typed, "--gres=gpu:a100:2,token:blue:2,token:red:1")
	assert of_job(typed, job) == {0, 1}
	other = start(typed, "--gres=gpu:h100:1")
	assert of_job(typed, other) == {2}
	typed.cancel_all()
	typed.tell("mask", "n1", "gres=gpu:a100:3")  # more than there are: any device
	job = start(typed, "--gres=gpu:1")
	assert of_job(typed, job) == {2}
	waits(typed, "--gres=gpu:1")  # a100 or not: 3 is hidden
	waits(typed, "--gres=gpu:a100:1")
	all_free(typed, ("--gres=gpu:4,token:red:3,token:blue:2",))


def test_types_of_what_is_only_counted_are_kept_apart(typed):
	typed.tell("mask", "n1", "gres=token:blue:1")
	waits(typed, "--gres=token:blue:2")
	start(typed, "--gres=token:red:3,token:blue:1")
	typed.cancel_all()
	typed.tell("mask", "n1", "gres=token:red:4")  # more than there are: any
	waits(typed, "--gres=token:red:1")
	waits(typed, "--gres=token:blue:2")
	start(typed, "--gres=token:blue:1")
	all_free(typed, ("--gres=token:red:3,token:blue:2",))


def test_devices_of_one_name_are_none_of_another(typed):
	typed.tell("mask", "n1", "gres=hca::1@0+gpu::1@3")
	waits(typed, "--gres=hca:2")
	job = start(typed, "--gres=gpu:3,hca:1")
	assert of_job(typed, job) == {0, 1, 2} and of_job(typed, job, "hca") == {1}
	all_free(typed, ("--gres=gpu:4,hca:2",))


def test_hooks_and_scans_tell_what_a_job_has(gpus):
	told = gpus.submit(tres="gpu:2,token:3", cpus=1)
	job = int(told["job"])
	gpus.becomes(job, "RUNNING")
	assert sorted(gpus.jobs()[job]["gres"].split("+")) == ["gpu::2@0,1", "token::3@"]
	gpus.run("scancel", str(job))
	gpus.becomes(job, "CANCELLED")
	fini = [event for event in gpus.events() if event.startswith("job_fini") and f"job={job} " in event][-1]
	assert "gpu::2@0,1" in fini
	all_free(gpus, ("--gres=gpu:4",))


def test_hooks_and_scans_tell_which_device_a_share_is_of(shares):
	shares.tell("mask", "n1", "gres=gpu::1@0")
	job = int(shares.submit(tres="shard:3", cpus=1)["job"])
	shares.becomes(job, "RUNNING")
	assert re.fullmatch(r"shard::3@[1-3]", shares.jobs()[job]["gres"])
	all_free(shares, ("--gres=gpu:4",))


def test_masks_hold_in_a_preemptors_choice(gpus):
	"""One of two GPUs that it wants is a pod's: nobody is preempted in vain."""
	gpus.tell("mask", "n1", "gres=gpu::2@0-1")
	low = gpus.batch("-p", "lowone", "-n1", "--mem=10", "--gres=gpu:2")
	gpus.becomes(low, "RUNNING")
	wide = gpus.batch("-p", "one", "-n1", "--mem=10", "--gres=gpu:3")
	gpus.scheduled()
	assert gpus.show(low)["JobState"] == "RUNNING"
	gpus.run("scancel", str(wide))
	fits = gpus.batch("-p", "one", "-n1", "--mem=10", "--gres=gpu:2")
	gpus.becomes(fits, "RUNNING")
	assert of_job(gpus, fits) == {2, 3}
	all_free(gpus, ("--gres=gpu:4",))


def test_what_is_shown_is_gone_with_the_mask_and_nothing_is_left_after_a_reconfigure(gpus):
	gpus.tell("mask", "n1", "gres=gpu::2@0-1+token::2@")
	assert shows(gpus, {0, 1}) and "token:2" in used(gpus)
	job = start(gpus, "--gres=gpu:1")
	assert of_job(gpus, job) == {2}
	gpus.reconfigure()
	gpus.tell("mask", "n1", "gres=gpu::2@0-1")
	assert shows(gpus, {0, 1, 2}) and "token:0" in used(gpus)
	gpus.tell("unmask")
	assert shows(gpus, {2})
	all_free(gpus, ("--gres=gpu:4",))


def end(cluster, job):
	cluster.run("scancel", str(job))
	wait_for("the job's end", lambda: cluster.show(job)["JobState"] == "CANCELLED")


@pytest.mark.parametrize("seed", [1, 2])
def test_no_device_is_given_twice_whatever_comes_and_goes(gpus, seed):
	"""A model of who has which device, beside jobs and pods that come and go at random."""
	dice = random.Random(seed)
	print(f"seed {seed}")
	jobs, pods, foreign = {}, {}, 0

	def mask():
		masks = [f"gpu::{len(held)}@{','.join(map(str, sorted(held)))}" for held in pods.values()]
		masks += [f"gpu::{foreign}@"] if foreign else []
		gpus.tell(*(["mask", "n1", "gres=" + "+".join(masks)] if masks else ["unmask"]))

	def free():
		taken = [device for held in [*jobs.values(), *pods.values()] for device in held]
		assert len(taken) == len(set(taken)), (jobs, pods)
		return 4 - len(taken) - foreign
	for _ in range(40):
		what = dice.choice(["job", "job", "end", "leave", "gone", "foreign", "look"])
		if what == "job":
			wanted = dice.randint(1, 2)
			if wanted <= free():
				job = start(gpus, f"--gres=gpu:{wanted}")
				jobs[job] = of_job(gpus, job)
				assert len(jobs[job]) == wanted
			else:
				waits(gpus, f"--gres=gpu:{wanted}")
		elif what == "end" and jobs:
			job = dice.choice(list(jobs))
			jobs.pop(job)
			end(gpus, job)
		elif what == "leave" and jobs:  # its pod goes on after its job, as job_fini masks it
			job = dice.choice(list(jobs))
			pods[job] = jobs.pop(job)
			mask()
			end(gpus, job)
		elif what == "gone" and pods:
			pods.pop(dice.choice(list(pods)))
			mask()
		elif what == "foreign":
			foreign = min(dice.randint(0, 2), free() + foreign)
			mask()
		elif what == "look":
			used(gpus)
		free()
	all_free(gpus, ("--gres=gpu:4",))


class ShareModel:
	"""Who has how many of the four shares of each of four devices, or a device as a whole."""

	def __init__(self, shares):
		self.cluster = shares
		self.jobs, self.pods, self.foreign = {}, {}, 0  # of jobs and pods, by job: {device: (shares, is it the whole device)}

	def has(self, device):
		return sum(4 if whole else n for held in [*self.jobs.values(), *self.pods.values()]
			for d, (n, whole) in held.items() if d == device)

	def check(self):
		of_devices = [self.has(device) for device in range(4)]
		assert all(n <= 4 for n in of_devices), (self.jobs, self.pods)
		assert sum(of_devices) + self.foreign <= 16, (self.jobs, self.pods, self.foreign)

	def mask(self):
		masks = [f"{'gpu' if whole else 'shard'}::{n}@{device}" for held in self.pods.values() for device, (n, whole) in held.items()]
		masks += [f"shard::{self.foreign}@"] if self.foreign else []
		self.cluster.tell(*(["mask", "n1", "gres=" + "+".join(masks)] if masks else ["unmask"]))

	def start(self, what, wanted):
		"""It must start if a device has room that no foreign pod can have; and may not if none has."""
		room = [4 - self.has(device) for device in range(4)]
		job = int(self.cluster.submit(tres=f"{what}:{wanted}", cpus=1)["job"])
		if self.foreign == 0 and any(left >= (4 if what == "gpu" else wanted) for left in room):
			self.cluster.becomes(job, "RUNNING")
		self.cluster.scheduled()
		if self.cluster.show(job)["JobState"] != "RUNNING":
			self.cluster.run("scancel", str(job))
			return
		held = re.findall(r"(gpu|shard):[^:]*:(\d+)@(\d+)", self.cluster.jobs()[job]["gres"])
		assert sum(int(n) for _, n, _ in held) == wanted, held
		self.jobs[job] = {int(device): (int(n), name == "gpu") for name, n, device in held}


def keeps_shared_devices():
	"""22.05 itself gives a GPU to a job while another has a share of it, once a third that had one has ended: the first end
	takes the device for free (_job_dealloc(), gres_ctld.c). 24.11 looks at what others have."""
	return starts_again(version())


@pytest.mark.parametrize("seed", [1, 2])
def test_no_share_is_given_twice_whatever_comes_and_goes(shares, seed):
	dice = random.Random(seed)
	print(f"seed {seed}")
	model = ShareModel(shares)
	for _ in range(60):  # most of the time most shares are taken
		what = dice.choice([*["share"] * 6, "gpu", "end", "leave", "leave", "gone", "foreign", "foreign", "look"])
		if what == "share":
			model.start("shard", dice.randint(1, 4))
		elif what == "gpu" and keeps_shared_devices():
			model.start("gpu", 1)
		elif what == "end" and model.jobs:
			job = dice.choice(list(model.jobs))
			model.jobs.pop(job)
			end(shares, job)
		elif what == "leave" and model.jobs:  # its pod goes on after its job, as job_fini masks it
			job = dice.choice(list(model.jobs))
			model.pods[job] = model.jobs.pop(job)
			model.mask()
			end(shares, job)
		elif what == "gone" and model.pods:
			model.pods.pop(dice.choice(list(model.pods)))
			model.mask()
		elif what == "foreign":
			free = 16 - sum(model.has(device) for device in range(4))
			model.foreign = min(dice.randint(0, 5), free)
			model.mask()
		elif what == "look":
			used(shares)
		model.check()
	all_free(shares, ("--gres=shard:4",))


def seen(cluster):
	"""What the engine is told of n1's GRES; the change itself is refused, and changes nothing."""
	return set(cluster.ask("node", "n1", "resume", "expected=nothing")["gres"].split(","))


def test_engine_sees_what_jobs_can_have_of_each_type(typed):
	has = {"gpu:a100:2", "gpu:h100:2", "hca::2", "token:red:3", "token:blue:2"}
	assert seen(typed) == has
	start(typed, "--gres=gpu:a100:1,hca:1")
	assert seen(typed) == has


def test_engine_sees_shares_and_devices_as_numbers(shares):
	assert seen(shares) == {"gpu::4", "shard::16", "token::5"}
