# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# make bench: see test/bench/bench --help. BENCHFLAGS="--short" for a first look.
EXTRA_PROGRAMS = test/bench/submit_jobs
CLEANFILES += test/bench/submit_jobs
test_bench_submit_jobs_SOURCES = test/bench/submit_jobs.c
test_bench_submit_jobs_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
test_bench_submit_jobs_LDADD = -lslurm
EXTRA_DIST += test/bench/bench test/bench/load.py test/bench/records.py

.PHONY: bench
bench: all test/bench/submit_jobs$(EXEEXT)
	$(top_srcdir)/test/bench/bench --build $(abs_top_builddir) $(BENCHFLAGS)
