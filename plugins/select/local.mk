# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_SLURM
plugin_LTLIBRARIES += select_cons_tres.la
endif

select_cons_tres_la_SOURCES = \
	lib/slurm/hooks.h \
	lib/slurm/module_path.h \
	lib/slurm/release.h \
	lib/slurm/sizes.c \
	lib/slurm/sizes.h \
	plugins/select/forward.h \
	plugins/select/select_cons_tres.c
select_cons_tres_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
select_cons_tres_la_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/plugins/select/select.map
EXTRA_select_cons_tres_la_DEPENDENCIES = plugins/select/select.map
EXTRA_DIST += plugins/select/select.map
