# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# sk8_slurmctld.so: our side of slurmctld. Nothing of Slurm is linked: slurmctld
# has it all when it loads this.

SK8_CORE_LIB = lib/core/libsk8core.la

if HAVE_SLURM
pkglib_LTLIBRARIES += sk8_slurmctld.la
endif

sk8_slurmctld_la_SOURCES = \
	lib/sk8_abi.h \
	lib/slurm/age.c \
	lib/slurm/comment.c \
	lib/slurm/constraint.c \
	lib/slurm/constraint.h \
	lib/slurm/daemon.c \
	lib/slurm/daemon.h \
	lib/slurm/end.c \
	lib/slurm/error_table.c \
	lib/slurm/error_table.h \
	lib/slurm/errors.c \
	lib/slurm/feature_hint.c \
	lib/slurm/feature_hint.h \
	lib/slurm/feature_waits.c \
	lib/slurm/gate.c \
	lib/slurm/gate_devices.c \
	lib/slurm/gres.c \
	lib/slurm/gres.h \
	lib/slurm/hooks.h \
	lib/slurm/job_nodes.c \
	lib/slurm/job_nodes.h \
	lib/slurm/jobs.c \
	lib/slurm/layout.c \
	lib/slurm/locks.c \
	lib/slurm/mask_gres.c \
	lib/slurm/mask_gres.h \
	lib/slurm/mask_gres_show.c \
	lib/slurm/mask_table.c \
	lib/slurm/mask_table.h \
	lib/slurm/masks.c \
	lib/slurm/matching_or.c \
	lib/slurm/pod_wait.c \
	lib/slurm/pod_wait.h \
	lib/slurm/module.c \
	lib/slurm/native_end.c \
	lib/slurm/node_features.c \
	lib/slurm/node_state.c \
	lib/slurm/nodes.c \
	lib/slurm/preemptees.c \
	lib/slurm/preemptors.c \
	lib/slurm/release.h \
	lib/slurm/shutdown.c \
	lib/slurm/sizes.c \
	lib/slurm/sizes.h \
	lib/slurm/slurmctld.h \
	lib/slurm/power.c \
	lib/slurm/start.c \
	lib/slurm/submit.c \
	lib/slurm/suspension.c \
	lib/slurm/tokens.c \
	lib/slurm/tokens.h \
	lib/slurm/tres.c \
	lib/slurm/tres.h \
	lib/slurm/view.c
sk8_slurmctld_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
sk8_slurmctld_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
sk8_slurmctld_la_LDFLAGS = $(PLUGIN_LDFLAGS)
sk8_slurmctld_la_LIBADD = $(SK8_CORE_LIB)

DISTCLEANFILES += slurm-config/config.h

# libtool links the plugins again when it installs them, against what is installed
# (a variable as target: automake must not take this for its own rule)
sk8_install_plugins = install-pluginLTLIBRARIES
$(sk8_install_plugins): install-pkglibLTLIBRARIES
