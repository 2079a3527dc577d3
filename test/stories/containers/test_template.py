# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""--k8s-template: volumes, sidecars and init containers of a job's pod. Kubelet, containerd and slurmd are real."""
import base64
import contextlib
import json
import os
import pwd
import re
import shutil
import subprocess

import pytest
from mixed import NAMESPACE, reservations, wait_no_reservation
from outage import US
from stands.api import ApiError
from stands.build import slurm_headers
from stands.waiting import wait_for
from test_agent import may_run_on
from test_container import containing, told
from world import IMAGE as BUSYBOX
from world import Pod

pytestmark = pytest.mark.apis("real")

HERE = os.path.dirname(os.path.abspath(__file__))
USER = "daemon"
OPTIONS = ("--mem=200", "-D", "/tmp")
NO_TEXT = "it is empty, or no text, or longer than 16 KiB"
ALLOWED = {"allow": True, "configMaps": ["public-*"], "secrets": ["{user}-token"], "claims": ["{user}-data"]}
LIMITS = {"limits": {"memory": "32Mi"}}
# Answers each question that tasks put into the folder they share, until somebody ends it.
ANSWERS = """cd /shared; while :; do for f in ask.*; do test -e $f && cat $f > part.${f#ask.} && mv part.${f#ask.} answer.${f#ask.} && rm $f; done;
sleep 0.1; done"""


@pytest.fixture
def templates(request, session_stands):
	yield from containing(request, session_stands, templates=ALLOWED)


def job_container(**more):
	return {"name": "job", "image": BUSYBOX, "imagePullPolicy": "Never", **more}


def side(command="sleep 600", **more):
	return {"name": "side", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", command], "resources": LIMITS, **more}


def write(folder, **spec):
	return write_text(folder, json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": spec}))


def write_text(folder, text):
	path = folder / "pod.yaml"
	path.write_text(text)
	path.chmod(0o644)
	for parent in (folder, folder.parent, folder.parent.parent):
		parent.chmod(0o755)
	return f"--k8s-template={path}"


def make(stand, kind, name, **content):
	path = f"/api/v1/namespaces/{NAMESPACE}/{kind}"
	try:
		stand.api.post(path, {"metadata": {"name": name}, **content})
	except ApiError as error:
		if error.status != 409:  # of another story
			raise


def srun(stand, *words, user=USER):
	return stand.run("srun", *OPTIONS, *words, user=user, check=False, seconds=150)


def mounts(*names):
	return [{"name": name, "mountPath": f"/{name}"} for name in names]


@pytest.mark.each_release
def test_tasks_share_a_folder_with_a_sidecar_and_have_a_configmap_and_a_secret(templates, tmp_path):
	make(templates, "configmaps", "public-motd", data={"motd": "hello"})
	make(templates, "secrets", f"{USER}-token", data={"key": base64.b64encode(b"open sesame").decode()})
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}, {"name": "motd", "configMap": {"name": "public-motd"}},
			{"name": "token", "secret": {"secretName": f"{USER}-token"}}],
		containers=[job_container(volumeMounts=mounts("shared", "motd", "token")), side(ANSWERS, volumeMounts=mounts("shared"))])
	done = srun(templates, "-n2", f"--k8s-image={BUSYBOX}", template, "sh", "-c", "cd /shared; i=$SLURM_PROCID; echo I am $i > new.$i; mv new.$i ask.$i; "
		"until test -e answer.$i; do sleep 0.1; done; cat answer.$i /motd/motd /token/key; echo; stat -c %u:%g answer.$i; exit $i")
	about = pwd.getpwnam(USER)
	said = [line for line in done.stdout.splitlines() if line]
	assert sorted(said) == sorted(line for i in (0, 1) for line in (f"I am {i}", "helloopen sesame", f"{about.pw_uid}:{about.pw_gid}")), done
	assert done.returncode == 1, done  # the second task's
	wait_no_reservation(templates, int(templates.jobs()[-1]["JobId"]))


def played(stand, folder, template, *lines):
	"""A batch job of these lines: what it said, by lines, and its errors."""
	script, out, err = folder / "job.sh", folder / "out", folder / "err"
	script.write_text("\n".join(("#!/bin/sh", *lines, "")))
	script.chmod(0o755)
	folder.chmod(0o777)
	stand.run("sbatch", "--wait", "-n1", *OPTIONS, "-o", str(out), "-e", str(err), template, str(script), user=USER, seconds=120)
	return out.read_text().splitlines(), err.read_text()


