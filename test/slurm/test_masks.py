# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What pods hold is kept away from Slurm's jobs, and shown."""
import subprocess

import pytest
from conftest import CONF, Cluster
from stands.replays import once_only
from stands.waiting import wait_for

pytestmark = once_only


def stays_pending(cluster, *jobs):
	cluster.scheduled()
	for job in jobs:
		assert cluster.show(job)["JobState"] == "PENDING", job


def cores_of(cluster, job):
	found = []
	for part in cluster.show(job)["CPU_IDs"].split(","):
		first, _, last = part.partition("-")
		found += range(int(first), int(last or first) + 1)
	return set(found)


def reserve(cluster, *words):
	"""Makes the reservation `kept`: its nodes, and how many cores."""
	cluster.run("scontrol", "create", "reservation", "ReservationName=kept", "StartTime=now", "Duration=60", "Users=root", *words)
	told = dict(word.partition("=")[::2] for word in cluster.run("scontrol", "-o", "show", "reservation", "kept").split())
	return told["Nodes"], int(told["CoreCnt"])


def forget(cluster):
	cluster.run("scontrol", "delete", "ReservationName=kept")


def test_masked_cores_and_memory_are_kept_away_and_given_back(cluster):
	cluster.tell("mask", "n1", "cores=0-3", "mem=10000")
	cores, memory, whole = (cluster.batch("-p", "one", *options) for options in
		(("-n", "5"), ("-n", "1", "--mem=8000"), ("-n", "1", "--exclusive")))
	stays_pending(cluster, cores, memory, whole)
	cluster.run("scancel", str(cores), str(memory), str(whole))
	fits = cluster.batch("-p", "one", "-n", "4", "--mem=5000")
	cluster.becomes(fits, "RUNNING")
	assert cores_of(cluster, fits) == {4, 5, 6, 7}
	more = cluster.batch("-p", "one", "-n", "4", "--mem=5000")
	stays_pending(cluster, more)
	cluster.tell("unmask")
	cluster.becomes(more, "RUNNING", 5)


def test_masks_are_shown_as_allocated(cluster):
	job = cluster.batch("-p", "one", "-n", "2", "--mem=1000")
	cluster.becomes(job, "RUNNING")
	cluster.tell("mask", "n1", "more=3", "mem=4000")
	node = cluster.node("n1")
	assert (node["CPUAlloc"], node["AllocMem"], node["AllocTRES"]) == ("5", "5000", "cpu=5,mem=5000M")
	assert cluster.run("sinfo", "-h", "-N", "-p", "one", "-o", "%t %C").split() == ["mix", "5/3/0/8"]
	cluster.tell("mask", "n1", "cores=0-7", "mem=99999")
	node = cluster.node("n1")
	assert (node["CPUAlloc"], node["AllocMem"]) == ("8", "16000")
	cluster.tell("unmask")
	assert cluster.node("n1")["CPUAlloc"] == "2"


def test_unpinned_pods_take_cores_that_no_job_holds(cluster):
	first = cluster.batch("-p", "one", "-n", "3")
	cluster.becomes(first, "RUNNING")
	cluster.tell("mask", "n1", "more=3")
	second = cluster.batch("-p", "one", "-n", "2")
	cluster.becomes(second, "RUNNING")
	third = cluster.batch("-p", "one", "-n", "1")
	stays_pending(cluster, third)
	given = cores_of(cluster, second)
	assert not cores_of(cluster, first) & given
	for _ in range(3):  # which ones the pods have stays the same from one look of Slurm's to the next
		cluster.run("scancel", str(third), str(second))
		second, third = cluster.batch("-p", "one", "-n", "2"), cluster.batch("-p", "one", "-n", "1")
		cluster.becomes(second, "RUNNING")
		assert cores_of(cluster, second) == given


