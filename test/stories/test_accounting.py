# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What accounting keeps of pods' jobs: real slurmdbd and MariaDB."""
import pytest
from stands.waiting import wait_for
from world import POLITE

pytestmark = pytest.mark.apis("real")


@pytest.fixture(scope="module")
def pods(accounting):
	made = {
		"zero": accounting.pod("zero", "sleep 1"),
		"seven": accounting.pod("seven", "exit 7", ns="team-a"),
		"memory": accounting.pod("memory", "tail /dev/zero", limits={"memory": "24Mi"}),
		"deadline": accounting.pod("deadline", "sleep 600", grace=1, activeDeadlineSeconds=3),
		"cancelled": accounting.pod("cancelled", POLITE),
		"deleted": accounting.pod("deleted", POLITE, ns="team-b"),
		"high": accounting.pod("high", "exit 0", annotations={"slurm-k8s.io/qos": "high", "slurm-k8s.io/comment": "of mine"}),
	}
	for name in ("cancelled", "deleted"):
		made[name].wait_running()
	accounting.run("scancel", str(made["cancelled"].job_id), user="daemon")
	made["deleted"].delete()
	return made


# name: user, account, qos, state, exit code
KEPT = {
	"zero": "daemon|general|normal|COMPLETED|0:0",
	"seven": "games|team-a|normal|FAILED|7:0",
	"memory": "daemon|general|normal|OUT_OF_MEMORY|0:125",
	"deadline": "daemon|general|normal|TIMEOUT|0:0",
	"cancelled": "daemon|general|normal|CANCELLED by 1|0:0",
	"deleted": "news|team-b|normal|CANCELLED by 0|0:0",
	"high": "daemon|general|high|COMPLETED|0:0",
}


def sacct(stand, pod, *names):
	text = stand.run("sacct", "-a", "-X", "-n", "-P", "-o", "admincomment," + ",".join(names))
	rows = [line.split("|", 1)[1] for line in text.splitlines() if line.split("|", 1)[0].endswith(pod.uid)]
	return rows


@pytest.mark.parametrize("name", KEPT)
def test_sacct_tells_whose_job_it_was_and_how_it_ended(accounting, pods, name):
	wait_for(f"sacct of {name}", lambda: sacct(accounting, pods[name], "user", "account", "qos", "state", "exitcode") == [KEPT[name]],
		90, lambda: f"{sacct(accounting, pods[name], 'user', 'account', 'qos', 'state', 'exitcode')}\n{pods[name].about()}")


def test_sacct_keeps_the_reason_and_the_pod(accounting, pods):
	wait_for("the comment", lambda: "OOMKilled" in "".join(sacct(accounting, pods["memory"], "comment")), 60,
		lambda: str(sacct(accounting, pods["memory"], "comment", "state")))
	assert "exit code 7" in "".join(sacct(accounting, pods["seven"], "comment"))
	assert sacct(accounting, pods["high"], "comment", "jobname") == ["of mine|high"]


def test_association_that_does_not_exist_is_a_refusal_with_slurms_words(accounting):
	accounting.run("sacctmgr", "-i", "delete", "user", "news", "account=team-b")
	try:
		pod = accounting.pod("nobody", ns="team-b")
		event = pod.wait_event("SlurmRefused")
		assert "invalid account" in event[2]
		assert pod.jobs() == []
	finally:
		accounting.run("sacctmgr", "-i", "add", "user", "news", "account=team-b", "defaultaccount=team-b", "fairshare=1",
			"qos=normal,high")


@pytest.mark.slow
def test_fairshare_counts_what_pods_use_and_puts_the_heavy_account_behind(accounting):
	heavy = [accounting.pod(f"heavy-{node}", "sleep 600", ns="team-a", cpu="8", node=node, grace=1) for node in ("n1", "n2")]
	for pod in heavy:
		pod.wait_running()

	def usage(account):
		return int(accounting.run("sshare", "-a", "-n", "-P", "-A", account, "-o", "rawusage").splitlines()[0])
	wait_for("usage of team-a", lambda: usage("team-a") > 100, 150, lambda: accounting.run("sshare", "-a"))
	mine, theirs = accounting.pod("mine", ns="team-a", node="n1"), accounting.pod("theirs", ns="team-b", node="n1")
	jobs = [pod.wait_job("PENDING") for pod in (mine, theirs)]
	wait_for("priorities", lambda: int(theirs.job()["Priority"]) > int(mine.job()["Priority"]), 90,
		lambda: accounting.run("sprio", "-l"))
	assert jobs[0]["Account"] == "team-a" and jobs[1]["Account"] == "team-b"
	heavy[0].delete()
	for pod in (mine, theirs):
		pod.wait_phase("Succeeded")
