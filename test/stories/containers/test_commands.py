# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Containers from each of Slurm's commands, and beside what sites have in plugstack.conf."""
import os
import subprocess
import tempfile

import pytest
from conftest import with_conf
from stands.build import slurm_headers
from stands.waiting import wait_for
from test_container import INSIDE, OPTIONS, containers, containing, srun  # pylint: disable=unused-import # a fixture
from test_service_account import CORE, give_accounts
from test_service_account import make as make_in_namespace
from test_template import mounts, side, write
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")
HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = ("--mem=100", "-n1", "-D", "/tmp")
FLAGS = ("--k8s-image=", "--k8s-template=", "--k8s-container=", "--k8s-mount-home", "--k8s-workdir=",
	"--k8s-env", "--k8s-network", "--k8s-ipc", "--k8s-service-account=")


@pytest.mark.each_release
@pytest.mark.parametrize("command", ["srun", "sbatch", "salloc"])
def test_help_of_a_command_has_the_options(containers, command):
	told = containers.run(command, "--help")
	assert [flag for flag in FLAGS if flag not in told] == []


def test_what_srun_reads_reaches_its_tasks_in_the_container(containers):
	with subprocess.Popen(["srun", *OPTIONS, "sh", "-c", f"{INSIDE}; cat"], env={**os.environ, **containers.env}, text=True,
			stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as task:
		out, err = task.communicate("one\ntwo\n", timeout=90)
	assert (out, task.returncode) == ("2\none\ntwo\n", 0), err


@pytest.mark.each_release
def test_steps_of_salloc_run_in_the_container_and_its_command_on_the_node(containers):
	script = f"test -e /usr/lib && echo node; srun sh -c '{INSIDE}'"
	done = containers.run("salloc", *OPTIONS, "sh", "-c", script, check=False, seconds=90)
	assert done.stdout.splitlines() == ["node", "2"], done


@pytest.fixture(name="all_wishes")
def all_wishes_fixture(request, session_stands):
	for stand in containing(request, session_stands, serviceAccounts=["public-*"], templates={"allow": True}):
		give_accounts(stand)
		make_in_namespace(stand, f"{CORE}/serviceaccounts", "public-a")
		yield stand


# For each wish what says whether it has come true.
SHOWN = """echo $(test -e /usr/lib || echo image) $(test -e /shared && echo template) $(test -e $HOME/mine && echo home) $(pwd) \
	$(test $PATH = /bin && echo env) $(test $(readlink /proc/self/ns/net) = {net} || echo network) \
	$(test $(readlink /proc/self/ns/ipc) = {ipc} || echo ipc) $(test "$KUBECONFIG" = /.slurm-k8s/kubeconfig && test -s $KUBECONFIG && echo account)"""


def run_by(stand, command, folder, words, env):
	"""What these words said in a step of a job that this command made, with these variables of its user's."""
	script, out = folder / "job.sh", folder / "out"
	script.write_text(f"#!/bin/sh\n{'srun' if command != 'srun' else ''} sh {words}\n")
	script.chmod(0o755)
	options = (*PLAIN[1:], "--mem=200")
	run = {"srun": ("srun", *options, "sh", words), "salloc": ("salloc", *options, script),
		"sbatch": ("sbatch", "--wait", "-o", out, "-e", folder / "err", *options, script)}[command]
	done = subprocess.run([str(word) for word in run], env={**os.environ, **stand.env, **env}, text=True, capture_output=True, check=False, timeout=120)
	return out.read_text() if command == "sbatch" else done.stdout, done


@pytest.mark.parametrize("command", ["srun", "sbatch", "salloc"])
def test_each_option_may_come_from_the_environment_of_each_command(all_wishes, tmp_path, command):
	shown = tmp_path / "shown.sh"
	shown.write_text(SHOWN.format(**{name: os.readlink(f"/proc/self/ns/{name}") for name in ("net", "ipc")}))
	home = tmp_path / "home"
	home.mkdir()
	(home / "mine").touch()
	(home / "shown.sh").write_text(shown.read_text())
	template = write(tmp_path, volumes=[{"name": "shared", "emptyDir": {}}],
		containers=[{"name": "job", "volumeMounts": mounts("shared")}, side(volumeMounts=mounts("shared"))]).partition("=")[2]
	texts = {"IMAGE": BUSYBOX, "TEMPLATE": template, "SERVICE_ACCOUNT": "public-a", "WORKDIR": "/bin", "CONTAINER": "job"}
	flags = ("MOUNT_HOME", "ENV", "NETWORK", "IPC")
	for value, says in (("yes, please", "image template home /bin env network ipc account"), ("1", "image template home /bin env network ipc account")):
		env = {"HOME": str(home), **{f"SLURM_K8S_{name}": text for name, text in {**texts, **dict.fromkeys(flags, value)}.items()}}
		said, done = run_by(all_wishes, command, tmp_path, str(home / "shown.sh"), env)
		assert said == says + "\n", done
	for value in ("", "0", "No"):
		env.update({f"SLURM_K8S_{name}": value for name in flags if name != "MOUNT_HOME"}, SLURM_K8S_CONTAINER="side", SLURM_K8S_WORKDIR="/etc")
		said, done = run_by(all_wishes, command, tmp_path, str(home / "shown.sh"), env)
		assert said == "image template home /etc\n", done


@pytest.fixture(name="private_tmp")
def private_tmp_fixture(containers, tmp_path):
	"""A second plugin, before ours, that gives tasks a mount namespace with another /tmp."""
	plugin, conf = tmp_path / "private_tmp.so", os.path.join(containers.folder, "etc", "plugstack.conf")
	subprocess.run(["cc", "-shared", "-fPIC", "-O1", *slurm_headers(), "-o", str(plugin), f"{HERE}/private_tmp.c"], check=True)
	with open(conf, encoding="utf-8") as file:
		ours = file.read()
	for text in (f"required {plugin}\n{ours}", ours):
		with open(conf + ".new", "w", encoding="utf-8") as file:
			file.write(text)
		os.rename(conf + ".new", conf)
		if text != ours:
			yield containers


@pytest.mark.each_release
def test_tasks_enter_their_container_from_the_mounts_that_another_plugin_gave_them(private_tmp):
	ask = 'echo "$PRIVATE_TMP"; test -e /tmp/private && echo private'
	assert srun(private_tmp, "sh", "-c", ask, options=PLAIN).stdout.split() == ["yes", "private"]
	done = srun(private_tmp, "sh", "-c", f"{ask}; {INSIDE}")
	assert done.stdout.split() == ["yes", "2"], done


@pytest.fixture(name="slurms_tmp")
def slurms_tmp_fixture(request, session_stands):
	yield from containing(request, session_stands, "--private-tmp", *with_conf("TaskPlugin=task/affinity"))


def run_with_a_tmp(stand, run):
	"""What run() returns, which runs a job on a stand with --private-tmp. From Linux 6.18 on processors number mount namespaces each
	by itself, and one cannot be mounted in one with a higher number; so where slurmd is in one of its own Slurm fails with some
	jobs ("ns base mount failed"), whoever they are."""
	log = os.path.join(stand.folder, "log", "slurmd-n1.log")

	def once():
		before = os.path.getsize(log)
		done = run()
		with open(log, encoding="utf-8") as file:
			file.seek(before)
			return [done] if "ns base mount failed" not in file.read() else None
	done, = wait_for("a job with a /tmp of its own", once, 120)
	return done


@pytest.mark.each_release
def test_tasks_enter_their_container_from_the_tmp_and_the_core_that_slurm_gave_their_job(slurms_tmp):
	def run(command, options):
		done = run_with_a_tmp(slurms_tmp, lambda: srun(slurms_tmp, "sh", "-c", command, options=(*options, "-D", "/")))
		return done.stdout.splitlines(), done.stderr
	with tempfile.NamedTemporaryFile(dir="/tmp", prefix="of-the-node-") as file:
		command = f"test -e {file.name} || echo private; grep -c 'Cpus_allowed_list:.[0-9]*$' /proc/self/status"
		said, told = run(f"{command}; test -e /usr/lib && echo node", PLAIN)
		assert said == ["private", "1", "node"], told
		said, told = run(f"{command}; {INSIDE}", OPTIONS)
		assert said == ["private", "1", "2"], told
