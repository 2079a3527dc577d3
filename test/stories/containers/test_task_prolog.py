# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""TaskProlog, --task-prolog and their epilogs, for tasks in containers: they run on the node, as for all others. Kubelet, containerd and
slurmd are real."""
import contextlib
import os
import pwd

import pytest
from test_container import INSIDE, OPTIONS, USER, containers, srun  # pylint: disable=unused-import # a fixture

pytestmark = pytest.mark.apis("real")

PLAIN = OPTIONS[:-1]
# bash is not in the image, and says where it is
ASK = "test -e /usr/lib && echo node; id -u; id -G; pwd; readlink /proc/self/ns/mnt /proc/self/ns/net /proc/self/ns/ipc; " \
	"sed 's/.*://' /proc/self/cgroup | grep -c /task_; grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status; echo $SLURM_PROCID $SLURM_SCRIPT_CONTEXT"
TASK = ("sh", "-c", f"{INSIDE}; grep -E '^Cap(Inh|Prm|Eff|Amb)|^NoNewPrivs' /proc/self/status; "
	"echo \"$FROM_SITE,$FROM_USER,${GONE-none},$(pwd)\"; ls -l /proc/self/fd | grep -c mnt:")


def script(folder, name, *lines):
	path = folder / name
	path.write_text("\n".join(("#!/bin/bash", *lines, "")))
	path.chmod(0o755)
	return str(path)


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
	for above in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
		above.chmod(0o755)
	(tmp_path / "said").mkdir()
	(tmp_path / "said").chmod(0o777)
	return tmp_path


@contextlib.contextmanager
def task_scripts(stand, prolog, epilog):
	"""A site with both, by slurm.conf."""
	conf = stand.env["SLURM_CONF"]
	with open(conf, encoding="utf-8") as file:
		before = file.read()

	def write(text):
		with open(conf, "w", encoding="utf-8") as file:
			file.write(text)
		stand.cluster("restart", "slurmd-n1")
	write(f"{before}TaskProlog={prolog}\nTaskEpilog={epilog}\n")
	try:
		yield stand
	finally:
		write(before)


@pytest.fixture(name="site")
def site_fixture(containers, folder):
	prolog = script(folder, "prolog", f"exec 3> {folder}/said/prolog.$SLURM_JOB_ID.$SLURM_PROCID", f"{{ {ASK}; }} >&3",
		"echo no word of its own", "echo 'print  hello from the node'", "echo 'export FROM_SITE= a b '", "echo unset GONE",
		f"test ! -e {folder}/fails || exit 3")
	epilog = script(folder, "epilog", f"test -e /usr/lib && echo node > {folder}/said/epilog.$SLURM_JOB_ID")
	with task_scripts(containers, prolog, epilog) as stand:
		yield stand


def said(folder, name):
	with open(folder / "said" / name, encoding="utf-8") as file:
		return file.read().splitlines()


def test_prologs_of_tasks_in_containers_run_on_the_node_as_those_of_others(site, folder, monkeypatch):
	monkeypatch.setenv("GONE", "not yet")
	own = script(folder, "own", f"test -e /usr/lib && echo export FROM_USER=$FROM_SITE > {folder}/said/own", f"cat {folder}/said/own")
	words = ("-n1", f"--task-prolog={own}", f"--task-epilog={script(folder, 'after', f'touch {folder}/said/after')}")
	plain = srun(site, *words, "true", user=USER, options=PLAIN)
	assert plain.returncode == 0 and plain.stdout == "hello from the node\n", plain
	seen = {}
	for user in (USER, None):
		done = srun(site, *words, "--k8s-network", *TASK, user=user)
		job = site.jobs()[-1]["JobId"]
		seen[user] = said(folder, f"prolog.{job}.0")
		caps = "0000000000000000" if user else open("/proc/self/status", encoding="utf-8").read().split("CapEff:\t")[1].split()[0]
		assert done.stdout.splitlines() == ["hello from the node", "2", "CapInh:\t0000000000000000", f"CapPrm:\t{caps}", f"CapEff:\t{caps}",
			"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", " a b , a b,none,/tmp", "0"], done
		assert (said(folder, f"epilog.{job}"), os.path.exists(folder / "said" / "after")) == (["node"], True)
		for name in ("after", "own"):
			os.unlink(folder / "said" / name)
	first = min(name for name in os.listdir(folder / "said") if name.startswith("prolog."))
	assert seen[USER] == said(folder, first) and seen[USER][:2] == ["node", str(pwd.getpwnam(USER).pw_uid)], (seen, said(folder, first))


def test_task_in_a_container_whose_prolog_fails_does_not_run(site, folder):
	(folder / "fails").touch()
	for options in (PLAIN, OPTIONS):
		done = srun(site, "echo", "ran", user=USER, options=options)
		assert done.returncode == 3 and "ran" not in done.stdout and done.stderr.count("TaskProlog failed status=3") == 1, done
	(folder / "fails").unlink()
	done = srun(site, f"--task-prolog={folder}/nowhere", "echo", "ran", user=USER)
	assert done.returncode and "ran" not in done.stdout, done
