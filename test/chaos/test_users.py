# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What chaos' users take care of by themselves."""
from users import Users


class Queue:
	"""A Slurm in which these wait, by squeue -o "%A %r"."""

	def __init__(self, lines):
		self.lines, self.released, self.updated = lines, [], []

	def run(self, *argv, **_):
		if argv[:2] == ("scontrol", "release"):
			self.released += argv[2:]
		if argv[:2] == ("scontrol", "update"):
			self.updated.append(argv[2:])
		return self.lines


def test_job_that_is_held_again_after_a_crash_of_slurmctld_is_released_again_and_no_other():
	queue = Queue("12 JobHeldAdmin\n13 Resources\n14 JobHeldAdmin\n15 ReqNodeNotAvail, UnavailableNodes:n2\n")
	users = Users(queue)
	users.to_release = {"12", "13", "15"}
	assert users.release() == queue.released == ["12"]


def test_job_that_slurm_holds_or_lets_wait_after_a_failed_launch_goes_on():
	queue = Queue("12 launch failed requeued held\n13 BeginTime\n14 Resources\n")
	assert Users(queue).release() == ["12", "13"]
	assert queue.released == ["12"] and queue.updated == [("JobId=13", "StartTime=now")]
