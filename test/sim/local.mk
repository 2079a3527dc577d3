# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# The engine's decisions against models of Slurm and Kubernetes, on virtual time.
#   make check               replays what was found once
#   script/test sim          a minute of new seeds, and all mutants
#   make soak SOAK_SECONDS=N for hours
noinst_PROGRAMS += test/sim/sim
test_sim_sim_SOURCES = \
	test/sim/case.cc \
	test/sim/case.h \
	test/sim/dice.h \
	test/sim/journal.cc \
	test/sim/journal.h \
	test/sim/judge.cc \
	test/sim/judge.h \
	test/sim/kube_requests.cc \
	test/sim/kube_requests.h \
	test/sim/make_case.cc \
	test/sim/model_api.cc \
	test/sim/model_api.h \
	test/sim/model_kubelet.cc \
	test/sim/model_kubelet.h \
	test/sim/model_select.cc \
	test/sim/model_select.h \
	test/sim/model_slurm.cc \
	test/sim/model_slurm.h \
	test/sim/mutants.cc \
	test/sim/mutants.h \
	test/sim/pod_watch.cc \
	test/sim/pod_watch.h \
	test/sim/process.cc \
	test/sim/process.h \
	test/sim/schedule.h \
	test/sim/shrink.cc \
	test/sim/shrink.h \
	test/sim/sim.cc \
	test/sim/slurm_job.h \
	test/sim/slurm_ops.cc \
	test/sim/story.h \
	test/sim/verbs.cc \
	test/sim/world.cc \
	test/sim/world.h
test_sim_sim_LDADD = lib/core/libcore.la
