# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import os
import re
import sys

import pytest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from made import packages  # noqa: E402
from stands.build import build_folder  # noqa: E402


@pytest.fixture(scope="session", name="build")
def fixture_build():
	return build_folder()


@pytest.fixture(scope="session")
def slurm_version(build):
	with open(os.path.join(build, "Makefile"), encoding="utf-8") as file:
		return re.search(r"^SLURM_VERSION = (.*)$", file.read(), re.M).group(1)


@pytest.fixture(scope="session")
def debs():
	return packages("deb")


@pytest.fixture(scope="session")
def rpms():
	return packages("rpm")
