# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""--k8s-image: the steps of a job run in a container that a kubelet has made for it. Kubelet, containerd and slurmd are real."""
import datetime
import json
import os
import pwd
import re
import shlex
import statistics
import subprocess
import tempfile
import time

import pytest
from conftest import lent, with_conf
from mixed import allow_containers, mixing, reservations, wait_no_reservation, wait_reservation
from stands.process import Daemon
from stands.waiting import wait_for
from world import IMAGE as BUSYBOX
from world import TEST

pytestmark = pytest.mark.apis("real")

ROUNDS = int(os.environ.get("SK8_CONTAINER_ROUNDS", "5"))
MOST_OF_KUBECTL = 1.5
USER = "daemon"
README = os.path.join(os.path.dirname(TEST), "README.md")
# What the image has, and the machine under it has not.
INSIDE = "test -L /bin/sleep && test ! -e /usr/lib && cat /etc/passwd | wc -l"
OPTIONS = ("--mem=100", "-n1", "-D", "/tmp", f"--k8s-image={BUSYBOX}")


def containing(request, session_stands, *words, kubelets=1, **settings):
	"""A stand whose jobs may have containers, for a fixture. words: more of test/cluster; settings: of reservations."""
	stands = lent(request, session_stands, "real", "--agent", "--cpus", "2", "--memory", "4000", "--kubelets", str(kubelets), *words,
		*with_conf("PrEpPlugins=prep/script,prep/k8s"))
	stand = next(stands)
	for _ in mixing(stand, pausePath=os.path.join(stand.folder, "inst", "pause"), **settings):
		allow_containers(stand)
		yield stand
	yield from stands


@pytest.fixture
def containers(request, session_stands):
	yield from containing(request, session_stands)


def srun(stand, *words, user=None, options=OPTIONS, home=None):
	env = ("env", f"HOME={home}") if home else ()
	return stand.run(*env, "srun", *options, *words, user=user, check=False, seconds=90)


@pytest.mark.each_release
def test_tasks_run_in_the_image_as_their_user_with_slurms_stdio_and_exit_code(containers):
	done = srun(containers, "-n2", "sh", "-c", f"{INSIDE}; id -u; id -g; grep CapEff /proc/self/status; echo oops >&2; exit 7", user=USER)
	about = pwd.getpwnam(USER)
	mine = f"2\n{about.pw_uid}\n{about.pw_gid}\nCapEff:\t0000000000000000\n"
	assert sorted(done.stdout.splitlines()) == sorted((mine * 2).splitlines()), done
	assert done.stderr.count("oops\n") == 2 and done.returncode == 7
	wait_for("no reservation", lambda: not reservations(containers), 30)


def of_readme(option):
	"""(words of its example with that option, what it says that follows)."""
	with open(README, encoding="utf-8") as file:
		example, = re.findall(rf"^\$ (srun .*{option}.*)\n([^`]*)```", file.read(), re.M)
	return shlex.split(example[0]), example[1].splitlines()


def test_example_of_the_readme_does_what_it_says(containers):
	words, says = of_readme("--k8s-image")
	done = containers.run(*(re.sub("(?<=^--k8s-image=).*", BUSYBOX, word) for word in words), user=USER, check=False, seconds=90)
	exact = {"node2": "n1", "1001": str(pwd.getpwnam(USER).pw_uid)}

	def told(lines):
		text = "\n".join(lines)  # two tasks end at once, or one after the other
		lines = re.sub(r"^(.*: task)s 0-1(: .*)", r"\1 0\2\n\1 1\2", text, flags=re.M).splitlines()
		return sorted(re.sub(r"BusyBox v\S+ \(.*\)|node2|1001", lambda found: exact.get(found[0], "BusyBox"), line) for line in lines)
	assert told((done.stdout + done.stderr).splitlines()) == told(says) and done.returncode == 3, done


def test_image_may_come_from_the_environment(containers, monkeypatch):
	monkeypatch.setenv("SLURM_K8S_IMAGE", BUSYBOX)
	done = containers.run("srun", "--mem=100", "-n1", "-D", "/tmp", "sh", "-c", INSIDE, check=False)
	assert done.stdout == "2\n", done


@pytest.mark.parametrize("name, value", [("SLURM_K8S_IMAGE", "i" * 600), ("SLURM_K8S_CONTAINER", "../../x"), ("SLURM_K8S_WORKDIR", "data")])
def test_option_that_is_wrong_in_the_environment_makes_no_job_without_it(containers, monkeypatch, name, value):
	before = len(containers.jobs())
	monkeypatch.setenv(name, value)
	done = srun(containers, "true", options=("--mem=100", "-n1", "-D", "/tmp"))
	assert done.returncode and name in done.stderr and len(containers.jobs()) == before, done


