# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""When the hooks come, in which order, across restarts; and what happens without us."""
import os
import re
import signal
import subprocess

import pytest
from conftest import Cluster
from stands.process import start_time
from stands.waiting import wait_for


def test_life_of_a_job_is_told_in_order_and_only_of_our_jobs(cluster):
	cluster.becomes(cluster.batch("-p", "one", "-n", "1"), "RUNNING")
	before = len(cluster.events())
	job = cluster.submit()["job"]
	cluster.ask("end", job, "COMPLETED")
	assert [event.split()[:2] for event in cluster.events()[before:]] == \
		[["job_start", f"job={job}"], ["job_fini", f"job={job}"]]


def test_restart_loads_the_ledger_replays_running_jobs_and_then_becomes_active():
	cluster = Cluster(nodes=["n1"], conf="PartitionName=one Nodes=n1\n")
	try:
		assert cluster.events() == ["node_init", "reconfigure"]
		job = cluster.submit(mark="k8s:prod/ns/p/uid")["job"]
		held = cluster.submit(mark="k8s:prod/ns/q/uid", held=1)["job"]
		wait_for("the saved state", lambda: os.path.getsize(f"{cluster.slurm.home}/state/job_state") > 900, 20)
		controller = cluster.slurm.daemon("slurmctld")
		controller.stop(signal.SIGTERM)
		assert cluster.events()[-1] == "shutdown"
		before = len(cluster.events())
		controller.start_again()
		cluster.slurm.wait_controller()
		told = [event.split()[:2] for event in cluster.events()[before:]]
		assert told == [["node_init"], ["job_start", f"job={job}"], ["reconfigure"]]
		assert cluster.ask("active")["active"] == "1"
		assert {key: (view["state"], view["mark"]) for key, view in cluster.jobs().items()} == {
			int(job): ("RUNNING", "k8s:prod/ns/p/uid"), int(held): ("PENDING", "k8s:prod/ns/q/uid")}
	finally:
		cluster.down()


@pytest.mark.starts_again  # 22.05 ends with such a file
def test_reconfigure_that_fails_leaves_slurmctld_in_charge_and_us_with_it():
	cluster = Cluster(nodes=["n1"], conf="PartitionName=one Nodes=n1\n")
	daemon = cluster.slurm.daemon("slurmctld")
	env = {**os.environ, **daemon.record["env"]}
	daemon.stop()
	# as a service: with -D a new slurmctld takes the old one's place, and its failure is the end
	subprocess.run(["slurmctld"], env=env, check=True)
	try:
		cluster.slurm.wait_nodes(["n1"])
		job = cluster.submit()["job"]
		with open(cluster.slurm.conf, "r+", encoding="utf-8") as file:
			good = file.read()
			file.write("NoSuchKey=1\n")
		with open(f"{cluster.slurm.home}/slurmctld.pid", encoding="utf-8") as file:
			pid = int(file.read())
		os.kill(pid, signal.SIGHUP)  # scontrol would refuse the file itself
		wait_for("the failure", lambda: "reconfigure failed" in cluster.log(), 20)
		with open(cluster.slurm.conf, "w", encoding="utf-8") as file:
			file.write(good)
		wait_for("us", lambda: cluster.ask("active")["active"] == "1", 20, lambda: cluster.log()[-2000:])
		assert [event for event in cluster.events() if not event.startswith("job_")][-3:] == ["shutdown", "goes_on", "reconfigure"]
		assert cluster.jobs()[int(job)]["state"] == "RUNNING"
		assert cluster.ask("end", job, "COMPLETED")["rc"] == "0"
	finally:
		with open(f"{cluster.slurm.home}/slurmctld.pid", encoding="utf-8") as file:
			pid = int(file.read())
		os.kill(pid, signal.SIGTERM)
		wait_for("the end of slurmctld", lambda: start_time(pid) is None, 30)
		cluster.down()


