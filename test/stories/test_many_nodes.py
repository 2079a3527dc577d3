# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""How soon one side hears of the other's node among a thousand."""
import re
import time
from datetime import datetime, timedelta

import pytest
from claims import API, CLASS, allow, post
from mixed import restore, set_resources, share
from node import Node
from stands.gres import indices
from stands.replays import once_only
from stands.waiting import wait_for

NODES = 1000
TIMES = 8  # the slowest counts


pytestmark = once_only  # a second that was missed is missed


def starts_now(stand, *request):
	"""Slurm's scheduler is asked about such a job: would it start it at once?"""
	said = stand.run("sbatch", "--test-only", "-n1", "--mem=100", *request, "--wrap", "true", check=False).stderr
	at = re.search(r"to start at (\S+)", said)
	return bool(at) and datetime.fromisoformat(at[1]) - datetime.now() < timedelta(seconds=20)


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_cordon_drains_and_drain_cordons_within_a_second_among_a_thousand_nodes(many):
	def took(act, done):
		began = time.monotonic()
		act()
		wait_for("the other side", done, 20)
		return time.monotonic() - began
	node = Node(many, "f1")
	assert len(many.api.get("/api/v1/nodes")["items"]) == NODES + 2
	cordon, drain = [], []
	for _ in range(TIMES):
		cordon.append(took(node.cordon, lambda: node.drained))
		took(node.uncordon, lambda: not node.drained)
		drain.append(took(node.drain, lambda: node.cordoned))
		took(node.resume, lambda: not node.cordoned)
	print(f"cordon -> drain {sorted(cordon)}, drain -> cordon {sorted(drain)} seconds")
	assert max(cordon + drain) < 1, (cordon, drain)


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_label_is_a_feature_and_lets_its_job_go_within_a_second_among_a_thousand_nodes(many):
	zone, feature = "topology.kubernetes.io/zone", "k8s.topology..kubernetes..io/zone"

	def label(value):
		many.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {zone: value}}})

	def has(text):
		return all(text in line for line in many.run("scontrol", "show", "node", "n1").splitlines() if "Features=" in line)
	before = share(many, features=[zone, "kubernetes.io/hostname"])
	try:
		last = f"k8s.kubernetes..io/hostname.f{NODES}"
		wait_for("all nodes to have features", lambda: last in many.run("scontrol", "show", "node", f"f{NODES}"), 60)
		seen, fits, free, ran = [], [], [], []
		for number in range(TIMES):
			began = time.monotonic()
			label(f"y{number}")
			wait_for("the scheduler to see it", lambda n=number: starts_now(many, "-C", f"{feature}.y{n}"), 20)
			fits.append(time.monotonic() - began)
			assert not starts_now(many, "-C", f"{feature}.z{number}")
			began = time.monotonic()
			label(f"z{number}")
			wait_for("the feature", lambda n=number: has(f"{feature}.z{n}"), 20)
			seen.append(time.monotonic() - began)
			began = time.monotonic()
			label(f"x{number}")
			wait_for("the scheduler to miss it", lambda n=number: not starts_now(many, "-C", f"{feature}.z{n}"), 20)
			fits.append(time.monotonic() - began)
			label(f"z{number}")
			wait_for("the feature", lambda n=number: has(f"{feature}.z{n}"), 20)
			job = int(many.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-n1", "--mem", "100", "-C", f"{feature}.z{number}",
				"--begin", "now+1hour", "--wrap", "sleep 600"))
			label("other")
			wait_for("no feature", lambda: has(f"{feature}.other"), 20)
			many.scontrol("update", f"JobId={job}", "StartTime=now")
			wait_for("no node for the job", lambda j=job: many.job(j)["Reason"] == "BadConstraints", 90, lambda j=job: many.job(j))
			began = time.monotonic()
			label(f"z{number}")
			wait_for("the job not to be held", lambda j=job: many.job(j)["Priority"] != "0", 60, lambda j=job: many.job(j))
			free.append(time.monotonic() - began)
			wait_for("the job to run", lambda j=job: many.job(j)["JobState"] == "RUNNING", 60, lambda j=job: many.job(j))
			ran.append(time.monotonic() - began)
			many.run("scancel", str(job))
		print(f"label -> feature {sorted(seen)}, -> scheduler {sorted(fits)}, -> job may run {sorted(free)}, -> runs {sorted(ran)} seconds")
		assert max(seen + fits + free) < 1, (seen, fits, free)
		assert max(ran) < 10, ran  # Slurm looks once a second what it is to start; by itself only every 30
	finally:
		label(None)
		restore(many, before)


GPU, PAGE = "nvidia.com/gpu", "example.com/page"


