# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""--constraint=k8s.exclusive: a busy node is emptied for a job, within what PodDisruptionBudgets allow, and goes back."""
import time

import pytest
from command import tool
from exclusive import TAINT, WANTED, emptying, launched_after, replica
from foreign import foreign, of_daemon_set, wait_masked
from node import Node, taints
from outage import saved
from stands.waiting import wait_for

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-k8s"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(name="emptying")
def emptying_fixture(request, gated):
	"""n1 is to be had without others' pods. A parameter: other settings."""
	yield from emptying(gated, **getattr(request, "param", {}))


@pytest.fixture
def budget(emptying):
	"""Of the pods with this label; so many of them may go now. Nobody else writes its status here."""
	made = []

	def allow(app, disruptions):
		path = f"{BUDGETS}/{app}"
		if app not in made:
			emptying.api.post(BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
				"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}})
			made.append(app)
		generation = emptying.api.get(path)["metadata"].get("generation", 1)
		emptying.api.patch(path + "/status", {"status": {"observedGeneration": generation, "disruptionsAllowed": disruptions,
			"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}})
	yield allow
	for app in made:
		emptying.api.delete(f"{BUDGETS}/{app}")


IDLE = 6  # seconds


@pytest.mark.parametrize("emptying", [{"idle": f"{IDLE}s"}], indirect=True)
def test_busy_node_becomes_exclusive_and_returns_after_its_idle_time(emptying):
	node = Node(emptying)
	pods = [replica(emptying, name) for name in ("web-1", "web-2")]
	daemon = of_daemon_set(emptying, "daemon", "0")  # which is nobody's to evict: its controller would make it again there
	wait_masked(emptying, "web-1", "web-2", "daemon")
	job = emptying.batch(8, seconds=None, options=WANTED)
	other = emptying.batch(4)
	launched_after(job, *pods)
	for pod in pods:
		pod.wait_gone()
	emptying.reconfigure()
	emptying.scheduled()
	assert daemon.phase == "Running" and "deletionTimestamp" not in daemon.get()["metadata"]
	saved(emptying)
	emptying.restart_slurmctld(kill=False)
	node.stays("the job's own", lambda: TAINT in taints(node) and (job.state, other.state) == ("RUNNING", "PENDING"), IDLE + 2)
	job.finish()
	job.wait("COMPLETED")
	other.wait("RUNNING")
	node.wait("given back", lambda: TAINT not in taints(node), 60)
	assert time.time() >= job.stamps()[1] + IDLE
	assert daemon.phase == "Running"
	foreign(emptying, "back", cpu="1").wait_running()


def test_budget_of_two_pods_that_allows_one_eviction_lets_one_go_and_the_other_when_it_allows_that(emptying, budget):
	pods = [replica(emptying, name, app="pair") for name in ("pair-1", "pair-2")]
	wait_masked(emptying, "pair-1", "pair-2")
	budget("pair", 1)
	job = emptying.batch(8, options=WANTED)
	wait_for("one to go", lambda: [pod for pod in pods if not pod.get()], 120, job.why)
	stays, = (pod for pod in pods if pod.get())
	refused = f"pod default/{stays.name} is not evicted yet"
	before = emptying.log().count(refused)
	wait_for("another refusal", lambda: emptying.log().count(refused) > before, 60, job.why)
	assert "deletionTimestamp" not in stays.get()["metadata"] and job.stamps() == (None, None)
	budget("pair", 1)
	launched_after(job, *pods)


def test_budget_holds_until_it_allows_the_eviction_also_over_a_restart_and_a_reconfigure(emptying, budget):
	pod = replica(emptying, "web-3")
	wait_masked(emptying, "web-3")
	budget("web-3", 0)
	job = emptying.batch(8, options=WANTED)

	def refusals():
		return emptying.log().count("pod default/web-3 is not evicted yet")
	wait_for("two refusals", lambda: refusals() >= 2, 60, job.why)
	for again in (lambda: emptying.restart_slurmctld(kill=False), emptying.reconfigure):  # Slurm may not have saved yet that there is this job
		again()
		before = refusals()
		wait_for("a refusal of the next engine", lambda: refusals() > before, 120, job.why)
		assert job.state == "CONFIGURING" and job.stamps() == (None, None)
	said = tool(emptying, "status", "--node", "n1")
	assert f"exclusive: is emptied for job {job.id}, for another " in said and "pod default/web-3 has not gone; " in said, said
	assert "deletionTimestamp" not in pod.get()["metadata"] and TAINT in taints(Node(emptying))
	budget("web-3", 1)
	launched_after(job, pod)


@pytest.mark.apis("sim")
@pytest.mark.parametrize("emptying", [{"timeout": "2s"}], indirect=True)
def test_job_whose_node_is_not_emptied_in_time_goes_back_into_the_queue_and_the_node_back_to_pods(emptying, budget):
	pod = replica(emptying, "web-5")
	wait_masked(emptying, "web-5")
	budget("web-5", 0)
	job = emptying.batch(8, options=WANTED)
	wait_for("the job in the queue again", lambda: int(job.show()["Restarts"]) >= 1, 60, job.why)
	told = [f"job {job.id} of cluster stand: back into the queue: node n1: pod default/web-5 has not gone; ",
		"node stand/n1: is not tainted any more: no job has it without others' pods"]
	wait_for("the node given back", lambda: all(line in emptying.log(emptying.log_began) for line in told), 60, job.why)
	assert job.stamps() == (None, None) and pod.phase == "Running"
	pod.delete()
	launched_after(job, pod)


@pytest.mark.apis("sim")
def test_missing_right_to_evict_is_named_and_the_job_starts_when_it_is_given(emptying):
	pod = replica(emptying, "web-4")
	wait_masked(emptying, "web-4")
	rules = emptying.api.get(ROLE)["rules"]
	emptying.api.patch(ROLE, {"rules": [rule for rule in rules if rule["resources"] != ["pods/eviction"]]})
	try:
		job = emptying.batch(8, options=WANTED)
		wait_for("the right in the log", lambda: "the verb create on pods/eviction" in emptying.log(emptying.log_began), 60, job.why)
		assert job.state == "CONFIGURING" and "deletionTimestamp" not in pod.get()["metadata"]
	finally:
		emptying.api.patch(ROLE, {"rules": rules})
	launched_after(job, pod)
