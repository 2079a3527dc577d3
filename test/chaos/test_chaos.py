# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A short play of test/chaos/chaos, and its verdicts one by one. CHAOS_SECONDS, CHAOS_SEED and CHAOS_SHARING choose another one."""
import os

import pytest
from game import play
from stands.build import build_folder
from verdict import table

# By plan.py's rules small jobs share a pod with the one, a device plugin has the GPUs and DOWN lasts with the other.
SEED = "6" if os.environ.get("SK8_DEBIAN") else "1"
# What a play of some seconds may have none of; of all else there was something to judge.
MAY_BE_NONE = ("pod deleted by slurm-k8s without a reason", "job launched before its share was admitted")
SECONDS = {"real": 45, "sim": 30}
SHARING = {"real": "mixed", "sim": "dedicated"}  # all of "none" is in "dedicated"; real kubelets admit the pods of jobs


@pytest.fixture(scope="module")
def verdicts(request):
	seconds = int(os.environ.get("CHAOS_SECONDS", SECONDS[request.param]))
	found, summary = play(request.param, int(os.environ.get("CHAOS_SEED", SEED)), seconds,
		os.path.join(build_folder(), "test", "chaos"), os.environ.get("CHAOS_SHARING", SHARING[request.param]))
	print(*table(found), summary, sep="\n")
	return found


def nothing_wrong(verdicts, kind):
	chosen = [verdict for verdict in verdicts if verdict.kind == kind]
	assert chosen and [verdict.what for verdict in chosen if not verdict.seen and verdict.what not in MAY_BE_NONE] == []
	assert [text for verdict in chosen for text in verdict.wrong] == []


def test_whatever_breaks_nothing_is_booked_twice_and_nobody_is_killed_for_it(verdicts):
	nothing_wrong(verdicts, "violation")


def test_whatever_breaks_every_pod_and_job_comes_to_its_own_end(verdicts):
	nothing_wrong(verdicts, "lost")


def test_whatever_breaks_nothing_is_left_behind(verdicts):
	nothing_wrong(verdicts, "orphan")