def test_cores_that_a_pod_and_a_job_have_both_count_twice(cluster):
	"""A killed slurmctld has forgotten the end of a job, whose cores a pod got then: both run."""
	job = cluster.batch("-p", "one", "-n", "3")
	cluster.becomes(job, "RUNNING")
	cluster.tell("mask", "n1", "cores=0-3")
	assert cluster.node("n1")["CPUAlloc"] == "7"
	two = cluster.batch("-p", "one", "-n", "2")
	stays_pending(cluster, two)
	cluster.run("scancel", str(two))
	one = cluster.batch("-p", "one", "-n", "1")
	cluster.becomes(one, "RUNNING")
	cluster.run("scancel", str(job))
	three = cluster.batch("-p", "one", "-n", "3")
	cluster.becomes(three, "RUNNING")
	assert cores_of(cluster, one) | cores_of(cluster, three) == {4, 5, 6, 7}


def test_cpus_of_foreign_pods_make_whole_cores_beside_those_of_leaving_pods(cluster):
	cluster.tell("mask", "n1", "cores=7", "milli=2001")
	assert cluster.node("n1")["CPUAlloc"] == "4"
	five = cluster.batch("-p", "one", "-n", "5")
	stays_pending(cluster, five)
	cluster.run("scancel", str(five))
	four = cluster.batch("-p", "one", "-n", "4")
	cluster.becomes(four, "RUNNING")
	cluster.tell("mask", "n1", "milli=18446744073709551615")
	assert cluster.node("n1")["CPUAlloc"] == "8"


def test_pods_of_the_node_hide_nothing_as_far_as_slurm_conf_sets_room_aside_for_them():
	"""One specialised core and 1000 MB: jobs for whole nodes run beside what DaemonSets request."""
	cluster = Cluster(nodes=["n1"], conf="NodeName=aside State=CLOUD CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 "
		"ThreadsPerCore=1 RealMemory=16000 CoreSpecCount=1 MemSpecLimit=1000\nPartitionName=aside Nodes=aside\n"
		"SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=1000000\nResumeTimeout=3600\n")

	def mask(*more):
		cluster.tell("mask", "aside", "can_milli=8000", "can_mem=15800", *more)  # 200 MB are the kubelet's

	def starts():
		job = cluster.batch("-p", "aside", "--exclusive", "--mem=0")
		cluster.scheduled()
		state = cluster.show(job)["JobState"]
		cluster.run("scancel", str(job))
		wait_for("the end of job", lambda: cluster.show(job)["JobState"] == "CANCELLED", 20)
		return state != "PENDING"
	try:
		assert starts()
		mask("node_milli=1000", "node_mem=800")
		assert starts()
		mask("node_milli=1001", "node_mem=800")
		assert not starts()
		mask("node_milli=1000", "node_mem=801")
		assert not starts()
		mask("node_milli=1000", "node_mem=800", "milli=100")  # another pod is beside them
		assert not starts()
		cluster.tell("mask", "aside", "node_milli=10")  # nobody has told what pods may have
		assert not starts()
	finally:
		cluster.down()


def aside(line, *more):
	"""A cluster with such a node besides, whose jobs are CONFIGURING when they have started, in the partition aside."""
	return Cluster(nodes=["n1"], conf=f"NodeName=aside State=CLOUD Boards=1 SocketsPerBoard=1 {line}\nPartitionName=aside Nodes=aside\n"
		"SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=1000000\nResumeTimeout=3600\n" + "".join(more))


def starts_aside(cluster, *options, partition="aside"):
	job = cluster.batch("-p", partition, "--mem=100", *options)
	cluster.scheduled()
	if cluster.show(job)["JobState"] != "PENDING":
		return True
	cluster.run("scancel", str(job))
	return False


def test_what_pods_of_the_node_have_is_counted_in_its_threads_though_slurm_offers_its_cores():
	"""CPUs= is the number of cores: a job has both threads of each all the same."""
	cluster = aside("CPUs=4 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=16000")
	try:
		cluster.tell("mask", "aside", "can_milli=8000", "node_milli=4000")
		assert not starts_aside(cluster, "-n3")
		assert starts_aside(cluster, "-n2")
		assert not starts_aside(cluster, "-n1")
	finally:
		cluster.down()


