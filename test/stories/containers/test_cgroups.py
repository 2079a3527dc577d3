# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Jobs in containers beside Slurm's cgroups (proctrack/cgroup, task/cgroup, task/affinity) and logins that pam_slurm_adopt puts
into the user's job. Slurm, its PAM module, kubelet and containerd are real."""
import glob
import os
import pwd
import stat
import time

import pytest
from conftest import with_conf
from device_plugin import OF_EACH, Plugin
from mixed import reservations, restore, set_resources, wait_no_reservation
from stands import cgroup
from stands.gres import indices
from stands.process import Daemon, Machine
from stands.slurm import Slurm
from stands.waiting import wait_for
from test_agent import BUSY, core_of, is_pinned, of_job, processes, sampled
from test_container import OPTIONS, USER, containing, srun
from test_container_ends import AS_USER, processes_with
from test_task_prolog import PLAIN, folder_fixture, said, script, task_scripts  # pylint: disable=unused-import # a fixture
from test_template import job_container, side, write
from world import TEST

pytestmark = pytest.mark.apis("real")

FPGA = "example.com/fpga"
HIERARCHIES = ("cpuset", "devices", "freezer", "memory")
OTHER = "games"  # who has no job
DENIED, NO_DRIVER = "Operation not permitted", "No such device or address"


@pytest.fixture(name="confined")
def confined_fixture(request, session_stands):
	"""Slurm's processes are in its cgroups. The node has two GPUs with files of their own, and FPGAs that only Kubernetes knows."""
	if len(os.sched_getaffinity(0)) < 2:
		pytest.skip("a machine with one CPU has no cores to choose from")
	if cgroup.is_v2():
		pytest.skip("a stand has Slurm's cgroups of its own with hierarchies of cgroup v1 only, and this machine has v2")
	for stand in containing(request, session_stands, "--cgroups", "--gres", f"gpu:2,k8s:fpga:{OF_EACH}", *with_conf("KillWait=3"),
			templates={"allow": True}):
		Plugin(stand, FPGA, 0).wait_told()
		before = set_resources(stand, [{"kubernetes": FPGA, "gres": "k8s", "type": "fpga"}])
		yield stand
		restore(stand, before)


def cgroups(text):
	"""{hierarchy: path} of what /proc/PID/cgroup says."""
	return {name: path for _, name, path in (line.split(":", 2) for line in text.splitlines())}


def test_tasks_in_a_container_are_in_the_cgroups_of_their_step_on_the_cores_of_their_job(confined):
	done = srun(confined, "sh", "-c", "cat /proc/self/cgroup; echo; grep Cpus_allowed_list /proc/self/status; echo $SLURM_JOB_ID", user=USER)
	where, _, about = done.stdout.partition("\n\n")
	_, cores, job = about.split()
	step = f"/uid_{pwd.getpwnam(USER).pw_uid}/job_{job}/step_0"
	assert {name for name in HIERARCHIES if step in cgroups(where)[name]} == set(HIERARCHIES), done
	assert len(indices(cores)) == 1, done


def gpu_files(stand):
	files = [os.path.join(stand.folder, "slurm", "devices", f"gpu{i}") for i in (0, 1)]
	assert all(stat.S_ISCHR(os.lstat(path).st_mode) for path in files)
	return files