@pytest.mark.each_release
def test_setuid_program_of_an_image_makes_nobody_root(containers):
	done = srun(containers, "sh", "-c", "grep NoNewPrivs /proc/self/status", user=USER)
	assert done.stdout == "NoNewPrivs:\t1\n", done


class Batch:
	"""A batch job of those lines, that says `end` last. What srun tells its user is apart from what the script prints: srun may
	have to wait for the end of the step before."""

	def __init__(self, stand, folder, *lines, options=OPTIONS, user=None):
		if user:  # who may not look into pytest's folders
			for upper in (folder, folder.parent, folder.parent.parent):
				upper.chmod(0o755)
			folder.chmod(0o777)
		self.script = folder / "job.sh"
		self.script.write_text("\n".join(("#!/bin/sh", *lines, "echo end", "")))
		self.out, self.err = folder / "out", folder / "err"
		self.job = int(stand.run("sbatch", "--parsable", "-o", str(self.out), "-e", str(self.err), *options, str(self.script), user=user))

	def says(self):
		return self.out.read_text().splitlines() if self.out.exists() else []

	def wait_line(self, line, seconds=60):
		wait_for(f"the script's {line}", lambda: line in self.says(), seconds,
			lambda: f"{self.says()} {self.err.read_text() if self.err.exists() else ''}")

	def wait_end(self):
		"""What it said before its end."""
		self.wait_line("end")
		return self.says()[:-1]


def test_steps_of_a_batch_job_share_its_container_and_the_script_stays_on_the_node(containers, tmp_path):
	batch = Batch(containers, tmp_path, "test -e /usr/lib && echo node", "srun sh -c 'echo one > /tmp/mark'", "srun cat /tmp/mark",
		"srun sh -c 'sleep 1; exit 3'", "echo $?", f"HOME={tmp_path} srun --k8s-mount-home test -e {tmp_path}/job.sh && echo home",
		f"srun test -e {tmp_path}/job.sh || echo alone", "test -e /tmp/mark || echo clean")
	pod = wait_reservation(containers, batch.job)
	assert pod["spec"]["containers"][0]["image"] == BUSYBOX
	assert batch.wait_end() == ["node", "one", "3", "home", "alone", "clean"]
	wait_no_reservation(containers, batch.job)


def test_task_begins_in_its_folder_though_the_image_has_none(containers):
	done = srun(containers, "pwd", options=("--mem=100", "-n1", "-D", containers.folder, f"--k8s-image={BUSYBOX}"))
	assert done.stdout == containers.folder + "\n" and "chdir" not in done.stderr, done


def test_tasks_have_a_folder_of_the_container_and_the_variables_of_its_image_if_wanted(containers):
	words = ("sh", "-c", 'echo "$(pwd) $PWD $PATH $HOME"')
	without = srun(containers, *words, home="/mine").stdout.split()
	assert without[:2] == ["/tmp", "/tmp"] and without[2] != "/bin" and without[3] == "/mine"
	done = srun(containers, "--k8s-workdir=/bin", "--k8s-env", *words, user=USER, home="/mine")
	assert done.stdout.split() == ["/bin", "/bin", "/bin", "/mine"], done
	lost = srun(containers, "--k8s-workdir=/nowhere", "echo", "ran")
	assert lost.returncode and not lost.stdout, lost
	assert lost.stderr.count("slurm-k8s: --k8s-workdir: /nowhere: No such file or directory") == 1, lost.stderr


@pytest.fixture
def home():
	"""A folder of the user's."""
	with tempfile.TemporaryDirectory(dir="/tmp") as path:
		about = pwd.getpwnam(USER)
		os.chown(path, about.pw_uid, about.pw_gid)
		with open(os.path.join(path, "data"), "w", encoding="utf-8") as file:
			file.write("mine\n")
		yield path


