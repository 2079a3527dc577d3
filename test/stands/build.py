# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Where make was run."""
import os

from .waiting import StandError

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_folder():
	"""SK8_BUILD, else build/ beside the sources, else the sources' own folder."""
	for folder in (os.environ.get("SK8_BUILD"), os.path.join(TOP, "build"), TOP):
		if folder and os.path.exists(os.path.join(folder, "Makefile")):
			return folder
	raise StandError("no build folder; build first, or name it by SK8_BUILD")