def test_prolog_and_epilog_of_a_task_in_a_container_are_in_the_cgroups_where_those_of_other_tasks_are(confined, folder):
	def asking(name):
		opened = "; ".join(f"dd if={path} of=/dev/zero count=1 2>&1 | head -n 1" for path in gpu_files(confined))
		return script(folder, name, f"exec 3> {folder}/said/{name}.$SLURM_JOB_ID; {{ cat /proc/self/cgroup; echo; "
			f"grep Cpus_allowed_list /proc/self/status; {opened}; }} >&3", "echo print hello from the node")
	seen = []
	with task_scripts(confined, asking("prolog"), asking("epilog")):
		for options in (PLAIN, OPTIONS):
			done = srun(confined, "--gres=gpu:1", "echo", "ran", user=USER, options=options)
			assert done.returncode == 0 and done.stdout == "hello from the node\nran\n", done
			job = confined.jobs()[-1]["JobId"]
			for name in ("prolog", "epilog"):
				where, _, about = "\n".join(said(folder, f"{name}.{job}")).partition("\n\n")
				_, cores, *opened = about.split(maxsplit=2)
				found = {kind: path.replace(f"job_{job}", "job") for kind, path in cgroups(where).items()}
				seen.append((name, found, len(indices(cores)), opened))
	step = f"/uid_{pwd.getpwnam(USER).pw_uid}/job/step_0"
	assert {name for name in HIERARCHIES if step in seen[0][1][name]} == set(HIERARCHIES), seen
	first, second = seen[0][3][0].splitlines()
	assert NO_DRIVER in first and DENIED in second and seen[0][2] == 1, seen
	assert seen[2:] == seen[:2]


def test_task_in_a_container_has_the_memory_of_its_job_and_not_more(confined):
	most = ("dd", "if=/dev/zero", "of=/dev/null", "count=1")
	assert srun(confined, *most, "bs=40M").returncode == 0
	done = srun(confined, *most, "bs=300M")
	assert done.returncode and "oom" in done.stderr.replace("Out Of Memory", "oom").lower(), done


def test_busy_task_in_a_container_and_busy_pod_never_run_on_one_core_also_while_slurmd_is_dead_and_starts(confined):
	pod = confined.pod("busy", BUSY, cpu="1")
	is_pinned(confined, pod.wait_running())
	with confined.start("srun", *OPTIONS, "sh", "-c", f"echo $SLURM_JOB_ID; {BUSY}") as run:
		job = int(run.stdout.readline())
		task, = of_job(confined, job)
		cores = {"task": indices(confined.job(job)["CPU_IDs"]), "pod": indices(core_of(confined, pod))}

		def both(seconds):
			return sampled(lambda: {"task": [task], "pod": processes(pod)}, seconds)
		seen = [both(10)]
		confined.cluster("stop", "slurmd-n1", "--kill")
		seen.append(both(4))
		confined.cluster("start", "slurmd-n1")
		seen.append(both(4))
		confined.run("scancel", str(job))
		run.communicate(timeout=60)
	assert not cores["task"] & cores["pod"] and seen == [{name: (cpus, cpus) for name, cpus in cores.items()}] * 3


def starts_when_all_have_ended(stand, other, mark):
	"""The other job, which wants all cores, ran when the last process with that mark had ended."""
	began, last = time.time(), 0
	while processes_with(mark):
		last = time.time()
		assert last - began < 150, stand.run("squeue", "-o", "%i %T %r")
		time.sleep(0.05)
	out, err = other.communicate(timeout=90)
	assert float(out) > last > 0, (out, last, err)


@pytest.mark.parametrize("cancelled_meanwhile", [False, True])
def test_job_with_a_busy_sidecar_has_its_core_through_the_death_of_slurmd_until_nothing_of_it_is_left(confined, tmp_path, cancelled_meanwhile):
	mark = f"mark-{tmp_path}"  # of this run alone: another plays the same story beside it
	task, beside = (f": {who}-{mark}; trap '' TERM; {BUSY}" for who in ("task", "beside"))
	options = (*AS_USER, "srun", "--mem=200", "-D", "/tmp", "-n1")
	with confined.start(*options, write(tmp_path, containers=[job_container(), side(beside)]), "sh", "-c", f"echo $SLURM_JOB_ID; {task}") as run:
		job = int(run.stdout.readline())
		who = {name: wait_for(f"its {name}", lambda name=name: processes_with(f"{name}-{mark}"), 30) for name in ("task", "beside")}
		cores = indices(confined.job(job)["CPU_IDs"])
		both_there = {name: (cores, cores) for name in who}
		wait_for("both on its core", lambda: sampled(lambda: who, seconds=1) == both_there, 30)
		confined.cluster("stop", "slurmd-n1", "--kill")
		with confined.start(*options, "-c2", "date", "+%s.%N") as other:
			assert sampled(lambda: who, seconds=3) == both_there
			if cancelled_meanwhile:
				confined.run("scancel", str(job), user=USER)
				wait_for("its end to begin", lambda: confined.job(job)["JobState"] == "COMPLETING", 30, lambda: str(confined.job(job)))
			assert sampled(lambda: who, seconds=3) == both_there and "PENDING" in confined.run("squeue", "-h", "-o", "%T")
			confined.cluster("start", "slurmd-n1")
			if not cancelled_meanwhile:
				assert sampled(lambda: who, seconds=3) == both_there and confined.job(job)["JobState"] == "RUNNING"
				confined.run("scancel", str(job), user=USER)
			starts_when_all_have_ended(confined, other, mark)
		run.communicate(timeout=60)
	assert confined.job(job)["JobState"] == "CANCELLED"
	wait_no_reservation(confined, job)