def test_tasks_are_in_the_network_and_ipc_of_their_pod_if_wanted(templates, tmp_path):
	spaces = "for i in net ipc; do readlink /proc/self/ns/$i; done"
	serves = f"{spaces} > /shared/part; mv /shared/part /shared/pods; while :; do echo served | nc -l -p 8080; done"
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}],
		containers=[job_container(volumeMounts=mounts("shared")), side(serves, volumeMounts=mounts("shared"))])
	said, errors = played(templates, tmp_path, template, f"srun sh -c '{spaces}'", f"srun --k8s-network sh -c '{spaces}'",
		f"SLURM_K8S_IPC=1 srun sh -c '{spaces}'", "srun sh -c 'until test -e /shared/pods; do sleep 0.1; done; cat /shared/pods'",
		"srun --k8s-network --k8s-ipc sh -c 'until nc 127.0.0.1 8080; do sleep 0.1; done'")
	node = [os.readlink(f"/proc/self/ns/{name}") for name in ("net", "ipc")]
	pod = said[6:8]
	assert not set(pod) & set(node), (said, node)
	assert said == [*node, pod[0], node[1], node[0], pod[1], *pod, "served"], (said, node, errors)


@contextlib.contextmanager
def running(stand, *words):
	"""The id of a job whose task runs."""
	with stand.start("srun", *OPTIONS, "-n1", *words, "sh", "-c", "echo $SLURM_JOB_ID; sleep 600") as run:
		try:
			yield int(run.stdout.readline())
		finally:
			run.terminate()


def test_sidecar_runs_on_the_cores_of_its_job(templates, tmp_path):
	template = write(tmp_path, containers=[job_container(), side("sleep 600")])
	with running(templates) as first, running(templates, template) as second:
		cores = [templates.job(job)["CPU_IDs"] for job in (first, second)]
		assert sorted(cores) == ["0", "1"]
		pod = Pod(templates, reservations(templates)[second, "n1"])
		wait_for("the sidecar on that core", lambda: may_run_on(pod) == cores[1], 30, lambda: str(may_run_on(pod)))


def test_init_container_is_over_before_tasks_begin_and_a_step_may_choose_another_container(templates, tmp_path):
	first = {**side("sleep 1; echo prepared > /shared/file", volumeMounts=mounts("shared")), "name": "first"}
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}], initContainers=[first],
		containers=[job_container(volumeMounts=mounts("shared")), side("echo mine > /tmp/side; sleep 600", volumeMounts=mounts("shared"))])
	said, errors = played(templates, tmp_path, template, "srun cat /shared/file", "srun --k8s-container=side cat /shared/file /tmp/side",
		"srun --k8s-container=job test -e /tmp/side || echo not in job", "srun --k8s-container=none true || echo none",
		"SLURM_K8S_CONTAINER=../../x srun true || echo no name")
	assert said == ["prepared", "prepared", "mine", "not in job", "none", "no name"], errors
	assert errors.count("no container none of the job's pod runs on this node") == 1


@pytest.mark.each_release
def test_job_whose_containers_are_made_says_so_until_it_is_launched(templates, tmp_path):
	first = {**side("until test -e /shared/go; do sleep 0.1; done", volumeMounts=mounts("shared")), "name": "first"}
	go = {**side("sleep 4; touch /shared/go; sleep 600", volumeMounts=mounts("shared")), "name": "go", "restartPolicy": "Always"}
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}], initContainers=[go, first], containers=[job_container()])

	def shown():
		return templates.run("squeue", "-h", "-o", "%T %r").replace("_", " ")

	def is_made():
		return [c for pod in reservations(templates).values() for c in pod["status"].get("initContainerStatuses", [])
			if c["name"] == "first" and "running" in c["state"]]
	with templates.start("runuser", "-u", USER, "--", "srun", *OPTIONS, "-n1", template, "sh", "-c", "echo ready; sleep 600") as run:
		wait_for("its init container", is_made, 60, shown)
		assert shown() == "CONFIGURING Kubernetes makes its containers"
		assert run.stdout.readline() == "ready\n"
		wait_for("no reason any more", lambda: shown() == "RUNNING None", 10, shown)
		templates.run("scancel", "-u", USER)
		run.communicate(timeout=60)


