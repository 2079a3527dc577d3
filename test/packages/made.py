# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The packages of script/make-packages."""
import os
import re
import subprocess

from stands.build import TOP


def packages(kind, inside=()):
	"""{"libs": path, ...}, without those for debuggers. What has not changed since the last run is not built again.

	inside: the command that runs another command in another Debian."""
	made = subprocess.run([*inside, os.path.join(TOP, "script/make-packages"), kind], check=True, stdout=subprocess.PIPE, text=True)
	names = {path: os.path.basename(path) for path in made.stdout.split()}
	return {re.match("slurm-k8s-([a-z]+)[_-]", name)[1]: path for path, name in names.items() if not re.search("-dbgsym|-debug", name)}
