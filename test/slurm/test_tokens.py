# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""k8scpu and k8smemory: jobs have as many as they have CPUs and MB, and pods take them with cores and memory, once."""
import os
import re

import pytest
from conftest import Cluster
from stands.gres import indices
from stands.slurm import stock_plugins
from stands.waiting import StandError, wait_for

CONF = """PartitionName=all Nodes=n1,n2 Default=YES
PartitionName=one Nodes=n1 PriorityTier=10
PartitionName=lowone Nodes=n1 PriorityTier=1
PartitionName=plain Nodes=n1,n2
PartitionName=percpu Nodes=n1 DefMemPerCPU=100
PartitionName=pernode Nodes=n1 DefMemPerNode=700
PartitionName=limited Nodes=n1,n2 MaxMemPerCPU=100
PartitionName=whole Nodes=n1 OverSubscribe=EXCLUSIVE
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
"""
COMPLETED = "all,one,lowone,percpu,pernode,limited,whole"


@pytest.fixture(scope="module", name="cluster_of_module")
def cluster_of_module_fixture():
	cluster = Cluster(conf=CONF, gres="gpu:4,k8scpu:8,k8smemory:16000")
	yield cluster
	cluster.down()


@pytest.fixture(name="tokens")
def tokens_fixture(cluster_of_module):
	cluster_of_module.tell("tokens", COMPLETED)
	yield cluster_of_module
	cluster_of_module.clean()


def has(cluster, job):
	"""Of each node: its CPUs, MB, and the numbers of tokens that the job has there."""
	found = {}
	for line in cluster.run("scontrol", "-d", "show", "job", str(job)).splitlines():
		words = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
		if "CPU_IDs" not in words:
			continue
		tokens = {name: int(n) for name, n in re.findall(r"(k8scpu|k8smemory)[^:,]*:(\d+)", words.get("GRES", ""))}
		nodes = words["Nodes"]
		for node in ["n1", "n2"] if nodes == "n[1-2]" else [nodes]:
			found[node] = (len(indices(words["CPU_IDs"])), int(words["Mem"]), tokens.get("k8scpu"), tokens.get("k8smemory"))
	return found


def start(cluster, *options):
	job = cluster.batch(*options)
	cluster.becomes(job, "RUNNING")
	return has(cluster, job)


def refused(cluster, *options):
	with pytest.raises(StandError) as error:
		cluster.batch(*options)
	return str(error.value)


def waits(cluster, job):
	cluster.scheduled()
	shown = cluster.show(job)
	assert (shown["JobState"], shown["Reason"]) == ("PENDING", "Resources"), shown


def used(cluster, node="n1"):
	shown = cluster.run("scontrol", "-d", "show", "node", node)
	return {name: int(n) for name, n in re.findall(r"(k8scpu|k8smemory):(\d+)", re.search("GresUsed=(.*)", shown)[1])}


@pytest.mark.parametrize("explicit", [(), ("--gres=k8scpu:3,k8smemory:4000",)])
def test_what_a_foreign_pod_takes_no_job_with_tokens_gets(tokens, explicit):
	"""The sequence of ACK's manual: a job, a pod of another scheduler, a job that has to wait for it."""
	ask = ("-p", "one", "--cpus-per-task=3", "--mem=4000", *explicit)
	assert start(tokens, *ask) == {"n1": (3, 4000, 3, 4000)}
	assert used(tokens) == {"k8scpu": 3, "k8smemory": 4000}
	tokens.tell("mask", "n1", "milli=3000", "mem=5000")
	assert used(tokens) == {"k8scpu": 6, "k8smemory": 9000}
	second = tokens.batch(*ask)
	waits(tokens, second)
	tokens.tell("mask", "n1", "milli=2000", "mem=5000")
	tokens.becomes(second, "RUNNING")
	assert used(tokens) == {"k8scpu": 8, "k8smemory": 13000}


def all_given_back(tokens):
	tokens.cancel_all()
	assert used(tokens) == used(tokens, "n2") == {"k8scpu": 0, "k8smemory": 0}


