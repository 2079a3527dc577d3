# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A stand where bare pods that lose their node are made again."""
import os

import yaml
from mixed import restore
from stands.api import ApiError
from stands.waiting import wait_for
from world import TEST, Pod

FROM = "slurm-k8s.io/resubmitted-from"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
NAME = "slurm-k8s-resubmit"


def post(stand, path, item):
	try:
		stand.api.post(path, item)
	except ApiError as error:
		if error.status != 409:
			raise


def allow(stand):
	"""kubectl apply -f etc/kubernetes-resubmit.yaml; kubectl create rolebinding ... -n default"""
	with open(os.path.join(os.path.dirname(TEST), "etc", "kubernetes-resubmit.yaml"), encoding="utf-8") as file:
		post(stand, ROLES, yaml.safe_load(file))
	post(stand, BINDINGS, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": NAME},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
		"subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "slurm-k8s"}]})


def forbid(stand):
	try:
		stand.api.delete(f"{BINDINGS}/{NAME}")
	except ApiError as error:
		if error.status != 404:
			raise


def resubmitting(stand):
	"""The stand with barePods: resubmit, for a fixture."""
	allow(stand)
	path = stand.env["SLURM_K8S_CONF"]
	with open(path, encoding="utf-8") as file:
		before = file.read()
	about = yaml.safe_load(before)
	for namespace in about["clusters"][0]["namespaces"]:
		namespace["barePods"] = "resubmit"
	with open(path, "w", encoding="utf-8") as file:
		yaml.safe_dump(about, file)
	stand.reconfigure()
	yield stand
	forbid(stand)
	restore(stand, before)


def wait_made_again(pod, seconds=60):
	"""The pod that takes its place."""
	def made():
		try:
			found = pod.stand.api.get(pod.path)
		except ApiError as error:
			if error.status != 404:
				raise
			return None
		return found if found["metadata"]["annotations"].get(FROM) == pod.uid else None
	return Pod(pod.stand, wait_for(f"pod {pod.name} is made again", made, seconds, pod.about))
