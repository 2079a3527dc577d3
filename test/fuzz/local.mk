# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# Hostile input. make check replays test/fuzz/seeds and test/fuzz/findings; make fuzz
# FUZZ_SECONDS=N fuzzes with libFuzzer for N seconds in all, in a build of its own
# below fuzz/ (test/fuzz/run --help).
FUZZERS = \
	test/fuzz/annotations_fuzz \
	test/fuzz/checkpoint_fuzz \
	test/fuzz/devices_fuzz \
	test/fuzz/json_fuzz \
	test/fuzz/kubeconfig_fuzz \
	test/fuzz/ledger_fuzz \
	test/fuzz/objects_fuzz \
	test/fuzz/quantity_fuzz \
	test/fuzz/settings_fuzz \
	test/fuzz/splitter_fuzz \
	test/fuzz/template_fuzz \
	test/fuzz/text_fuzz \
	test/fuzz/time_fuzz \
	test/fuzz/yaml_fuzz
if ENGINE_TESTS
check_PROGRAMS += $(FUZZERS)
endif

FUZZ_COMMON = test/fuzz/fuzz.cc test/fuzz/fuzz.h
if FUZZ
# the fuzzer's own main()
FUZZ_LIBS = $(FUZZ_ENGINE) lib/core/libcore.la
else
if ENGINE_TESTS
TESTS += $(FUZZERS)
check_LTLIBRARIES += test/fuzz/libreplay.la
else
EXTRA_LTLIBRARIES = test/fuzz/libreplay.la
endif
test_fuzz_libreplay_la_SOURCES = test/fuzz/replay.cc
test_fuzz_libreplay_la_CPPFLAGS = $(AM_CPPFLAGS) -DTOP_SRCDIR='"$(abs_top_srcdir)"'
FUZZ_LIBS = test/fuzz/libreplay.la lib/core/libcore.la
endif

test_fuzz_annotations_fuzz_SOURCES = test/fuzz/annotations_fuzz.cc $(FUZZ_COMMON)
test_fuzz_annotations_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_checkpoint_fuzz_SOURCES = test/fuzz/checkpoint_fuzz.cc $(FUZZ_COMMON)
test_fuzz_checkpoint_fuzz_LDADD = lib/agent/libagent.la $(FUZZ_LIBS)
test_fuzz_devices_fuzz_SOURCES = test/fuzz/devices_fuzz.cc $(FUZZ_COMMON)
test_fuzz_devices_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_json_fuzz_SOURCES = test/fuzz/json_fuzz.cc $(FUZZ_COMMON)
test_fuzz_json_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_kubeconfig_fuzz_SOURCES = test/fuzz/kubeconfig_fuzz.cc test/fuzz/yaml_text.h $(FUZZ_COMMON)
test_fuzz_kubeconfig_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_ledger_fuzz_SOURCES = test/fuzz/ledger_fuzz.cc $(FUZZ_COMMON)
test_fuzz_ledger_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_objects_fuzz_SOURCES = test/fuzz/objects_fuzz.cc $(FUZZ_COMMON)
test_fuzz_objects_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_quantity_fuzz_SOURCES = test/fuzz/quantity_fuzz.cc $(FUZZ_COMMON)
test_fuzz_quantity_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_settings_fuzz_SOURCES = test/fuzz/settings_fuzz.cc $(FUZZ_COMMON)
test_fuzz_settings_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_splitter_fuzz_SOURCES = test/fuzz/splitter_fuzz.cc $(FUZZ_COMMON)
test_fuzz_splitter_fuzz_LDADD = $(FUZZ_LIBS) $(JANSSON_LIBS)
test_fuzz_template_fuzz_SOURCES = test/fuzz/template_fuzz.cc $(FUZZ_COMMON)
test_fuzz_template_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_text_fuzz_SOURCES = test/fuzz/text_fuzz.cc $(FUZZ_COMMON)
test_fuzz_text_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_time_fuzz_SOURCES = test/fuzz/time_fuzz.cc $(FUZZ_COMMON)
test_fuzz_time_fuzz_LDADD = $(FUZZ_LIBS)
test_fuzz_yaml_fuzz_SOURCES = test/fuzz/yaml_fuzz.cc test/fuzz/yaml_text.h $(FUZZ_COMMON)
test_fuzz_yaml_fuzz_LDADD = $(FUZZ_LIBS)

# all targets, for test/fuzz/run
.PHONY: fuzzers fuzz
fuzzers: $(FUZZERS)
FUZZ_SECONDS = 60
fuzz:
	$(top_srcdir)/test/fuzz/run --seconds $(FUZZ_SECONDS) --build $(abs_top_builddir)

EXTRA_DIST += test/fuzz/run test/fuzz/json.dict test/fuzz/yaml.dict test/fuzz/quantity.dict \
	test/fuzz/annotations.dict test/fuzz/template.dict test/fuzz/seeds test/fuzz/findings