def test_specialised_core_does_not_stand_for_one_that_a_pod_has_beside_a_job():
	cluster = aside("CPUs=8 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=16000 CpuSpecList=7",
		"PartitionName=forced Nodes=aside OverSubscribe=FORCE:2\n")
	try:
		assert starts_aside(cluster, "-n7", partition="forced")
		cluster.tell("mask", "aside", "milli=1000")
		assert not starts_aside(cluster, "-n7", partition="forced")
		cluster.tell("unmask")
		assert starts_aside(cluster, "-n7", partition="forced")
	finally:
		cluster.down()


def test_core_that_the_node_has_no_more_is_another_one(cluster):
	cluster.tell("mask", "n1", "cores=6,200")
	assert cluster.node("n1")["CPUAlloc"] == "2"


def test_nobody_is_preempted_for_memory_that_a_pod_has_as_well(cluster):
	low = cluster.batch("-p", "lowone", "-n", "1", "--mem=16000")
	cluster.becomes(low, "RUNNING")
	cluster.tell("mask", "n1", "mem=500")
	large = cluster.batch("-p", "one", "-n", "1", "--mem=15800")
	stays_pending(cluster, large)
	assert cluster.show(low)["JobState"] == "RUNNING"
	cluster.run("scancel", str(large))
	high = cluster.batch("-p", "one", "-n", "1", "--mem=15500")
	wait_for("the victim to go", lambda: cluster.show(low)["JobState"] in ("PREEMPTED", "COMPLETING"), 20)
	cluster.becomes(high, "RUNNING")


def test_cores_that_are_hidden_move_out_of_the_way_of_each_job_that_starts_or_ends(cluster):
	cluster.tell("mask", "n1", "milli=2000")
	jobs = [cluster.batch("-p", "one", "-n", "2") for _ in range(3)]
	for job in jobs:
		cluster.becomes(job, "RUNNING")
	cluster.run("scancel", str(jobs[1]))
	again = cluster.batch("-p", "one", "-n", "2")
	cluster.becomes(again, "RUNNING")
	stays_pending(cluster, cluster.batch("-p", "one", "-n", "1"))


def test_more_than_the_node_has_leaves_nothing_and_breaks_nothing(cluster):
	job = cluster.batch("-p", "one", "-n", "6")
	cluster.becomes(job, "RUNNING")
	cluster.tell("mask", "n1", "cores=0,1,200", "more=60000", "mem=1000000000")
	waiting = cluster.batch("-p", "one", "-n", "1", "--mem=1")
	stays_pending(cluster, waiting)
	cluster.run("scancel", str(job))
	stays_pending(cluster, waiting)
	cluster.tell("unmask")
	cluster.becomes(waiting, "RUNNING", 5)


def test_node_of_unknown_state_takes_no_job(cluster):
	cluster.tell("mask", "n1", "whole=1")
	job = cluster.batch("-p", "one", "-n", "1")
	stays_pending(cluster, job)
	elsewhere = cluster.batch("-p", "batch", "-n", "1")
	cluster.becomes(elsewhere, "RUNNING")
	assert cluster.show(elsewhere)["NodeList"] == "n2"
	assert cluster.node("n1")["CPUAlloc"] == "8"


def started(cluster, answer, node):
	job = int(answer["job"])
	cluster.becomes(job, "RUNNING")
	assert cluster.show(job)["NodeList"] == node
	return job


def test_node_with_all_its_pods_takes_no_job_of_a_pod_but_jobs_that_need_none(cluster):
	cluster.tell("mask", "n1", "full_pods=1")
	started(cluster, cluster.submit(partition="batch", cpus=1), "n2")
	adopted = cluster.submit(partition="one", cpus=1, node="n1", mark="k8s:prod/ns/there/uid-there")
	started(cluster, adopted, "n1")  # its pod is one of these
	cluster.becomes(cluster.batch("-p", "one", "-n", "1"), "RUNNING")
	waiting = int(cluster.submit(partition="one", cpus=1)["job"])
	stays_pending(cluster, waiting)
	cluster.tell("unmask")
	cluster.becomes(waiting, "RUNNING", 5)


