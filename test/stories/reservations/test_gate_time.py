# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""sharing: mixed: what the gate adds to the time that a kubelet needs to admit a pod.

Of each job, by this machine's clock:
  start      slurmctld's log says that the job has its cores
  created    the API server's audit log: it received the request that creates the reservation pod
  admitted   there: it received the kubelet's first status of that pod
  answered   ... and answered it
  launched   slurmd's log says that it launches the job
The gate adds start .. created and admitted .. launched: Slurm's own way from a start to a launch, which jobs of a node
that is not shared have as well, is in it. What is between created and admitted is the kubelet's (and the API server's).

admitted is when the kubelet's word arrives, for before that nobody can know it: no job may be launched earlier. The API server answers
the kubelet when it has written that word down, and by then the watch may have told slurmctld, which may have launched the job: counted
from the answer the gate would have needed no time at all, or less. So what the API server needs to write it, which is printed, too, is
counted as the gate's.

Of a job with several nodes the pod that was admitted last counts. Jobs with devices are not launched before the agent has told as well
which ones their pod has: that is the gate's.

Of jobs that share a pod (reservations.shared), created is when the API server received the resize, and admitted when it
received the kubelet's first status that has set aside what was asked for.
"""
import os
import re
import time
from collections import namedtuple

import pytest
from device_plugin import with_plugins
from mixed import NAMESPACE, shared_pod, wait_requests
from stands.waiting import wait_for
from world import seconds_of

JOBS = int(os.environ.get("SK8_GATE_JOBS", "30"))
FEW_JOBS = JOBS // 2
SHARED_JOBS = JOBS // 5  # a kubelet takes more than a second for each
GOAL = 0.1  # the median
WORST = 0.5  # p99, of so few the longest: Slurm's thread for the prolog waits for locks that a scheduler's turn holds

Times = namedtuple("Times", "start created admitted answered launched")
LOGGED = 0.002  # logs have milliseconds


def launched_at(stand, job_id, node="n1"):
	"""When slurmd had the job; local time in the log."""
	with open(os.path.join(stand.folder, "log", f"slurmd-{node}.log"), encoding="utf-8", errors="replace") as file:
		found = re.findall(rf"^\[(\S+?)\] .*Launching batch (?:job )?(?:JobId=)?{job_id}\b", file.read(), re.MULTILINE)
	return found and time.mktime(time.strptime(found[0][:19], "%Y-%m-%dT%H:%M:%S")) + float(found[0][19:]) or None


def run(stand, count, **more):
	"""So many jobs, one after the other: their ids."""
	jobs = []
	for _ in range(count):
		job = stand.batch(1, seconds=0, **more)
		job.wait("COMPLETED")
		jobs.append(job.id)
	return jobs


def requests(stand):
	"""{job id: {pod: (created, admitted, answered)}}"""
	created, admitted = {}, {}
	for event in stand.audit():
		ref = event.get("objectRef", {})
		name = ref.get("name", "")
		if ref.get("namespace") != NAMESPACE or event.get("responseStatus", {}).get("code", 500) >= 300:
			continue
		at = seconds_of(event["requestReceivedTimestamp"])
		if ref.get("subresource") == "status":
			admitted.setdefault(name, (at, seconds_of(event["stageTimestamp"])))
		elif event["verb"] == "create":
			created.setdefault(name, at)
	found = {}
	for name, at in created.items():
		if (job := re.match(r"slurm-(\d+)-", name)) and name in admitted:
			found.setdefault(int(job[1]), {})[name] = (at, *admitted[name])
	return found


def timed(stand, jobs, nodes=1):
	"""The Times of these jobs, which had so many nodes each."""
	def told():
		found = requests(stand)
		return all(len(found.get(job, ())) == nodes for job in jobs) and found
	pods = wait_for("all requests in the audit log", told, 30, lambda: str(requests(stand)))
	last = {job: max(pods[job].values(), key=lambda times: times[1]) for job in jobs}
	return [Times(stand.allocated_at(job), *last[job], launched_at(stand, job)) for job in jobs]


def milliseconds(name, values):
	values = sorted(values)
	median, worst = values[len(values) // 2], values[min(len(values) - 1, int(len(values) * 0.99))]
	print(f"{name}: n {len(values)}, median {median * 1000:.1f} ms, p99 {worst * 1000:.1f} ms")
	return median, worst


def judge(found):
	assert found and all(None not in times for times in found)
	assert min(t.launched - t.admitted for t in found) > -LOGGED, "launched before it was admitted"
	milliseconds("start -> created", [t.created - t.start for t in found])
	milliseconds("created -> admitted, the kubelet's own", [t.admitted - t.created for t in found])
	milliseconds("admitted -> answered, the API server's own", [t.answered - t.admitted for t in found])
	milliseconds("admitted -> launched", [t.launched - t.admitted for t in found])
	milliseconds("start -> launched", [t.launched - t.start for t in found])
	median, worst = milliseconds("the gate adds", [t.created - t.start + t.launched - t.admitted for t in found])
	assert median < GOAL and worst < WORST


@pytest.mark.each_release
@pytest.mark.slow
@pytest.mark.apis("real")
def test_gate_adds_less_than_a_tenth_of_a_second_to_what_the_kubelet_needs(mixed):
	run(mixed, 2)  # connections, images, caches
	judge(timed(mixed, run(mixed, JOBS)))


@pytest.mark.slow
@pytest.mark.apis("real")
def test_gate_adds_as_little_to_what_the_slowest_kubelet_of_a_job_needs(mixed):
	both = {"node": "n1,n2", "options": ("-N", "2", "-n", "2")}
	run(mixed, 2, **both)
	judge(timed(mixed, run(mixed, FEW_JOBS, **both), nodes=2))


@pytest.fixture(name="plugged")
def plugged_fixture(request, session_stands):
	for stand, _ in with_plugins(request, session_stands, "n1"):
		yield stand


@pytest.mark.slow
@pytest.mark.apis("real")
def test_gate_adds_as_little_for_jobs_with_devices_that_the_agent_tells(plugged):
	with_gpu = {"options": ("--gres=gpu:a100:1",)}
	run(plugged, 2, **with_gpu)
	judge(timed(plugged, run(plugged, FEW_JOBS, **with_gpu)))


def set_aside(pod):
	"""What the kubelet says that it has set aside for the shared pod's container, CPUs; None while it owes an answer."""
	status = pod.get("status", {})
	if status.get("observedGeneration") != pod["metadata"]["generation"] or not status.get("containerStatuses"):
		return None
	return status["containerStatuses"][0].get("allocatedResources", {}).get("cpu")


