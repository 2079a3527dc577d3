# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurm-k8s(1) as the stories call it."""
import json
import os

from stands.build import build_folder

TOOL = os.path.join(build_folder(), "tools", "slurm-k8s")


def tool(stand, *words, **more):
	return stand.run(TOOL, *words, **more)


def status(stand, *words):
	return json.loads(tool(stand, "status", "--json", *words))


def findings(stand, *words, problem=True):
	"""What check finds, as {"about: text"} by level."""
	done = tool(stand, "check", "--json", *words, check=False)
	assert done.returncode == (1 if problem else 0), done.stdout + done.stderr
	found = {"ok": [], "warning": [], "problem": []}
	for one in json.loads(done.stdout)["findings"]:
		found[one["level"]].append(f"{one['about']}: {one['text']}")
	return found


def without_broken(stand, tmp_path, **changes):
	"""A copy of slurm-k8s.yaml without the namespace that is wrong on purpose."""
	with open(stand.env["SLURM_K8S_CONF"], encoding="utf-8") as file:
		lines = [line for line in file if "no-such-user-here" not in line]
	path = tmp_path / "slurm-k8s.yaml"
	text = "".join(lines)
	for old, new in changes.items():
		text = text.replace(stand.env[old], new)
	path.write_text(text)
	path.chmod(0o600)
	return str(path)
