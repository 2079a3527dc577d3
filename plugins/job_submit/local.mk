# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_SLURM
plugin_LTLIBRARIES += job_submit_k8s.la
endif

job_submit_k8s_la_SOURCES = \
	lib/sk8_abi.h \
	lib/slurm/constraint.c \
	lib/slurm/constraint.h \
	lib/slurm/feature_hint.c \
	lib/slurm/feature_hint.h \
	lib/slurm/release.h \
	lib/slurm/sizes.c \
	lib/slurm/sizes.h \
	lib/slurm/tokens.c \
	lib/slurm/tokens.h \
	plugins/job_submit/complete.c \
	plugins/job_submit/complete.h \
	plugins/job_submit/job_submit_k8s.c \
	plugins/job_submit/owner.c \
	plugins/job_submit/owner.h
job_submit_k8s_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
job_submit_k8s_la_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/plugins/job_submit/job_submit.map
job_submit_k8s_la_LIBADD = $(SK8_CORE_LIB)
EXTRA_job_submit_k8s_la_DEPENDENCIES = plugins/job_submit/job_submit.map
EXTRA_DIST += plugins/job_submit/job_submit.map