@pytest.mark.parametrize("spec, says", [
	({"hostNetwork": True, "containers": [job_container()]}, "--k8s-template: line 1: spec.hostNetwork is none of the fields that a template may have"),
	({"volumes": [{"name": "v", "secret": {"secretName": "root-token"}}]}, f"Secret root-token is not allowed for user {USER}"),
	({"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]}, "hostPath /etc is not allowed"),
	({"containers": [job_container(), {**side(), "resources": {"limits": {"memory": "300Mi"}}}]}, "may use 0 mCPU and 300 MiB together"),
	({"containers": [side()]}, 'no image is named, give one to its container "job", or --k8s-image'),
	({"containers": [job_container(), {**side(), "image": "localhost/nobody-has-this:1"}]}, "its container side does not start: ErrImageNeverPull"),
], ids=("host network", "secret", "host path", "memory", "no image", "image that is not there"))
def test_template_that_cannot_be_had_ends_the_job_with_one_sentence(templates, tmp_path, spec, says):
	done = srun(templates, "-n1", write(tmp_path, **spec), "true")
	job = templates.jobs()[-1]
	assert done.returncode and job["JobState"] == "CANCELLED" and told(done, says, job), (done, job)
	wait_no_reservation(templates, int(job["JobId"]))


def made(stand):
	"""How many objects slurm-k8s has asked the API server to make where pods of jobs are, granted or not."""
	return sum(event["verb"] == "create" and event["user"]["username"] == US and event["objectRef"].get("namespace") == NAMESPACE
		for event in stand.audit() if "objectRef" in event)


BOMB = "".join(f"  - &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi"))
SIDE = "  containers:\n  - {name: side, image: i, resources: {limits: {memory: 1Mi}}"


@pytest.mark.parametrize("text, says", [
	("  securityContext: {runAsUser: 0}\n", "line 4: spec.securityContext is none of the fields that a template may have"),
	(f"{SIDE}, securityContext: {{privileged: true}}}}\n", "line 5: spec.containers[0].securityContext is none of the fields that a template may have"),
	("  nodeName: n2\n", "line 4: spec.nodeName is none of the fields that a template may have"),
	(f"  volumes: [{{name: v, persistentVolumeClaim: {{claimName: {USER}-data}}}}]\n  containers:\n"
		"  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /s, subPath: ../root}]}\n",
		"container job mounts a subPath of volume v: mount the whole claim or host path"),
	("  volumes: &all [{name: v, emptyDir: {}}]\n  initContainers: *all\n", "line 5: an alias (*name) is not supported, write the value again"),
	(f"  containers:\n  - &a [x]\n{BOMB}", "line 6: an alias (*name) is not supported, write the value again"),
	("  containers: []\n  hostname: a\nspec:\n  hostNetwork: true\n", 'line 6: the key "spec" is already given in line 3, remove one of the two'),
	(f"{SIDE}, image: j}}\n", 'line 5: the key "image" is already given in line 5, remove one of the two'),
], ids=("user id", "privileged", "node name", "folder of a claim", "alias", "aliases of aliases", "spec twice", "image twice"))
def test_trick_of_a_template_ends_the_job_with_one_sentence(templates, tmp_path, text, says):
	before = made(templates)
	done = srun(templates, "-n1", f"--k8s-image={BUSYBOX}", write_text(tmp_path, f"apiVersion: v1\nkind: Pod\nspec:\n{text}"), "true")
	job = templates.jobs()[-1]
	assert done.returncode and job["JobState"] == "CANCELLED" and told(done, f"--k8s-template: {says}", job), (done, job)
	assert job["UserId"].startswith(f"{USER}(") and made(templates) == before


@pytest.fixture(name="unchecked")
def unchecked_fixture(templates, tmp_path):
	"""The slurm.conf of a user who has a plugin of his own in the place of spank_k8s.so, and the file that it tells slurmctld of."""
	etc, plugin, text = tmp_path / "etc", tmp_path / "unchecked_template.so", tmp_path / "text"
	etc.mkdir()
	subprocess.run(["cc", "-shared", "-fPIC", "-O1", *slurm_headers(), "-o", str(plugin), f"{HERE}/unchecked_template.c"], check=True)
	shutil.copy(os.path.join(templates.folder, "etc", "slurm.conf"), etc)
	(etc / "plugstack.conf").write_text(f"required {plugin} {text}\n")
	for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
		folder.chmod(0o755)
	return etc / "slurm.conf", text


@pytest.mark.parametrize("text, says", [
	(b"#" * 2 ** 20, "is longer than 16384 bytes"),
	(b"apiVersion: v1\nkind: Pod\nspec:\n  hostNetwork: true\n", "line 4: spec.hostNetwork is none of the fields that a template may have"),
	(b"apiVersion: v1\nkind: Pod\nspec: &a {volumes: *a}\n", "line 3: an alias (*name) is not supported, write the value again"),
	(b"apiVersion: v1\nkind: Pod\xff\n", "line 1: not YAML: invalid "),
	(b"\x01\x1b[2J", "line 1: "),
	(b"[" * 16000, "line 1: "),
	(b"spec: {}\n---\nspec: {}\n", "line 2: "),
	(b"just words", "line 1: the template is no object"),
], ids=("a megabyte", "host network", "alias", "no UTF-8", "control characters", "deep", "two documents", "a text"))
def test_template_that_no_client_of_ours_has_looked_at_ends_the_job_with_one_sentence(templates, unchecked, text, says):
	conf, file = unchecked
	file.write_bytes(text)
	file.chmod(0o644)
	before = made(templates)
	done = templates.run("env", f"SLURM_CONF={conf}", "srun", *OPTIONS, "-n1", "true", user=USER, check=False, seconds=90)
	job = templates.jobs()[-1]
	assert done.returncode and job["JobState"] == "CANCELLED" and told(done, f"--k8s-template: {says}", job), (done, job)
	assert re.fullmatch(r"slurm-k8s: --k8s-template: [ -~]*", job["SystemComment"]) and job["UserId"].startswith(f"{USER}("), job
	assert made(templates) == before
	assert srun(templates, "-n1", f"--k8s-image={BUSYBOX}", "echo", "on").stdout == "on\n" and made(templates) > before


def test_sidecars_and_init_containers_have_no_capability_and_get_no_other_user_by_a_setuid_program(templates, tmp_path):
	status = "sed -nE '/^(Uid|Gid|Cap...|NoNewPrivs):/p' /proc/self/status"
	tells = f"{status}; as-root /bin/{status}; stat -c '%A %u' /bin/as-root"
	first = {**side(f"({tells}) > /shared/first", volumeMounts=mounts("shared")), "name": "first"}
	beside, last = ({**side(f"({tells}) > /shared/part.{name}; mv /shared/part.{name} /shared/{name}; sleep 600", volumeMounts=mounts("shared")),
		"name": name} for name in ("beside", "side"))
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}], initContainers=[first, {**beside, "restartPolicy": "Always"}],
		containers=[job_container(volumeMounts=mounts("shared")), last])
	done = srun(templates, "-n1", f"--k8s-image={BUSYBOX}", template, "sh", "-c",
		f"PATH=/bin; {tells}; cd /shared; for who in first beside side; do until test -e $who; do sleep 0.1; done; cat $who; done")
	said = [line.split() for line in done.stdout.splitlines()]
	assert [words for words in said if words[0] == "-rwsr-xr-x"] == [["-rwsr-xr-x", "0"]] * 4, done
	about, none = pwd.getpwnam(USER), "0" * 16
	for name, number, times in (("Uid", about.pw_uid, 4), ("Gid", about.pw_gid, 4), ("CapInh", none, 1), ("CapPrm", none, 1), ("CapEff", none, 1),
			("CapAmb", none, 1), ("NoNewPrivs", 1, 1)):
		assert [words for words in said if words[0] == f"{name}:"] == [[f"{name}:", *[str(number)] * times]] * 8, (name, done)
	bounds = [words[1] for words in said if words[0] == "CapBnd:"]
	assert len(bounds) == 8 and set(bounds[2:]) == {none}, done  # that of a task is Slurm's


