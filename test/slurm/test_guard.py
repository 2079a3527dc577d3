# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Nobody but us says which pod a job belongs to."""
import pytest
from stands.slurm import has_external
from stands.waiting import StandError


def test_mark_of_a_pods_job_cannot_be_changed_or_removed(cluster):
	job = cluster.submit(mark="k8s:prod/ns/p/uid")["job"]
	for text in ("other", "", "k8s:prod/ns/q/uid2", "+=more"):
		with pytest.raises(StandError):
			cluster.run("scontrol", "update", f"JobId={job}", f"AdminComment={text}")
	cluster.run("scontrol", "update", f"JobId={job}", "Comment=mine", "AdminComment=k8s:prod/ns/p/uid")
	assert cluster.jobs()[int(job)]["mark"] == "k8s:prod/ns/p/uid"
	assert "names its Kubernetes pod and cannot be changed" in cluster.log()


def test_nobody_runs_a_step_in_a_pods_job(cluster):
	"""Its memory would count once, and be used twice: by the pod and by the step."""
	job = cluster.submit(uid=0, gid=0)["job"]
	cluster.becomes(job, "RUNNING")
	# Slurm itself lets an external job have none (stepmgr.c, step_create() of 26.05)
	why = "Requested operation not supported" if has_external(cluster.release) else "Step limit reached"
	with pytest.raises(StandError, match=why):
		cluster.run("srun", "--overlap", f"--jobid={job}", "true")
	cluster.reconfigure()
	with pytest.raises(StandError, match=why):
		cluster.run("srun", "--overlap", f"--jobid={job}", "true")


def test_mark_cannot_be_given_to_another_job(cluster):
	job = cluster.batch("-H", "-n", "1")
	with pytest.raises(StandError):
		cluster.run("scontrol", "update", f"JobId={job}", "AdminComment=k8s:prod/ns/p/uid")
	cluster.run("scontrol", "update", f"JobId={job}", "AdminComment=anything else")
	assert "AdminComment=anything else" in cluster.run("scontrol", "show", "job", str(job))
	assert job not in cluster.jobs()


NOBODY = 65534
OWNER = ("setpriv", "--reuid", str(NOBODY), "--clear-groups")
CHANGES = ("NumCPUs=1", "NumTasks=1", "CPUsPerTask=1", "MinCPUsNode=1", "MinMemoryNode=1", "MinMemoryCPU=1", "NumNodes=1-2", "ExcNodeList=",
	"ExcNodeList=n2", "ReqNodeList=n1", "Gres=gpu:1", "TresPerNode=gres:gpu:1", "OverSubscribe=yes", "ThreadSpec=1")


@pytest.mark.parametrize("change", CHANGES)
def test_owner_of_a_pods_job_cannot_make_it_smaller_or_move_it(cluster, change):
	job = cluster.submit(mark="k8s:prod/ns/p/uid", uid=NOBODY, gid=NOBODY, cpus=4, held=1)["job"]
	before, said = cluster.show(job), cluster.log().count("come from its Kubernetes pod")
	with pytest.raises(StandError, match="denied"):
		cluster.run(*OWNER, "scontrol", "update", f"JobId={job}", change)
	assert cluster.show(job) == before and cluster.log().count("come from its Kubernetes pod") == said + 1


def test_owner_of_a_pods_job_can_change_the_rest_and_an_administrator_all(cluster):
	job = cluster.submit(mark="k8s:prod/ns/p/uid", uid=NOBODY, gid=NOBODY, cpus=4, held=1)["job"]
	cluster.run(*OWNER, "scontrol", "update", f"JobId={job}", "Comment=mine", "Nice=100")
	cluster.run("scontrol", "update", f"JobId={job}", "NumCPUs=1", "ExcNodeList=n2")
	assert cluster.show(job)["Comment"] == "mine" and cluster.show(job)["ExcNodeList"] == "n2"


def test_memory_of_a_pods_job_that_runs_is_its_pods_whoever_asks(cluster):
	job = cluster.submit(mark="k8s:prod/ns/p/uid", mem=300)["job"]
	cluster.becomes(job, "RUNNING")
	with pytest.raises(StandError):
		cluster.run("scontrol", "update", f"JobId={job}", "MinMemoryNode=1")
	assert cluster.show(job)["MinMemoryNode"] == "300M"
	assert "stands for a Kubernetes pod that has its memory" in cluster.log()
	cluster.run("scontrol", "update", f"JobId={job}", "Comment=mine", "TimeLimit=60")
	assert cluster.show(job)["Comment"] == "mine"


def test_owner_of_another_job_can_change_all_of_it(cluster):
	job = int(cluster.run(*OWNER, "sbatch", "--parsable", "-H", "-n", "4", "-D", "/", "-o", "/dev/null", "--wrap", "sleep 600"))
	cluster.run(*OWNER, "scontrol", "update", f"JobId={job}", "NumTasks=1", "ExcNodeList=n2")
	assert cluster.show(job)["ExcNodeList"] == "n2"
