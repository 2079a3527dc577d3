# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# slurm-k8s(1). The library is what tests link.
noinst_LTLIBRARIES += tools/libtools.la
tools_libtools_la_LIBADD = lib/agent/libagent.la
tools_libtools_la_SOURCES = \
	tools/accounting.cc \
	tools/accounting.h \
	tools/as_user.cc \
	tools/as_user.h \
	tools/ask.cc \
	tools/ask.h \
	tools/check.h \
	tools/check_accounts.cc \
	tools/check_admission.cc \
	tools/check_cluster.cc \
	tools/check_gres.cc \
	tools/check_gres_conf.cc \
	tools/check_leftovers.cc \
	tools/check_mapping.cc \
	tools/check_node.cc \
	tools/check_plugins.cc \
	tools/check_room.cc \
	tools/check_sharing.cc \
	tools/check_tokens.cc \
	tools/check_slurm.cc \
	tools/device_lines.cc \
	tools/device_lines.h \
	tools/findings.cc \
	tools/findings.h \
	tools/gres.cc \
	tools/gres.h \
	tools/gres_conf.cc \
	tools/gres_conf.h \
	tools/options.cc \
	tools/options.h \
	tools/run.cc \
	tools/run.h \
	tools/show.cc \
	tools/show.h \
	tools/slurm_conf.cc \
	tools/slurm_conf.h

bin_PROGRAMS += tools/slurm-k8s
tools_slurm_k8s_SOURCES = tools/slurm_k8s.cc
tools_slurm_k8s_LDADD = tools/libtools.la
tools_slurm_k8s_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,relro,-z,now

# where bash looks for it (bash-completion's own default)
completiondir = $(datadir)/bash-completion/completions
install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(completiondir)"
	$(INSTALL_DATA) $(srcdir)/tools/completion.bash "$(DESTDIR)$(completiondir)/slurm-k8s"
uninstall-local:
	rm -f "$(DESTDIR)$(completiondir)/slurm-k8s"
EXTRA_DIST += tools/completion.bash