@pytest.mark.each_release
def test_home_and_the_folder_where_tasks_begin_are_in_the_container_if_wanted(containers, home):
	words = ("sh", "-c", 'cat "$HOME/data"; echo new > "$HOME/result"; pwd; test ! -e data || cat data')
	with tempfile.TemporaryDirectory(dir="/tmp") as folder:
		os.chmod(folder, 0o755)
		with open(os.path.join(folder, "data"), "w", encoding="utf-8") as file:
			file.write("input\n")
		begins = ("--mem=100", "-n2", "-D", folder, f"--k8s-image={BUSYBOX}")
		done = srun(containers, *words, user=USER, options=(*begins, "--k8s-mount-home"), home=home)
		assert sorted(done.stdout.splitlines()) == sorted(["mine", folder, "input"] * 2), done
		with open(os.path.join(home, "result"), encoding="utf-8") as file:
			assert file.read() == "new\n" and os.fstat(file.fileno()).st_uid == pwd.getpwnam(USER).pw_uid
		without = srun(containers, *words, user=USER, options=begins, home=home)
		assert without.stdout == f"{folder}\n" * 2 and "No such file" in without.stderr, without


def test_nobody_mounts_what_he_may_not_reach(containers, tmp_path):
	closed = tmp_path / "closed"
	home = closed / "inner"
	home.mkdir(parents=True, mode=0o755)
	closed.chmod(0o700)
	for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
		folder.chmod(0o755)
	done = srun(containers, "--k8s-mount-home", "echo", "ran", user=USER, home=home)
	assert done.returncode and "ran" not in done.stdout
	assert done.stderr.count(f"slurm-k8s: --k8s-mount-home: {home}: Permission denied") == 1, done.stderr
	assert srun(containers, "--k8s-mount-home", "echo", "ran", home=home).stdout == "ran\n"  # root may


def test_nobody_mounts_what_he_may_not_reach_by_a_link_to_where_a_process_is(containers, tmp_path):
	"""Such a link leads there past all folders, for whoever may trace the process: who opens it for the user is root."""
	closed, link = tmp_path / "closed", tmp_path / "link"
	(closed / "inner").mkdir(parents=True, mode=0o755)
	closed.chmod(0o700)
	for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
		folder.chmod(0o755)
	with containers.start("srun", "--mem=100", "-n1", "-w", "n1", "-D", str(closed / "inner"), "sh", "-c", "echo $$; exec sleep 600") as other:
		link.symlink_to(f"/proc/{int(other.stdout.readline())}/cwd")
		done = srun(containers, "--k8s-mount-home", "echo", "ran", user=USER, home=link)
		other.terminate()
	assert done.returncode and "ran" not in done.stdout
	assert f"slurm-k8s: --k8s-mount-home: {link}: " in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["{home}/.", "{home}/", "{home}/inner/..", "{home}"])
def test_nothing_that_is_mounted_for_a_task_is_mounted_on_the_node(containers, home, name):
	"""The folder where it begins is in its home, but not by name: that is mounted in what is a copy of the node's mount."""
	inner = os.path.join(home, "inner")
	os.mkdir(inner, 0o755)
	begins = ("--mem=100", "-n1", "-D", inner, f"--k8s-image={BUSYBOX}", "--k8s-mount-home")
	done = srun(containers, "sh", "-c", "pwd; cat ../data", user=USER, options=begins, home=name.format(home=home))
	assert done.stdout == f"{inner}\nmine\n", done
	with open(f"/proc/{Daemon(containers.folder, 'slurmd-n1').pid}/mountinfo", encoding="utf-8") as file:
		assert not [line for line in file if home in line]


def test_links_of_an_image_lead_nobody_to_what_he_may_not_reach(containers, home, tmp_path):
	"""/to-etc and /to-node are the image's; to where a process of the node is only who may trace it gets."""
	done = srun(containers, "--k8s-workdir=/to-etc", "sh", "-c", "pwd -P; wc -l < passwd", user=USER)
	assert done.stdout.split() == ["/etc", "2"], done
	done = srun(containers, "--k8s-workdir=/to-node", "echo", "ran", user=USER)
	assert done.returncode and not done.stdout and done.stderr.count("slurm-k8s: --k8s-workdir: /to-node: Permission denied") == 1, done

	closed, name = tmp_path / "closed", os.path.basename(home)
	closed.mkdir(mode=0o700)
	new = os.path.join(home, "new")
	os.mkdir(new, 0o777)
	# in the container there is a link of the user's at the place of the node's folder
	script = f"srun -D /tmp ln -s /proc/1/root{closed} /tmp/{name}; srun -D {new} echo first; HOME={new} srun -D {new} --k8s-mount-home echo second; true"
	done = containers.run("salloc", *OPTIONS, "sh", "-c", script, user=USER, check=False, seconds=90)
	assert os.listdir(closed) == [] and "first" in done.stdout and "second" not in done.stdout, done
	assert done.stderr.count(f"slurm-k8s: --k8s-mount-home: {new} cannot be mounted in the container") == 1, done
	with open(f"/proc/{Daemon(containers.folder, 'slurmd-n1').pid}/mountinfo", encoding="utf-8") as file:
		assert not [line for line in file if home in line or str(closed) in line]


