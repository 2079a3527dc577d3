# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Foreign pods, which others placed on a shared node, and what is seen of them on Slurm's side."""
from command import status
from stands.waiting import wait_for

POLITE = "trap 'exit 0' TERM; sleep 600 & wait"


def foreign(stand, name, command=POLITE, cpu="1", memory="16Mi", node="n1", **more):
	"""A pod that no scheduler of ours sees: it has its node from the beginning, as those of a DaemonSet have soon."""
	return stand.pod(name, command, cpu=cpu, memory=memory, schedulerName="default-scheduler", nodeName=node, **more)


def masked(stand, node="n1"):
	"""What `slurm-k8s status --node` tells of its foreign pods, by name."""
	return {pod["name"]: pod for pod in status(stand, "--node", node)["clusters"][0]["foreign"]}


def wait_masked(stand, *names, node="n1"):
	return wait_for(f"masks of {names}", lambda: set(masked(stand, node)) == set(names) and masked(stand, node), 30)


def allocated(stand, node="n1"):
	text = stand.scontrol("-o", "show", "node", node)
	return tuple(int(text.split(f" {key}=")[1].split()[0]) for key in ("CPUAlloc", "AllocMem"))
