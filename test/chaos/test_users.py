# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What chaos' users take care of by themselves."""
from users import Users


class Queue:
	"""A Slurm in which these wait, by squeue -o "%A %r"."""

	def __init__(self, lines):
		self.lines, self.released = lines, []

	def run(self, *argv, **_):
		if argv[:2] == ("scontrol", "release"):
			self.released += argv[2:]
		return self.lines


def test_job_that_is_held_again_after_a_crash_of_slurmctld_is_released_again_and_no_other():
	queue = Queue("12 JobHeldAdmin\n13 Resources\n14 JobHeldAdmin\n15 ReqNodeNotAvail, UnavailableNodes:n2\n")
	users = Users(queue)
	users.to_release = {"12", "13", "15"}
	assert users.release() == queue.released == ["12"]
