# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dist_man_MANS += doc/slurm-k8s.1 doc/slurm-k8s.7 doc/spank_k8s.so.8
EXTRA_DIST += CHANGELOG.md CONTRIBUTING.md doc/architecture.md doc/benchmarks.md doc/gres.md doc/reliability.md doc/sharing.md

# Printed from the table of settings, never edited, so not in the tarball either.
nodist_man_MANS = doc/slurm-k8s.yaml.5 doc/slurm-k8s-node.yaml.5 doc/slurm-k8s-metrics.7
CLEANFILES += $(nodist_man_MANS)
noinst_PROGRAMS += doc/print_settings_man doc/print_metrics_man
doc_print_settings_man_SOURCES = doc/print_settings_man.cc doc/roff.h
doc_print_settings_man_LDADD = lib/agent/libagent.la

doc/slurm-k8s.yaml.5: doc/print_settings_man$(EXEEXT)
	$(AM_V_GEN)doc/print_settings_man$(EXEEXT) > $@.new && mv -f $@.new $@

doc/slurm-k8s-node.yaml.5: doc/print_settings_man$(EXEEXT)
	$(AM_V_GEN)doc/print_settings_man$(EXEEXT) --node > $@.new && mv -f $@.new $@

# The same from the table of metrics.
doc_print_metrics_man_SOURCES = doc/print_metrics_man.cc doc/roff.h
doc_print_metrics_man_LDADD = lib/core/libcore.la

doc/slurm-k8s-metrics.7: doc/print_metrics_man$(EXEEXT)
	$(AM_V_GEN)doc/print_metrics_man$(EXEEXT) > $@.new && mv -f $@.new $@

include test/doc/local.mk
