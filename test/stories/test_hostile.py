# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Pods that mean harm or make no sense: one clear line, nothing lost, nothing forged, and everybody else is served.

test/unit/core/hostile_test.cc has more of them; these go through servers, Slurm and its log.
"""
import re

import pytest
from stands.api import ApiError

OWN = "slurm-k8s.io/"
FINALIZER = OWN + "job"
FORGED = "slurmctld: error: FORGED"

# name: (annotations, more of the pod) -> part of the one sentence
REFUSED = {
	"cpus-negative": ({}, {"cpu": "-1"}, "is negative"),
	"cpus-beyond": ({}, {"cpu": "1e30"}, "the amount of cpu is"),
	"memory": ({}, {"memory": "7Ei"}, "the amount of memory is more than any node has"),
	"newline": ({OWN + "comment": "a\n" + FORGED}, {}, "annotation slurm-k8s.io/comment: it has line ends"),
	"escape": ({OWN + "job-name": "\x1b[2J\x07"}, {}, "control or invisible characters"),
	"zero": ({OWN + "job-name": "a\0b"}, {}, "control or invisible characters"),
	"c1": ({OWN + "comment": "\u009b31m"}, {}, "control or invisible characters"),
	"direction": ({OWN + "job-name": "\u202egnp.exe"}, {}, "control or invisible characters"),
	"separator": ({OWN + "comment": "a\u2028" + FORGED}, {}, "line ends"),
	"column": ({OWN + "job-name": "a|root|RUNNING"}, {}, "leave out the character |"),
	"field": ({OWN + "job-name": "a UserId=root(0)"}, {}, "it would look like another field"),
	"long": ({OWN + "job-name": "n" * 1001}, {}, "longer than 1000 bytes"),
	"root": ({OWN + "user-id": "0"}, {}, 'may not run as user "0"'),
	"root-by-format": ({OWN + "account": "%s%n%s%n"}, {}, 'may not use account "%s%n%s%n"'),
}

# name: annotations and more of the pod; they run, with these texts in their jobs
ACCEPTED = {
	"format": ({OWN + "comment": "%s%n%p", OWN + "job-name": "%d%s%n"}, {}),
	"quotes": ({OWN + "comment": "a'b\"c`d$(e);f", OWN + "job-name": "';DROP TABLE job;--"}, {}),
	"unicode": ({OWN + "comment": "grüß dich 😀", OWN + "job-name": "名前"}, {}),
	"a-long-name": ({OWN + "job-name": "n" * 1000}, {}),
	"big-annotations": ({"example.com/" + str(i): "x" * 25000 for i in range(10)}, {}),
	"marks": ({OWN + "job-id": "1", OWN + "job-submit-time": "1", OWN + "node": "n2", OWN + "cores": "0-63"}, {"node": "n1"}),
	"finalizer": ({}, {"finalizers": [FINALIZER]}),
}

# What a server itself does not let in: nothing of it reaches Slurm.
KEPT_OUT = {"cpus-negative", "cpus-beyond"}


def make(stand, name, annotations, more):
	"""The pod, or None if the server does not let it in."""
	try:
		return stand.pod("hostile-" + name, annotations=annotations, **more)
	except ApiError as error:
		assert name in KEPT_OUT and error.status in (400, 422), error
		return None


@pytest.fixture(scope="module")
def pods(shared):
	rows = {**{name: row[:2] for name, row in REFUSED.items()}, **ACCEPTED}
	return {name: make(shared, name, *row) for name, row in rows.items()}


def test_names_that_kubernetes_forbids_do_not_get_so_far(shared):
	for name in ("n" * 300, "a\n" + FORGED, "../pods", "%s%n"):
		with pytest.raises(ApiError) as refusal:
			shared.pod(name)
		assert refusal.value.status == 422
	with pytest.raises(ApiError) as refusal:
		shared.pod("a-megabyte", annotations={"example.com/a": "x" * (1 << 20)})
	assert refusal.value.status == 422


@pytest.mark.parametrize("name", REFUSED)
def test_absurd_pod_gets_one_clear_line_and_no_job(shared, pods, name):
	pod, sentence = pods[name], REFUSED[name][2]
	if pod is None:
		return
	told = pod.wait_condition(sentence)
	assert told["reason"] == "SlurmRefused"
	assert told["message"].isprintable() and len(told["message"]) <= 1024
	kind, _, text = pod.wait_event("SlurmRefused", sentence)
	assert kind == "Warning" and text == told["message"]
	assert pod.jobs() == [] and pod.node is None
	about = f"pod stand/{pod.ns}/{pod.name} uid {pod.uid} job none: refused: "
	assert shared.log(shared.log_began).count(about) == 1
	pod.delete()
	pod.wait_gone()


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_text_is_in_the_job_as_it_is_and_the_pod_runs(pods, name):
	pod, notes = pods[name], ACCEPTED[name][0]
	job = pod.wait_job("COMPLETED")
	assert job["JobName"] == notes.get(OWN + "job-name", pod.name)
	if OWN + "comment" in notes:
		assert job["Comment"].startswith(notes[OWN + "comment"])
	assert job["AdminComment"] == f"k8s:stand/{pod.ns}/{pod.name}/{pod.uid}"
	assert job["UserId"] == "daemon(1)" and job["Account"] == "general"
	pod.wait_phase("Succeeded")
	# whatever it said of itself before
	assert pod.seen["metadata"]["annotations"][OWN + "job-id"] == job["JobId"]
	assert pod.seen["metadata"]["annotations"][OWN + "node"] == pod.node == job["NodeList"]
	pod.delete()
	pod.wait_gone()


def test_pod_for_ten_thousand_cpus_waits_with_a_reason_and_goes_when_it_is_deleted(shared):
	pod = shared.pod("hostile-ten-thousand", cpu="10k")
	told = pod.wait("a sentence", lambda: pod.condition().get("message"))
	assert told.isprintable() and pod.node is None
	pod.delete()
	pod.wait_gone()
	pod.wait("no live job", lambda: all(job["JobState"] == "CANCELLED" for job in pod.jobs()))


def test_pod_that_never_was_ours_goes_though_it_has_our_finalizer(shared):
	pod = shared.pod("claims-to-be-ours", ns="unmapped", finalizers=[FINALIZER])
	pod.wait_condition("is not mapped")
	pod.delete()
	pod.wait_gone()


def test_nobody_forges_a_line_of_the_log_or_a_column_of_squeue(shared, pods):
	for pod in filter(None, pods.values()):
		pod.wait("an answer", lambda pod=pod: pod.get() is None or pod.jobs() or pod.condition())
	log = shared.log(shared.log_began)
	assert not re.findall(r"^(?:\[[^]]*\] )?(?:slurmctld: )?error: FORGED", log, re.MULTILINE)
	assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e]", log)
	for line in shared.run("squeue", "-a", "-h", "-t", "all", "-o", "%i|%u|%j|%T").splitlines():
		assert line.count("|") == 3 and line.split("|")[1] in ("daemon", "games", "news", "root"), line
	shared.pod("after-all-that").wait_phase("Succeeded")
