# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# One test program per layer, each in its own folder; no I/O beyond a temporary
# folder, no sleep, virtual clocks. A layer adds to its own local.mk:
#   check_PROGRAMS and TESTS += test/unit/<layer>_test  (inside if HAVE_CATCH2)
#   SOURCES = $(UNIT_MAIN) test/unit/<layer>/*_test.cc, LDADD = libraries $(CATCH_LIBS)
# Run one test alone: test/unit/base_test "name of the test"
UNIT_MAIN = test/unit/catch.h test/unit/main.cc

# not in the condition: there are others
.PHONY: check-catch2

if !HAVE_CATCH2
check-local: check-catch2
check-catch2:
	@echo 'make check: error: install Catch2 (Debian package catch2, RPM package catch-devel), then run configure again' >&2
	@exit 1
endif

include test/unit/base/local.mk
include test/unit/kube/local.mk
include test/unit/core/local.mk
include test/unit/agent/local.mk
include test/unit/slurm/local.mk
include test/unit/tools/local.mk

# Compiling is what costs here, not running: without optimization, and with the
# names of functions alone for a debugger, it takes less than half as long. _FORTIFY_SOURCE needs some. Undefined
# behaviour is looked for in what is tested: in tests themselves it costs half as much again.
UNIT_CXXFLAGS = -O0 -g1 -U_FORTIFY_SOURCE -fno-sanitize=undefined
# sort: main.o is in each of them, and would get each flag five times
UNIT_OBJECTS = $(sort $(test_unit_base_test_OBJECTS) $(test_unit_kube_test_OBJECTS) $(test_unit_core_test_OBJECTS) \
	$(test_unit_agent_test_OBJECTS) $(test_unit_tools_test_OBJECTS))
$(UNIT_OBJECTS): private CXXFLAGS += $(UNIT_CXXFLAGS) $(TEST_PCH)
$(UNIT_OBJECTS): | $(PCH_UNIT)
