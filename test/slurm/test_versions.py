# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Plugins that were built for another micro release of Slurm, and hosts without a folder of PluginDir: slurm-k8s check names
it before the restart, and what the daemon writes names it after."""
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import Cluster
from stands.build import build_folder
from stands.other_headers import build_for
from stands.waiting import wait_for

CONF = "PartitionName=one Nodes=n1\n"
TOOL = os.path.join(build_folder(), "tools", "slurm-k8s")


@pytest.fixture(name="one")
def one_node():
	cluster = Cluster(nodes=["n1"], scripted=False, conf=CONF)
	yield cluster
	cluster.down()


def problems(cluster, *words):
	"""What slurm-k8s check finds, but for slurm-k8s.yaml, which is not there: {about: [text]}"""
	done = subprocess.run([TOOL, "check", "--json", "--slurm-conf", cluster.slurm.conf, *words], env={**os.environ, **cluster.slurm.env},
		stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
	found = {}
	for finding in json.loads(done.stdout)["findings"]:
		if finding["level"] == "problem" and "slurm-k8s.yaml" not in finding["text"]:
			found.setdefault(finding["about"], []).append(finding["text"])
	assert done.returncode == (1 if found or "--on-node" not in words else 0), done.stdout
	return found


def change(cluster, pattern, text):
	"""slurm.conf with other lines."""
	with open(cluster.slurm.conf, "r+", encoding="utf-8") as file:
		conf, count = re.subn(pattern, text, file.read(), flags=re.M)
		assert count == 1
		file.seek(0)
		file.write(conf)
		file.truncate()


def replaced(source, target):
	"""As packages do: who has loaded the old file goes on with it."""
	shutil.copy(source, target + ".new")
	os.rename(target + ".new", target)


def test_plugins_of_another_micro_release_are_named_before_the_restart_and_in_the_log_after_it(one, tmp_path):
	assert problems(one) == {}
	major, minor, micro = one.release.split(".")
	other = f"{major}.{minor}.{int(micro) + 1}"
	ours = os.path.join(one.folder, "inst", "plugins")
	shutil.copytree(build_for(other, tmp_path), os.path.join(one.folder, "inst"), dirs_exist_ok=True, copy_function=replaced)
	assert problems(one) == {"Slurm": [f"slurmctld is version {one.release}, the plugins in {ours} were built for {other}; slurmctld would "
		f"refuse them: install slurm-k8s for {one.release}"]}
	assert f"scontrol is version {one.release}, the plugins in {ours} were built for {other}; " in " ".join(problems(one, "--on-node")["Slurm"])

	# Slurm's loader goes on to the next folder, which has a select plugin but no other guard of our jobs.
	controller = one.slurm.daemon("slurmctld")
	controller.stop()
	before = len(one.log())
	controller.start_again()
	wait_for("the end of slurmctld", lambda: not controller.pid, 30, controller.hint)
	log = one.log()[before:]
	assert f"slurmctld version {one.release} started" in log
	for name in ("select_cons_tres", "job_submit_k8s"):
		assert re.search(rf"Incompatible Slurm plugin {re.escape(ours)}/{name}\.so version \({re.escape(other)}\)", log), log
	assert "fatal: failed to initialize job_submit plugin" in log and "slurm-k8s" not in log.replace("job_submit_k8s", ""), log

	# Without the guard Slurm schedules as if we were not there.
	change(one, "^JobSubmitPlugins=k8s$", "")
	assert f"were built for {other}" in problems(one)["Slurm"][0]
	before = len(one.log())
	controller.start_again()
	one.slurm.wait_controller()
	one.becomes(one.batch("-n1"), "RUNNING")
	log = one.log()[before:]
	assert f"slurmctld version {one.release} started" in log
	assert f"Incompatible Slurm plugin {ours}/select_cons_tres.so version ({other})" in log, log


def test_folder_of_plugindir_that_a_compute_node_lacks_is_named_by_check_and_by_its_slurmd(one):
	folder = os.path.join(one.folder, "absent")
	slurmd = one.slurm.daemon("slurmd-n1")
	slurmd.stop()
	with open(slurmd.log, encoding="utf-8") as file:
		before = len(file.read())
	change(one, "^PluginDir=", f"PluginDir={folder}:")
	try:
		text, = problems(one, "--on-node")["PluginDir"]
		assert f"there is no folder {folder}, and Slurm refuses such a slurm.conf on this host; run: mkdir -p {folder}" in text
		slurmd.start_again()
		wait_for("the end of slurmd", lambda: not slurmd.pid, 30, slurmd.hint)
		with open(slurmd.log, encoding="utf-8") as file:  # what it writes before it has a log
			text = file.read()[before:]
		assert f"error: PluginDir: {folder}: No such file or directory" in text and f'Bad value "{folder}:' in text, text
	finally:
		os.mkdir(folder)  # it may stay empty
	assert problems(one, "--on-node") == {}
	slurmd.start_again()
	one.slurm.wait_nodes(["n1"])
