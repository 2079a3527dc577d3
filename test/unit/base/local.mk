# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_CATCH2
check_PROGRAMS += test/unit/base_test
TESTS += test/unit/base_test
endif
test_unit_base_test_SOURCES = \
	$(UNIT_MAIN) \
	test/unit/base/config_test.cc \
	test/unit/base/doubling_test.cc \
	test/unit/base/exposition_test.cc \
	test/unit/base/file_test.cc \
	test/unit/base/http_listener_test.cc \
	test/unit/base/json_mend_test.cc \
	test/unit/base/json_test.cc \
	test/unit/base/log_limit_test.cc \
	test/unit/base/log_test.cc \
	test/unit/base/metrics_test.cc \
	test/unit/base/node_list_test.cc \
	test/unit/base/node_names.h \
	test/unit/base/quantity_test.cc \
	test/unit/base/recent_test.cc \
	test/unit/base/text_test.cc \
	test/unit/base/thread_test.cc \
	test/unit/base/yaml_test.cc
test_unit_base_test_LDADD = lib/base/libbase.la $(CATCH_LIBS)
