# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""test/stories/turns.py: which release plays what."""
import glob
import os
import sys

STORIES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stories")
sys.path.insert(0, STORIES)
from turns import TURNS, is_played  # noqa: E402

FILES = glob.glob(os.path.join(STORIES, "**", "test_*.py"), recursive=True)


def test_each_story_is_played_with_one_release_at_least():
	assert FILES and all(any(is_played(path, turn) for turn in TURNS) for path in FILES)


def test_without_a_turn_all_are_played():
	assert all(is_played(path, None) for path in FILES)


def test_turns_name_files_that_are_there():
	named = [name for files in TURNS.values() for name in files]
	assert sorted(named) == sorted(set(named) & {os.path.relpath(path, STORIES) for path in FILES})


def test_what_is_named_is_played_in_its_turn_only():
	for turn, files in TURNS.items():
		for name in files:
			assert [other for other in TURNS if is_played(os.path.join(STORIES, name), other)] == [turn]


def test_files_that_are_played_with_each_release_anyway_mark_none_of_theirs():
	def marks(path):
		with open(path, encoding="utf-8") as file:
			return "mark.each_release" in file.read()
	named = {name for files in TURNS.values() for name in files}
	assert {os.path.relpath(path, STORIES) for path in FILES if marks(path)} <= named
