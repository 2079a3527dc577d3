# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Nobody but us says which pod a job belongs to."""
import pytest
from stands.waiting import StandError


def test_mark_of_a_pods_job_cannot_be_changed_or_removed(cluster):
	job = cluster.submit(mark="k8s:prod/ns/p/uid")["job"]
	for text in ("other", "", "k8s:prod/ns/q/uid2", "+=more"):
		with pytest.raises(StandError):
			cluster.run("scontrol", "update", f"JobId={job}", f"AdminComment={text}")
	cluster.run("scontrol", "update", f"JobId={job}", "Comment=mine", "AdminComment=k8s:prod/ns/p/uid")
	assert cluster.jobs()[int(job)]["mark"] == "k8s:prod/ns/p/uid"
	assert "names its Kubernetes pod and cannot be changed" in cluster.log()


def test_mark_cannot_be_given_to_another_job(cluster):
	job = cluster.batch("-H", "-n", "1")
	with pytest.raises(StandError):
		cluster.run("scontrol", "update", f"JobId={job}", "AdminComment=k8s:prod/ns/p/uid")
	cluster.run("scontrol", "update", f"JobId={job}", "AdminComment=anything else")
	assert "AdminComment=anything else" in cluster.run("scontrol", "show", "job", str(job))
	assert job not in cluster.jobs()
