# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# The whole engine with all its threads, against kubesim, without Slurm: this is
# what runs under the sanitizers.
if ENGINE_TESTS
check_PROGRAMS += test/engine/engine_host
endif
test_engine_engine_host_SOURCES = \
	lib/base/node_list.cc \
	lib/base/node_list.h \
	test/engine/engine_host.cc \
	test/engine/model_slurmctld.cc \
	test/engine/model_slurmctld.h
test_engine_engine_host_LDADD = lib/core/libsk8core.la
EXTRA_DIST += \
	test/engine/conftest.py \
	test/engine/dead_network.py \
	test/engine/play.py \
	test/engine/test_alerts.py \
	test/engine/test_credentials.py \
	test/engine/test_engine.py \
	test/engine/test_faults.py \
	test/engine/test_observed.py \
	test/engine/test_secrets.py \
	test/engine/test_streams.py \
	test/engine/test_ways.py \
	test/engine/ways.py