WAYS = [
	"--mem=100",
	"-c3 --mem=400",
	"-n1 -c3 --mem-per-cpu=100",
	"-n4 --mem-per-cpu=100",
	"-n4 -c3 --mem-per-cpu=100",
	"-N1 -n4 -c2 --mem=900",
	"-N2 --mem=300",
	"-N2 -c3 --mem-per-cpu=10",
	"-N2 -n2 -c3 --mem-per-cpu=10",
	"-N2 -n5 -c2 --mem-per-cpu=10",
	"-N2 -n10 --mem=100",
	"-N2 -n10 --mem-per-cpu=10",
	"--ntasks-per-node=4 --mem-per-cpu=10",
	"-N2 --ntasks-per-node=3 -c2 --mem-per-cpu=10",
	"-N2 -n8 --ntasks-per-node=4 --mem-per-cpu=10",
	"--mincpus=4 --mem-per-cpu=10",
	"-O -n8 --mem=100",
	"--exclusive=user -c3 --mem=100",
	"-c3 --mem=100 --gres=gpu:2",
	"-n4 --mem-per-cpu=10 --gpus-per-task=1",
	"-n4 --mem-per-cpu=10 --gpus=3",
	"-p limited -n1 --mem-per-cpu=300",  # has 3 CPUs
	"-p limited -n3 -c2 --mem-per-cpu=150",
	"-p limited -N2 --ntasks-per-node=2 --mem-per-cpu=200",
	"-p limited --mem=500",
	"-p limited,all -n1 --mem-per-cpu=300",
]


@pytest.mark.parametrize("way", WAYS)
def test_job_has_a_token_for_each_cpu_and_mb_however_it_asks(tokens, way):
	nodes = start(tokens, *way.split())
	assert nodes and all((cpus, memory) == (k8scpu, k8smemory) for cpus, memory, k8scpu, k8smemory in nodes.values()), nodes
	all_given_back(tokens)


# Slurm 22.05 and 26.05 give CPUs for so many tasks on each node, 24.11 for those that are there.
FEWER = [
	"-n9 --ntasks-per-node=8 --mem-per-cpu=10",
	"-n3 --ntasks-per-node=2 -c2 --mem-per-cpu=10",
	"-n2 --ntasks-per-node=4 --mem-per-cpu=10",
	"-N1 -n2 --ntasks-per-node=4 --mem=10",
	"-p limited -c2 --mem=500",  # 5 CPUs for its memory, and it has them by twos
]


@pytest.mark.parametrize("way", FEWER)
def test_job_with_fewer_tasks_than_its_nodes_may_have_has_no_fewer_tokens_than_cpus(tokens, way):
	nodes = start(tokens, *way.split())
	assert nodes and all(k8scpu >= cpus > 0 and k8smemory >= memory > 0 for cpus, memory, k8scpu, k8smemory in nodes.values()), nodes
	all_given_back(tokens)


def test_memory_that_a_partition_gives_makes_tokens_too(tokens):
	assert start(tokens, "-p", "percpu", "-c3") == {"n1": (3, 300, 3, 300)}
	assert start(tokens, "-p", "pernode", "-c2") == {"n1": (2, 700, 2, 700)}


def test_what_is_not_known_before_the_start_is_left_out(tokens):
	assert start(tokens, "-p", "one", "-c3", "--mem=0") == {"n1": (3, 16000, 3, None)}


def test_job_for_whole_nodes_gets_all_tokens_and_is_kept_off_by_cores_alone(tokens):
	assert start(tokens, "-p", "one", "--exclusive", "--mem=100") == {"n1": (8, 100, 8, 16000)}
	assert used(tokens) == {"k8scpu": 8, "k8smemory": 16000}
	tokens.cancel_all()
	tokens.tell("mask", "n1", "mem=100", "gres=k8smemory::100")
	assert used(tokens) == {"k8scpu": 0, "k8smemory": 100}
	assert start(tokens, "-p", "one", "--exclusive", "--mem=100") == {"n1": (8, 100, 8, 16000)}
	assert used(tokens) == {"k8scpu": 8, "k8smemory": 16000}


