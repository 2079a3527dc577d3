# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_CATCH2
check_PROGRAMS += test/unit/tools_test
TESTS += test/unit/tools_test
endif
test_unit_tools_test_SOURCES = \
	$(UNIT_MAIN) \
	test/unit/kube/temp_folder.h \
	test/unit/tools/check_test.cc \
	test/unit/tools/gres_conf_test.cc \
	test/unit/tools/gres_test.cc \
	test/unit/tools/leftovers_test.cc \
	test/unit/tools/options_test.cc \
	test/unit/tools/room_test.cc \
	test/unit/tools/run_test.cc \
	test/unit/tools/show_test.cc \
	test/unit/tools/slurm_conf_test.cc
test_unit_tools_test_LDADD = tools/libtools.la $(CATCH_LIBS)
