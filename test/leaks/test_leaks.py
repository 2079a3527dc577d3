# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The heap of a slurmctld with our plugins, and that what looks at it sees what is wrong."""
import os

import pytest
import verdict
from memcheck import Frame, Growth, read_errors, read_growth
from watcher import play

ANSWER = """==12== 1,720 (+430) bytes in 40 (+10) blocks are still reachable in loss record 7 of 9
==12==    at 0x48417B4: operator new(unsigned long) (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==12==    by 0x10915B: allocate (new_allocator.h:137)
==12==    by 0x10915B: sk8::core::PodsController::set_pod(sk8::core::Entry&, std::function<void ()>) (pods_controller.cc:55)
==12==    by 0x4A: ???
==12==    by 0x10919D: main (in /usr/sbin/slurmctld)
==12== 
==12== 96 (+96) (64 (+64) direct, 32 (+32) indirect) bytes in 2 (+2) blocks are definitely lost in loss record 8 of 9
==12==    at 0x48417B4: malloc (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==12==    by 0x10915B: slurm_xmalloc (in /usr/lib/x86_64-linux-gnu/slurm-wlm/libslurmfull.so)
==12== 
==12== 100 (-16) bytes in 3 (-1) blocks are still reachable in loss record 9 of 9
==12==    at 0x48417B4: calloc (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==12==    by 0x10915B: sk8::core::PodsController::set_pod(sk8::core::Entry&, std::function<void ()>) (pods_controller.cc:55)
==12== 
==12== LEAK SUMMARY:
==12==    definitely lost: 64 (+64) bytes in 1 (+1) blocks
==12==    indirectly lost: 32 (+32) bytes in 1 (+1) blocks
==12==      possibly lost: 0 (+0) bytes in 0 (+0) blocks
==12==    still reachable: 1,720 (+430) bytes in 40 (+10) blocks
"""
LOG = """==12== Thread 4 sk8-engine:
==12== Invalid read of size 8
==12==    at 0x10915B: sk8_submit_job (submit.c:12)
==12==    by 0x10919D: main (in /usr/sbin/slurmctld)
==12==  Address 0x4a is 0 bytes inside a block of size 8 free'd
==12==    at 0x4844: free (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==12== 
==12== Conditional jump or move depends on uninitialised value(s)
==12==    at 0x10915B: job_test (in /usr/sbin/slurmctld)
"""
OURS, THEIRS = Frame("sk8::core::f()", "pods_controller.cc:55"), Frame("xmalloc", "in /usr/lib/libslurmfull.so")


def grown(*blocks_of_ours, kind="still reachable"):
	"""One look for each number."""
	return [[Growth(kind, 8, 1, [THEIRS]), Growth(kind, 16 + 16 * blocks, blocks, [THEIRS, OURS])] for blocks in blocks_of_ours]


def test_memchecks_answer_is_read_with_stacks_and_sums():
	found, in_use = read_growth(ANSWER)
	assert [(one.kind, one.grown, one.blocks) for one in found] == [("still reachable", 430, 10), ("definitely lost", 96, 2), ("still reachable", -16, -1)]
	assert in_use == 1720 + 64 + 32
	stack, = verdict.by_stack(found)
	assert [frame.place for frame in stack] == ["pods_controller.cc:55"] and verdict.by_stack(found)[stack] == 430 - 16
	assert found[0].frames[3] == Frame("???", "") and len(found[0].frames) == 5


def test_errors_of_memory_are_read_and_ours_are_known_by_their_frames():
	errors = read_errors(LOG)
	assert [error.what.split(" ")[0] for error in errors] == ["Invalid", "Conditional"]
	assert [what for what, _ in verdict.wrong(errors)] == ["Invalid read of size 8"]


def test_what_grows_in_each_round_is_a_leak_and_what_shrinks_once_is_none():
	assert list(verdict.growing(grown(50, 8, 8, 8, 8, 8)).values()) == [[50, 8, 8, 8, 8, 8]]
	assert not verdict.growing(grown(50, 8, 8, 0, 8, 8))  # longer blocks, but no more of them
	assert list(verdict.growing(grown(0, *[8] * verdict.MOST)).values()) == [[8] * verdict.MOST]


def test_what_a_library_frees_in_one_place_and_keeps_in_another_is_no_leak():
	moved = [[Growth("still reachable", 16, 1, [THEIRS, OURS]), Growth("still reachable", -16, -1, [Frame("g()", "in /lib/x"), OURS])]]
	assert not verdict.growing(moved * verdict.LEAST)


def test_what_is_lost_is_a_leak_even_if_once():
	assert list(verdict.lost(grown(2, kind="definitely lost")).values()) == [48]


def test_too_few_looks_are_no_verdict():
	with pytest.raises(ValueError, match="too few"):
		verdict.growing(grown(8, 8))


@pytest.mark.skipif(os.geteuid() != 0, reason="a stand needs root")
def test_slurmctld_with_our_plugins_neither_loses_nor_keeps_nor_misuses_memory():
	found = play(0, 20)
	assert not found, "\n" + "\n".join(found)
