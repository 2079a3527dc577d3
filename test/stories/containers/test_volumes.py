# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Claims and host paths in templates, there and not; and what the namespace of the jobs does not let in. Each is told to who waits for srun,
and to who reads the comment of a batch job. Kubelet, containerd and slurmd are real; volumes are bound by hand, as a controller does."""
import contextlib
import os
import pwd

import pytest
from mixed import NAMESPACE, reservations, share, wait_no_reservation
from stands.api import ApiError
from stands.waiting import wait_for
from test_container import containing, told
from test_template import OPTIONS, USER, job_container, mounts, srun, write
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")

CLAIM = f"data-{USER}"
CLAIMS, VOLUMES = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims", "/api/v1/persistentvolumes"
CLASSES, QUOTAS = "/apis/storage.k8s.io/v1/storageclasses", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
ENFORCED = "pod-security.kubernetes.io/enforce"


@pytest.fixture(scope="module", name="allowed_path")
def allowed_path_fixture(tmp_path_factory):
	"""A folder of the node's that its user may write."""
	folder = tmp_path_factory.mktemp("allowed")
	about = pwd.getpwnam(USER)
	os.chown(folder, about.pw_uid, about.pw_gid)
	for above in (folder.parent, folder.parent.parent):
		above.chmod(0o755)
	return folder


@pytest.fixture(name="volumes")
def volumes_fixture(request, session_stands, allowed_path):
	yield from containing(request, session_stands, templates={"allow": True, "claims": ["data-{user}"], "hostPaths": [str(allowed_path)]})


def of_claim(folder, **more):
	return write(folder, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}],
		containers=[job_container(volumeMounts=mounts("data"))], **more)


def sbatch(stand, folder, *words, wait=True):
	"""A batch job with one step in its container; its id."""
	script = folder / "job.sh"
	script.write_text("#!/bin/sh\nsrun true\n")
	script.chmod(0o755)
	for above in (folder, folder.parent, folder.parent.parent):
		above.chmod(0o755)
	wait = ("--wait",) if wait else ()
	done = stand.run("sbatch", "--parsable", *wait, "-n1", *OPTIONS, "-o", "/dev/null", *words, str(script), user=USER, check=False, seconds=150)
	assert done.stdout.strip(), done
	return int(done.stdout.split()[0])


def job_of(stand, number):
	"""As scontrol shows it, but with all of its comments: "name=value" may be in them."""
	lines = (line.strip().partition("=") for line in stand.scontrol("show", "job", str(number)).splitlines())
	return {**stand.job(number), **{name: value for name, _, value in lines if name.endswith("Comment")}}


def last_job(stand):
	return job_of(stand, stand.jobs()[-1]["JobId"])


def gone(api, path):
	"""Also what only a controller would take the finalizer off."""
	with contextlib.suppress(ApiError):
		api.patch(path, {"metadata": {"finalizers": None}})
		api.delete(path)
	with contextlib.suppress(ApiError):
		api.patch(path, {"metadata": {"finalizers": None}})


@contextlib.contextmanager
def claim(stand, **spec):
	stand.api.post(CLAIMS, {"metadata": {"name": CLAIM}, "spec": {"accessModes": ["ReadWriteOnce"],
		"resources": {"requests": {"storage": "1Mi"}}, **spec}})
	try:
		yield
	finally:
		gone(stand.api, f"{CLAIMS}/{CLAIM}")


@pytest.fixture(name="bound")
def bound_fixture(volumes, allowed_path):
	"""A claim with a volume, which is that folder; without one of its own."""
	folder = allowed_path / "of-claim"
	folder.mkdir(exist_ok=True)
	about = pwd.getpwnam(USER)
	os.chown(folder, about.pw_uid, about.pw_gid)
	volumes.api.post(VOLUMES, {"metadata": {"name": CLAIM}, "spec": {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"],
		"hostPath": {"path": str(folder)}, "storageClassName": "", "claimRef": {"namespace": NAMESPACE, "name": CLAIM}}})
	with claim(volumes, volumeName=CLAIM, storageClassName=""):
		uid = volumes.api.get(f"{CLAIMS}/{CLAIM}")["metadata"]["uid"]
		volumes.api.patch(f"{VOLUMES}/{CLAIM}", {"spec": {"claimRef": {"uid": uid}}})
		volumes.api.patch(f"{VOLUMES}/{CLAIM}/status", {"status": {"phase": "Bound"}})
		volumes.api.patch(f"{CLAIMS}/{CLAIM}/status", {"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"],
			"capacity": {"storage": "1Mi"}}})
		yield folder
	gone(volumes.api, f"{VOLUMES}/{CLAIM}")


