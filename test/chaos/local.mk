# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# Real daemons that break at random, see test/chaos/chaos --help.
#   make chaos [CHAOS_SECONDS=600] [CHAOS_SEED=N] [CHAOS_API=real|sim]
#   script/test chaos        a minute of it
CHAOS_SECONDS = 600
CHAOS_API = real

.PHONY: chaos
chaos: all
	SK8_BUILD=$(abs_top_builddir) $(top_srcdir)/test/chaos/chaos --api $(CHAOS_API) \
		--seconds $(CHAOS_SECONDS) $${CHAOS_SEED:+--seed $$CHAOS_SEED}

EXTRA_DIST += \
	test/chaos/chaos \
	test/chaos/conftest.py \
	test/chaos/evidence.py \
	test/chaos/faults.py \
	test/chaos/game.py \
	test/chaos/judge.py \
	test/chaos/link.py \
	test/chaos/plan.py \
	test/chaos/story.py \
	test/chaos/test_chaos.py \
	test/chaos/test_judge.py \
	test/chaos/test_plan.py \
	test/chaos/test_users.py \
	test/chaos/users.py
