# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A node that jobs can have without others' pods, and the pods that are in their way."""
import uuid

from foreign import foreign
from mixed import restore, share
from node import Node, taints

TAINT = {"key": "slurm-k8s.io/exclusive", "value": "slurm", "effect": "NoSchedule"}
WANTED = ("-C", "k8s.exclusive")


def label(stand, value):
	stand.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"pool": value}}})


def emptying(stand, **settings):
	"""The stand while n1 is to be had without others' pods, for a fixture. settings: other ones of nodes.exclusive."""
	label(stand, "batch")
	before = share(stand, exclusive={"selector": "pool=batch", "timeout": "10m", "idle": "2s", **settings})
	node = Node(stand)
	node.wait("its features", lambda: node.slurm().get("ActiveFeatures") == "k8s.exclusive,k8s.shared", 60)
	assert Node(stand, "n2").slurm().get("ActiveFeatures", "(null)") == "(null)"
	yield stand
	stand.run("scancel", "--quiet", "-u", "root", check=False)
	node.wait("no taint", lambda: TAINT not in taints(node), 60)
	label(stand, None)
	restore(stand, before)


def of_replica_set():
	"""The owner of a pod that somebody would make again elsewhere."""
	return [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": str(uuid.uuid4()), "controller": True}]


def replica(stand, name, cpu="3", app=None):
	"""A foreign pod of a ReplicaSet. app: of a budget, its name if none is named."""
	return foreign(stand, name, cpu=cpu, owners=of_replica_set(), labels={"app": app or name}).wait_running()


def launched_after(job, *pods):
	"""By the job's own clock and what the runtime tells of the pods' processes."""
	job.wait_started(120)
	for pod in pods:
		runs = pod.runs()
		assert runs and all(run.stop and run.stop <= job.stamps()[0] for run in runs), (job.stamps(), runs)
