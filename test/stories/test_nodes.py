# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Where a pod may run, as far as Kubernetes says it, and pods that cannot run at all."""
import pytest
from stands.waiting import wait_for

CLASS = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "later"},
	"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}


@pytest.fixture
def cordoned(stand):
	"""n1 takes no new pod."""
	stand.close_node("n1", {"unschedulable": True}, "cordoned")
	yield stand
	stand.patch_node("n1", {"unschedulable": None})


def test_node_selector_decides_the_node(stand):
	pods = [stand.pod(f"at-{node}-{i}", node=node) for i in range(2) for node in ("n1", "n2")]
	for pod in pods:
		pod.wait_phase("Succeeded")
		assert pod.node == pod.job()["NodeList"] == pod.name.split("-")[1]


def test_cordoned_node_gets_no_pod_until_it_is_uncordoned(cordoned):
	elsewhere = [cordoned.pod(f"elsewhere{i}") for i in range(3)]
	stuck = cordoned.pod("stuck", node="n1")
	condition = stuck.wait_condition("no node fits this pod")
	assert condition["reason"] == "SlurmRefused"
	assert "1 cordoned" in condition["message"] and "1 nodeSelector" in condition["message"]
	assert "no node fits" in stuck.wait_event("SlurmRefused")[2]
	for pod in elsewhere:
		pod.wait_phase("Succeeded")
		assert pod.node == "n2"
	assert stuck.node is None
	cordoned.patch_node("n1", {"unschedulable": None})
	stuck.wait_phase("Succeeded")
	assert stuck.node == "n1"


def test_pod_that_came_while_a_node_was_cordoned_may_run_there_once_it_is_not(cordoned):
	blocker = cordoned.batch(8, node="n2")
	blocker.wait("RUNNING")
	pod = cordoned.pod("came")
	pod.wait_job("PENDING")
	assert set(pod.job()["ExcNodeList"].split(",")) == {"n1"}
	cordoned.patch_node("n1", {"unschedulable": None})
	pod.wait_phase("Succeeded")
	assert pod.node == "n1" and blocker.state == "RUNNING"


def test_pod_that_waits_is_kept_off_a_node_that_is_cordoned_meanwhile(stand):
	blockers = [stand.batch(8, node=node) for node in ("n1", "n2")]
	for blocker in blockers:
		blocker.wait("RUNNING")
	pod = stand.pod("waits", "sleep 1")
	pod.wait_job("PENDING")
	stand.patch_node("n1", {"unschedulable": True})
	try:
		wait_for("the job's excluded node", lambda: set(pod.job()["ExcNodeList"].split(",")) == {"n1"}, 20, pod.about)
		blockers[0].cancel()
		blockers[0].wait("CANCELLED")
		stand.scheduled()
		assert pod.job()["JobState"] == "PENDING"
		blockers[1].cancel()
		pod.wait_phase("Succeeded")
		assert pod.node == "n2"
	finally:
		stand.patch_node("n1", {"unschedulable": None})


def test_taint_keeps_pods_off_but_for_those_that_tolerate_it(stand):
	stand.close_node("n2", {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}, "taint gpu")
	try:
		stuck = stand.pod("stuck", node="n2")
		tolerant = stand.pod("tolerant", node="n2", tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes"}])
		assert "1 taint gpu" in stuck.wait_condition("no node fits this pod")["message"]
		tolerant.wait_phase("Succeeded")
		assert tolerant.node == "n2" and stuck.node is None
	finally:
		stand.patch_node("n2", {"taints": None})
	stuck.wait_phase("Succeeded")


def test_required_affinity_is_obeyed(stand):
	def affinity(op, *values):
		return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
			{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": op, "values": list(values)}]}]}}}
	other = [stand.pod(f"not-n1-{i}", affinity=affinity("NotIn", "n1")) for i in range(2)]
	nowhere = stand.pod("nowhere", affinity=affinity("In", "n9"))
	for pod in other:
		pod.wait_phase("Succeeded")
		assert pod.node == "n2"
	assert "2 node affinity" in nowhere.wait_condition("no node fits this pod")["message"]
	assert nowhere.jobs() == []


def test_gated_pod_has_no_job_until_its_gates_are_gone(stand):
	gated = stand.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
	other = stand.pod("other")
	other.wait_phase("Succeeded")
	assert gated.jobs() == []
	# kubectl patches so: gates can only be taken away
	stand.api.patch(gated.path, {"spec": {"schedulingGates": []}})
	gated.wait_phase("Succeeded")


def test_pod_with_an_unbound_claim_that_waits_for_its_consumer_is_refused_with_a_reason(stand):
	claims = "/api/v1/namespaces/default/persistentvolumeclaims"
	stand.api.post("/apis/storage.k8s.io/v1/storageclasses", CLASS)
	stand.api.post(claims, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
		"spec": {"storageClassName": "later", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
	try:
		pod = stand.pod("stateful", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
		event = pod.wait_event("SlurmRefused")
		assert "persistentvolumeclaim data is not bound" in event[2] and "WaitForFirstConsumer" in event[2]
		assert pod.wait_condition("WaitForFirstConsumer")["reason"] == "SlurmRefused"
		assert pod.jobs() == []
	finally:
		# its protection finalizer would be a controller's to take off
		stand.api.patch(f"{claims}/data", {"metadata": {"finalizers": None}})
		stand.api.delete(f"{claims}/data")
		stand.api.delete("/apis/storage.k8s.io/v1/storageclasses/later")


@pytest.mark.parametrize("name,what,part", [
	("apart", {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
		"whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]}, "topologySpreadConstraints"),
	("device", {"limits": {"example.com/thing": "1"}}, "it asks for example.com/thing"),
])
def test_pod_that_can_never_run_says_why_in_one_sentence(stand, name, what, part):
	pod = stand.pod(name, **what)
	assert pod.wait_event("SlurmRefused", part)[0] == "Warning"
	assert pod.wait_condition(part)["reason"] == "SlurmRefused"
	assert pod.node is None and not [job for job in pod.jobs() if job["JobState"] != "FAILED"]


def test_pod_that_no_node_is_large_enough_for_waits_as_its_job_does_and_says_why(stand):
	"""An administrator may add such a node: Slurm keeps the job, but 24.11 refuses it, as sbatch's."""
	pod = stand.pod("huge", cpu="64")
	if stand.release.startswith("24.11"):
		pod.wait_condition("Slurm refused the job: CPU count per node can not be satisfied")
		pod.delete()
		return
	message = pod.wait_condition("PartitionConfig")["message"]
	assert "no node of it is large enough" in message
	assert len(pod.jobs()) == 1 and pod.node is None
	pod.delete()
	pod.wait_job("CANCELLED")


def test_pods_of_other_schedulers_are_not_touched(stand):
	stand.api.post("/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foreign"},
		"spec": {"schedulerName": "another", "containers": [{"name": "main", "image": "localhost/busybox:test"}]}})
	ours = stand.pod("ours")
	ours.wait_phase("Succeeded")
	foreign = next(pod for pod in stand.pods() if pod.name == "foreign")
	assert not foreign.condition() and not foreign.events() and foreign.jobs() == [] and foreign.node is None
