# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Which runs of jobs share a pod of their node, and whether its kubelet kept enough for them."""
from collections import namedtuple

from evidence import set_down, stopped
from plan import SHARED_CPUS

# stop: when its last process was gone.
SharedRun = namedtuple("SharedRun", "name start stop amount")


def ends_for_slurm(evidence, name, run):
	"""When its last process was gone, or its node was set DOWN: Slurm waits for none then."""
	down = set_down(evidence, name, run)
	return stopped(evidence, name, run) if down is None else down


def launches(evidence):
	"""(name, run, the Reservation of its own or None) of each run of a job that Slurm cannot have forgotten, nor ended before it began."""
	for name, job in evidence.users.jobs.items():
		for run in job.runs():
			if evidence.jobs[name] and not evidence.log.forgot([run.start]) and ends_for_slurm(evidence, name, run) >= run.start:
				yield name, run, evidence.reservation(name, run)


def has_share(evidence, name, pod):
	"""pod: the Reservation that the run has for itself: where a kubelet cannot resize, each has one."""
	about = evidence.steps[name]
	return evidence.shared is not None and not pod and about["cores"] <= SHARED_CPUS and not about["gpus"]


class SharedRuns:
	"""All on one node, with its shared_pods.SharedPods. What of them Slurm forgot counts nowhere."""

	def __init__(self, evidence, node):
		self.pods = evidence.shared[node]
		self.runs = [SharedRun(name, run.start, ends_for_slurm(evidence, name, run), _amount(evidence.steps[name]))
			for name, run, pod in launches(evidence) if has_share(evidence, name, pod) and evidence.steps[name]["node"] == node]

	def need(self, when):
		"""(cores, MiB) of those that run then, and their names."""
		there = [run for run in self.runs if run.start <= when < run.stop]
		return tuple(map(sum, zip((0, 0), *(run.amount for run in there)))), [run.name for run in there]

	def gaps(self, start, stop):
		"""As those of a Reservation: not counted is whoever runs while its kubelet keeps too little for all of them."""
		found, bounds = [], sorted({start, stop, *(when for when in self.pods.changes() if start < when < stop)})
		for begin, end in zip(bounds, bounds[1:]):
			if not covers(self.pods.kept(begin), self.need(begin)[0]):
				found.append((begin, end))
		return found

	def launched_early(self):
		"""Who began while less was kept than those who ran had, as (run, kept, needed)."""
		for run in self.runs:
			kept, need = self.pods.last_kept(run.start), self.need(run.start)[0]
			if not covers(kept, need):
				yield run, kept, need

	def asked_too_little(self):
		"""(when, what we asked for, what those had who ran, their names)"""
		for when, asked in self.pods.asked():
			need, names = self.need(when)
			if not covers(asked, need):
				yield when, asked, need, names


def _amount(about):
	return about["cores"], about["memory"]


def covers(one, other):
	return all(mine >= its for mine, its in zip(one, other))