def test_job_that_its_partition_gives_whole_nodes_gets_all_tokens_too(tokens):
	assert start(tokens, "-p", "whole", "-c3", "--mem=100") == {"n1": (8, 100, 8, 16000)}
	tokens.cancel_all()
	tokens.tell("mask", "n1", "mem=100", "gres=k8smemory::100")
	assert start(tokens, "-p", "whole", "-c3", "--mem=100") == {"n1": (8, 100, 8, 16000)}
	assert "a job that wants its nodes for itself (--exclusive) has all k8scpu there" in refused(tokens, "-p", "whole", "-c3", "--gres=k8scpu:3")
	tokens.clean()
	changed = tokens.batch("-H", "-p", "whole", "-c3", "--mem=100")
	update(tokens, changed, "MinMemoryNode=200")
	tokens.run("scontrol", "release", str(changed))
	tokens.becomes(changed, "RUNNING")
	assert has(tokens, changed) == {"n1": (8, 200, 8, 16000)}


def test_jobs_of_other_partitions_get_none(tokens):
	assert start(tokens, "-p", "plain", "-c3", "--mem=50") == {"n1": (3, 50, None, None)}
	for both in ("plain,one", "one,plain"):
		tokens.cancel_all()
		assert start(tokens, "-p", both, "-w", "n1", "-c3", "--mem=50") == {"n1": (3, 50, None, None)}
	tokens.tell("tokens")
	assert start(tokens, "-p", "one", "-c2", "--mem=50") == {"n1": (2, 50, None, None)}


def test_tokens_that_a_user_names_stay_and_the_other_is_filled_in(tokens):
	assert start(tokens, "-p", "one", "-c3", "--mem=50", "--gres=k8scpu:4") == {"n1": (3, 50, 4, 50)}
	assert start(tokens, "-p", "one", "-c2", "--mem=50", "--gres=k8smemory:1k") == {"n1": (2, 50, 2, 1024)}
	tokens.cancel_all()
	assert start(tokens, "-p", "one", "-c2", "--mem=50", "--gres=k8scpu:0") == {"n1": (2, 50, 2, 50)}  # Slurm ignores none, too


CONTRADICTIONS = {
	"-n4 -c3 --mem=50 --gres=k8scpu:2": "k8scpu:2 is less than the 3 CPUs that the job asks for in each task",
	"-n4 --mem-per-cpu=1000 --gres=k8smemory:10": "k8smemory:10 is less than the 1000 MB that the job asks for in each task",
	"-N1 -n4 -c2 --mem=50 --gres=k8scpu:7": "k8scpu:7 is less than the 8 CPUs that the job asks for on each node",
	"-N2 --ntasks-per-node=3 --mem=50 --gres=k8scpu:2": "k8scpu:2 is less than the 3 CPUs that the job asks for on each node",
	"-c3 --exclusive --mem=50 --gres=k8scpu:2": "a job that wants its nodes for itself (--exclusive) has all k8scpu there",
	"--exclusive --mem=50 --gres=k8smemory:16000": "has all k8smemory there, however many it names; leave k8smemory out",
}


def test_fewer_tokens_than_cpus_or_memory_are_refused_with_a_sentence(tokens):
	assert "k8scpu:2 is less than the 3 CPUs that the job asks for on each node; name k8scpu:3, or leave it out" in \
		refused(tokens, "-c3", "--mem=50", "--gres=k8scpu:2")
	assert "k8smemory:49 is less than the 50 MB" in refused(tokens, "-c3", "--mem=50", "--gres=k8scpu:3,k8smemory:49")
	tokens.batch("-p", "plain", "-c3", "--mem=50", "--gres=k8scpu:2")
	for options, why in CONTRADICTIONS.items():
		assert why in refused(tokens, *options.split()), options
	for options in ("-n4 -c2 --mem=50 --gres=k8scpu:2", "-n4 --mem-per-cpu=10 --gres=k8smemory:10", "--exclusive --mem=50 --gres=gpu:1"):
		tokens.batch("-H", *options.split())
	for command in (["srun", "-n1"], ["salloc"]):
		with pytest.raises(StandError, match="k8scpu:2 is less than the 3 CPUs that the job asks for on each node"):
			tokens.run(*command, "-N1", "-c3", "--mem=50", "--gres=k8scpu:2", "true")


