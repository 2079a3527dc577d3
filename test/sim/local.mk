# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# The engine's decisions against models of Slurm and Kubernetes, on virtual time.
#   make check               replays what was found once
#   script/test sim          a minute of new seeds, half of it with mixed nodes, and all mutants
#   make soak SOAK_SECONDS=N for hours
if ENGINE_TESTS
check_PROGRAMS += test/sim/sim
TESTS += test/sim/check
endif
test_sim_sim_SOURCES = \
	test/sim/case.cc \
	test/sim/case.h \
	test/sim/config.h \
	test/sim/dice.h \
	test/sim/foreign.cc \
	test/sim/journal.cc \
	test/sim/journal.h \
	test/sim/judge.cc \
	test/sim/judge.h \
	test/sim/judge_again.cc \
	test/sim/judge_annotations.cc \
	test/sim/judge_devices.cc \
	test/sim/judge_foreign.cc \
	test/sim/judge_mixed.cc \
	test/sim/judge_nodes.cc \
	test/sim/judge_overcommit.cc \
	test/sim/judge_preempt.cc \
	test/sim/judge_preempt.h \
	test/sim/judge_resize.cc \
	test/sim/judge_slots.cc \
	test/sim/judge_static.cc \
	test/sim/judge_words.cc \
	test/sim/kube_requests.cc \
	test/sim/kubelet_devices.cc \
	test/sim/kube_requests.h \
	test/sim/make_case.cc \
	test/sim/make_more.h \
	test/sim/make_preemption.cc \
	test/sim/make_resize.cc \
	test/sim/make_static.cc \
	test/sim/make_mixed.cc \
	test/sim/model_api.cc \
	test/sim/model_api.h \
	test/sim/model_gate.cc \
	test/sim/model_kubelet.cc \
	test/sim/model_kubelet.h \
	test/sim/model_select.cc \
	test/sim/model_select.h \
	test/sim/model_slurm.cc \
	test/sim/model_slurm.h \
	test/sim/mutants.cc \
	test/sim/mutants.h \
	test/sim/mutants_devices.cc \
	test/sim/mutants_preempt.cc \
	test/sim/mutants_seen.cc \
	test/sim/natives.cc \
	test/sim/node_requests.cc \
	test/sim/nodes.cc \
	test/sim/pod_watch.cc \
	test/sim/pod_watch.h \
	test/sim/preemption.cc \
	test/sim/preemption.h \
	test/sim/process.cc \
	test/sim/process_engine.cc \
	test/sim/process_natives.cc \
	test/sim/process.h \
	test/sim/release.cc \
	test/sim/reservation_requests.cc \
	test/sim/resizing.cc \
	test/sim/resizing.h \
	test/sim/schedule.h \
	test/sim/settings.cc \
	test/sim/shrink.cc \
	test/sim/shrink.h \
	test/sim/sim.cc \
	test/sim/slurm_devices.cc \
	test/sim/slurm_job.h \
	test/sim/slurm_nodes.cc \
	test/sim/slurm_ops.cc \
	test/sim/static_pods.cc \
	test/sim/story.h \
	test/sim/trace.cc \
	test/sim/trace.h \
	test/sim/verbs.cc \
	test/sim/world.cc \
	test/sim/world.h
test_sim_sim_LDADD = lib/core/libcore.la

