# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""How a pod ends is how its job ends. All pods of this file run side by side."""
import pytest
from stands.replays import once_only

OVER = ("COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED")

# name: what it does
PODS = {
	"zero": {"command": "exit 0"},
	"seven": {"command": "exit 7"},
	"memory": {"command": "tail /dev/zero", "limits": {"memory": "24Mi"}},
	"two": {"containers": {"late": "sleep 4; exit 9", "early": "sleep 1; exit 4", "fine": "exit 0"}},
	"deadline": {"command": "sleep 600", "grace": 1, "activeDeadlineSeconds": 3},
	"init": {"command": "exit 0", "first": "exit 6"},
	"whole": {"command": "sleep 2", "cpu": "1500m", "memory": "100Mi"},
}


@pytest.fixture(scope="module")
def pods(shared):
	return {name: shared.pod(name, **prepared(shared, what)) for name, what in PODS.items()}


def prepared(stand, what):
	"""A limit of memory kills real containers; kubesim is told to say so."""
	if stand.kind == "sim" and "limits" in what:
		return {"command": "exit 137", "annotations": {"kubesim.slurm-k8s.io/terminate-as": "OOMKilled"}}
	return what


def ended(pod, state, code):
	job = pod.wait_job(*OVER)
	assert (job["JobState"], job["ExitCode"]) == (state, code), pod.about()
	assert len(pod.jobs()) == 1
	return job


def test_pod_that_exits_with_0_is_a_completed_job(pods):
	ended(pods["zero"], "COMPLETED", "0:0")
	assert pods["zero"].phase == "Succeeded"


def test_exit_code_of_a_pod_is_the_exit_code_of_its_job(pods):
	job = ended(pods["seven"], "FAILED", "7:0")
	assert "exit code 7" in job["SystemComment"]


def test_pod_killed_for_memory_is_a_job_out_of_memory(pods):
	job = ended(pods["memory"], "OUT_OF_MEMORY", "0:125")
	assert "OOMKilled" in job["SystemComment"]


def test_first_container_that_fails_counts(pods):
	pods["two"].wait_job(*OVER)
	failed = {run.stop: run.code for run in pods["two"].runs() if run.code}  # a busy kubelet may start one after the other's end
	assert set(failed.values()) == {4, 9}
	ended(pods["two"], "FAILED", f"{failed[min(failed)]}:0")


@pytest.mark.apis("real")  # kubesim runs no init containers
def test_failing_init_container_fails_the_job(pods):
	ended(pods["init"], "FAILED", "6:0")
	assert {run.container for run in pods["init"].runs()} == {"first"}


def test_active_deadline_is_a_timeout_and_no_process_is_left(pods):
	ended(pods["deadline"], "TIMEOUT", "0:0")
	assert pods["deadline"].phase == "Failed"
	assert all(run.stop for run in pods["deadline"].runs())


def test_request_becomes_whole_cores_and_memory_and_the_pod_says_where_it_runs(pods):
	pod = pods["whole"]
	job = ended(pod, "COMPLETED", "0:0")
	assert "cpu=2,mem=100M,node=1" in job.get("AllocTRES", job.get("TRES"))  # TRES until 22.05
	notes = pod.get()["metadata"]["annotations"]
	assert notes["slurm-k8s.io/job-id"] == job["JobId"]
	assert notes["slurm-k8s.io/node"] == pod.node == job["NodeList"]
	assert len(notes["slurm-k8s.io/cores"].replace("-", ",").split(",")) == 2


@once_only
def test_each_pod_was_bound_once_and_by_us(pods, shared):
	for pod in pods.values():
		pod.wait_job(*OVER)
	bindings = shared.bindings()
	assert [len(bindings[pod.uid]) for pod in pods.values()] == [1] * len(pods)
	assert not any("slurm-k8s.io/job" in pod.get()["metadata"].get("finalizers", []) for pod in pods.values())