def test_each_part_of_a_heterogeneous_job_and_each_task_of_an_array_has_its_own(tokens):
	first = tokens.batch("-p", "one", "-c2", "--mem=50", ":", "-p", "all", "-w", "n2", "-n2", "-c2", "--mem=40")
	tokens.becomes(first, "RUNNING", 40)
	assert has(tokens, first) == {"n1": (2, 50, 2, 50), "n2": (4, 40, 4, 40)}
	tokens.cancel_all()
	array = tokens.batch("-p", "one", "-a", "1-3", "-c3", "--mem=50")
	tokens.becomes(f"{array}_1", "RUNNING")
	tokens.becomes(f"{array}_2", "RUNNING")
	assert used(tokens) == {"k8scpu": 6, "k8smemory": 100}
	assert has(tokens, f"{array}_2") == {"n1": (3, 50, 3, 50)}


def test_what_pods_hold_takes_tokens_once_with_a_job_and_after_it(tokens):
	"""A pod's job has tokens as any; when it has ended and the pod has not, the mask of its cores has as many."""
	told = tokens.submit(cpus=3, mem=1000)
	job = int(told["job"])
	tokens.becomes(job, "RUNNING")
	assert used(tokens) == {"k8scpu": 3, "k8smemory": 1000}
	assert tokens.jobs()[job]["gres"] == "", "cores and memory say it"
	tokens.tell("mask", "n1", "cores=0-2", "mem=1000", "gres=k8scpu::3+k8smemory::1000")
	tokens.run("scancel", str(job))
	tokens.becomes(job, "CANCELLED")
	assert used(tokens) == {"k8scpu": 3, "k8smemory": 1000}
	assert start(tokens, "-p", "one", "-c5", "--mem=15000") == {"n1": (5, 15000, 5, 15000)}


def test_masks_that_come_and_go_leave_nothing(tokens):
	tokens.tell("mask", "n1", "whole=1")
	assert used(tokens) == {"k8scpu": 8, "k8smemory": 16000}
	tokens.tell("mask", "n1", "milli=99000", "mem=99000")
	assert used(tokens) == {"k8scpu": 8, "k8smemory": 16000}
	tokens.tell("unmask")
	assert used(tokens) == {"k8scpu": 0, "k8smemory": 0}
	assert start(tokens, "-p", "one", "-c8", "--mem=16000") == {"n1": (8, 16000, 8, 16000)}
	tokens.tell("mask", "n1", "milli=3000", "mem=500")  # overcommitted: no more than there are
	assert used(tokens) == {"k8scpu": 8, "k8smemory": 16000}
	tokens.clean()
	assert used(tokens) == {"k8scpu": 0, "k8smemory": 0}
	assert "underflow" not in tokens.log()


def test_tokens_do_not_make_a_job_one_that_needs_a_pod_of_its_own(tokens):
	"""A node that has all its pods: jobs with at most so many CPUs and no device share one that is there."""
	tokens.tell("mask", "n1", "full_jobs=1", "full_but=2")
	start(tokens, "-p", "one", "-c2", "--mem=50")
	waits(tokens, tokens.batch("-p", "one", "-c3", "--mem=50"))


def update(cluster, job, *what):
	def done():
		try:
			cluster.run("scontrol", "update", f"JobId={job}", *what)
			return True
		except StandError as error:  # so soon after sbatch, says 26.05 sometimes
			if "temporarily unavailable" in str(error):
				return False
			raise
	wait_for("the update", done)


def has_when_changed(cluster, what, *options):
	"""What a job of n1 that is changed before it may start has there."""
	job = cluster.batch("-H", "-w", "n1", *options)
	update(cluster, job, *what)
	cluster.run("scontrol", "release", str(job))
	cluster.becomes(job, "RUNNING")
	found = has(cluster, job)
	assert set(found) == {"n1"}
	return found["n1"]


