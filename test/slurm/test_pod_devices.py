# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A pod's job gets the devices that a kubelet has given the pod, instead of those that Slurm chose."""
import signal

import pytest
from stands.replays import once_only
from stands.waiting import wait_for
from test_gate_devices import all_given_back, gives
from test_gres import end, made, of_job

# with a topology, without one, with types
GRES = {"alone": "gpu:4", "at cores": "gpu@0-7:4,shard:16", "typed": "gpu:a100:3,gpu:h100:1"}


@pytest.fixture(scope="module", name="gpus_of_module", params=list(GRES))
def gpus_of_module_fixture(request):
	yield from made(GRES[request.param])


@pytest.fixture(name="gpus")
def gpus_fixture(gpus_of_module):
	yield gpus_of_module
	gpus_of_module.clean()
	all_given_back(gpus_of_module)


def pod(gpus, number, name):
	job = gpus.submit(cpus=1, mem=10, tres=f"gres/gpu:{number}", mark=f"k8s:prod/ns/{name}/uid-{name}")["job"]
	gpus.becomes(job, "RUNNING")
	return int(job)


@once_only
def test_pods_job_has_the_devices_of_its_pod_and_others_get_the_rest(gpus):
	job = pod(gpus, 1, "p")
	assert of_job(gpus, job) == {0}
	assert not gives(gpus, job, "2")
	assert of_job(gpus, job) == {2}
	others = [gpus.batch("-n1", "--mem=10", "--gres=gpu:1") for _ in range(3)]
	for other in others:
		gpus.becomes(other, "RUNNING")
	assert sorted(index for other in others for index in of_job(gpus, other)) == [0, 1, 3]
	end(gpus, job)
	last = gpus.batch("-n1", "--mem=10", "--gres=gpu:1")
	gpus.becomes(last, "RUNNING")
	assert of_job(gpus, last) == {2}


@once_only
def test_two_pods_exchange_what_they_have_and_a_job_of_slurms_own_gives_nothing(gpus):
	p, q = pod(gpus, 1, "p"), pod(gpus, 1, "q")
	own = gpus.batch("-n1", "--mem=10", "--gres=gpu:1")
	gpus.becomes(own, "RUNNING")
	assert [of_job(gpus, job) for job in (p, q, own)] == [{0}, {1}, {2}]
	assert "another job has one" in gives(gpus, p, "1")
	assert "the other job has no such devices" in gives(gpus, p, "2", **{"from": own})
	assert "another job has one" in gives(gpus, p, "2", **{"from": q})
	assert "the other job has no such devices" in gives(gpus, p, "1", **{"from": p})
	assert [of_job(gpus, job) for job in (p, q, own)] == [{0}, {1}, {2}]
	assert not gives(gpus, p, "1", **{"from": q})
	assert [of_job(gpus, job) for job in (p, q, own)] == [{1}, {0}, {2}]
	end(gpus, p)
	again = gpus.batch("-n1", "--mem=10", "--gres=gpu:1")
	gpus.becomes(again, "RUNNING")
	assert of_job(gpus, again) < {1, 3}


@once_only
def test_one_of_two_devices_is_exchanged_for_the_one_of_another_pod(gpus):
	p, q = pod(gpus, 2, "p"), pod(gpus, 1, "q")
	assert [of_job(gpus, job) for job in (p, q)] == [{0, 1}, {2}]
	assert not gives(gpus, p, "1-2", **{"from": q})
	assert [of_job(gpus, job) for job in (p, q)] == [{1, 2}, {0}]


@pytest.mark.parametrize("gpus_of_module", ["typed"], indirect=True)
def test_types_stay_what_they_were_asked_for(gpus):
	job = gpus.submit(cpus=1, mem=10, tres="gres/gpu:a100:1")["job"]
	gpus.becomes(job, "RUNNING")
	other = gpus.submit(cpus=1, mem=10, tres="gres/gpu:h100:1", mark="k8s:prod/ns/q/uid-q")["job"]
	gpus.becomes(other, "RUNNING")
	assert "type" in gives(gpus, job, "3", **{"from": other})
	assert [of_job(gpus, j) for j in (job, other)] == [{0}, {3}]


@once_only
def test_what_it_was_given_it_has_after_a_restart_and_can_be_changed_again(gpus):
	job = pod(gpus, 1, "p")
	assert not gives(gpus, job, "2")
	controller = gpus.slurm.daemon("slurmctld")
	controller.stop(signal.SIGTERM)
	controller.start_again()
	gpus.slurm.wait_controller()
	assert of_job(gpus, job) == {2}
	wait_for("the node's word on its types", lambda: not gives(gpus, job, "1"), 30)
	other = gpus.batch("-n1", "--mem=10", "--gres=gpu:3")
	gpus.becomes(other, "RUNNING")
	assert of_job(gpus, other) == {0, 2, 3}
