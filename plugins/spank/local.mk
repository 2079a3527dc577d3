# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_SLURM
plugin_LTLIBRARIES += spank_k8s.la
node_PROGRAMS = plugins/spank/pause
endif

# Runs in any image
nodedir = $(pkglibdir)
plugins_spank_pause_SOURCES = plugins/spank/pause.c
plugins_spank_pause_LDFLAGS = -all-static

# Who may execute but not read a program has no way into its process (fs/exec.c, would_dump()): that of a job's container is its
# user's, and has the groups that its image gives that user.
install-data-hook:
	test ! -f $(DESTDIR)$(nodedir)/pause || chmod 711 $(DESTDIR)$(nodedir)/pause

spank_k8s_la_SOURCES = \
	lib/sk8_abi.h \
	lib/sk8_container.h \
	lib/slurm/release.h \
	lib/slurm/sizes.c \
	lib/slurm/sizes.h \
	lib/slurm/spank_step.c \
	lib/slurm/spank_step.h \
	lib/slurm/step_gres.c \
	lib/slurm/step_gres.h \
	lib/slurm/step_prologs.c \
	lib/slurm/step_prologs.h \
	lib/slurm/tokens.h \
	lib/slurmd/agent.h \
	plugins/spank/as_user.c \
	plugins/spank/as_user.h \
	plugins/spank/container.c \
	plugins/spank/container.h \
	plugins/spank/environment.c \
	plugins/spank/environment.h \
	plugins/spank/gres.c \
	plugins/spank/gres.h \
	plugins/spank/handover.c \
	plugins/spank/handover.h \
	plugins/spank/mounts.c \
	plugins/spank/mounts.h \
	plugins/spank/namespaces.c \
	plugins/spank/namespaces.h \
	plugins/spank/options.c \
	plugins/spank/options.h \
	plugins/spank/service_account.c \
	plugins/spank/service_account.h \
	plugins/spank/spank_k8s.c \
	plugins/spank/task_prolog.c \
	plugins/spank/task_prolog.h \
	plugins/spank/way_back.c \
	plugins/spank/way_back.h \
	plugins/spank/x11.c \
	plugins/spank/x11.h
spank_k8s_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
spank_k8s_la_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/plugins/spank/spank.map
EXTRA_spank_k8s_la_DEPENDENCIES = plugins/spank/spank.map
EXTRA_DIST += plugins/spank/spank.map