@pytest.mark.parametrize("what,then", [
	(["CPUsPerTask=5", "NumCPUs=5"], (5, 50, 5, 50)),
	(["MinMemoryNode=70"], (3, 70, 3, 70)),
	(["MinMemoryCPU=30"], (3, 90, 3, 90)),
	(["CPUsPerTask=4", "NumCPUs=4", "MinMemoryNode=60"], (4, 60, 4, 60)),
	(["Gres=gpu:2"], (3, 50, 3, 50)),
	(["Gres=k8scpu:4"], (3, 50, 4, 50)),
	(["Partition=lowone"], (3, 50, 3, 50)),
	(["Partition=plain"], (3, 50, 3, 50)),
	(["TimeLimit=5"], (3, 50, 3, 50)),
])
def test_tokens_that_were_filled_in_follow_a_change_of_the_job(tokens, what, then):
	assert has_when_changed(tokens, what, "-p", "one", "-c3", "--mem=50") == then


@pytest.mark.parametrize("what,then", [
	(["MinMemoryCPU=500"], (5, 500, 5, 500)),
	(["MinMemoryCPU=50"], (1, 50, 1, 50)),
	(["Gres=k8scpu:4"], (3, 300, 4, 300)),
	(["Partition=one"], (1, 300, 1, 300)),
	(["TimeLimit=5"], (3, 300, 3, 300)),
])
def test_tokens_of_a_job_whose_cpus_slurm_raised_for_its_memory_follow_a_change(tokens, what, then):
	assert has_when_changed(tokens, what, "-p", "limited", "-n1", "--mem-per-cpu=300") == then


def test_tokens_follow_a_change_of_the_nodes_of_a_task_of_an_array_and_of_a_part_of_a_heterogeneous_job(tokens):
	wide = tokens.batch("-H", "-p", "all", "-N1", "-c3", "--mem=50")
	update(tokens, wide, "NumNodes=2-2")
	tokens.run("scontrol", "release", str(wide))
	tokens.becomes(wide, "RUNNING")
	assert has(tokens, wide) == {"n1": (3, 50, 3, 50), "n2": (3, 50, 3, 50)}
	tokens.cancel_all()
	array = tokens.batch("-H", "-p", "one", "-a", "1-2", "-c2", "--mem=50")
	update(tokens, f"{array}_2", "CPUsPerTask=4", "NumCPUs=4", "MinMemoryNode=60")
	for task in (1, 2):
		tokens.run("scontrol", "release", f"{array}_{task}")
		tokens.becomes(f"{array}_{task}", "RUNNING")
	assert has(tokens, f"{array}_1") == {"n1": (2, 50, 2, 50)} and has(tokens, f"{array}_2") == {"n1": (4, 60, 4, 60)}
	tokens.cancel_all()
	parts = tokens.batch("-H", "-p", "one", "-c2", "--mem=50", ":", "-p", "all", "-w", "n2", "-c2", "--mem=40")
	update(tokens, f"{parts}+1", "MinMemoryNode=70")
	tokens.run("scontrol", "release", str(parts))
	tokens.becomes(parts, "RUNNING", 40)
	assert has(tokens, parts) == {"n1": (2, 50, 2, 50), "n2": (2, 70, 2, 70)}


def test_job_that_comes_to_a_partition_with_tokens_gets_some_and_those_of_its_user_stay(tokens):
	moved = tokens.batch("-H", "-p", "plain", "-c3", "--mem=50", "--gres=gpu:1")
	update(tokens, moved, "Partition=one")
	tokens.run("scontrol", "release", str(moved))
	tokens.becomes(moved, "RUNNING")
	assert has(tokens, moved) == {"n1": (3, 50, 3, 50)}
	back = tokens.batch("-H", "-p", "one", "-c3", "--mem=50", "--gres=gpu:1")
	update(tokens, back, "Partition=plain")
	update(tokens, back, "Partition=one")
	tokens.run("scontrol", "release", str(back))
	tokens.becomes(back, "RUNNING")
	assert has(tokens, back) == {"n1": (3, 50, 3, 50)}
	tokens.cancel_all()
	named = tokens.batch("-H", "-p", "one", "-c3", "--mem=50", "--gres=k8scpu:5")
	update(tokens, named, "CPUsPerTask=4", "NumCPUs=4")
	before, sentence = len(tokens.log()), "k8scpu:5 is less than the 6 CPUs that the job asks for on each node"
	with pytest.raises(StandError) as error:
		update(tokens, named, "CPUsPerTask=6", "NumCPUs=6")
	assert sentence in tokens.log()[before:]
	assert sentence in str(error.value) or tokens.release.startswith("22.05")  # which tells the caller nothing of job_modify()
	update(tokens, named, "TimeLimit=5")
	tokens.run("scontrol", "release", str(named))
	tokens.becomes(named, "RUNNING")
	assert has(tokens, named) == {"n1": (4, 50, 5, 50)}


