# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A kubelet that is short of memory and ends the pod of a job of Slurm's."""
import contextlib
import json
import os

import pytest
from mixed import on_eviction, wait_no_reservation, wait_reservation, why_ended
from stands.waiting import wait_for

pytestmark = pytest.mark.apis("real")  # kubesim's kubelets are never short of anything

# A soft threshold: what a hard one keeps is not there to allocate either, and the pod would not be admitted again.
SHORT = {"evictionSoft": {"memory.available": "1000Gi"}, "evictionSoftGracePeriod": {"memory.available": "1s"},
	"evictionPressureTransitionPeriod": "1s"}


def under_pressure(stand, node):
	return any(one["type"] == "MemoryPressure" and one["status"] == "True" for one in stand.node(node)["status"]["conditions"])


@contextlib.contextmanager
def short_of_memory(stand, node):
	path = os.path.join(stand.folder, "nodes", node, "kubelet.json")
	with open(path, encoding="utf-8") as file:
		before = file.read()
	for settings, short in ((json.dumps(json.loads(before) | SHORT), True), (before, False)):
		stand.cluster("stop", f"kubelet-{node}")
		with open(path, "w", encoding="utf-8") as file:
			file.write(settings)
		stand.cluster("start", f"kubelet-{node}")
		wait_for("its word", lambda short=short: under_pressure(stand, node) == short, 60)
		if short:
			yield


def test_job_whose_pod_a_kubelet_evicts_that_is_short_of_memory_goes_back_into_the_queue_and_says_why(mixed):
	on_eviction(mixed, "requeue")
	job = mixed.batch(2, options=("--requeue", "-w", "n1"))
	job.wait_started()
	wait_reservation(mixed, job.id)
	with short_of_memory(mixed, "n1"):
		wait_for("the queue", lambda: int(job.show()["Restarts"]) == 1, 60, job.why)
		assert why_ended(job) == "slurm-k8s: its reservation pod on node n1 was evicted by its kubelet"
		job.cancel()
		wait_no_reservation(mixed, job.id)
