# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# Real daemons that break at random, see test/chaos/chaos --help.
#   make chaos [CHAOS_SECONDS=300] [CHAOS_SEED=N] [CHAOS_API=real|sim] [CHAOS_SHARING="none dedicated mixed"]
#   script/test chaos        45 s of it, and 30 s on kubesim
# CHAOS_SECONDS: of each kind of sharing.
CHAOS_SECONDS = 300
CHAOS_API = real
CHAOS_SHARING = none dedicated mixed

.PHONY: chaos
chaos: all
	found=0; for sharing in $(CHAOS_SHARING); do \
		SK8_BUILD=$(abs_top_builddir) $(top_srcdir)/test/chaos/chaos --api $(CHAOS_API) --sharing $$sharing \
			--seconds $(CHAOS_SECONDS) $${CHAOS_SEED:+--seed $$CHAOS_SEED} || found=1; \
	done; exit $$found

EXTRA_DIST += \
	test/chaos/chaos \
	test/chaos/conftest.py \
	test/chaos/cordons.py \
	test/chaos/devices.py \
	test/chaos/evidence.py \
	test/chaos/faults.py \
	test/chaos/game.py \
	test/chaos/insistent.py \
	test/chaos/jobs.py \
	test/chaos/judge.py \
	test/chaos/judge_nodes.py \
	test/chaos/link.py \
	test/chaos/nodes.py \
	test/chaos/plan.py \
	test/chaos/reservations.py \
	test/chaos/shared_pods.py \
	test/chaos/shared_runs.py \
	test/chaos/story.py \
	test/chaos/test_chaos.py \
	test/chaos/test_game.py \
	test/chaos/test_judge.py \
	test/chaos/test_plan.py \
	test/chaos/test_users.py \
	test/chaos/users.py \
	test/chaos/uses.py \
	test/chaos/verdict.py