class Login:
	"""Somebody logs in on n1, where pam_slurm_adopt has the say. To be used with `with`."""

	def __init__(self, stand, folder, user):
		module, = glob.glob("/lib/security/pam_slurm_adopt.so") or glob.glob("/lib/*/security/pam_slurm_adopt.so")
		(folder / "sshd").write_text(f"account required {module} service=* nodename=n1 log_level=quiet\n")
		self.daemon = Daemon(stand.folder, f"login-{user}").start(["/usr/bin/python3", f"{TEST}/stories/pam_login.py", str(folder), user],
			Slurm(stand.folder).env, inside=Machine(stand.folder, "n1"))

	def __enter__(self):
		wait_for("PAM's word", lambda: not self.daemon.pid or "welcome" in self.says(), 30, self.says)
		return self

	def __exit__(self, *_):
		self.daemon.stop()
		self.daemon.forget()

	def says(self):
		with open(self.daemon.log, encoding="utf-8") as file:
			return file.read().splitlines()

	def cgroups(self):
		with open(f"/proc/{self.daemon.pid}/cgroup", encoding="utf-8") as file:
			return cgroups(file.read())


@pytest.mark.skipif("SK8_GIVEN" in os.environ, reason="pam_slurm_adopt is of the machine's Slurm, not of the one that is played")
def test_login_of_a_user_is_adopted_by_their_job_with_a_container_and_ends_with_it(confined, tmp_path):
	with confined.start("runuser", "-u", USER, "--", "srun", *OPTIONS, "sh", "-c", "echo $SLURM_JOB_ID; sleep 600") as run:
		job = run.stdout.readline().strip()
		with Login(confined, tmp_path, OTHER) as other:
			assert not other.daemon.pid and "no active jobs" in "".join(other.says()), other.says()
		with Login(confined, tmp_path, USER) as login:
			assert f"SLURM_JOB_ID={job}" in login.says(), login.says()
			adopted = {name for name in HIERARCHIES if f"/job_{job}/step_extern" in login.cgroups()[name]}
			assert adopted == set(HIERARCHIES), login.cgroups()
			confined.run("scancel", job)
			run.communicate(timeout=60)
			wait_for("the login's end", lambda: not login.daemon.pid, 30)
	wait_for("no reservation", lambda: not reservations(confined), 60)
	assert confined.job(int(job))["JobState"] == "CANCELLED"


def test_job_may_open_what_kubernetes_gave_it_and_of_slurms_devices_its_own(confined):
	task = f"for file in {' '.join(gpu_files(confined))} $SLURM_K8S_DEVICES; do dd if=$file of=/dev/zero count=1 2>&1 | head -n 1; done; echo $SLURM_K8S_DEVICES"
	plain = ("--mem=100", "-n1", "-D", "/tmp")
	first, second, third, given = srun(confined, "--gres=gpu:1,k8s:fpga:1", "sh", "-c", task, options=plain).stdout.splitlines()
	assert NO_DRIVER in first and DENIED in second and third.startswith("0+0 records in") and given == "/dev/null"
	first, second, given = srun(confined, "sh", "-c", task, options=plain).stdout.splitlines()
	assert DENIED in first and DENIED in second and not given
