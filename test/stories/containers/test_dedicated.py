# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Containers of jobs where nodes are dedicated: only jobs with one have a pod. Kubelet, containerd and slurmd are real."""
import pytest
from mixed import reservations, wait_no_reservation, wait_reservation
from outage import saved
from stands.waiting import wait_for
from test_container import Batch, containing, told
from test_template import ANSWERS, OPTIONS, USER, job_container, mounts, side, srun, write
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")

TAINT = {"key": "slurm-k8s.io/dedicated", "value": "slurm", "effect": "NoSchedule"}


@pytest.fixture(name="dedicated")
def dedicated_fixture(request, session_stands):
	# no job waits in the gate for its devices: only for its container
	for stand in containing(request, session_stands, sharing="dedicated", devices=False, templates={"allow": True}):
		wait_for("the taint", lambda: [t for t in stand.api.get("/api/v1/nodes/n1")["spec"].get("taints", []) if t.items() >= TAINT.items()], 60)
		yield stand


def test_tasks_run_in_the_image_and_the_pod_has_their_jobs_share_until_its_end(dedicated, tmp_path):
	go = tmp_path / "go"
	batch = Batch(dedicated, tmp_path, "srun sh -c 'test ! -e /usr/lib && echo inside'", f"while ! test -e {go}; do sleep 0.2; done",
		options=("--mem=100", "-n2", "-D", "/tmp", f"--k8s-image={BUSYBOX}"))
	pod = wait_reservation(dedicated, batch.job)
	assert [c["image"] for c in pod["spec"]["containers"]] == [BUSYBOX]
	assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "100Mi"}
	wait_for("its tasks", lambda: batch.says() == ["inside", "inside"], 60, batch.says)
	assert dedicated.job(batch.job)["JobState"] == "RUNNING"
	go.touch()
	assert batch.wait_end() == ["inside", "inside"]
	wait_no_reservation(dedicated, batch.job)


def test_job_without_an_image_has_no_pod_and_its_steps_are_told_that_they_have_no_container(dedicated, tmp_path):
	batch = Batch(dedicated, tmp_path, f"SLURM_K8S_IMAGE={BUSYBOX} srun true || echo failed", "srun echo node", options=("--mem=100", "-n1", "-D", "/tmp"))
	assert batch.wait_end() == ["failed", "node"] and not reservations(dedicated)
	assert batch.err.read_text().count("slurm-k8s: the job has no container on this node: give --k8s-image to the sbatch") == 1


def test_tasks_share_a_folder_with_a_sidecar(dedicated, tmp_path):
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}],
		containers=[job_container(volumeMounts=mounts("shared")), side(ANSWERS, volumeMounts=mounts("shared"))])
	done = srun(dedicated, "-n2", template, "sh", "-c", "cd /shared; i=$SLURM_PROCID; echo I am $i > new.$i; mv new.$i ask.$i; "
		"until test -e answer.$i; do sleep 0.1; done; cat answer.$i")
	assert sorted(done.stdout.splitlines()) == ["I am 0", "I am 1"] and not done.returncode, done
	wait_no_reservation(dedicated, int(dedicated.jobs()[-1]["JobId"]))


def test_image_that_cannot_be_had_ends_the_job_with_one_sentence(dedicated):
	done = dedicated.run("srun", *OPTIONS, "-n1", "--k8s-image=localhost/nobody-has-this:1", "true", user=USER, check=False, seconds=90)
	job = dedicated.jobs()[-1]
	says = "image localhost/nobody-has-this:1 on node n1: its container does not start: "
	assert done.returncode and job["JobState"] == "CANCELLED" and told(done, says, job), (done, job)
	wait_no_reservation(dedicated, int(job["JobId"]))


def test_container_goes_on_when_slurmctld_was_killed(dedicated, tmp_path):
	go = tmp_path / "go"
	batch = Batch(dedicated, tmp_path, "srun sh -c 'echo one > /tmp/mark'", "echo ready", f"while ! test -e {go}; do sleep 0.2; done",
		"srun cat /tmp/mark", options=("--mem=100", "-n1", "-D", "/tmp", f"--k8s-image={BUSYBOX}"))
	batch.wait_line("ready")
	uid = wait_reservation(dedicated, batch.job)["metadata"]["uid"]
	saved(dedicated, node="n1")
	dedicated.restart_slurmctld(kill=True)
	dedicated.run("srun", *OPTIONS, "-n1", f"--k8s-image={BUSYBOX}", "true", seconds=120)  # the engine knows all pods again
	assert wait_reservation(dedicated, batch.job)["metadata"]["uid"] == uid
	go.touch()
	assert batch.wait_end() == ["ready", "one"]
	wait_no_reservation(dedicated, batch.job)
