# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""etc/kubernetes-rbac.yaml is what is needed and no more: without any one of its verbs one clear error says which is
missing, nothing is damaged meanwhile, and all goes on when the right is given back."""
import collections
import contextlib
import re
import time

import pytest
import yaml
from command import status
from node import Node
from stands.api import Api
from stands.kubernetes import RBAC
from stands.waiting import wait_for
from world import seconds_of

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-k8s"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MOST_PER_SECOND = 3.0  # requests that are refused, for one object: pauses double from 0.8 s


def rules():
	with open(RBAC, encoding="utf-8") as file:
		return next(doc["rules"] for doc in yaml.safe_load_all(file) if doc["kind"] == "ClusterRole")


# every right of the manifest, as (group, resource, verb)
RIGHTS = [(rule["apiGroups"][0], resource, verb) for rule in rules() for resource in rule["resources"] for verb in rule["verbs"]]


def allowed(api, group, resource, verb):
	name, _, sub = resource.partition("/")
	answer = api.post(REVIEWS, {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
		"resourceAttributes": {"group": group, "resource": name, "subresource": sub, "verb": verb, "namespace": "default"}}})
	return answer["status"]["allowed"]


@contextlib.contextmanager
def without(stand, group, resource, verb):
	"""The right is taken away; given back at the end, or before by calling what this yields."""
	ours = Api(stand.env["STAND_SLURM_KUBECONFIG"])

	def give(want):
		left = [{**rule, "verbs": [v for v in rule["verbs"] if want or (resource, v) != (rule["resources"][0], verb)]} for rule in rules()]
		stand.api.patch(ROLE, {"rules": [rule for rule in left if rule["verbs"]]})
		wait_for(f"{verb} on {resource}: {want}", lambda: allowed(ours, group, resource, verb) == want, 20)
	give(False)
	try:
		yield lambda: give(True)
	finally:
		give(True)


def refusals(stand, resource, verb, since):
	"""{object: [when it was refused]} from the audit log."""
	found = collections.defaultdict(list)
	for event in stand.audit():
		ref = event.get("objectRef", {})
		what = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
		if event.get("responseStatus", {}).get("code") == 403 and (what, event["verb"]) == (resource, verb):
			when = seconds_of(event["requestReceivedTimestamp"])
			if when >= since:
				found[ref.get("namespace"), ref.get("name")].append(when)
	return found


def wait_refused(stand, resource, verb, since):
	"""The log names verb and resource, and nothing is asked hot."""
	# told as missing once it has lasted, at once as what may pass: waiting for the former is for few
	told = "a right is missing" if (resource, verb) in REAL else "(a right is missing|refused, which may pass)"
	text = re.compile(rf"{told}: .*the verb {verb} on {resource}\b")
	wait_for(f"'{text.pattern}' in the log", lambda: text.search(stand.log(stand.log_began)), 60)
	# three in a row show the pauses; of what is not tried again there is one
	for times in refusals(stand, resource, verb, since).values():
		times.sort()
		for first, third in zip(times, times[2:]):
			assert 2 / max(third - first, 1e-9) <= MOST_PER_SECOND, times


# -- what needs each right; each returns the pod (or node) that must get what it wants in the end, and a check for meanwhile

def new_pod(stand):
	"""A pod that is to be bound."""
	pod = stand.pod("wants-a-node")
	return pod, lambda: pod.node is None


def protected_pod(stand):
	"""A pod that runs, and whose object nobody else may make vanish."""
	pod = stand.pod("to-be-protected", "sleep 600", grace=1)
	pod.wait_running()
	return pod, lambda: pod.phase == "Running" and pod.job()["JobState"] == "RUNNING"


def protected(pod):
	pod.wait("our finalizer", lambda: "slurm-k8s.io/job" in pod.get()["metadata"].get("finalizers", []))


def waiting_pod(stand):
	"""A pod whose condition is to be written."""
	pod = stand.pod("waits", annotations={"slurm-k8s.io/gres": "gpu:1"})  # refused: it stays so until mended
	return pod, lambda: pod.jobs() == []


def told_pod(stand):
	"""A pod that gets events."""
	pod = stand.pod("is-told")
	pod.wait_phase("Succeeded")
	return pod, lambda: not [event for event in pod.events() if event[1].startswith("Slurm")]


def cancelled_pod(stand):
	"""A pod whose job is cancelled while it runs."""
	pod = stand.pod("cancelled", "sleep 600", grace=1).wait_running()
	stand.run("scancel", str(pod.job_id))
	pod.wait_job("CANCELLED")
	return pod, lambda: pod.phase == "Running"


def looked_at_pod(stand):
	"""A pod whose Binding has an answer that may mean anything: only its object can tell."""
	# without the finalizer, too: the watch would tell of it, and then nobody has to ask
	for match in {"resource": "pods/binding"}, {"resource": "pods", "verb": "patch"}:
		stand.api.post("/kubesim/faults", {"action": "status", "code": 503, "count": 1, "match": match})
	pod = stand.pod("looked-at", "sleep 600", grace=1)
	return pod, lambda: len(pod.jobs()) == 1


def pod_with_claim(stand):
	"""A pod with a volume that any node reaches."""
	stand.api.post(VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "rights"}, "spec": {
		"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}, "storageClassName": "",
		"claimRef": {"namespace": "default", "name": "rights"}}})
	stand.api.post(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "rights"}, "spec": {
		"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "volumeName": "rights", "storageClassName": ""}})
	stand.api.patch(f"{CLAIMS}/rights/status", {"status": {"phase": "Bound"}})
	pod = stand.pod("has-a-claim", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "rights"}}])
	return pod, lambda: pod.jobs() == []


def pod_with_class(stand):
	"""A pod with a claim that is not bound."""
	stand.api.post(CLASSES, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "rights"},
		"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
	stand.api.post(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "rights"}, "spec": {
		"storageClassName": "rights", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}})
	pod = stand.pod("has-a-class", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "rights"}}])
	return pod, lambda: pod.jobs() == []


def drained_node(stand):
	"""A node that is to be cordoned, as Slurm drains it."""
	node = Node(stand)
	node.drain()
	stand.after = node.settle
	return node, lambda: not node.cordoned and node.drained


def drained_node_to_wait_for(stand):
	"""... and whose condition is to say when its last job is gone."""
	node, _ = drained_node(stand)
	return node, lambda: node.drained and (node.condition() or ["False"])[0] == "False"


def after_a_restart(stand):
	"""A pod while slurmctld, which must list and watch anew, comes back."""
	keeper = stand.pod("keeper", "sleep 600", cpu="2", node="n1", grace=1).wait_running()
	job = keeper.job_id
	stand.restart_slurmctld(kill=False)
	batch = stand.batch(8)
	pod = stand.pod("comes-meanwhile")

	def held():
		stand.scheduled()
		assert batch.state == "PENDING"  # its cores are the keeper's, whoever may not look
		# what comes meanwhile may be placed, without a watch by the lists that replace it
		return keeper.phase == "Running" and keeper.job_id == job
	stand.after = lambda: (batch.cancel(), keeper.delete())
	return pod, held


def mended(pod):
	pod.stand.api.patch(pod.path, {"metadata": {"annotations": {"slurm-k8s.io/gres": None}}})
	pod.wait_phase("Succeeded")


# resource, verb -> (what needs it, what is true once it is back)
STORIES = {
	("pods", "list"): (after_a_restart, lambda pod: pod.wait_phase("Succeeded", seconds=90)),
	("pods", "watch"): (after_a_restart, lambda pod: pod.wait_phase("Succeeded", seconds=90)),
	("nodes", "list"): (after_a_restart, lambda pod: pod.wait_phase("Succeeded", seconds=90)),
	("nodes", "watch"): (after_a_restart, lambda pod: pod.wait_phase("Succeeded", seconds=90)),
	("nodes", "patch"): (drained_node, lambda node: node.wait("cordoned", lambda: node.cordoned, 60)),
	("nodes/status", "patch"): (drained_node_to_wait_for, lambda node: node.wait_condition("True", "bad disk", 60)),
	("pods", "get"): (looked_at_pod, lambda pod: pod.wait_running()),
	("pods", "patch"): (protected_pod, protected),
	("pods", "delete"): (cancelled_pod, lambda pod: pod.wait_gone()),
	("pods/status", "patch"): (waiting_pod, mended),
	("pods/binding", "create"): (new_pod, lambda pod: pod.wait_phase("Succeeded")),
	("events", "create"): (told_pod, lambda pod: pod.wait_phase("Succeeded")),
	("persistentvolumeclaims", "get"): (pod_with_claim, lambda pod: pod.wait_phase("Succeeded")),
	("persistentvolumes", "get"): (pod_with_claim, lambda pod: pod.wait_phase("Succeeded")),
	("storageclasses", "get"): (pod_with_class, lambda pod: pod.wait_condition("WaitForFirstConsumer")),
}
# Its story needs nodes that are emptied for jobs: test/stories/sharing/test_exclusive.py
ELSEWHERE = {("pods/eviction", "create")}
# On a real server too: one of each kind. Its own controllers would bind claims, and it has no faults to order.
REAL = {("pods/binding", "create"), ("pods", "delete"), ("pods", "list")}


def test_every_right_of_the_manifest_has_its_story():
	assert {(resource, verb) for _, resource, verb in RIGHTS} == set(STORIES) | ELSEWHERE


@pytest.fixture
def volumes(stand):
	"""Nothing is left of claims, volumes and classes."""
	yield
	for path in (f"{CLAIMS}/rights", f"{VOLUMES}/rights", f"{CLASSES}/rights"):
		with contextlib.suppress(OSError):
			stand.api.patch(path, {"metadata": {"finalizers": None}})
			stand.api.delete(path)


def name_of(right):
	return f"{right[2]}-{right[1]}".replace("/", "-")


@pytest.mark.apis("sim")
@pytest.mark.parametrize("right", [right for right in RIGHTS if right[1:] not in ELSEWHERE], ids=name_of)
def test_missing_right_is_named_and_does_no_damage_until_it_is_back(stand, volumes, right):
	check(stand, *right)


@pytest.mark.apis("real")
@pytest.mark.parametrize("right", [right for right in RIGHTS if right[1:] in REAL], ids=name_of)
def test_missing_right_is_named_by_a_real_server_too(stand, right):
	check(stand, *right)


def check(stand, group, resource, verb):
	story, ending = STORIES[resource, verb]
	stand.after = lambda: None
	since = time.time()
	try:
		with without(stand, group, resource, verb) as give_back:
			pod, meanwhile = story(stand)
			wait_refused(stand, resource, verb, since)
			if (resource, verb) in REAL:
				assert status(stand)["clusters"][0]["missing_rights"] == [f"{verb} {resource}"]
			assert meanwhile()
			give_back()
			ending(pod)
	finally:
		stand.after()  # a node that stays drained fails the stories that follow, too
	# of several watches that had been refused each has its own answer
	wait_for("no right to be missing", lambda: status(stand)["clusters"][0]["missing_rights"] == [], 10, lambda: str(status(stand)))
	assert all(len(nodes) == 1 for nodes in stand.bindings().values())
	stand.pod("next").wait_phase("Succeeded")
