# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_SLURM
plugin_LTLIBRARIES += prep_k8s.la
endif

prep_k8s_la_SOURCES = \
	lib/sk8_abi.h \
	lib/slurm/hooks.h \
	lib/slurm/module_path.h \
	lib/slurm/release.h \
	plugins/prep/prep_k8s.c
prep_k8s_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
prep_k8s_la_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/plugins/prep/prep.map
EXTRA_prep_k8s_la_DEPENDENCIES = plugins/prep/prep.map
EXTRA_DIST += plugins/prep/prep.map
