# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Does what we built fit into this release of Slurm? A release adds its
# <type>-<version>.symbols, in the order of the loader's own table. SPANK's functions are the
# same in all of them, and a plugin has those that it wants.
EXTRA_DIST += \
	test/abi/borders \
	test/abi/check-border \
	test/abi/check-loads \
	test/abi/check-symbols \
	test/abi/job_submit-22.05.8.symbols \
	test/abi/job_submit-24.11.5.symbols \
	test/abi/job_submit-26.05.3.symbols \
	test/abi/prep-22.05.8.symbols \
	test/abi/prep-24.11.5.symbols \
	test/abi/prep-26.05.3.symbols \
	test/abi/select-22.05.8.symbols \
	test/abi/select-24.11.5.symbols \
	test/abi/select-26.05.3.symbols \
	test/abi/spank.symbols

AM_TESTS_ENVIRONMENT += \
	SK8_SRCDIR='$(abs_top_srcdir)'; export SK8_SRCDIR; \
	SK8_LIBS='$(abs_top_builddir)/.libs'; export SK8_LIBS; \
	SK8_SLURM_VERSION='$(SLURM_VERSION)'; export SK8_SLURM_VERSION; \
	SK8_STOCKDIR='$(slurmstockdir)'; export SK8_STOCKDIR;

TESTS += test/abi/check-border
if HAVE_SLURM
TESTS += test/abi/check-symbols test/abi/check-loads
check_PROGRAMS += test/abi/plugin_host
check_LTLIBRARIES += test/abi/libprototypes.la
endif

test_abi_plugin_host_SOURCES = test/abi/plugin_host.c
test_abi_plugin_host_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
test_abi_plugin_host_LDADD = -ldl

sk8_abi_generated = test/abi/select_ops.h test/abi/submit_ops.h test/abi/prep_ops.h \
	test/abi/select.inc test/abi/job_submit.inc test/abi/prep.inc
test_abi_libprototypes_la_SOURCES = test/abi/prototypes.c
test_abi_libprototypes_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
if HAVE_SLURM
BUILT_SOURCES += $(sk8_abi_generated)
endif
CLEANFILES += $(sk8_abi_generated)

# the loaders' tables, which are private to a file of Slurm: src/slurmctld/ and a
# public header until 22.05, src/interfaces/ later
test/abi/select_ops.h: test/abi/local.mk
	@$(MKDIR_P) test/abi
	$(AM_V_GEN)sed -n '/^typedef struct slurm_select_ops\|^typedef struct {/{:a;N;/\n}/!ba;/slurm_select_ops_t;/p;}' \
		$(SLURM_SOURCE)/src/interfaces/select.c > $@.new 2>/dev/null; \
		grep -qh '} slurm_select_ops_t;' $@.new $(SLURM_SOURCE)/src/common/select.h && mv -f $@.new $@

test/abi/submit_ops.h: test/abi/local.mk
	@$(MKDIR_P) test/abi
	$(AM_V_GEN)cat $(SLURM_SOURCE)/src/*/job_submit.c | \
		sed -n '/^typedef struct slurm_submit_ops/,/^}/p' > $@.new && \
		grep -q slurm_submit_ops_t $@.new && mv -f $@.new $@

test/abi/prep_ops.h: test/abi/local.mk
	@$(MKDIR_P) test/abi
	$(AM_V_GEN)sed -n '/^typedef struct {/{:a;N;/\n}/!ba;/prep_ops_t;/p;}' \
		$(SLURM_SOURCE)/src/*/prep.c > $@.new && grep -q '} prep_ops_t;' $@.new && mv -f $@.new $@

test/abi/select.inc: test/abi/select-$(SLURM_VERSION).symbols
	@$(MKDIR_P) test/abi
	$(AM_V_GEN)sed 's/^plugin_id$$/(uint32_t *) \&plugin_id/; s/$$/,/' \
		$(top_srcdir)/test/abi/select-$(SLURM_VERSION).symbols > $@

test/abi/job_submit.inc: test/abi/job_submit-$(SLURM_VERSION).symbols
	@$(MKDIR_P) test/abi
	$(AM_V_GEN)sed 's/$$/,/' $(top_srcdir)/test/abi/job_submit-$(SLURM_VERSION).symbols > $@

test/abi/prep.inc: test/abi/prep-$(SLURM_VERSION).symbols
	@$(MKDIR_P) test/abi
	$(AM_V_GEN)sed 's/$$/,/' $(top_srcdir)/test/abi/prep-$(SLURM_VERSION).symbols > $@
