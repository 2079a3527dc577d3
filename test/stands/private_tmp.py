# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Slurm's own private /tmp of each job: job_container/tmpfs, which is namespace/tmpfs from 25.11 on."""
import os

from .waiting import StandError


def private_tmp(folder, etc, plugins):
	"""Settings of slurm.conf, for a stand in folder; writes the file that belongs to them beside it. plugins: Slurm's."""
	if os.path.abspath(folder).startswith("/tmp/"):
		raise StandError("--private-tmp hides /tmp, where slurmstepd would look for this stand: give it another folder")
	with open(os.path.join(etc, "job_container.conf"), "w", encoding="utf-8") as file:
		file.write(f"AutoBasePath=true\nBasePath={folder}/slurm/tmp\n")
	if os.path.exists(os.path.join(plugins, "namespace_tmpfs.so")):
		return {"NamespaceType": "namespace/tmpfs", "PrologFlags": "Contain"}
	return {"JobContainerType": "job_container/tmpfs", "PrologFlags": "Contain"}
