# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""slurm-k8s check: each thing that an administrator may get wrong is found, and told with what to do."""
import base64
import os
import re
import shutil

import pytest
import yaml
from command import TOOL, findings, without_broken
from stands import pki

pytestmark = pytest.mark.apis("sim")  # the engine is the same on both
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-k8s"


def slurm_conf(stand, tmp_path, **changes):
	"""A copy of slurm.conf with other values of these keys."""
	conf = tmp_path / "slurm.conf"
	with open(stand.env["SLURM_CONF"], encoding="utf-8") as file:
		lines = [line.split("=", 1) for line in file.read().splitlines()]
	conf.write_text("".join("=".join([line[0], changes.get(line[0], *line[1:])] if line[1:] else line) + "\n" for line in lines))
	shutil.copy(os.path.join(stand.folder, "etc", "cgroup.conf"), tmp_path)
	return str(conf)


def plugin_dir(stand):
	with open(stand.env["SLURM_CONF"], encoding="utf-8") as file:
		return next(line.strip().split("=", 1)[1] for line in file if line.startswith("PluginDir="))


def kubeconfig(stand, tmp_path, change):
	"""Words for check: slurm-k8s.yaml with a copy of its kubeconfig in which change(user) was done."""
	with open(stand.env["STAND_SLURM_KUBECONFIG"], encoding="utf-8") as file:
		config = yaml.safe_load(file)
	change(config["users"][0]["user"])
	path = tmp_path / "changed.conf"
	path.write_text(yaml.safe_dump(config))
	path.chmod(0o600)
	return "--config", without_broken(stand, tmp_path, STAND_SLURM_KUBECONFIG=str(path)), path


def test_check_finds_a_user_that_nobody_knows_and_nothing_else(stand, tmp_path):
	found = findings(stand)
	assert len(found["problem"]) == 1 and "there is no user no-such-user-here" in found["problem"][0]
	found = findings(stand, "--config", without_broken(stand, tmp_path), problem=False)
	assert found["problem"] == []
	about = " ".join(found["ok"])
	for part in (" before /", "select/cons_tres", "TLS connection", "Kubernetes v1", "are given", "are on both sides", "clock"):
		assert part in about


def test_check_finds_a_wrong_order_in_plugindir(stand, tmp_path):
	turned = ":".join(reversed(plugin_dir(stand).split(":")))
	conf = slurm_conf(stand, tmp_path, PluginDir=turned)
	words = ["--slurm-conf", conf, "--config", without_broken(stand, tmp_path)]
	problem, = findings(stand, *words)["problem"]
	assert "must stand before" in problem
	problem, = findings(stand, "--on-node", "--slurm-conf", conf)["problem"]
	assert "must stand before" in problem


def test_check_warns_of_preemption_by_suspension(stand, tmp_path):
	conf = slurm_conf(stand, tmp_path)
	with open(conf, "a", encoding="utf-8") as file:
		file.write("PreemptMode=suspend,gang\n")
	words = ["--slurm-conf", conf, "--config", without_broken(stand, tmp_path)]
	warning, = (line for line in findings(stand, *words, problem=False)["warning"] if "PreemptMode" in line)
	assert "a pod goes on when its job is suspended" in warning and "PreemptMode=CANCEL" in warning


def test_check_on_a_node_finds_the_folder_without_which_slurm_refuses_its_configuration(stand, tmp_path):
	ours = tmp_path / "plugins"
	conf = slurm_conf(stand, tmp_path, PluginDir=f"{ours}:{plugin_dir(stand).split(':')[-1]}")
	problem, = findings(stand, "--on-node", "--slurm-conf", conf)["problem"]
	assert f"there is no folder {ours}, and Slurm refuses such a slurm.conf on this host; run: mkdir -p {ours}" in problem
	command = ["env", f"SLURM_CONF={conf}", "sinfo"]
	refused = stand.run(*command, check=False)  # Slurm says the same
	assert refused.returncode != 0 and str(ours) in refused.stderr, refused
	ours.mkdir()  # it may stay empty
	assert findings(stand, "--on-node", "--slurm-conf", conf, problem=False)["problem"] == []
	stand.run(*command)


def test_check_finds_a_slurm_of_another_version(stand, tmp_path):
	fake = tmp_path / "slurmctld"
	fake.write_text("#!/bin/sh\necho slurm-wlm 23.02.1\n")
	fake.chmod(0o755)
	done = stand.run("env", f"PATH={tmp_path}:{stand.env['PATH']}", TOOL, "check", "--config", without_broken(stand, tmp_path), check=False)
	assert done.returncode == 1 and re.search(r"^problem  Slurm: slurmctld is version 23\.02\.1, the plugins in \S+ were built for \d", done.stdout, re.M)
	assert done.stdout.endswith(" 2 warnings, 1 problems\n")


def test_check_finds_each_right_that_is_missing(stand, tmp_path):
	rules = stand.api.get(ROLE)["rules"]
	less = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "delete"]} for rule in rules]
	config = without_broken(stand, tmp_path)
	given = next(line for line in findings(stand, "--config", config, problem=False)["ok"] if "are given" in line)
	stand.api.patch(ROLE, {"rules": less})
	try:
		found = findings(stand, "--config", config)
		assert found["problem"] == ["rights of stand: the verb delete on pods is missing, without it pods go on after their jobs "
			"have ended; kubectl apply -f kubernetes-rbac.yaml"]
		stand.api.patch(ROLE, {"rules": []})
		missing = [line for line in findings(stand, "--config", config)["problem"] if line.startswith("rights of stand: the verb ")]
		assert f"all {len(set(missing))} are given" in given
	finally:
		stand.api.patch(ROLE, {"rules": rules})
	assert findings(stand, "--config", config, problem=False)["problem"] == []