def test_image_of_the_option_takes_the_place_of_the_templates_and_the_rest_of_that_stays(templates, tmp_path):
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}],
		containers=[job_container(image="localhost/nobody-has-this:1", volumeMounts=mounts("shared")), side(ANSWERS, volumeMounts=mounts("shared"))])
	done = srun(templates, "-n1", template, f"--k8s-image={BUSYBOX}", "sh", "-c", "test ! -e /usr/lib && cd /shared && echo hello > new && mv new ask.1 && "
		"until test -e answer.1; do sleep 0.1; done; cat answer.1")
	assert done.stdout == "hello\n" and done.returncode == 0, done


def test_volume_that_is_not_there_and_a_quota_are_told(templates, tmp_path):
	template = write(tmp_path, volumes=[{"name": "v", "configMap": {"name": "public-nobody-made-this"}}],
		containers=[job_container(volumeMounts=mounts("v"))])
	done = srun(templates, "-n1", template, "true")
	job = templates.jobs()[-1]
	assert done.returncode and job["JobState"] == "CANCELLED", job
	assert told(done, 'configmap "public-nobody-made-this" not found', job), (done, job)
	wait_no_reservation(templates, int(job["JobId"]))

	quotas = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
	templates.api.post(quotas, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
	try:
		# as kube-controller-manager would, which counts what there is
		templates.api.patch(quotas + "/none/status", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}})
		done = srun(templates, "-n1", f"--k8s-image={BUSYBOX}", "true")
	finally:
		templates.api.delete(quotas + "/none")
	assert done.returncode and done.stderr.count("exceeded quota: none") == 1, done


@pytest.mark.parametrize("text, says", [
	(None, "No such file or directory"),
	("", NO_TEXT),
	("x" * 16385, NO_TEXT),
	("#" * 2 ** 20, NO_TEXT),
	("a\0b", NO_TEXT),
], ids=("missing", "empty", "long", "a megabyte", "binary"))
def test_file_that_is_no_template_makes_no_job(templates, tmp_path, text, says):
	before = len(templates.jobs())
	path = tmp_path / "pod.yaml"
	if text is not None:
		path.write_text(text)
	done = srun(templates, "-n1", f"--k8s-template={path}", "true", user=None)
	assert done.returncode and done.stderr.count(f"--k8s-template: {path}: {says}") == 1, done
	assert len(templates.jobs()) == before and not reservations(templates)
