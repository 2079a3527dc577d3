# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Who a pod is in Slurm is what the administrator's mapping says, whatever the pod claims."""
import pytest
from stands.waiting import StandError

OWN, BRIDGE, SUNK = "slurm-k8s.io/", "slurmjob.slinky.slurm.net/", "sunk.coreweave.com/"

# name: (namespace, annotations) -> what scontrol shows of the job
ACCEPTED = {
	"default": ("default", {}, {"UserId": "daemon(1)", "Account": "general", "Partition": "batch"}),
	"games": ("team-a", {}, {"UserId": "games(5)", "Account": "team-a", "Partition": "low"}),
	"own": ("team-a", {OWN + "partition": "batch"}, {"UserId": "games(5)", "Partition": "batch"}),
	"bridge": ("default", {BRIDGE + "partition": "low", BRIDGE + "timelimit": "7", BRIDGE + "job-name": "called-so"},
		{"Partition": "low", "TimeLimit": "00:07:00", "JobName": "called-so"}),
	"sunk": ("default", {SUNK + "partition": "low", SUNK + "timeout": "61", SUNK + "exclusive": "ok"},
		{"Partition": "low", "TimeLimit": "00:02:00"}),
	"same": ("team-a", {OWN + "account": "team-a", OWN + "user-id": "5", SUNK + "partition": "low"},
		{"UserId": "games(5)", "Account": "team-a", "Partition": "low"}),
	"winner": ("default", {OWN + "partition": "low", BRIDGE + "partition": "short", SUNK + "partition": "batch"},
		{"Partition": "low"}),
}

# name: (namespace, annotations) -> part of the event
REFUSED = {
	"account": ("default", {OWN + "account": "team-a"}, 'namespace default may not use account "team-a"'),
	"user": ("default", {OWN + "user-id": "0"}, 'namespace default may not run as user "0"'),
	"group": ("default", {BRIDGE + "group-id": "0"}, 'namespace default may not run as group "0"'),
	"qos": ("team-a", {SUNK + "qos": "high"}, 'namespace team-a may not use QOS "high"'),
	"partition": ("team-b", {BRIDGE + "partition": "low"}, 'namespace team-b may not use partition "low"'),
	"unmapped": ("unmapped", {}, "namespace unmapped is not mapped to a Slurm user"),
	"unknown": ("broken", {}, "is mapped to a user that the Slurm controller does not know"),
	"priority": ("default", {OWN + "priority": "5"}, "annotation slurm-k8s.io/priority: not supported"),
	"gres": ("default", {BRIDGE + "gres": "gpu:1"}, "annotation slurmjob.slinky.slurm.net/gres: not supported"),
	"unreadable": ("default", {OWN + "time-limit": "soon"}, 'annotation slurm-k8s.io/time-limit: "soon" is not a positive number'),
	"less": ("default", {OWN + "memory": "1Mi"}, "asks Slurm for less memory than the containers request"),
}


@pytest.fixture(scope="module")
def pods(shared):
	both = {**{name: row[:2] for name, row in ACCEPTED.items()}, **{"no-" + name: row[:2] for name, row in REFUSED.items()}}
	return {name: shared.pod("who-" + name, ns=ns, annotations=notes) for name, (ns, notes) in both.items()}


@pytest.mark.parametrize("name", ACCEPTED)
def test_job_belongs_to_whom_the_mapping_says_with_what_it_allows(pods, name):
	job = pods[name].wait_job()
	for key, value in ACCEPTED[name][2].items():
		assert job[key] == value
	pods[name].wait_phase("Succeeded")
	if name != "bridge":
		assert job["JobName"] == pods[name].name
	assert job["AdminComment"] == f"k8s:stand/{pods[name].ns}/{pods[name].name}/{pods[name].uid}"


@pytest.mark.parametrize("name", REFUSED)
def test_pod_that_claims_more_gets_a_warning_and_no_job(pods, name):
	pod = pods["no-" + name]
	text = REFUSED[name][2]
	event = pod.wait_event("SlurmRefused", text)
	assert event[0] == "Warning"
	condition = pod.wait_condition(text)
	assert (condition["status"], condition["reason"]) == ("False", "SlurmRefused")
	assert pod.jobs() == [] and pod.node is None


def test_refused_pod_is_told_once(pods):
	pod = pods["no-account"]
	pod.wait_event("SlurmRefused")
	assert len(pod.events("SlurmRefused")) == 1


def test_refused_pod_is_queued_when_its_annotation_is_mended(pods, shared):
	pod = pods["no-partition"]
	pod.wait_event("SlurmRefused")
	shared.api.patch(pod.path, {"metadata": {"annotations": {BRIDGE + "partition": None}}})
	pod.wait_phase("Succeeded")


def test_nobody_but_us_says_which_pod_a_job_stands_for(shared, pods):
	mark = "k8s:stand/default/who-default/" + pods["default"].uid
	mine = shared.batch(1, options=["-H"])
	with pytest.raises(StandError):
		shared.update(mine.id, "AdminComment=" + mark)
	assert "AdminComment" not in mine.show()
	pods["default"].wait_phase("Succeeded")
	running = shared.pod("marked", "sleep 600", grace=1).wait_running()
	for text in ("other", "", mark):
		with pytest.raises(StandError):
			shared.update(running.job_id, "AdminComment=" + text)
	assert running.job()["AdminComment"].endswith(running.uid)
	assert len(pods["default"].jobs()) == 1
	mine.cancel()
