# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Run: /usr/bin/python3 -m pytest -s test/chaos [--api real|sim]    (root; CHAOS_SECONDS, CHAOS_SEED, CHAOS_SHARING)"""
import os
import sys

import pytest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "stories")]


def pytest_addoption(parser):
	parser.addoption("--api", choices=["sim", "real"], action="append", help="the API servers to run on (default: both)")


def pytest_generate_tests(metafunc):
	if "verdicts" in metafunc.fixturenames:
		metafunc.parametrize("verdicts", metafunc.config.getoption("--api") or ["sim", "real"], scope="module", indirect=True)


def pytest_collection_modifyitems(items):
	if os.geteuid() != 0:
		for item in items:
			item.add_marker(pytest.mark.skip(reason="a stand needs root"))