@pytest.mark.starts_again
def test_slurmctld_that_waits_for_its_slurmscriptd_for_ever_is_found_out_and_started_again():
	"""A fault of Slurm's own (misses_wakeup()); here slurmscriptd says nothing."""
	cluster = Cluster(nodes=["n1"], conf="PartitionName=one Nodes=n1\n", plugin=False, scripted=False)
	daemon = cluster.slurm.daemon("slurmctld")
	first = daemon.pid
	script, = subprocess.run(["pgrep", "-P", str(first)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
	os.kill(int(script), signal.SIGSTOP)
	try:
		cluster.slurm.reconfigure()
		assert daemon.pid != first
		cluster.slurm.wait_nodes(["n1"])
	finally:
		os.kill(int(script), signal.SIGKILL)
		cluster.down()


def placements(cluster):
	"""Where a mixed set of jobs goes, started one after the other."""
	found = []
	for options in (["-n3"], ["-n2", "--mem=9000"], ["-N2", "-n4"], ["-n1", "-c2"], ["-n1", "--exclusive"], ["-n16"], ["-n7"],
			["-n1", "--mem=0"], ["-n2", "--ntasks-per-node=1", "-N2"]):
		job = cluster.batch(*options)
		cluster.scheduled()
		shown = cluster.run("scontrol", "-d", "show", "job", str(job)).split()
		found.append((options, [word for word in shown if word.split("=")[0] in
			("JobState", "NodeList", "Nodes", "CPU_IDs", "Mem", "NumCPUs", "TRES", "Reason")]))
	found.append([line.split("CPULoad")[0] for line in cluster.run("scontrol", "show", "node").splitlines() if "Alloc" in line
		and "FreeMem" not in line])
	return found


def test_without_configuration_slurm_places_jobs_as_without_the_plugin():
	stock = Cluster(plugin=False, scripted=False, conf="PriorityType=priority/basic\n")
	try:
		wanted = placements(stock)
	finally:
		stock.down()
	ours = Cluster(scripted=False, conf="PriorityType=priority/basic\n")
	try:
		assert placements(ours) == wanted
		assert "schedule as if" not in ours.log()
	finally:
		ours.down()


def test_missing_module_is_one_error_and_slurm_works():
	cluster = Cluster(nodes=["n1"], scripted=False, conf="PriorityType=priority/basic\n")
	try:
		controller = cluster.slurm.daemon("slurmctld")
		controller.stop()
		os.unlink(os.path.join(cluster.folder, "inst", "sk8_slurmctld.so"))
		controller.start_again()
		cluster.slurm.wait_controller()
		cluster.slurm.wait_nodes(["n1"])
		job = cluster.batch("-n1")
		cluster.becomes(job, "RUNNING")
		lines = [line for line in cluster.log().splitlines() if "as if slurm-k8s were not there" in line]
		assert len(lines) == 1, lines
	finally:
		cluster.down()


def test_libsk8core_that_is_older_than_the_plugin_is_one_error_and_slurm_works(tmp_path):
	library = tmp_path / "libsk8core.so.0"
	# what job_submit/k8s wants was always there, what the engine's side wants is newer
	subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-Wl,-soname,libsk8core.so.0", "-o", str(library), "-"], check=True, text=True,
		input="int sk8_is_mark(const char *c) { (void) c; return 0; } int sk8_submitting(void) { return 0; }")
	cluster = Cluster(nodes=["n1"], scripted=False, conf="PartitionName=one Nodes=n1\n", other=str(tmp_path))
	try:
		cluster.becomes(cluster.batch("-n1"), "RUNNING")
		line, = (line for line in cluster.log().splitlines() if "as if slurm-k8s were not there" in line)
		assert "sk8_slurmctld.so: undefined symbol: sk8_" in line and "install slurm-k8s again, all of it in one version" in line
	finally:
		cluster.down()


def test_plugindir_with_slurms_own_plugins_first_is_one_error_that_says_what_to_do():
	cluster = Cluster(nodes=["n1"], scripted=False, conf="PartitionName=one Nodes=n1\n")
	try:
		assert "put the directory of" not in cluster.log()
		with open(cluster.slurm.conf, encoding="utf-8") as file:
			conf = file.read()
		ours, stock = re.search(r"^PluginDir=(.+):(.+)$", conf, re.M).groups()
		with open(cluster.slurm.conf, "w", encoding="utf-8") as file:
			file.write(conf.replace(f"PluginDir={ours}:{stock}", f"PluginDir={stock}:{ours}"))
		controller = cluster.slurm.daemon("slurmctld")
		controller.stop()
		controller.start_again()
		cluster.slurm.wait_controller()
		line, = (line for line in cluster.log().splitlines() if "slurm-k8s" in line and "put the directory of" in line)
		assert f"Slurm loads {stock}/select_cons_tres.so" in line and f"put the directory of {ours}/job_submit_k8s.so first" in line
	finally:
		cluster.down()


def test_log_level_follows_scontrol_setdebug(cluster):
	def level():
		return int(cluster.ask("active")["log_level"])
	assert level() == 3  # verbose, as the stand's slurm.conf has it
	for name, wanted in (("debug", 4), ("debug5", 4), ("info", 2), ("quiet", 2), ("verbose", 3)):
		cluster.run("scontrol", "setdebug", name)
		assert level() == wanted, name
