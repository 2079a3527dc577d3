# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""--k8s-image with --gres: the kubelet puts the job's GPUs into its container, and no others."""
import pytest
from device_plugin import A100, OF_EACH, Plugin
from mixed import restore, set_resources
from stands.gres import devices, indices
from stands.replays import once_only
from stands.waiting import wait_for
from test_container import OPTIONS, USER, Batch, containing, srun

pytestmark = pytest.mark.apis("real")

INSIDE = "cd /dev; echo test*; for d in test*; do echo $d > $d || echo cannot write $d; done"


@pytest.fixture(name="gpus")
def gpus_fixture(request, session_stands):
	sharing = getattr(request, "param", "mixed")
	for stand in containing(request, session_stands, "--gres", f"gpu@0-1:a100:{OF_EACH}", sharing=sharing):
		Plugin(stand, A100, 0).wait_told()
		before = set_resources(stand, [{"kubernetes": A100, "gres": "gpu", "type": "a100"}])
		stand.batch(1, seconds=0).wait("COMPLETED")  # the engine has started again
		yield stand
		restore(stand, before)


def names(numbers):
	return " ".join(f"test{number}" for number in sorted(numbers))


@once_only
@pytest.mark.parametrize("gpus", ["mixed", "dedicated"], indirect=True)
def test_tasks_have_the_gpus_of_their_job_in_their_container_and_no_others(gpus, tmp_path):
	go = tmp_path / "go"
	first = Batch(gpus, tmp_path, f"srun sh -c '{INSIDE}'", f"while ! test -e {go}; do sleep 0.2; done",
		options=(*OPTIONS, "--gres=gpu:a100:1"))
	wait_for("its task", first.says, 60)
	has = devices(gpus.scontrol("-d", "show", "job", str(first.job)))
	second = srun(gpus, "--gres=gpu:a100:2", "sh", "-c", f"{INSIDE}; echo $SLURM_STEP_GPUS", user=USER)
	inside, told = second.stdout.splitlines()
	assert inside == names(indices(told)) and len(indices(told)) == 2 and not has & indices(told), second
	plain = srun(gpus, "sh", "-c", "ls /dev/test*")
	assert plain.returncode and plain.stdout == "", plain
	go.touch()
	assert first.wait_end() == [names(has)]
