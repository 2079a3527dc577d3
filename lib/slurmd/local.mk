# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# sk8_slurmd.so: our side of slurmd. Nothing of Slurm is linked: slurmd has it all when it loads this.
if HAVE_SLURM
pkglib_LTLIBRARIES += sk8_slurmd.la
endif

sk8_slurmd_la_SOURCES = \
	lib/sk8_abi.h \
	lib/slurm/daemon.c \
	lib/slurm/daemon.h \
	lib/slurm/release.h \
	lib/slurm/sizes.c \
	lib/slurm/sizes.h \
	lib/slurmd/agent.c \
	lib/slurmd/agent.h \
	lib/slurmd/job.c \
	lib/slurmd/job.h
sk8_slurmd_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
sk8_slurmd_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
sk8_slurmd_la_LDFLAGS = $(PLUGIN_LDFLAGS)
sk8_slurmd_la_LIBADD = $(SK8_CORE_LIB)
