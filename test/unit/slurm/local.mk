# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_CATCH2
if HAVE_SLURM
check_PROGRAMS += test/unit/slurm_test
TESTS += test/unit/slurm_test
endif
endif
test_unit_slurm_test_SOURCES = \
	$(UNIT_MAIN) \
	lib/base/node_list.cc \
	lib/base/node_list.h \
	lib/slurm/error_table.c \
	lib/slurm/error_table.h \
	lib/slurm/pod_wait.c \
	lib/slurm/pod_wait.h \
	lib/slurm/tokens.c \
	lib/slurm/tokens.h \
	lib/slurm/tres.c \
	lib/slurm/tres.h \
	plugins/spank/environment.c \
	plugins/spank/environment.h \
	test/unit/slurm/environment_test.cc \
	test/unit/slurm/node_list_test.cc \
	test/unit/slurm/pod_wait_test.cc \
	test/unit/slurm/texts_test.cc \
	test/unit/slurm/tokens_test.cc
test_unit_slurm_test_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
test_unit_slurm_test_LDADD = $(CATCH_LIBS)
