# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The groups of who has a job in a container: Slurm gives them to its tasks, and slurm-k8s to the rest of its pod. The controller has an
/etc/group of its own, in which the user is in a group more; kubelet, containerd and slurmd are real."""
import os
import pwd
import subprocess

import pytest
from stands.process import Machine
from test_container import containing
from test_template import OPTIONS, USER, job_container, mounts, side, srun, write

pytestmark = pytest.mark.apis("real")

OURS, IMAGES = 4711, 4712  # the image has the user in a group, too (stands/image.py)
GROUPS = "sed -n 's/^Groups:.//p' /proc/self/status"


@pytest.fixture(scope="module", name="controller")
def controller_fixture(tmp_path_factory):
	"""The command under which slurmctld runs."""
	folder = tmp_path_factory.mktemp("groups")
	with open("/etc/group", encoding="utf-8") as file:
		(folder / "group").write_text(file.read() + f"sk8-story:x:{OURS}:{USER}\n")
	command = folder / "with-group"
	command.write_text(f"#!/bin/sh\nexec unshare -m sh -c 'mount --bind {folder}/group /etc/group && exec \"$@\"' sh \"$@\"\n")
	command.chmod(0o755)
	return str(command)


@pytest.fixture(name="grouped")
def grouped_fixture(request, session_stands, controller):
	yield from containing(request, session_stands, "--slurmctld-under", controller, templates={"allow": True})


def test_tasks_have_the_groups_of_their_user_alone_and_so_have_sidecars_where_the_runtime_can(grouped, tmp_path):
	plain = srun(grouped, "-n1", "sh", "-c", GROUPS)
	mine = set(plain.stdout.split())
	assert mine - {str(pwd.getpwnam(USER).pw_gid)} == {str(OURS)}, plain
	tells = f"{GROUPS} > /shared/part; mv /shared/part /shared/groups; sleep 600"
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}], initContainers=[
			{**side(f"{GROUPS} > /shared/first", volumeMounts=mounts("shared")), "name": "first"}],
		containers=[job_container(volumeMounts=mounts("shared")), side(tells, volumeMounts=mounts("shared"))])
	done = srun(grouped, "-n1", template, "sh", "-c", f"{GROUPS}; until test -e /shared/groups; do sleep 0.1; done; cat /shared/groups /shared/first")
	said = [set(line.split()) for line in done.stdout.splitlines()]
	strict = grouped.api.get("/api/v1/nodes/n1")["status"].get("features", {}).get("supplementalGroupsPolicy")
	of_pod = mine if strict else mine | {str(IMAGES)}
	assert said == [mine, of_pod, of_pod], (done, strict)


@pytest.fixture(name="secret")
def secret_fixture(grouped):
	"""A file of the node that the image's group may read, and a process of the user's outside of all containers."""
	path = "/tmp/sk8-story-secret"
	with open(path, "w", encoding="utf-8") as file:
		file.write("of the node\n")
	os.chown(path, 0, IMAGES)
	os.chmod(path, 0o640)
	node = ["nsenter", "-m", "-p", "-t", str(Machine(grouped.folder, "n1").pid)]
	with subprocess.Popen([*node, "runuser", "-u", USER, "--", "sleep", "600.4712"]):
		yield path
		subprocess.run(["pkill", "-KILL", "-f", r"^sleep 600\.4712$"], check=True)
	os.unlink(path)


def test_sidecar_with_a_group_that_its_image_gave_it_reaches_nothing_of_the_node_and_tasks_have_the_nodes_proc(grouped, secret, tmp_path):
	tells = f"cat /proc/[0-9]*/root{secret} > /shared/part 2>&1; echo >> /shared/part; mv /shared/part /shared/found; sleep 600"
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}],
		containers=[job_container(volumeMounts=mounts("shared")), side(tells, volumeMounts=mounts("shared"))])
	done = srun(grouped, "-n1", template, "sh", "-c",
		"until test -e /shared/found; do sleep 0.1; done; cat /shared/found; echo $$; sed -n 's/^Pid:.//p' /proc/$$/status; readlink /proc/self/exe")
	assert "of the node" not in done.stdout, done
	pid, of_proc, exe = done.stdout.splitlines()[-3:]
	assert pid == of_proc and exe == "/bin/busybox", done