def written_by_two_tasks(stand, folder, template):
	"""Each task writes a file of its own, and reads the other's."""
	done = srun(stand, "-n2", template, "sh", "-c", "cd /data; echo I am $SLURM_PROCID > of.$SLURM_PROCID; o=$((1 - SLURM_PROCID)); "
		"until test -s of.$o; do sleep 0.1; done; cat of.$o")
	assert sorted(done.stdout.splitlines()) == ["I am 0", "I am 1"], done
	about = pwd.getpwnam(USER)
	for i in (0, 1):
		with open(folder / f"of.{i}", encoding="utf-8") as file:
			assert file.read() == f"I am {i}\n" and os.fstat(file.fileno()).st_uid == about.pw_uid
		os.unlink(folder / f"of.{i}")


def test_tasks_of_a_user_write_and_read_his_claim(volumes, bound, tmp_path):
	written_by_two_tasks(volumes, bound, of_claim(tmp_path))
	wait_no_reservation(volumes, int(volumes.jobs()[-1]["JobId"]))


def test_tasks_of_a_user_write_and_read_a_folder_of_the_node_that_is_allowed(volumes, allowed_path, tmp_path):
	written_by_two_tasks(volumes, allowed_path, write(tmp_path, volumes=[{"name": "data", "hostPath": {"path": str(allowed_path)}}],
		containers=[job_container(volumeMounts=mounts("data"))]))


def ends_with_one_sentence(stand, folder, template, *says):
	done = srun(stand, "-n1", template, "true")
	job = last_job(stand)
	assert done.returncode and job["JobState"] == "CANCELLED" and told(done, says[0], job), (done, job)
	assert not [word for word in says if word not in job["SystemComment"]], job
	wait_no_reservation(stand, int(job["JobId"]))
	job = job_of(stand, sbatch(stand, folder, template))
	assert job["JobState"] == "CANCELLED" and not [word for word in says if word not in job["SystemComment"]], job
	wait_no_reservation(stand, int(job["JobId"]))


def test_claim_that_is_not_there_ends_the_job_with_one_sentence(volumes, tmp_path):
	ends_with_one_sentence(volumes, tmp_path, of_claim(tmp_path), f'persistentvolumeclaims "{CLAIM}" not found')


def test_claim_that_waits_for_a_scheduler_ends_the_job_with_one_sentence(volumes, tmp_path):
	"""Nobody but kube-scheduler says where the volume of such a claim is to be, and it has nothing to do with the job's pod."""
	volumes.api.post(CLASSES, {"metadata": {"name": "late"}, "provisioner": "kubernetes.io/no-provisioner",
		"volumeBindingMode": "WaitForFirstConsumer"})
	try:
		with claim(volumes, storageClassName="late"):
			ends_with_one_sentence(volumes, tmp_path, of_claim(tmp_path), f"claim {CLAIM} is not bound", "WaitForFirstConsumer")
	finally:
		volumes.api.delete(f"{CLASSES}/late")


def labelled(stand, value):
	stand.api.patch(f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"labels": {ENFORCED: value}}})


@contextlib.contextmanager
def quota(stand):
	stand.api.post(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
	try:
		# as kube-controller-manager would, which counts what there is
		stand.api.patch(QUOTAS + "/none/status", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}})
		yield
	finally:
		stand.api.delete(QUOTAS + "/none")


@contextlib.contextmanager
def restricted(stand):
	labelled(stand, "restricted")
	try:
		yield
	finally:
		labelled(stand, "privileged")


@pytest.mark.parametrize("forbidding, says", [(quota, "exceeded quota: none"), (restricted, 'violates PodSecurity "restricted')])
def test_pod_that_is_not_let_in_is_told_until_it_is(volumes, tmp_path, forbidding, says):
	image = f"--k8s-image={BUSYBOX}"
	share(volumes, gateTimeout="10s")
	with forbidding(volumes):
		done = srun(volumes, "-n1", image, "true")
		job = last_job(volumes)
		assert done.returncode and told(done, says, job), (done, job)
		assert job["Comment"] == job["SystemComment"], job
		batch = sbatch(volumes, tmp_path, image, wait=False)

		def says_so():
			job = job_of(volumes, batch)
			return job if says in job.get("SystemComment", "") and job["JobState"] == "PENDING" else None
		job = wait_for("its word, and the job in the queue", says_so, 60, lambda: str(volumes.job(batch)))
		assert job["SystemComment"].startswith("slurm-k8s: the job was not started: ") and job["Comment"] == job["SystemComment"], job
	wait_for("its end", lambda: volumes.job(batch)["JobState"] == "COMPLETED", 150, lambda: str(volumes.job(batch)))
	assert not [name for name in job_of(volumes, batch) if name.endswith("Comment")]
	wait_for("no reservation", lambda: not reservations(volumes), 60)
