# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Which stories of shared nodes, containers and faults script/test plays with one release of Slurm only, and with which; those that
kubesim can play it plays with the other.

On real kubelets they take most of its time, and most of what they tell does not depend on Slurm's release: what does is played
with each by test/slurm, and by the files that are not named here: who has which core, byte and device of a shared node, foreign
pods and restarts. Of the files that are named the stories that are marked each_release are played with each, on real kubelets:
where the gate, preemption and restarts are the release's, and slurmstepd and srun: the way into a container, signals, exit codes,
what users read; and one of a pod with a claim, whose devices are Slurm's choice. SK8_STORIES=all, as make stories says it, plays all
with each.
"""
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
# the option --turn: with the machine's own Slurm, with another one
TURNS = {
	"machine": (
		"containers/test_commands.py",
		"containers/test_container.py",
		"containers/test_x11.py",
		"faults/test_absent.py",
		"faults/test_rights.py",
		"reservations/test_gate_time.py",
		"reservations/test_kubelet_evicts.py",
		"reservations/test_mixed.py",
		"reservations/test_races.py",
		"reservations/test_scheduler.py",
		"reservations/test_shared_reservation.py",
	),
	"other": (
		"containers/test_container_steps.py",
		"containers/test_service_account.py",
		"containers/test_template.py",
		"sharing/test_claims.py",
	),
}


def is_played(path, turn):
	"""Whether the stories of this file are played when it is the turn of that one (None: always)."""
	name = os.path.relpath(path, FOLDER)
	return not any(name in files for of, files in TURNS.items() if turn and of != turn)