def wait_one_alone(stand):
	"""Of the shared pod's jobs one is left, and the kubelet knows."""
	wait_requests(stand, "1", "100Mi")
	wait_for("the kubelet to set aside a CPU", lambda: set_aside(shared_pod(stand)) == "1", 30, lambda: str(shared_pod(stand)))


def first_after(since, times):
	"""times: or tuples that begin with one."""
	return min(at for at in times if (at[0] if isinstance(at, tuple) else at) >= since)


def growths(stand, starts):
	"""(created, admitted, answered) of the jobs with these starts, which found the pod as small as the kubelet knew it."""
	asked, admitted = [], []
	for event in stand.audit():
		about = event.get("objectRef", {})
		if about.get("name") != "slurm-shared-n1" or event.get("responseStatus", {}).get("code", 500) >= 300:
			continue
		if about.get("subresource") == "resize":
			asked.append(seconds_of(event["requestReceivedTimestamp"]))
		elif about.get("subresource") == "status":
			containers = event.get("requestObject", {}).get("status", {}).get("containerStatuses") or [{}]
			if containers[0].get("allocatedResources", {}).get("cpu") == "2":
				admitted.append((seconds_of(event["requestReceivedTimestamp"]), seconds_of(event["stageTimestamp"])))
	created = [first_after(start, asked) for start in starts]
	return [(since, *first_after(since, admitted)) for since in created]


@pytest.mark.slow
@pytest.mark.apis("real")
def test_gate_adds_as_little_to_what_the_kubelet_needs_for_a_shared_pod(sharing):
	stay = sharing.batch(1)
	stay.wait_started()
	jobs = []
	for _ in range(SHARED_JOBS + 1):
		wait_one_alone(sharing)
		jobs += run(sharing, 1)
	wait_one_alone(sharing)
	starts = [sharing.allocated_at(job) for job in jobs]
	launches = [launched_at(sharing, job) for job in jobs]
	judge([Times(*each) for each in zip(starts, *zip(*growths(sharing, starts)), launches)][1:])  # the first fills caches
