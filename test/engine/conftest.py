# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Plays, each with a server and an engine of its own, mostly wait: those of all modules run side by side."""
import concurrent.futures

import pytest


@pytest.fixture(scope="session")
def plays(request):
	"""The modules' PLAYS, {name: function}, as futures of what they return."""
	modules = {item.module for item in request.session.items}
	work = {name: play for module in modules for name, play in getattr(module, "PLAYS", {}).items()}
	with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
		yield {name: pool.submit(play) for name, play in work.items()}
