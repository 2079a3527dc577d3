# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""k8scpu and k8smemory: jobs that were written for ACK get what pods have left, also those that do not name them."""
import os
import re

import pytest
from conftest import lent
from foreign import POLITE, foreign
from stands.waiting import wait_for

ASK = ("-c", "3", "--mem", "4000")
NAMED = (*ASK, "--gres=k8scpu:3,k8smemory:4000")


def tokens_of(text):
	return {name: int(number) for name, number in re.findall(r"(k8scpu|k8smemory)(?::\(null\))?:(\d+)", text)}


def used(stand):
	return tokens_of(re.search(r"GresUsed=(\S+)", stand.scontrol("-d", "show", "node", "n1"))[1])


def wait_used(stand, cpus, memory):
	wait_for(f"{cpus} k8scpu and {memory} k8smemory to be used", lambda: used(stand) == {"k8scpu": cpus, "k8smemory": memory}, 60,
		lambda: str(used(stand)))


def fills_in(stand):
	held = stand.batch(options=("-H",))
	text = stand.scontrol("show", "job", str(held.id))
	held.cancel()
	return "k8scpu" in text


@pytest.fixture(name="tokens")
def tokens_fixture(request, session_stands, api):
	for stand in lent(request, session_stands, api, "--gres", "k8scpu:8,k8smemory:16000"):
		path = stand.env["SLURM_K8S_CONF"]
		with open(path, encoding="utf-8") as file:
			before = file.read()
		with open(path, "w", encoding="utf-8") as file:
			file.write(before + "tokens: {partitions: [bat*]}\n")
		stand.reconfigure()
		wait_for("the setting", lambda: fills_in(stand), 60)
		yield stand
		with open(path, "w", encoding="utf-8") as file:
			file.write(before)
		stand.reconfigure()


def test_job_for_ack_gets_what_pods_have_left_whether_it_names_tokens_or_not(tokens):
	first = tokens.batch(options=ASK)
	first.wait("RUNNING")
	wait_used(tokens, 3, 4000)
	mine = tokens.pod("mine", POLITE, cpu="1", memory="1000Mi", node="n1")
	mine.wait_running()
	wait_used(tokens, 4, 5000)
	theirs = foreign(tokens, "monitor", cpu="2", memory="1000Mi")
	theirs.wait_running()
	wait_used(tokens, 6, 6000)
	second, third = tokens.batch(options=NAMED), tokens.batch(options=ASK)
	tokens.scheduled()
	assert [job.state for job in (second, third)] == ["PENDING"] * 2
	assert second.show()["Reason"] == "Resources"
	theirs.delete()
	second.wait("RUNNING")
	assert second.wait_started() > theirs.runs()[0].stop
	wait_used(tokens, 7, 9000)
	tokens.run("scancel", str(mine.job_id))
	mine.wait_gone()
	wait_used(tokens, 6, 8000)
	tokens.reconfigure()
	wait_used(tokens, 6, 8000)
	tokens.restart_slurmctld(kill=False)
	assert fills_in(tokens)  # from the first job on
	wait_used(tokens, 6, 8000)
	assert third.state == "PENDING"
	first.cancel()
	third.wait("RUNNING")


@pytest.mark.parametrize("first, second", [(ASK, NAMED), (NAMED, ASK)])
def test_second_job_waits_with_reason_resources_for_the_one_cpu_that_a_pod_has(tokens, first, second):
	tokens.batch(2).wait("RUNNING")
	tokens.batch(options=first).wait("RUNNING")
	wait_used(tokens, 5, 4100)
	pod = tokens.pod("mine", POLITE, cpu="1", memory="1000Mi", node="n1")
	pod.wait_running()
	wait_used(tokens, 6, 5100)
	waits = tokens.batch(options=second)
	tokens.scheduled()
	assert (waits.state, waits.show()["Reason"]) == ("PENDING", "Resources")
	pod.delete()
	assert waits.wait_started() > pod.runs()[0].stop


@pytest.fixture(name="told")
def told_fixture(tokens):
	"""Tasks are told what their job has."""
	path = os.path.join(os.path.dirname(tokens.env["SLURM_CONF"]), "plugstack.conf")
	with open(path, "w", encoding="utf-8") as file:
		file.write(f"required {tokens.folder}/inst/plugins/spank_k8s.so\n")
	yield tokens
	os.unlink(path)


@pytest.mark.parametrize("named", [(), NAMED[-1:]])
def test_srun_of_acks_manual_waits_for_the_one_cpu_that_a_pod_has_and_its_task_reads_what_it_holds(told, named):
	told.batch(5).wait("RUNNING")
	theirs = foreign(told, "monitor", cpu="1", memory="1000Mi")
	theirs.wait_running()
	wait_used(told, 6, 1100)
	with told.start("srun", "-Q", "-J", "ack", "-w", "n1", "--cpus-per-task=3", "--mem=4000", *named, "env") as step:
		job = wait_for("its job", lambda: told.run("squeue", "-h", "-n", "ack", "-o", "%i"), 30)
		told.scheduled()
		shown = told.job(job)
		assert (shown["JobState"], shown["Reason"]) == ("PENDING", "Resources"), shown
		theirs.delete()
		out, err = step.communicate(timeout=90)
	assert step.returncode == 0, err
	assert told.allocated_at(job) > theirs.runs()[0].stop
	env = dict(line.partition("=")[::2] for line in out.splitlines())
	assert [env.get(name) for name in ("SLURM_CPUS_PER_TASK", "SLURM_K8S_CPU", "SLURM_K8S_MEMORY")] == ["3", "3", "4000"], out
