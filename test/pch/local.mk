# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# The standard library's headers are half of what there is to compile of a small test: they are compiled once. The folder has
# them once for each set of flags, and the compiler takes what fits (g++ the header itself if nothing does). Sources name all
# the same what they include: nothing that is installed is compiled so, but for the sanitizers (SANITIZED_PCH).
EXTRA_DIST += test/pch/std.h
PCH_HEADER = test/pch/precompiled.h
PCH = -include $(PCH_HEADER)
TEST_PCH = $(if $(SANITIZED_PCH),,$(PCH))
PCH_FOLDER = $(PCH_HEADER).gch

# optimized, as what is installed: these have to be quick; a debugger is told less, as in test/unit
OPTIMIZED_CXXFLAGS = -g1
OPTIMIZED_OBJECTS = $(test_engine_engine_host_OBJECTS) $(test_kubesim_kubesim_OBJECTS) $(test_sim_sim_OBJECTS)
PCH_OPTIMIZED = $(PCH_FOLDER)/optimized
$(PCH_OPTIMIZED): private CXXFLAGS += $(OPTIMIZED_CXXFLAGS)
$(OPTIMIZED_OBJECTS): private CXXFLAGS += $(OPTIMIZED_CXXFLAGS) $(TEST_PCH)
$(OPTIMIZED_OBJECTS): | $(PCH_OPTIMIZED)
# test/unit has its objects there
PCH_UNIT = $(PCH_FOLDER)/unit
$(PCH_UNIT): private CXXFLAGS += $(UNIT_CXXFLAGS)
# libraries, for script/test with sanitizers: make pch, then make SANITIZED_PCH='-include test/pch/precompiled.h', which is in AM_CXXFLAGS
SANITIZED_PCH =
PCH_LIBRARY = $(PCH_FOLDER)/library
$(PCH_LIBRARY): private CXXFLAGS += -fPIC -DPIC

# in the build folder, where the compiler looks for it if nothing precompiled fits
$(PCH_HEADER): test/pch/std.h
	$(AM_V_GEN)$(MKDIR_P) test/pch && echo '#include "test/pch/std.h"' > $@
$(PCH_OPTIMIZED) $(PCH_UNIT) $(PCH_LIBRARY): $(PCH_HEADER) config.status
	$(AM_V_GEN)$(MKDIR_P) $(PCH_FOLDER) && $(CXX) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) \
		$(filter-out $(PCH),$(AM_CXXFLAGS)) $(CXXFLAGS) -x c++-header -c $(PCH_HEADER) -o $@
.PHONY: pch
pch: $(PCH_OPTIMIZED) $(PCH_UNIT) $(PCH_LIBRARY)
clean-local: clean-pch
.PHONY: clean-pch
clean-pch:
	rm -rf $(PCH_FOLDER) $(PCH_HEADER)
