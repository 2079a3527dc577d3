# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# slurmctld under valgrind, see test/leaks/leaks --help.
#   make leaks [LEAKSFLAGS="--pods 10000"]
#   script/test leaks        two minutes of it
.PHONY: leaks
leaks: all
	SK8_BUILD=$(abs_top_builddir) $(top_srcdir)/test/leaks/leaks $(LEAKSFLAGS)

EXTRA_DIST += \
	test/leaks/conftest.py \
	test/leaks/day.py \
	test/leaks/leaks \
	test/leaks/memcheck.py \
	test/leaks/test_leaks.py \
	test/leaks/verdict.py \
	test/leaks/watcher.py
