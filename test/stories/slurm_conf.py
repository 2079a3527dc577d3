# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories that want another slurm.conf for a while."""
import contextlib


@contextlib.contextmanager
def slurm_conf(stand, *lines):
	"""More lines at the end of slurm.conf; the last one of a key counts."""
	path = stand.env["SLURM_CONF"]
	with open(path, encoding="utf-8") as file:
		before = file.read()
	try:
		with open(path, "a", encoding="utf-8") as file:
			file.writelines(line + "\n" for line in lines)
		stand.reconfigure()
		yield
	finally:
		with open(path, "w", encoding="utf-8") as file:
			file.write(before)
		stand.reconfigure()