LUA = """function slurm_job_submit(job, part_list, uid)
	if job.name == "wide" then job.cpus_per_task = 4 job.min_cpus = 4 end
	if job.name == "talk" then slurm.log_user("lua says so") end
	return slurm.SUCCESS
end
function slurm_job_modify(job, record, part_list, uid)
	if job.comment == "wide" then job.cpus_per_task = 5 job.min_cpus = 5 end
	return slurm.SUCCESS
end
"""


def with_lua(plugins):
	if not os.path.exists(os.path.join(stock_plugins(), "job_submit_lua.so")):
		pytest.skip("this Slurm has no job_submit/lua")
	return Cluster(nodes=["n1"], conf=CONF.replace(",n2", "") + f"JobSubmitPlugins={plugins}\n", gres="k8scpu:8,k8smemory:16000",
		files={"job_submit.lua": LUA})


def test_what_another_job_submit_plugin_changes_is_completed_too():
	cluster = with_lua("lua,k8s")
	try:
		cluster.tell("tokens", COMPLETED)
		assert start(cluster, "-p", "one", "-J", "wide", "--mem=50") == {"n1": (4, 50, 4, 50)}
		assert start(cluster, "-p", "one", "-J", "narrow", "--mem=50") == {"n1": (1, 50, 1, 50)}
		cluster.cancel_all()
		changed = cluster.batch("-H", "-p", "one", "-c2", "--mem=50")
		update(cluster, changed, "Comment=wide")
		cluster.run("scontrol", "release", str(changed))
		cluster.becomes(changed, "RUNNING")
		assert has(cluster, changed) == {"n1": (5, 50, 5, 50)}
		with pytest.raises(StandError, match="(?s)lua says so.*k8scpu:2 is less than the 3 CPUs"):  # and ours beside it
			cluster.batch("-p", "one", "-J", "talk", "-c3", "--mem=50", "--gres=k8scpu:2")
	finally:
		cluster.down()


def test_what_a_plugin_behind_ours_changes_is_not_seen_and_one_that_ours_refuses_it_is_not_asked_about():
	cluster = with_lua("k8s,lua")  # of which slurm-k8s check warns
	try:
		cluster.tell("tokens", COMPLETED)
		assert start(cluster, "-p", "one", "-J", "wide", "--mem=50") == {"n1": (4, 50, 1, 50)}
		said = refused(cluster, "-p", "one", "-J", "talk", "-c3", "--mem=50", "--gres=k8scpu:2")
		assert "k8scpu:2 is less than the 3 CPUs" in said and "lua says so" not in said
	finally:
		cluster.down()


def test_what_plugins_in_front_that_are_no_lua_decide_is_completed_and_refused_too():
	"""One chooses the partitions of a job that names none, one refuses a job without a time limit."""
	cluster = Cluster(nodes=["n1"], conf=CONF.replace(",n2", "") + "JobSubmitPlugins=require_timelimit,all_partitions,k8s\n",
		gres="k8scpu:8,k8smemory:16000")
	ask = ("-t5", "-c3", "--mem=50")
	try:
		cluster.tell("tokens", COMPLETED + ",plain,batch,low,short")  # all that there are
		assert start(cluster, *ask) == {"n1": (3, 50, 3, 50)}
		assert start(cluster, "-t5", "-c3")["n1"][2:] == (3, None)  # their partitions give different memory
		assert "k8scpu:2 is less than the 3 CPUs" in refused(cluster, *ask, "--gres=k8scpu:2")
		cluster.cancel_all()
		cluster.tell("tokens", COMPLETED + ",batch,low,short")  # the job may run in one that has none
		assert start(cluster, *ask) == {"n1": (3, 50, None, None)}
		said = refused(cluster, *ask[1:], "--gres=k8scpu:2")
		assert "time limit" in said.lower() and "is less than" not in said
	finally:
		cluster.down()
