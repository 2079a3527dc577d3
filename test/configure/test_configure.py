# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What ./configure tells people whose machine lacks something.

Run: /usr/bin/python3 -m pytest test/configure      (SK8_BUILD names a configured build folder)
"""
import os
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(TEST)
sys.path.insert(0, TEST)
from stands.build import build_folder  # noqa: E402

# What these stories change must be looked at again; the rest is known from the build folder.
FORGET = ("pkg_cv_", "ac_cv_header_catch2", "ac_cv_env_")


class Configure:
	def __init__(self, folder):
		self.folder = folder
		self.cache = os.path.join(folder, "config.cache")
		known = os.path.join(build_folder(), "config.cache")
		if os.path.exists(known):
			with open(known, encoding="utf-8") as lines, open(self.cache, "w", encoding="utf-8") as file:
				file.writelines(line for line in lines if not line.startswith(FORGET))

	def __call__(self, *arguments, cached=(), **environment):
		with open(self.cache, "a", encoding="utf-8") as file:
			file.writelines(line + "\n" for line in cached)
		done = subprocess.run([os.path.join(TOP, "configure"), "--cache-file", self.cache, *arguments], cwd=self.folder,
			env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
			text=True, check=False)
		self.text = done.stdout
		return done.returncode == 0


@pytest.fixture
def configure(tmp_path):
	folder = tmp_path / "build"
	folder.mkdir()
	return Configure(str(folder))


@pytest.fixture
def slurm(tmp_path):
	"""Makes an installed Slurm and a source tree, as far as configure looks at them: their arguments."""
	def make(installed, source):
		include = tmp_path / "slurm/include/slurm"
		include.mkdir(parents=True)
		(include / "slurm.h").write_text("")
		major, minor, micro = map(int, installed.split("."))
		(include / "slurm_version.h").write_text(f"#define SLURM_VERSION_NUMBER {major << 16 | minor << 8 | micro}\n")
		tree = tmp_path / "source"
		(tree / "src/slurmctld").mkdir(parents=True)
		(tree / "src/slurmctld/slurmctld.h").write_text("")
		(tree / "META").write_text(f"  Meta: 1\n  Name: slurm\n  Version: {source}\n")
		return [f"--with-slurm={tmp_path}/slurm", f"--with-slurm-source={tree}"]
	return make


def test_every_missing_library_is_named_with_its_debian_and_rpm_package_in_one_message(configure, tmp_path):
	assert not configure("--without-slurm", PKG_CONFIG_LIBDIR=str(tmp_path))
	for line in (
			"libcurl >= 7.77: Debian package libcurl4-openssl-dev, RPM package libcurl-devel",
			"jansson >= 2.14: Debian package libjansson-dev, RPM package jansson-devel",
			"yaml-0.1 >= 0.2: Debian package libyaml-dev, RPM package libyaml-devel",
			"libmicrohttpd >= 0.9.71: Debian package libmicrohttpd-dev, RPM package libmicrohttpd-devel"):
		assert line in configure.text
	assert "Install or name them and run configure again." in configure.text


def test_missing_slurm_headers_and_source_are_named_with_what_brings_them(configure, tmp_path):
	assert not configure(f"--with-slurm={tmp_path}/nothing")
	assert "slurm/slurm.h, slurm/slurm_version.h: Debian package libslurm-dev, RPM package slurm-devel" in configure.text
	assert "name it by --with-slurm-source=DIR (Debian: apt-get source slurm-wlm" in configure.text


def test_folder_that_is_no_source_tree_is_refused(configure, slurm, tmp_path):
	assert not configure(slurm("22.05.8", "22.05.8")[0], f"--with-slurm-source={tmp_path}")
	assert f"{tmp_path} is not the top of a Slurm source tree" in configure.text


def test_source_tree_of_another_version_is_refused(configure, slurm):
	assert not configure(*slurm("22.05.8", "22.05.9"))
	assert "is version 22.05.9, the installed headers are 22.05.8; the two must be the same" in configure.text


def test_version_that_was_never_tried_is_refused(configure, slurm):
	assert not configure(*slurm("22.05.99", "22.05.99"))
	assert "22.05.99 was never tried" in configure.text and "--enable-untested-slurm" in configure.text


def test_version_that_was_never_tried_is_taken_when_told_so(configure, slurm):
	assert configure(*slurm("22.05.99", "22.05.99"), "--enable-untested-slurm"), configure.text
	assert "building for Slurm 22.05.99, which was never tried" in configure.text


def test_catch2_is_needed_for_make_check_only_and_make_check_says_so(configure):
	absent = [f"ac_cv_header_catch2_{name}=no" for name in ("catch_hpp", "catch_test_macros_hpp")]
	assert configure("--without-slurm", cached=absent), configure.text
	assert "Catch2 is missing (Debian package catch2, RPM package catch-devel)" in configure.text
	done = subprocess.run(["make", "-C", configure.folder, "check-catch2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
		text=True, check=False)
	assert done.returncode != 0 and "install Catch2 (Debian package catch2, RPM package catch-devel)" in done.stdout