def processes_of_pause(uid):
	found = []
	for pid in filter(str.isdigit, os.listdir("/proc")):
		try:
			with open(f"/proc/{pid}/status", encoding="utf-8") as file:
				about = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
		except OSError:
			continue
		if about["Name"] == "pause" and about["Uid"].split()[0] == str(uid):
			found.append(int(pid))
	return found


def test_nobody_gets_by_the_process_of_his_container_to_what_its_image_says_that_he_may(containers):
	with containers.start("runuser", "-u", USER, "--", "srun", *OPTIONS, "sleep", "600"):
		pid, = wait_for("its process", lambda: processes_of_pause(pwd.getpwnam(USER).pw_uid), 60)
		for how, what in (("ls", "root/"), ("ls", "cwd/"), ("ls", "fd/"), ("cat", "environ")):
			look = ["runuser", "-u", USER, "--", how, f"/proc/{pid}/{what}"]
			done = subprocess.run(look, capture_output=True, text=True, check=False)
			assert done.returncode and "Permission denied" in done.stderr, (look, done)
		containers.run("scancel", "-u", USER)


def told(done, says, job):
	return says in job["SystemComment"] and done.stderr.count(says) == 1


@pytest.mark.each_release
@pytest.mark.parametrize("image, says", [
	("localhost/nobody-has-this:1", "image localhost/nobody-has-this:1 on node n1: its container does not start: "),
	("$(reboot)", "--k8s-image is no image's name"),
])
def test_image_that_cannot_be_had_ends_the_job_with_one_sentence(containers, image, says):
	done = containers.run("srun", "--mem=100", "-n1", f"--k8s-image={image}", "true", check=False, seconds=90)
	job = containers.jobs()[-1]
	assert done.returncode and job["JobState"] == "CANCELLED" and told(done, says, job), (done, job)
	wait_no_reservation(containers, int(job["JobId"]))


@pytest.mark.each_release
@pytest.mark.parametrize("mine", ["", "for Bob"])
def test_batch_job_whose_image_cannot_be_pulled_says_so_in_one_sentence_where_its_user_looks(containers, tmp_path, mine):
	image = "127.0.0.1:9/nobody/has-this:1"  # of a registry that does not answer
	batch = Batch(containers, tmp_path, "srun true", options=("--mem=100", "-n1", "-D", "/tmp", f"--k8s-image={image}", *([f"--comment={mine}"] if mine else [])),
		user=USER)
	job = wait_for("its end", lambda: ended(containers.job(batch.job)), 60, lambda: str(containers.job(batch.job)))
	assert re.fullmatch(rf"slurm-k8s: image {image} on node n1: its container does not start: [^\n]*pull[^\n]*", job["SystemComment"]), job
	assert job["Comment"] == (mine or job["SystemComment"]) and not batch.says(), (job, batch.says())
	wait_no_reservation(containers, batch.job)


def ended(job):
	return job if job["JobState"] == "CANCELLED" else None


def test_step_whose_job_has_no_container_is_told_so(containers, tmp_path):
	batch = Batch(containers, tmp_path, f"SLURM_K8S_IMAGE={BUSYBOX} srun true || echo failed", options=("--mem=100", "-n1", "-D", "/tmp"))
	assert batch.wait_end() == ["failed"]
	assert batch.err.read_text().count("slurm-k8s: the job has no container on this node: give --k8s-image to the sbatch") == 1


def test_step_gets_no_other_image_or_template_than_its_job_and_is_told_so(containers, tmp_path):
	batch = Batch(containers, tmp_path, f"srun --k8s-image={BUSYBOX} echo same", "srun --k8s-image=other:1 echo other || echo refused",
		"srun --k8s-template=/nowhere echo other || echo refused")
	assert batch.wait_end() == ["same", "refused", "refused"], batch.err.read_text()
	for option in ("--k8s-image", "--k8s-template"):
		assert batch.err.read_text().count(f"{option}: give it to the sbatch, salloc or srun that makes the job, for all of its steps") == 1


