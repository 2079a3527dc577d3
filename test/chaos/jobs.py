# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Batch jobs that note themselves when they ran and which GPUs they saw."""
import glob
import os
from collections import namedtuple

from stands.gres import indices

# One run of a job: one that goes back into the queue has several. Times in seconds since 1970, by its process' own clock;
# stop is None if the process could not tell. gpus: the indices that slurmd told it.
JobRun = namedtuple("JobRun", "start stop gpus")

# The name of a run's file has its start; the file has the GPUs and, at the end, when that was.
SCRIPT = """#!/bin/sh
exec 2>/dev/null
run={file}.$(date +%s.%N)
echo ${{SLURM_JOB_GPUS:-none}} > $run.new; mv $run.new $run
end() {{ date +%s.%N >> $run; kill $child; exit $1; }}
trap '{on_term}' TERM
sleep {seconds} &
child=$!
wait $child
end {code}
"""


class Job:
	"""file: what the names of its runs' files begin with."""

	def __init__(self, job_id, file):
		self.id, self.file = job_id, file

	def runs(self):
		"""All its runs, the first one first."""
		found = [path for path in glob.glob(self.file + ".[0-9]*") if not path.endswith(".new")]
		return sorted((_run(path, path[len(self.file) + 1:]) for path in found), key=lambda run: run.start)


def submit(stand, name, about):
	"""about: of the plan's step."""
	file = os.path.join(stand.jobs_folder, name)
	with open(file + ".sh", "w", encoding="utf-8") as text:
		text.write(SCRIPT.format(file=file, on_term="" if about["deaf"] else "end 1", **{key: about[key] for key in ("seconds", "code")}))
	answer = stand.run("sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-J", name, "-N", "1", "-n", str(about["cores"]),
		"-w", about["node"], f"--mem={about['memory']}", "--requeue" if about["requeue"] else "--no-requeue",
		*([f"--gres=gpu:{about['gpus']}"] if about["gpus"] else []), file + ".sh")
	return Job(int(answer), file)


def _run(path, start):
	with open(path, encoding="utf-8") as file:
		gpus, *stop = file.read().split()
	return JobRun(float(start), float(stop[0]) if stop else None, frozenset(() if gpus == "none" else indices(gpus)))
