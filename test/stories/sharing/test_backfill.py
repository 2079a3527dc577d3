# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Backfill looks again only if something has changed: what pods held and gave back is a change of which nobody but we can tell it."""
import re
import time

from foreign import foreign, wait_masked
from slurm_conf import slurm_conf
from stands.waiting import wait_for

QUIET = 3  # seconds; where something has changed, bf_interval=1 of all stands makes it a turn in the second after the last one
# a turn that lets others have the locks for four seconds before each job
SLOW = ("SchedulerParameters=sched_interval=2,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,bf_max_time=60,"
	"bf_yield_interval=1,bf_yield_sleep=4000000")


class Queue:
	"""Of n1's eight cores a foreign pod has three and a job three. Who wants all eight waits for that job, and who wants four for
	the pod alone. That is backfill's to start: the main scheduler looks at nobody behind the one that waits longer."""

	def __init__(self, stand):
		self.stand = stand
		self.pod = foreign(stand, "monitor", cpu="3")
		self.pod.wait_running()
		wait_masked(stand, "monitor")
		stand.batch(3).wait("RUNNING")
		self.all = stand.batch(8)
		self.four = stand.batch(4)
		wait_quiet(stand)

	def goes(self):
		"""The pod goes, and who waited for it alone runs."""
		assert [self.all.state, self.four.state] == ["PENDING"] * 2
		self.pod.delete()
		self.pod.wait_gone()
		self.four.wait("RUNNING")
		assert self.all.state == "PENDING"


def turns(stand):
	"""Backfill's turns so far, and whether one has begun and not ended."""
	told = stand.run("sdiag").split("Backfilling stats")[1]
	return int(re.search(r"Total cycles: (\d+)", told)[1]), "in the middle of backfilling" in told


def wait_quiet(stand):
	"""Backfill has no turn for a while: it knows of nothing that has changed."""
	seen, since = None, 0

	def same():
		nonlocal seen, since
		now = turns(stand)
		if now != seen:
			seen, since = now, time.monotonic()
		return not now[1] and time.monotonic() - since > QUIET
	wait_for("backfill to have no turn", same, 120)


def test_job_behind_one_that_waits_longer_starts_when_the_pod_in_its_way_goes(stand):
	Queue(stand).goes()


def test_job_behind_one_that_waits_longer_starts_when_the_pod_goes_during_a_turn_of_backfill(stand):
	with slurm_conf(stand, SLOW):
		queue = Queue(stand)
		stand.scontrol("update", "PartitionName=low", "PriorityTier=1")
		wait_for("a turn", lambda: turns(stand)[1], 30)
		queue.goes()
