# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What make install puts where, and that make uninstall takes all of it away.

Run: /usr/bin/python3 -m pytest test/configure/test_install.py      (SK8_BUILD names a build folder after make)
"""
import os
import re
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TEST)
from stands.build import build_folder, made  # noqa: E402

# Below the prefix. What a person looks for, and where Slurm, man and bash look.
FILES = {
	"bin/slurm-k8s",
	"lib/slurm-k8s/libsk8core.so", "lib/slurm-k8s/libsk8core.so.0", "lib/slurm-k8s/libsk8core.so.0.0.0",
	"lib/slurm-k8s/sk8_slurmctld.so",
	"lib/slurm-k8s/plugins/select_cons_tres.so", "lib/slurm-k8s/plugins/job_submit_k8s.so",
	"lib/slurm-k8s/plugins/prep_k8s.so", "lib/slurm-k8s/plugins/spank_k8s.so", "lib/slurm-k8s/sk8_slurmd.so", "lib/slurm-k8s/pause",
	"share/man/man1/slurm-k8s.1", "share/man/man5/slurm-k8s.yaml.5", "share/man/man7/slurm-k8s.7",
	"share/man/man7/slurm-k8s-metrics.7", "share/man/man5/slurm-k8s-node.yaml.5", "share/man/man8/spank_k8s.so.8",
	"share/slurm-k8s/slurm-k8s-node.yaml",
	"share/bash-completion/completions/slurm-k8s",
	"share/slurm-k8s/gres.conf", "share/slurm-k8s/kubernetes-containers.yaml", "share/slurm-k8s/kubernetes-devices.yaml", "share/slurm-k8s/kubernetes-rbac.yaml", "share/slurm-k8s/kubernetes-reservations.yaml", "share/slurm-k8s/kubernetes-reservations-namespace.yaml", "share/slurm-k8s/kubernetes-resubmit.yaml", "share/slurm-k8s/kubernetes-token.yaml", "share/slurm-k8s/slurm-k8s.yaml",
	"share/slurm-k8s/slurm-k8s.alerts.yaml", "share/slurm-k8s/slurm-k8s.dashboard.json",
	"share/slurm-k8s/make-kubeconfig", "share/slurm-k8s/common.sh",
}
PROGRAMS = ("bin/slurm-k8s", "lib/slurm-k8s/libsk8core.so", "lib/slurm-k8s/sk8_slurmctld.so",
	"lib/slurm-k8s/plugins/select_cons_tres.so", "lib/slurm-k8s/plugins/job_submit_k8s.so", "lib/slurm-k8s/plugins/prep_k8s.so",
	"lib/slurm-k8s/plugins/spank_k8s.so", "lib/slurm-k8s/sk8_slurmd.so")


def files(folder):
	"""Everything below it that is no folder."""
	return {os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names}


def settings(*names):
	"""Values of variables of the build's Makefile."""
	with open(os.path.join(build_folder(), "Makefile"), encoding="utf-8") as file:
		known = dict(re.findall(r"^(\w+) = (.*)$", file.read(), re.M))
	return [known[name] for name in names]


class Installed:
	"""root: the DESTDIR. home: the prefix in it."""

	def __init__(self, root):
		self.root = root
		self.prefix, = settings("prefix")
		self.home = root + self.prefix
		with made(build_folder(), root, "install"):
			pass

	def path(self, name):
		return os.path.join(self.home, name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
	return Installed(str(tmp_path_factory.mktemp("root")))


def test_everything_is_installed_where_slurm_man_and_bash_look_and_nothing_else(installed):
	found = files(installed.root)
	prefix = installed.prefix.lstrip("/")
	assert {name for name in found if not name.endswith(".la")} == {f"{prefix}/{name}" for name in FILES}


def test_program_of_job_containers_may_be_executed_and_not_read(installed):
	assert os.stat(installed.path("lib/slurm-k8s/pause")).st_mode & 0o777 == 0o711


def test_installed_command_runs_without_the_build_folder(installed):
	done = subprocess.run([installed.path("bin/slurm-k8s"), "--help"], env={"PATH": "/usr/bin:/bin"}, cwd="/",
		stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
	assert done.returncode == 0 and {"status", "check", "release", "debug"} <= set(re.findall(r"^  (\w+) ", done.stdout, re.M)), \
		done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_loaded_looks_for_our_library_where_it_will_be(installed, name):
	text = subprocess.run(["readelf", "-d", installed.path(name)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
		check=True).stdout
	needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
	paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
	assert paths == ([f"{installed.prefix}/lib/slurm-k8s"] if "libsk8core.so.0" in needed else []), text


def test_no_text_names_the_folder_that_it_was_put_into(installed):
	for name in files(installed.root):
		path = os.path.join(installed.root, name)
		with open(path, "rb") as file:
			assert installed.root.encode() not in file.read(), name


def test_uninstall_leaves_nothing(tmp_path):
	root = Installed(str(tmp_path)).root
	assert files(root)
	with made(build_folder(), root, "uninstall"):
		assert files(root) == set()


# What slurm-k8s(7), REMOVAL, says of each. Nothing of a cluster is needed for that; test/stories/test_removal.py plays the rest.
STAYS = {  # file: its name there
	"etc/slurm/slurm-k8s.yaml": "slurm-k8s.yaml", "etc/slurm/slurm-k8s-node.yaml": "slurm-k8s-node.yaml",
	"etc/slurm/k8s.kubeconfig": "kubeconfigs", "etc/slurm/gres-k8s.conf": "slurm-k8s gres --write",
	"var/spool/slurmctld/slurm-k8s.prod.ledger": "StateSaveLocation/slurm-k8s.*",
	"var/spool/slurmctld/slurm-k8s.prod.ledger.refused": "StateSaveLocation/slurm-k8s.*",
}
TAKEN_OUT = {  # plugin: where it is named
	"select_cons_tres.so": "PluginDir", "job_submit_k8s.so": "JobSubmitPlugins", "prep_k8s.so": "prep/k8s out of PrEpPlugins",
	"spank_k8s.so": "spank_k8s.so out of plugstack.conf",
}


def removal(home):
	"""The section of the page that is installed there, as one line."""
	with open(os.path.join(home, "share/man/man7/slurm-k8s.7"), encoding="utf-8") as file:
		lines = re.search(r"^\.SH REMOVAL\n(.*?)^\.SH ", file.read(), re.M | re.S).group(1).splitlines()

	def words(line):
		macro, _, rest = line.partition(" ") if line.startswith(".") else ("", "", line)
		if macro in (".BR", ".IR", ".RB"):  # two fonts in turn: no blank between
			return "".join(quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', rest))
		return "" if macro in (".IP", ".PP", ".nf", ".fi") else rest.strip('"')
	return re.sub(r"\s+", " ", " ".join(map(words, lines)).replace("\\-", "-"))


def test_removal_leaves_what_its_page_says_and_takes_out_all_that_is_installed(tmp_path):
	one = Installed(str(tmp_path))
	page = removal(one.home)
	plugins = {name for name in os.listdir(one.path("lib/slurm-k8s/plugins")) if name.endswith(".so")}
	assert plugins == set(TAKEN_OUT)
	assert [text for text in TAKEN_OUT.values() if text not in page] == [], page
	for name in STAYS:
		os.makedirs(os.path.dirname(os.path.join(one.root, name)), exist_ok=True)
		with open(os.path.join(one.root, name), "w", encoding="utf-8") as file:
			file.write("a person's, or slurmctld's\n")
	with made(build_folder(), one.root, "uninstall"):
		assert files(one.root) == set(STAYS)
	assert [text for text in STAYS.values() if text not in page] == [], page
