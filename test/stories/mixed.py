# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A stand whose nodes are shared as mixed, and its reservation pods."""
import contextlib
import os
import re
from urllib.parse import quote

import yaml
from stands.api import ApiError
from stands.waiting import wait_for
from world import TEST

NAMESPACE = "slurm-k8s-jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ETC = os.path.join(os.path.dirname(TEST), "etc")
IMAGE = "localhost/pause:test"
PATHS = {"Namespace": "/api/v1/namespaces", "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
	"RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"}


def apply(stand):
	"""kubectl create -f etc/kubernetes-reservations-namespace.yaml; kubectl apply -f etc/kubernetes-reservations.yaml"""
	for name in ("kubernetes-reservations-namespace.yaml", "kubernetes-reservations.yaml"):
		with open(os.path.join(ETC, name), encoding="utf-8") as file:
			for item in yaml.safe_load_all(file):
				try:
					stand.api.post(PATHS[item["kind"]].format(NAMESPACE), item)
				except ApiError as error:
					if error.status != 409:
						raise


def allow_containers(stand):
	"""kubectl apply -f etc/kubernetes-containers.yaml"""
	with open(os.path.join(ETC, "kubernetes-containers.yaml"), encoding="utf-8") as file:
		stand.api.patch(f"/api/v1/namespaces/{NAMESPACE}", yaml.safe_load(file))


@contextlib.contextmanager
def edited(stand):
	"""Yields (the text of the settings, clusters[0] of them to be changed), and writes what has become of it. Nobody reads it yet."""
	path = stand.env["SLURM_K8S_CONF"]
	with open(path, encoding="utf-8") as file:
		text = file.read()
	about = yaml.safe_load(text)
	yield text, about["clusters"][0]
	with open(path, "w", encoding="utf-8") as file:
		yaml.safe_dump(about, file)


@contextlib.contextmanager
def engine_begins_anew(stand):
	"""Until the engine has what is changed in here, and knows all pods: a foreign pod that is deleted in between is only missed, and
	what it holds is masked for a minute and a half. Without a change it goes on as it is. Whoever changes settings waits here, or
	who comes next would take this start for its own."""
	def settings():
		with open(stand.env["SLURM_K8S_CONF"], encoding="utf-8") as file:
			return yaml.safe_load(file)
	before, starts = settings(), stand.engine_starts()
	yield
	if stand.starts_again or settings() != before:
		wait_for("the engine to know all pods", lambda: stand.engine_starts() > starts, 60)


def share(stand, reservations=None, **nodes):
	"""These settings of clusters[].nodes, until the engine has them; returns the text that was there."""
	with engine_begins_anew(stand):
		with edited(stand) as (before, cluster):
			cluster["nodes"].update(nodes)
			if reservations:
				cluster["reservations"] = reservations
		stand.reconfigure()
	return before


def set_resources(stand, resources):
	"""clusters[].resources, until the engine has them; returns the text that was there, for restore()."""
	with engine_begins_anew(stand):
		with edited(stand) as (before, cluster):
			cluster["resources"] = resources
		stand.reconfigure()
	return before


def restore(stand, text):
	"""The settings that were there, until the engine has them."""
	with engine_begins_anew(stand):
		with open(stand.env["SLURM_K8S_CONF"], "w", encoding="utf-8") as file:
			file.write(text)
		stand.reconfigure()


def mixing(stand, sharing="mixed", **settings):
	"""The stand while its nodes are mixed, for a fixture. settings: more of those of reservations."""
	apply(stand)
	before = share(stand, {"image": IMAGE, **settings}, sharing=sharing)
	yield stand
	stand.run("scancel", "--quiet", "-u", "root", check=False)
	wait_for("no reservation", lambda: not reservations(stand), 60, lambda: str(list(reservations(stand))))
	restore(stand, before)