EXTRA_DIST += \
	test/sim/check \
	test/sim/traces/22.05.8/batch-beside-pods.trace \
	test/sim/traces/22.05.8/excluded-node.trace \
	test/sim/traces/22.05.8/hold-and-release.trace \
	test/sim/traces/22.05.8/kill-and-restart.trace \
	test/sim/traces/22.05.8/masked-cores.trace \
	test/sim/traces/22.05.8/masked-memory.trace \
	test/sim/traces/22.05.8/masked-more.trace \
	test/sim/traces/22.05.8/masked-whole.trace \
	test/sim/traces/22.05.8/memory.trace \
	test/sim/traces/22.05.8/preemption-beside-a-mask.trace \
	test/sim/traces/22.05.8/preemption.trace \
	test/sim/traces/22.05.8/queue.trace \
	test/sim/traces/22.05.8/start-and-end.trace \
	test/slurm/record_traces \
	test/sim/regressions/adopted-by-itself-and-preempted.case \
	test/sim/regressions/adopted-elsewhere.case \
	test/sim/regressions/again-in-the-same-second.case \
	test/sim/regressions/aside-known-late.case \
	test/sim/regressions/beside-what-is-set-aside.case \
	test/sim/regressions/binding-after-a-word.case \
	test/sim/regressions/binding-of-a-run-before-a-loss.case \
	test/sim/regressions/delete-collision.case \
	test/sim/regressions/deleted-before-bound.case \
	test/sim/regressions/deleted-by-a-former-slurmctld.case \
	test/sim/regressions/deleted-by-former-settings.case \
	test/sim/regressions/device-of-a-pod-whose-binding-has-no-answer.case \
	test/sim/regressions/devices-of-a-gone-pod-told-after-a-start.case \
	test/sim/regressions/eight-candidates.case \
	test/sim/regressions/elsewhere-after-a-crash.case \
	test/sim/regressions/ended-before-deletion.case \
	test/sim/regressions/ends-before-nodes-are-known.case \
	test/sim/regressions/finalizer-collision.case \
	test/sim/regressions/foreign-forced-grace.case \
	test/sim/regressions/foreign-grace-forgotten.case \
	test/sim/regressions/foreign-kubelet-back.case \
	test/sim/regressions/foreign-released-before-nodes.case \
	test/sim/regressions/foreign-vanished-before-nodes.case \
	test/sim/regressions/forgotten-launch-of-a-small-job.case \
	test/sim/regressions/formerly-foreign.case \
	test/sim/regressions/full-disk-takes-one-of-two-holds.case \
	test/sim/regressions/gate-that-is-not-needed-any-more.case \
	test/sim/regressions/get-older-than-the-watch.case \
	test/sim/regressions/gone-in-the-turn-of-its-release.case \
	test/sim/regressions/gpu-that-a-preempted-pod-leaves.case \
	test/sim/regressions/hold-after-full-disk.case \
	test/sim/regressions/joins-a-pod-that-we-delete.case \
	test/sim/regressions/killed-before-ledger.case \
	test/sim/regressions/late-news-of-ended.case \
	test/sim/regressions/late-news-of-released.case \
	test/sim/regressions/late-news.case \
	test/sim/regressions/launched-before-its-node-was-mixed.case \
	test/sim/regressions/ledger-begun-after-a-loss.case \
	test/sim/regressions/ledger-of-foreign-pods-alone.case \
	test/sim/regressions/list-older-than-our-delete.case \
	test/sim/regressions/lost-node-after-crash.case \
	test/sim/regressions/lost-with-what-was-deleted-by-force.case \
	test/sim/regressions/mirror-deleted-with-a-grace.case \
	test/sim/regressions/moved-by-adoption-before-a-crash.case \
	test/sim/regressions/moved-hold.case \
	test/sim/regressions/named-twice-and-free.case \
	test/sim/regressions/news-from-before-the-binding.case \
	test/sim/regressions/our-delete-by-a-clock-ahead.case \
	test/sim/regressions/outdated-get.case \
	test/sim/regressions/over-and-lost.case \
	test/sim/regressions/over-in-a-list-before-the-start.case \
	test/sim/regressions/own-mask-after-crash.case \
	test/sim/regressions/own-mask-after-preemption.case \
	test/sim/regressions/owner-deleted-before-unanswered-delete.case \
	test/sim/regressions/pinned-job.case \
	test/sim/regressions/pod-and-job-on-the-same-cores.case \
	test/sim/regressions/pod-of-former-settings-admitted-late.case \
	test/sim/regressions/refused-after-an-unanswered-delete.case \
	test/sim/regressions/refused-and-gone-unseen.case \
	test/sim/regressions/refused-for-cores-and-not-for-a-slot.case \
	test/sim/regressions/released-foreign-and-ours-again.case \
	test/sim/regressions/released-of-former-scheduler.case \
	test/sim/regressions/resized-foreign-pod-that-vanishes-before-nodes-are-known.case \
	test/sim/regressions/resized-while-its-binding-is-under-way.case \
	test/sim/regressions/room-that-a-lost-answer-took-back.case \
	test/sim/regressions/second-job-ends.case \
	test/sim/regressions/shared-pod-after-a-restart.case \
	test/sim/regressions/shared-pod-deleted-by-former-settings.case \
	test/sim/regressions/slots-of-bound-pods-at-a-start.case \
	test/sim/regressions/starts-while-it-is-to-end.case \
	test/sim/regressions/stranger-in-the-name-of-a-jobs-pod.case \
	test/sim/regressions/taken-in-the-gate.case \
	test/sim/regressions/untrue-in-a-former-run.case \
	test/sim/regressions/wake-behind-locks.case \
	test/sim/regressions/word-about-a-foreign-pod-before-a-restore.case

SOAK_SECONDS = 3600
.PHONY: soak
soak: test/sim/sim$(EXEEXT)
	SK8_BUILD=$(abs_top_builddir) $(top_srcdir)/test/sim/check soak $(SOAK_SECONDS)