def test_check_finds_credentials_that_are_not_accepted(stand, tmp_path):
	def wrong_token(user):
		user.clear()
		user["token"] = "not-a-token-of-this-server"
	*words, path = kubeconfig(stand, tmp_path, wrong_token)
	problem, = findings(stand, *words)["problem"]
	assert problem.startswith("credentials of stand: ") and "401" in problem and str(path) in problem
	assert "not-a-token" not in problem


def test_check_finds_a_kubeconfig_that_others_can_read_and_one_without_a_usable_key(stand, tmp_path):
	*words, path = kubeconfig(stand, tmp_path, lambda user: None)
	assert findings(stand, *words, problem=False)["problem"] == []
	path.chmod(0o644)
	problem, = findings(stand, *words)["problem"]
	assert problem.endswith(f"holds a secret and can be read by everybody (mode 0644), run: chmod o-rwx {path}")

	def no_key(user):
		user["client-key-data"] = base64.b64encode(b"nonsense").decode()
	*words, path = kubeconfig(stand, tmp_path, no_key)
	problem, = findings(stand, *words)["problem"]
	assert problem.startswith("cluster stand: ") and "nonsense" not in problem


def test_check_compares_the_names_and_sizes_of_nodes(stand, tmp_path):
	label = "check.test/nodes"
	config = without_broken(stand, tmp_path)

	def nodes(problem, **settings):
		with open(config, encoding="utf-8") as file:
			about = yaml.safe_load(file)
		about["clusters"][0]["nodes"] = {"selector": f"{label}=yes", **settings}
		with open(config, "w", encoding="utf-8") as file:
			yaml.safe_dump(about, file)
		return findings(stand, "--config", config, problem=problem)

	assert [f"Kubernetes has no node with {label}=yes; label the shared nodes" in line for line in nodes(True)["problem"]] == [True]
	stand.api.post("/api/v1/nodes", {"metadata": {"name": "stranger", "labels": {label: "yes"}}})
	try:
		problem, = nodes(True)["problem"]
		assert "no node has the same name on both sides; Kubernetes has stranger: NodeName in slurm.conf must be" in problem
		stand.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {label: "yes"}}})
		found = nodes(False)
		assert any("1 are on both sides" in line for line in found["ok"])
		assert any(f"Slurm has no node of these names, which Kubernetes has with {label}=yes: stranger" in line for line in found["warning"])
		allocatable = stand.api.get("/api/v1/nodes/n1")["status"]["allocatable"]
		stand.api.patch("/api/v1/nodes/n1/status", {"status": {"allocatable": {"cpu": "500m", "memory": "1Mi"}}})
		found = " ".join(nodes(False)["warning"])
		assert "nothing is left there for jobs" in found and "the kubelet lets pods have 0.5 and 1," in found
		stand.api.patch("/api/v1/nodes/n1/status", {"status": {"allocatable": {**allocatable, "cpu": "7500m"}}})
		found = " ".join(nodes(False)["warning"])
		assert "pods that get the last CPUs fail with OutOfcpu; set CoreSpecCount=1 there" in found, found
		stand.api.patch("/api/v1/nodes/n1/status", {"status": {"allocatable": allocatable}})
		problem, = nodes(True, names=["n1", "n99"])["problem"]
		assert problem.endswith("nodes.names in slurm-k8s.yaml: Slurm has no node n99")
	finally:
		stand.api.delete("/api/v1/nodes/stranger")
		stand.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {label: None}}})


def test_check_finds_a_wrong_certificate_authority_and_an_absent_server(stand, tmp_path):
	pki.authority(str(tmp_path))
	pki.certificate(str(tmp_path), "slurm-k8s", "/CN=slurm-k8s")
	other = str(tmp_path / "other.conf")
	pki.kubeconfig(other, str(tmp_path), "slurm-k8s", f"https://{stand.api.host}:{stand.api.port}")
	config = without_broken(stand, tmp_path, STAND_SLURM_KUBECONFIG=other)
	problem, = findings(stand, "--config", config)["problem"]
	assert "certificate" in problem and "must be the CA of this very API server" in problem
	pki.kubeconfig(other, str(tmp_path), "slurm-k8s", "https://127.0.0.1:1")
	problem, = findings(stand, "--config", config)["problem"]
	assert "is the API server up" in problem


@pytest.mark.parametrize("seconds, words", [(90, "s ahead of this host's"), (-3600, "s behind this host's")])
def test_check_names_a_clock_that_is_wrong(stand, tmp_path, seconds, words):
	config = without_broken(stand, tmp_path)
	stand.api.post("/kubesim/faults", {"action": "clock", "seconds": seconds, "match": {"user": "slurm-k8s"}})
	try:
		problem, = findings(stand, "--config", config)["problem"]
		about = re.fullmatch(r"clock of stand: the API server's clock is (\d+) (.*); run a time service \(chrony\) on both", problem)
		assert about and about[2] == words and abs(int(about[1]) - abs(seconds)) <= 2
	finally:
		stand.api.delete("/kubesim/faults")
	assert findings(stand, "--config", config, problem=False)["problem"] == []
