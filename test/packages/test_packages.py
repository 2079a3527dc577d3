# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What script/make-packages makes: what is in it, what it needs, and that Slurm loads it.

Run: /usr/bin/python3 -m pytest test/packages
"""
import os
import re
import subprocess

import pytest
from stands.build import TOP

PLUGINS = ["/usr/lib/slurm-k8s/plugins/job_submit_k8s.so", "/usr/lib/slurm-k8s/plugins/select_cons_tres.so"]
# The files of each package, but for its documentation.
FILES = {
	"libs": ["/usr/lib/slurm-k8s/libsk8core.so.0", "/usr/lib/slurm-k8s/libsk8core.so.0.0.0", "/usr/share/man/man5/slurm-k8s.yaml.5",
		"/usr/share/man/man7/slurm-k8s-metrics.7", "/usr/share/man/man7/slurm-k8s.7"],
	"controller": [*PLUGINS, "/usr/lib/slurm-k8s/sk8_slurmctld.so"],
	"node": ["/usr/lib/slurm-k8s/plugins/prep_k8s.so"],
	"spank": ["/usr/lib/slurm-k8s/pause", "/usr/lib/slurm-k8s/plugins/spank_k8s.so", "/usr/lib/slurm-k8s/sk8_slurmd.so", "/usr/share/man/man5/slurm-k8s-node.yaml.5",
		"/usr/share/man/man8/spank_k8s.so.8"],
	"tools": ["/usr/bin/slurm-k8s", "/usr/share/bash-completion/completions/slurm-k8s", "/usr/share/man/man1/slurm-k8s.1",
		"/usr/share/slurm-k8s/common.sh", "/usr/share/slurm-k8s/gres.conf", "/usr/share/slurm-k8s/kubernetes-containers.yaml",
		"/usr/share/slurm-k8s/kubernetes-devices.yaml", "/usr/share/slurm-k8s/kubernetes-rbac.yaml",
		"/usr/share/slurm-k8s/kubernetes-reservations-namespace.yaml", "/usr/share/slurm-k8s/kubernetes-reservations.yaml", "/usr/share/slurm-k8s/kubernetes-resubmit.yaml", "/usr/share/slurm-k8s/kubernetes-token.yaml",
		"/usr/share/slurm-k8s/make-kubeconfig", "/usr/share/slurm-k8s/slurm-k8s-node.yaml", "/usr/share/slurm-k8s/slurm-k8s.alerts.yaml", "/usr/share/slurm-k8s/slurm-k8s.dashboard.json",
		"/usr/share/slurm-k8s/slurm-k8s.yaml"],
}


def run(*argv, **more):
	return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def without_documentation(names):
	"""Nor what a debugger looks for."""
	return sorted(re.sub(r"\.gz$", "", name) for name in names if not re.match(r"/usr/(share/(doc|licenses)|lib/\.build-id)/", name))


@pytest.mark.parametrize("package", FILES)
def test_deb_has_its_files_and_no_others(debs, package):
	lines = run("dpkg-deb", "--contents", debs[package]).splitlines()
	assert without_documentation(line.split()[5][1:] for line in lines if line[0] != "d") == FILES[package]
	if package == "node":
		assert any(line.endswith(" ./usr/lib/slurm-k8s/plugins/") for line in lines)
	if package == "spank":
		assert any(line.startswith("-rwx--x--x root/root") and line.endswith("/pause") for line in lines)


@pytest.mark.parametrize("package", FILES)
def test_rpm_has_its_files_and_no_others(rpms, package):
	names = run("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpms[package]).splitlines()
	assert without_documentation(name.split()[1] for name in names if name[0] != "d") == FILES[package]
	if package == "node":
		assert "drwxr-xr-x /usr/lib/slurm-k8s/plugins" in names
	if package == "spank":
		assert "-rwx--x--x /usr/lib/slurm-k8s/pause" in names




def test_documents_that_man_pages_and_messages_name_are_installed(debs, rpms):
	"""Where everybody has them: with what all packages need."""
	in_deb = [line.split()[5][1:] for line in run("dpkg-deb", "--contents", debs["libs"]).splitlines()]
	in_rpm = run("rpm", "-qpl", rpms["libs"]).splitlines()
	for name in ("gres.md", "reliability.md", "sharing.md"):
		for names in (in_deb, in_rpm):
			assert [path for path in names if re.search(rf"/usr/share/doc/[^/]+/(doc/)?{name}(\.gz)?$", path)], (name, names)


def test_only_the_controllers_package_needs_a_slurm_and_exactly_the_one_it_was_built_for(debs, rpms, slurm_version):
	year, month, micro = slurm_version.split(".")
	for package, path in debs.items():
		depends = run("dpkg-deb", "--field", path, "Depends")
		wanted = [f"slurmctld (>= {slurm_version})", f"slurmctld (<< {year}.{month}.{int(micro) + 1}~)"] if package == "controller" else []
		assert re.findall(r"slurm(?:ctld|d|-client|-wlm)[^,]*", depends) == wanted
	for package, path in rpms.items():
		requires = [line for line in run("rpm", "-qp", "--requires", path).splitlines() if "slurm-slurmctld" in line]
		assert (len(requires) == 1 and f"slurm-slurmctld(x86-64) = {slurm_version} or" in requires[0]) if package == "controller" \
			else not requires
		assert f".sl{slurm_version}" in run("rpm", "-qp", "--qf", "%{RELEASE}", path)


def test_what_slurmd_loads_is_installed_beside_no_slurmd_but_the_one_it_was_built_for(debs, rpms, slurm_version):
	year, month, micro = slurm_version.split(".")
	bound = {package for package, files in FILES.items() if {os.path.basename(name) for name in files} & {"prep_k8s.so", "sk8_slurmd.so"}}
	assert bound == {"node", "spank"}  # hosts that have no slurmd, where users submit, need no Slurm of that version
	for package, path in debs.items():
		breaks = set(filter(None, run("dpkg-deb", "--field", path, "Breaks").strip().split(", ")))
		assert breaks == ({f"slurmd (<< {slurm_version})", f"slurmd (>= {year}.{month}.{int(micro) + 1}~)"} if package in bound else set())
	for package, path in rpms.items():
		assert sorted(run("rpm", "-qp", "--conflicts", path).splitlines()) == ([f"{name} {than} {slurm_version}"
			for name in ("slurm-slurmd", "slurm-slurmd-ohpc") for than in "<>"] if package in bound else [])


def unpacked(rpms, folder):
	for path in rpms.values():
		run("sh", "-c", 'rpm2cpio "$1" | cpio -idm --quiet', "sh", path, cwd=folder)
	return folder / "usr"


def test_what_does_not_wait_for_slurmctlds_symbols_is_hardened_all_the_same(rpms, debs, tmp_path):
	for path in debs.values():
		run("dpkg-deb", "--extract", path, str(tmp_path / "deb"))
	(tmp_path / "rpm").mkdir()
	for usr in (unpacked(rpms, tmp_path / "rpm"), tmp_path / "deb/usr"):
		for name in ("lib/slurm-k8s/libsk8core.so.0", "bin/slurm-k8s"):
			assert re.search(r"FLAGS_1.*\bNOW\b", run("readelf", "-dW", str(usr / name)))


def test_what_is_in_the_rpm_loads_as_slurm_loads_it(rpms, tmp_path, build, slurm_version):
	libs = unpacked(rpms, tmp_path) / "lib/slurm-k8s"
	stock = re.search(r"^slurmstockdir = (.*)$", open(os.path.join(build, "Makefile"), encoding="utf-8").read(), re.M).group(1)
	flat = tmp_path / "flat"  # where the checks look for what was built
	flat.mkdir()
	for path in [*libs.glob("*.so*"), *libs.glob("plugins/*.so")]:
		os.symlink(path, flat / path.name)
	os.symlink(flat / "libsk8core.so.0", flat / "libsk8core.so")
	env = {**os.environ, "SK8_SRCDIR": TOP, "SK8_LIBS": str(flat), "SK8_SLURM_VERSION": slurm_version, "SK8_STOCKDIR": stock,
		"LD_LIBRARY_PATH": str(libs)}
	run("make", "-C", build, "-s", "test/abi/plugin_host")
	for check in ("check-symbols", "check-loads"):
		run(os.path.join(TOP, "test/abi", check), cwd=build, env=env)