def test_node_with_all_its_pods_takes_no_job_that_gets_a_pod_there(cluster):
	cluster.tell("mask", "n1", "full_jobs=1", "full_but=2")
	small = cluster.batch("-p", "one", "-n", "2")  # it shares one that is there
	cluster.becomes(small, "RUNNING")
	elsewhere = cluster.batch("-p", "batch", "-n", "3")
	cluster.becomes(elsewhere, "RUNNING")
	assert cluster.show(elsewhere)["NodeList"] == "n2"
	three, whole = (cluster.batch("-p", "one", *options) for options in (("-n", "3"), ("-n", "1", "--exclusive")))
	stays_pending(cluster, three, whole)
	cluster.run("scancel", str(small), str(whole))
	cluster.tell("unmask")
	cluster.becomes(three, "RUNNING", 5)


def wide_job_has_its_turn(cluster, wants=("-n", "6"), small=("-n", "2")):
	"""It waits with a start time; a job of lower rank that would delay it waits, one that is short enough does not."""
	wide = cluster.batch("-p", "one", *wants, "-t", "10")
	stays_pending(cluster, wide)
	assert cluster.run("squeue", "-h", "-j", str(wide), "-o", "%S").strip() != "N/A"
	long = cluster.batch("-p", "lowone", *small, "-t", "600")
	short = cluster.batch("-p", "lowone", *small, "-t", "1")
	cluster.becomes(short, "RUNNING")
	stays_pending(cluster, long, wide)


def test_job_for_which_there_is_no_pod_slot_gets_a_start_time_and_is_not_starved(cluster):
	cluster.tell("mask", "n1", "full_jobs=1", "full_but=2")
	wide_job_has_its_turn(cluster)


def test_job_preempts_one_for_its_pod_slot_though_there_are_free_cores(cluster):
	low = cluster.batch("-p", "lowone", "-n", "4")
	cluster.becomes(low, "RUNNING")
	cluster.tell("mask", "n1", "full_jobs=1")
	high = cluster.batch("-p", "one", "-n", "2")
	wait_for("the victim to go", lambda: cluster.show(low)["JobState"] in ("PREEMPTED", "COMPLETING"), 20)
	stays_pending(cluster, high)  # its pod has not gone yet
	cluster.tell("unmask")
	cluster.becomes(high, "RUNNING", 5)


def test_masks_of_unknown_nodes_do_nothing(cluster):
	cluster.tell("mask", "nosuchnode", "cores=0-3")
	cluster.becomes(cluster.batch("-p", "one", "-n", "8"), "RUNNING")


@pytest.mark.parametrize("pods, wants, small", [
	("cores=0-3", ("-n", "6"), ("-n", "2")),
	("mem=10000", ("-n", "1", "--mem=8000"), ("-n", "1", "--mem=2000")),
], ids=("cores", "memory"))
def test_job_held_up_by_pods_only_is_accepted_gets_a_start_time_and_is_not_starved(cluster, pods, wants, small):
	cluster.tell("mask", "n1", pods)
	wide_job_has_its_turn(cluster, wants, small)


def test_job_of_an_exclusive_partition_is_planned_where_no_pod_has_a_part_of_the_node(cluster):
	cluster.tell("mask", "n1", "cores=0-3")
	first = cluster.batch("-p", "batch", "-w", "n2", "-n", "8", "-t", "5")
	cluster.becomes(first, "RUNNING")
	cluster.run("scontrol", "update", "PartitionName=batch", "OverSubscribe=EXCLUSIVE")
	try:
		second = cluster.batch("-p", "batch", "-n", "1", "-t", "5")
		stays_pending(cluster, second)
		wait_for("backfill's plan", lambda: cluster.show(second).get("SchedNodeList"), 60)
		assert cluster.show(second)["SchedNodeList"] == "n2"
		assert cluster.show(second)["StartTime"] >= cluster.show(first)["EndTime"]
	finally:
		cluster.run("scontrol", "update", "PartitionName=batch", "OverSubscribe=NO")


