# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Foreign pods, which others placed on a shared node, and what is seen of them on Slurm's side."""
import uuid

from command import status
from stands.waiting import wait_for
from world import POLITE



def foreign(stand, name, command=POLITE, cpu="1", memory="16Mi", node="n1", **more):
	"""A pod that no scheduler of ours sees: it has its node from the beginning, as those of a DaemonSet have soon."""
	return stand.pod(name, command, cpu=cpu, memory=memory, schedulerName="default-scheduler", nodeName=node, **more)


def of_daemon_set(stand, name, cpu, **more):
	"""A pod of n1 that a DaemonSet has made. Within what Slurm sets aside (CoreSpecCount, MemSpecLimit) it hides nothing."""
	owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemon", "uid": str(uuid.uuid4()), "controller": True}
	return foreign(stand, name, "sleep 600", cpu, owners=[owner], **more).wait_running()


def masked(stand, node="n1"):
	"""What `slurm-k8s status --node` tells of its foreign pods, by name."""
	return {pod["name"]: pod for pod in status(stand, "--node", node)["clusters"][0]["foreign"]}


def wait_masked(stand, *names, node="n1"):
	return wait_for(f"masks of {names}", lambda: set(masked(stand, node)) == set(names) and masked(stand, node), 30)


def allocated(stand, node="n1"):
	text = stand.scontrol("-o", "show", "node", node)
	return tuple(int(text.split(f" {key}=")[1].split()[0]) for key in ("CPUAlloc", "AllocMem"))
