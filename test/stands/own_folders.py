# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A root of its own for the folders (tmp_path) of one run of pytest, into which stories let ordinary users look.

The root that pytest shares between runs of a user is closed to all others by each run that begins (mode 0700): a job of
an ordinary user, in a suite beside it, could then open none of its files any more.
"""
import atexit
import os
import shutil
import tempfile


def own_folders():
	"""For pytest_configure(). The folders go with the process, unless SK8_KEEP is set."""
	root = tempfile.mkdtemp(prefix="sk8-pytest-")
	os.chmod(root, 0o755)
	os.environ["PYTEST_DEBUG_TEMPROOT"] = root
	if not os.environ.get("SK8_KEEP"):
		atexit.register(shutil.rmtree, root, ignore_errors=True)  # after pytest's own, which looks into it