@pytest.mark.each_release
def test_job_goes_on_in_its_container_after_slurmd_was_killed(containers, tmp_path):
	go = tmp_path / "go"
	batch = Batch(containers, tmp_path, "srun sh -c 'echo one > /tmp/mark'", "echo ready", f"while ! test -e {go}; do sleep 0.2; done",
		"srun cat /tmp/mark", "echo $?")
	batch.wait_line("ready")
	containers.cluster("restart", "slurmd-n1", "--kill")
	go.touch()
	assert batch.wait_end() == ["ready", "one", "0"]


@pytest.mark.each_release
def test_cancelled_job_takes_its_container_with_it(containers):
	with containers.start("srun", *OPTIONS, "sleep", "600") as run:
		job = wait_for("a job that runs", lambda: containers.run("squeue", "-h", "-t", "RUNNING", "-o", "%i"), 60)
		wait_for("a step", lambda: containers.run("squeue", "-h", "-s", "-j", job), 60)
		containers.run("scancel", job)
		run.communicate(timeout=60)
	assert run.returncode
	wait_no_reservation(containers, int(job))


def seconds(name, values):
	print(f"{name}: n {len(values)}, median {statistics.median(values):.3f} s, worst {max(values):.3f} s")
	return statistics.median(values)


def timed(stand, action):
	"""(when it began, since 1970; seconds), on an empty node."""
	wait_for("no reservation", lambda: not reservations(stand), 30)
	when, began = time.time(), time.monotonic()
	action()
	return when, time.monotonic() - began


def seen_by_srun(ready, release):
	"""When srun notices that its job is ready after so many seconds: it looks after 0.1 s, and then after pauses that grow by 0.1 s
	each, or from 24.11 on after 1 s, 1.5 s and so on (srun's allocate.c)."""
	seen, pause, more = (0.1, 0.2, 0.1) if release.startswith("22.05") else (0.1, 1.0, 0.5)
	while seen < ready:
		seen, pause = seen + pause, pause + more
	return seen


def configured(stand, job):
	"""When slurmctld let the job's steps begin, by its log: seconds since 1970."""
	line = wait_for("the job's configuration", lambda: re.search(rf"^\[(\S+)\] .*: Configuration for JobId={job} (is )?complete", stand.log(), re.M), 10)
	return datetime.datetime.fromisoformat(line[1]).timestamp()


def pod_of_a_job(stand):
	"""As a manifest for kubectl; it is nobody's."""
	with stand.start("srun", *OPTIONS, "sleep", "600") as run:
		key, pod = wait_for("the job's pod", lambda: next(iter(reservations(stand).items()), None), 60)
		stand.run("scancel", str(key[0]))
		run.communicate(timeout=60)
	return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "same"}, "spec": pod["spec"]}


def test_container_starts_no_slower_than_the_same_pod_by_kubectl(containers, tmp_path):
	"""In turn, on an empty node: srun; the same in a container; the pod of such a job by kubectl. A job's container is there when
	slurmctld lets the job's steps begin; srun looks for that now and then, which is all that may come on top. A kubelet looks once a
	second whether a container runs: more rounds if chance made us slower."""
	kubectl = ("kubectl", f"--kubeconfig={containers.env['KUBECONFIG']}")
	manifest = tmp_path / "pod.json"
	manifest.write_text(json.dumps(pod_of_a_job(containers)))

	def by_kubectl():
		containers.run(*kubectl, "create", "-f", str(manifest))
		containers.run(*kubectl, "wait", "pod/same", "--for=condition=Ready", "--timeout=60s")
	plain, inside, ready, pods = [], [], [], []

	def slower():
		return statistics.median(ready) > MOST_OF_KUBECTL * statistics.median(pods)
	while len(pods) < ROUNDS or (slower() and len(pods) < 3 * ROUNDS):
		plain.append(timed(containers, lambda: containers.run("srun", "--mem=100", "-n1", "-D", "/tmp", "true"))[1])
		began, took = timed(containers, lambda: containers.run("srun", *OPTIONS, "true"))
		inside.append(took)
		ready.append(configured(containers, containers.jobs()[-1]["JobId"]) - began)
		pods.append(timed(containers, by_kubectl)[1])
		containers.run(*kubectl, "delete", "pod/same", "--grace-period=1", "--timeout=60s")
	more = seconds("srun in a container", inside) - seconds("srun", plain)
	alone, there = seconds("the same pod by kubectl create and wait", pods), seconds("srun's container is there", ready)
	print(f"{there / alone:.2f} times what kubectl needs (at most {MOST_OF_KUBECTL}); {more:.3f} s more than srun without")
	assert not slower()
	assert more <= seen_by_srun(MOST_OF_KUBECTL * alone, containers.release)