@pytest.mark.parametrize("whose", ("user", "mcs"))
def test_job_that_shares_its_node_with_its_like_only_starts_beside_pods(whose):
	cluster = Cluster(nodes=["n1"], conf=CONF + "MCSPlugin=mcs/user\n")
	try:
		cluster.tell("mask", "n1", "cores=0")
		cluster.becomes(cluster.batch("-n", "1", f"--exclusive={whose}"), "RUNNING")
	finally:
		cluster.down()


def test_test_only_answers_with_a_time_while_pods_are_in_the_way(cluster):
	cluster.tell("mask", "n1", "cores=0-3")
	answer = subprocess.run(["sbatch", "--test-only", "-p", "one", "-n", "6", "--wrap", "true"], capture_output=True,
		text=True, check=True, env=cluster.slurm.env)
	assert "to start at" in answer.stderr


def test_nobody_is_preempted_where_pods_are_in_the_way_anyhow(cluster):
	cluster.tell("mask", "n1", "cores=0-3")
	low = cluster.batch("-p", "lowone", "-n", "4")
	cluster.becomes(low, "RUNNING")
	wide = cluster.batch("-p", "one", "-n", "6")
	stays_pending(cluster, wide)
	assert cluster.show(low)["JobState"] == "RUNNING"
	cluster.run("scancel", str(wide))
	fits = cluster.batch("-p", "one", "-n", "4")
	cluster.becomes(fits, "RUNNING")
	assert cluster.show(low)["JobState"] in ("PREEMPTED", "COMPLETING")


def test_masks_hold_through_reconfigure_and_new_partitions(cluster):
	cluster.tell("mask", "n1", "cores=0-3")
	cluster.reconfigure()
	if cluster.again:  # the stand-in remembers nothing, the engine has its ledger
		cluster.tell("mask", "n1", "cores=0-3")
	cluster.run("scontrol", "create", "PartitionName=extra", "Nodes=n1")
	try:
		wide = cluster.batch("-p", "extra", "-n", "5", "--mem=100")
		stays_pending(cluster, wide)
		cluster.run("scancel", str(wide))
		fits = cluster.batch("-p", "extra", "-n", "4", "--mem=100")
		cluster.becomes(fits, "RUNNING")
		assert cores_of(cluster, fits) == {4, 5, 6, 7}
	finally:
		cluster.clean()
		cluster.run("scontrol", "delete", "PartitionName=extra")


# With CoreCnt alone 26.05 takes cores of two nodes.
@pytest.mark.parametrize("what", [["NodeCnt=1"], ["NodeCnt=1", "CoreCnt=4"]], ids=" ".join)
def test_reservation_gets_what_it_had_gotten_without_masks_and_a_job_in_it_waits_for_them(cluster, what):
	def use(count):
		return cluster.batch("-p", "batch", "-N", "1", "-n", str(count), "--mem=100", "--reservation=kept")

	def used(job):
		cluster.becomes(job, "RUNNING")
		return cluster.show(job)["NodeList"], cores_of(cluster, job)
	try:
		without = reserve(cluster, "PartitionName=batch", *what)
		node, cores = used(use(without[1]))
		cluster.cancel_all()
		forget(cluster)
		cluster.tell("mask", node, f"cores={','.join(map(str, sorted(cores)))}", "mem=1000")
		assert reserve(cluster, "PartitionName=batch", *what) == without
		job = use(without[1])
		stays_pending(cluster, job)
		cluster.tell("unmask")
		assert used(job) == (node, cores)
	finally:
		cluster.cancel_all()
		forget(cluster)
