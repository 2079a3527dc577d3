# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# lib/slurm and the plugins on a real slurmctld; see conftest.py. The stand-in for
# libsk8core has its name and its SONAME, but is never installed.
check_LTLIBRARIES += test/slurm/libsk8core.la
test_slurm_libsk8core_la_SOURCES = lib/sk8_abi.h test/slurm/scripted_core.c
# -rpath: else libtool makes no shared library of what is not installed
test_slurm_libsk8core_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nonexistent -version-info 0:0:0
test_slurm_libsk8core_la_LIBADD = -lpthread

EXTRA_DIST += \
	test/slurm/conftest.py \
	test/slurm/test_adoption.py \
	test/slurm/test_guard.py \
	test/slurm/test_hooks.py \
	test/slurm/test_jobs.py \
	test/slurm/test_masks.py
