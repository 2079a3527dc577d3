# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Who had which GPU of which node from when until when, by what jobs say from inside and the runtime of pods, never by Slurm's word."""
import os
import re
from collections import namedtuple

from stands.gres import indices

# who: a pod's name, or "job 12"
Had = namedtuple("Had", "node device begin end who")


def batch(stand, wanted, seconds):
	"""(job id, file): its script tells from when until when it has which devices, and of which node."""
	stand.count += 1
	file = os.path.join(stand.jobs_folder, str(stand.count))
	script = f"date +%s.%N; echo SLURM_JOB_GPUS=$SLURM_JOB_GPUS on $SLURMD_NODENAME; sleep {seconds:.1f}; date +%s.%N"
	return int(stand.run("sbatch", "--parsable", "-D", "/", "-o", file, "-N", "1", "-n", "1", "--mem", "100", f"--gres=gpu:{wanted}",
		"--wrap", script)), file


def by_job(job, file):
	"""What a batch() that is over had."""
	with open(file, encoding="utf-8") as lines:
		text = lines.read()
	gpus, node = re.search(r"SLURM_JOB_GPUS=(\S+) on (\S+)", text).groups()
	begin, end = (float(word) for word in re.findall(r"^\d+\.\d+$", text, re.MULTILINE))
	return [Had(node, device, begin, end, f"job {job}") for device in indices(gpus)]


def by_pod(found, node, devices):
	"""What a pod that is over had; devices by its own word, or its claim's."""
	run, = found.runs()
	return [Had(node, device, run.start, run.stop, found.name) for device in devices]


def beside(had, kind):
	"""Has a job had a device of a node while a pod of that kind had one there?"""
	return any(job.node == its.node and job.begin < its.end and its.begin < job.end
		for job in had if job.who.startswith("job ") for its in had if its.who.startswith(kind))


def is_with_one(all_had):
	"""No device is with two at any time. In their order, for each device."""
	of_device = {}
	for had in sorted(all_had, key=lambda had: had.begin):
		before = of_device.get((had.node, had.device))
		assert not before or before.end <= had.begin, f"{before} and {had}"
		of_device[had.node, had.device] = had
