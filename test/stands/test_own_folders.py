# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import glob
import os
import subprocess
import sys

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONFTEST = f"""
import sys
sys.path.insert(0, {TEST!r})
from stands.own_folders import own_folders

def pytest_configure(config):
	own_folders()
"""

STORY = """
import os
import subprocess
import sys

OTHER = os.path.join(os.path.dirname(__file__), "test_other.py")

def test_open(tmp_path):
	folders = [folder for folder in (tmp_path, *tmp_path.parents) if str(folder).startswith(os.environ["TMPDIR"] + "/")]
	for folder in folders:
		folder.chmod(0o755)
	env = {name: value for name, value in os.environ.items() if name != "PYTEST_DEBUG_TEMPROOT"}
	subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", OTHER], env=env, check=True)
	assert [str(folder) for folder in folders if not folder.stat().st_mode & 0o001] == []
"""


def play(folder, conftest):
	(folder / "conftest.py").write_text(conftest, encoding="utf-8")
	(folder / "test_story.py").write_text(STORY, encoding="utf-8")
	(folder / "test_other.py").write_text("def test_other(tmp_path): assert tmp_path.exists()\n", encoding="utf-8")
	env = {name: value for name, value in os.environ.items() if name not in ("PYTEST_DEBUG_TEMPROOT", "SK8_KEEP")}
	return subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", str(folder / "test_story.py")],
		env={**env, "TMPDIR": str(folder)}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def test_folders_of_a_run_stay_open_to_users_when_another_run_begins(tmp_path):
	assert play(tmp_path, "").returncode == 1  # pytest closes them, which is what this is for
	found = play(tmp_path, CONFTEST)
	assert found.returncode == 0, found.stdout
	assert not glob.glob(str(tmp_path / "sk8-pytest-*"))