def reservations(stand):
	"""{(job id, node): object} of those that have one job."""
	found = [(pod["metadata"].get("labels", {}).get("slurm-k8s.io/job", ""), pod) for pod in stand.api.get(PODS)["items"]]
	return {(int(job), pod["spec"].get("nodeName")): pod for job, pod in found if job.isdigit()}


def refusals(stand):
	"""The pods that kubelets have refused, by their events: the pods themselves are soon gone."""
	events = stand.api.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
	return [event["involvedObject"]["name"] for event in events if event["reason"] == "OutOfcpu"]


def wait_reservation(stand, job_id, node="n1", seconds=60):
	return wait_for(f"reservation of job {job_id} on {node}", lambda: reservations(stand).get((job_id, node)), seconds,
		lambda: stand.run("squeue", "-a", "-o", "%i %T %r %N"))


def wait_no_reservation(stand, job_id, seconds=30):
	wait_for(f"no reservation of job {job_id}", lambda: not [key for key in reservations(stand) if key[0] == job_id], seconds,
		lambda: str(list(reservations(stand))))


def evict(stand, pod, api=None):
	"""As kubectl drain does. api: another connection than the stand's."""
	meta = pod["metadata"]
	api, path = api or stand.api, f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
	api.post(path + "/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": meta["name"]}})


def drain(stand, name, selector=""):
	"""kubectl drain NAME --force, after the cordon: evicts the pods of the node, and waits until each is gone, or its name is
	another pod's. selector: --pod-selector. Returns the names. On kubesim without kubectl, whose discovery it has not."""
	if stand.kind == "real":
		said = stand.run("kubectl", f"--kubeconfig={stand.env['KUBECONFIG']}", "drain", name, "--force", "--timeout=60s",
			f"--pod-selector={selector}", seconds=90)
		return {word for word in re.findall(r"^pod/(\S+) evicted$", said, re.MULTILINE)}
	path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}"

	def uids():
		return {pod["metadata"]["uid"] for pod in stand.api.get(path)["items"]}
	found = stand.api.get(path + (f"&labelSelector={quote(selector)}" if selector else ""))["items"]
	for pod in found:
		evict(stand, pod)
	evicted = {pod["metadata"]["uid"] for pod in found}
	wait_for("the evicted pods to go", lambda: not evicted & uids(), 60)
	return {pod["metadata"]["name"] for pod in found}


def wait_reservations_known(stand):
	"""After other settings: the engine has started again, and lets jobs through its gate."""
	probe = stand.batch(1, seconds=0, node="n2")
	probe.wait("COMPLETED", seconds=60)


def on_eviction(stand, what):
	"""reservations.eviction is this one."""
	share(stand, {"image": IMAGE, "eviction": what})
	wait_reservations_known(stand)


def why_ended(job):
	return job.show().get("SystemComment")


def sharing_pods(stand):
	"""The mixed stand while its small jobs share a pod of each node, for a fixture."""
	share(stand, {"image": IMAGE, "shared": {"maxCpus": 2}})
	wait_reservations_known(stand)
	yield stand
	stand.run("scancel", "--quiet", "-u", "root", check=False)
	share(stand, {"image": IMAGE})
	wait_reservations_known(stand)
	wait_for("no pod", lambda: not names(stand), 60, lambda: str(names(stand)))  # nobody may share one now: it waits for no next job


def names(stand):
	return [pod["metadata"]["name"] for pod in stand.api.get(PODS)["items"]]


def shared_pod(stand, node="n1"):
	found = [pod for pod in stand.api.get(PODS)["items"] if pod["metadata"]["name"] == f"slurm-shared-{node}"]
	return found and found[0]


def requests(stand):
	pod = shared_pod(stand)
	return pod and pod["spec"]["containers"][0]["resources"]["requests"]


def wait_requests(stand, cpu, memory):
	wait_for(f"{cpu} CPUs in the shared pod", lambda: requests(stand) == {"cpu": cpu, "memory": memory}, 30, lambda: str(shared_pod(stand)))
