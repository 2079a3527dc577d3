# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""script/test plays a story that failed once more: stories of no stand, some of which fail the first time."""
import os
import subprocess
import sys

import pytest

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONFTEST = f"""
import sys
sys.path.insert(0, {TEST!r})
from stands.replays import Replays
def pytest_configure(config):
	config.pluginmanager.register(Replays(config))
"""
STORY = """
import os
import pytest
from stands.replays import once_only
def fail_first(name):
	path = os.path.join(os.path.dirname(__file__), name)
	if not os.path.exists(path):
		open(path, "w").close()
		raise AssertionError(f"words of {name}")
"""


def play(folder, *lines):
	(folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
	(folder / "test_story.py").write_text(STORY + "\n".join(lines), encoding="utf-8")
	return subprocess.run([sys.executable, "-B", "-m", "pytest", "-v", "-rR", "-p", "no:cacheprovider", "--reruns", "1", str(folder)],
		stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def test_story_that_passes_the_second_time_has_passed_and_says_why_it_failed(tmp_path):
	found = play(tmp_path, "def test_a(): fail_first('a')")
	assert found.returncode == 0, found.stdout
	assert "failed in its call, is played again" in found.stdout and "words of a" in found.stdout
	assert "\nRERUN " in found.stdout


def test_story_that_fails_twice_has_failed(tmp_path):
	assert play(tmp_path, "def test_a(): assert not 1").returncode == 1


def test_what_is_to_be_played_once_has_failed_at_once(tmp_path):
	assert play(tmp_path, "@once_only", "def test_a(): fail_first('a')").returncode == 1


@pytest.mark.parametrize("count, code", [(2, 0), (3, 1)])
def test_more_than_two_in_a_suite_fail_it(tmp_path, count, code):
	found = play(tmp_path, f"@pytest.mark.parametrize('n', range({count}))", "def test_a(n): fail_first(f'a{n}')")
	assert found.returncode == code, found.stdout


def test_after_too_many_nothing_is_played_again(tmp_path):
	found = play(tmp_path, "@pytest.mark.parametrize('n', range(9))", "def test_a(n): assert not 1")
	assert found.stdout.count("\nRERUN ") == 3, found.stdout
