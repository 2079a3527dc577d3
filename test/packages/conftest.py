# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import os
import re
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from stands.build import TOP, build_folder  # noqa: E402


@pytest.fixture(scope="session", name="build")
def fixture_build():
	return build_folder()


@pytest.fixture(scope="session")
def slurm_version(build):
	with open(os.path.join(build, "Makefile"), encoding="utf-8") as file:
		return re.search(r"^SLURM_VERSION = (.*)$", file.read(), re.M).group(1)


def packages(kind, name):
	"""{"libs": path, ...}, without those for debuggers. What has not changed since the last run is not built again."""
	paths = subprocess.run([os.path.join(TOP, "script/make-packages"), kind], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
	return {re.search(name, path).group(1): path for path in paths if not re.search("-dbgsym|-debug", path)}


@pytest.fixture(scope="session")
def debs():
	return packages("deb", r"/slurm-k8s-([a-z]+)_")


@pytest.fixture(scope="session")
def rpms():
	return packages("rpm", r"/slurm-k8s-([a-z]+)-")
