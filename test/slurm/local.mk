# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# lib/slurm and the plugins on a real slurmctld; see conftest.py. The stand-in for
# libsk8core has its name and its SONAME, but is never installed.
check_LTLIBRARIES += test/slurm/libsk8core.la
test_slurm_libsk8core_la_SOURCES = lib/sk8_abi.h test/slurm/scripted_core.c
# -rpath: else libtool makes no shared library of what is not installed
test_slurm_libsk8core_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nonexistent -version-info 0:0:0
test_slurm_libsk8core_la_LIBADD = -lpthread

# What Slurm's daemons load of ours, as other headers of Slurm would make it: those in
# SK8_HEADERS, a folder like Slurm's source tree, are taken first. Into SK8_OUT.
sk8_other_compile = $(CC) -shared -fPIC -Wl,-z,lazy -I$(SK8_HEADERS) $(DEFS) $(AM_CPPFLAGS) $(SLURM_CPPFLAGS) \
	$(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -O0
other-plugins: lib/core/libsk8core.la
	@$(MKDIR_P) $(SK8_OUT)/plugins
	set -e; for module in "sk8_slurmctld.so $(sk8_slurmctld_la_SOURCES)" "sk8_slurmd.so $(sk8_slurmd_la_SOURCES)"; do \
		set -- $$module; name=$$1; shift; \
		list= && for file; do case $$file in *.c) list="$$list $(abs_srcdir)/$$file" ;; esac; done; \
		$(sk8_other_compile) -fvisibility=hidden -Wl,-rpath,'$$ORIGIN' -o $(SK8_OUT)/$$name $$list -Llib/core/.libs -lsk8core; \
	done
	$(sk8_other_compile) -o $(SK8_OUT)/plugins/job_submit_k8s.so $(srcdir)/plugins/job_submit/job_submit_k8s.c \
		$(srcdir)/plugins/job_submit/complete.c $(srcdir)/lib/slurm/tokens.c \
		$(srcdir)/lib/slurm/sizes.c $(srcdir)/lib/slurm/constraint.c $(srcdir)/lib/slurm/feature_hint.c -Llib/core/.libs -lsk8core
	$(sk8_other_compile) -o $(SK8_OUT)/plugins/select_cons_tres.so $(srcdir)/plugins/select/select_cons_tres.c \
		$(srcdir)/lib/slurm/sizes.c -Wl,--version-script=$(srcdir)/plugins/select/select.map
	$(sk8_other_compile) -o $(SK8_OUT)/plugins/prep_k8s.so $(srcdir)/plugins/prep/prep_k8s.c \
		-Wl,--version-script=$(srcdir)/plugins/prep/prep.map
.PHONY: other-plugins

EXTRA_DIST += \
	test/slurm/conftest.py \
	test/slurm/test_adoption.py \
	test/slurm/job_test_clock.c \
	test/slurm/test_cost.py \
	test/slurm/test_external.py \
	test/slurm/test_exclusive.py \
	test/slurm/test_gate.py \
	test/slurm/test_gate_devices.py \
	test/slurm/test_gres.py \
	test/slurm/test_guard.py \
	test/slurm/test_hooks.py \
	test/slurm/test_jobs.py \
	test/slurm/test_layout.py \
	test/slurm/test_masks.py \
	test/slurm/test_natives.py \
	test/slurm/test_node_features.py \
	test/slurm/test_pod_devices.py \
	test/slurm/test_power.py \
	test/slurm/test_node_state.py \
	test/slurm/test_step_gres.py \
	test/slurm/test_tokens.py \
	test/slurm/test_versions.py