def kubelet_has(stand, node, number, pages=8):
	amount = {GPU: str(number), PAGE: str(pages)}
	stand.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"capacity": amount, "allocatable": amount}})


def driver_has(stand, node, first=False, tainted=()):
	"""Two devices."""
	have = [{"name": f"hca-{i}", **({"taints": [{"key": "broken", "effect": "NoSchedule"}]} if i in tainted else {})} for i in (0, 1)]
	spec = {"driver": CLASS, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": have}
	if first:
		post(stand, f"{API}/resourceslices", {"kind": "ResourceSlice", "metadata": {"name": f"{node}-hcas"}, "spec": spec})
	else:
		stand.api.patch(f"{API}/resourceslices/{node}-hcas", {"spec": spec})


def used(stand, gres):
	"""The devices of n1: GresUsed=gpu:(null):1(IDX:3),hca:(null):0(IDX:N/A)"""
	text = re.search(r"GresUsed=(\S+)", stand.scontrol("-d", "show", "node", "n1"))[1].replace("(null):", "")
	return indices(re.search(rf"{gres}:\d+\(IDX:(N/A|[-\d,]+)\)", text)[1].replace("N/A", ""))


def used_pages(stand):
	"""How many of n1 no job gets."""
	return int(re.search(r"GresUsed=\S*page:(?:\(null\):)?(\d+)", stand.scontrol("-d", "show", "node", "n1"))[1])


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_device_that_goes_or_comes_back_is_seen_within_a_second_among_a_thousand_nodes(many):
	nodes = [found["metadata"]["name"] for found in many.api.get("/api/v1/nodes")["items"]]
	allow(many)
	post(many, f"{API}/deviceclasses", {"kind": "DeviceClass", "metadata": {"name": CLASS},
		"spec": {"selectors": [{"cel": {"expression": f"device.driver == '{CLASS}'"}}]}})
	times = {}

	def fits(gres):
		return starts_now(many, "-w", "n1", f"--gres={gres}")

	def took(what, act, done):
		began = time.monotonic()
		act()
		wait_for(what, done, 20, lambda: many.scontrol("-d", "show", "node", "n1"))
		times.setdefault(what, []).append(time.monotonic() - began)
	for node in nodes:
		kubelet_has(many, node, 4)
	before = set_resources(many, [{"kubernetes": GPU, "gres": "gpu"}, {"kubernetes": PAGE, "gres": "page"},
		{"deviceClass": CLASS, "gres": "hca"}])
	try:
		for node in nodes:  # drivers that start, one by one
			driver_has(many, node, first=True)
		for _ in range(TIMES):
			assert fits("gpu:4")
			took("device of the kubelet gone", lambda: kubelet_has(many, "n1", 3), lambda: used(many, "gpu") == {3})
			assert not fits("gpu:4")
			job = many.batch(1, node="n1", options=("--gres=gpu:4",))
			many.scheduled()
			assert job.state == "PENDING"
			took("job may run", lambda: kubelet_has(many, "n1", 4), lambda j=job: j.state == "RUNNING")
			job.cancel()
			wait_for("its end", lambda: not many.run("squeue", "-h").strip(), 60)
			took("device gone, for the scheduler", lambda: kubelet_has(many, "n1", 3), lambda: not fits("gpu:4"))
			took("device back, for the scheduler", lambda: kubelet_has(many, "n1", 4), lambda: fits("gpu:4"))
			took("count less", lambda: kubelet_has(many, "n1", 4, pages=3), lambda: used_pages(many) == 5)
			took("count more", lambda: kubelet_has(many, "n1", 4), lambda: not used_pages(many))
			took("count less, for the scheduler", lambda: kubelet_has(many, "n1", 4, pages=5), lambda: not fits("page:6") and fits("page:5"))
			took("count more, for the scheduler", lambda: kubelet_has(many, "n1", 4), lambda: fits("page:8"))
			took("device of the driver gone", lambda: driver_has(many, "n1", tainted={1}), lambda: used(many, "hca") == {1})
			took("device of the driver gone, for the scheduler", lambda: driver_has(many, "n1", tainted={0, 1}), lambda: not fits("hca:1"))
			took("device of the driver back, for the scheduler", lambda: driver_has(many, "n1", tainted={1}), lambda: fits("hca:1"))
			took("device of the driver back", lambda: driver_has(many, "n1"), lambda: not used(many, "hca"))
		print("\n".join(f"{what}: {sorted(seconds)} seconds" for what, seconds in times.items()))
		assert all(max(seconds) < 1 for what, seconds in times.items() if what != "job may run"), times
		assert max(times["job may run"]) < 5, times  # Slurm looks once a second what it is to start
	finally:
		restore(many, before)  # nobody looks at devices then
