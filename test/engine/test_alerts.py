# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""etc/slurm-k8s.alerts.yaml and etc/slurm-k8s.dashboard.json: each alert fires for its trouble and for no other, none at a
healthy site, and Prometheus can read what the dashboard asks.

Run: /usr/bin/python3 -m pytest test/engine/test_alerts.py; needs promtool (script/install-deps stand). That all these
metrics are there is compared by test/doc/check.
"""
import json
import re
import subprocess

import pytest
import yaml
from test_engine import TOP

ALERTS = f"{TOP}/etc/slurm-k8s.alerts.yaml"
DASHBOARD = f"{TOP}/etc/slurm-k8s.dashboard.json"
MINUTES = 90
GROWS, STAYS = f"0+10x{MINUTES}", f"0x{MINUTES}"  # values of a series, one a minute
CLUSTER = 'cluster="prod"'


def histogram(name, label, slowest):
	"""Series of a histogram whose observations all take at most so many seconds, and longer than the bucket below."""
	bounds = ["0.001", "0.01", "0.1", "1", "10"]
	label = label and f"{label}, "
	series = {f'slurm_k8s_{name}_bucket{{{label}le="{le}"}}': GROWS if float(le) >= slowest else STAYS for le in bounds}
	return {**series, f'slurm_k8s_{name}_bucket{{{label}le="+Inf"}}': GROWS}


def api(code):
	return f'slurm_k8s_api_requests_total{{{CLUSTER}, verb="get", resource="pods", code="{code}"}}'


HEALTHY = {
	'up{job="slurm-k8s"}': f"1x{MINUTES}",
	'up{job="slurm-k8s", instance="standby"}': STAYS,  # it serves none
	'slurm_k8s_build_info{version="1"}': f"1x{MINUTES}",
	f"slurm_k8s_connected{{{CLUSTER}}}": f"1x{MINUTES}",
	api("403"): f"0x{MINUTES - 8} 1x7",  # a quota, or an account that a user has misspelt: no right is missing
	f"slurm_k8s_engine_responsive{{{CLUSTER}}}": f"1x{MINUTES}",
	f'slurm_k8s_watch_last_event_timestamp_seconds{{{CLUSTER}, resource="pods"}}': f"0+60x{MINUTES}",
	f'slurm_k8s_relists_total{{{CLUSTER}, resource="pods"}}': f"3x{MINUTES}",
	f'slurm_k8s_holds{{{CLUSTER}, state="placed"}}': f"200x{MINUTES}",
	f'slurm_k8s_holds{{{CLUSTER}, state="leaving"}}': f"5x50 0 5x{MINUTES}",  # it was empty for a moment
	f'slurm_k8s_holds{{{CLUSTER}, state="lost"}}': STAYS,
	f'slurm_k8s_foreign_pods{{{CLUSTER}, state="there"}}': f"900x{MINUTES}",
	f'slurm_k8s_foreign_pods{{{CLUSTER}, state="lost"}}': STAYS,
	f"slurm_k8s_masked_whole_nodes{{{CLUSTER}}}": f"4x5 0x{MINUTES}",  # after a start
	f"slurm_k8s_overcommitted_nodes{{{CLUSTER}}}": f"1x10 0x{MINUTES}",
	"slurm_k8s_ledger_write_errors_total": f"2x{MINUTES}",
	api("200"): GROWS,
	api("404"): f"0+5x{MINUTES}",
	**histogram("job_start_to_binding_seconds", "", 0.1),
	**histogram("hook_duration_seconds", 'hook="job_start"', 0.001),
	**histogram("slurmctld_lock_held_seconds", 'mode="write"', 0.01),
	"slurm_k8s_slurm_commands_waiting": f"300x5 0x{MINUTES}",
}

# What differs from a healthy site when this alert is to fire; None: the series is not there.
TROUBLES = {
	"SlurmK8sAbsent": {'up{job="slurm-k8s"}': STAYS, 'slurm_k8s_build_info{version="1"}': None},
	"SlurmK8sDisconnected": {f"slurm_k8s_connected{{{CLUSTER}}}": STAYS},
	"SlurmK8sEngineBusy": {f"slurm_k8s_engine_responsive{{{CLUSTER}}}": STAYS},
	"SlurmK8sWatchSilent": {f'slurm_k8s_watch_last_event_timestamp_seconds{{{CLUSTER}, resource="pods"}}': f"0+60x70 4200x{MINUTES}"},
	"SlurmK8sRelists": {f'slurm_k8s_relists_total{{{CLUSTER}, resource="pods"}}': f"0+1x{MINUTES}"},
	"SlurmK8sLostHolds": {f'slurm_k8s_holds{{{CLUSTER}, state="lost"}}': f"1x{MINUTES}"},
	"SlurmK8sLeavingForLong": {f'slurm_k8s_holds{{{CLUSTER}, state="leaving"}}': f"5x{MINUTES}"},
	"SlurmK8sOvercommit": {f"slurm_k8s_overcommitted_nodes{{{CLUSTER}}}": f"2x{MINUTES}"},
	"SlurmK8sNodesBlocked": {f"slurm_k8s_masked_whole_nodes{{{CLUSTER}}}": f"4x{MINUTES}"},
	"SlurmK8sLedgerErrors": {"slurm_k8s_ledger_write_errors_total": f"0+1x{MINUTES}"},
	"SlurmK8sUnauthorized": {api("403"): f"0+1x{MINUTES}"},
	"SlurmK8sRequestErrors": {api("none"): f"0+5x{MINUTES}"},
	"SlurmK8sSlowStart": histogram("job_start_to_binding_seconds", "", 10),
	"SlurmK8sHooksSlow": histogram("hook_duration_seconds", 'hook="job_start"', 0.1),
	"SlurmK8sLocksHeld": histogram("slurmctld_lock_held_seconds", 'mode="write"', 1),
	"SlurmK8sCommandsQueue": {"slurm_k8s_slurm_commands_waiting": f"300x{MINUTES}"},
}


def promtool(*words):
	return subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, timeout=60)


def fires(tmp_path, trouble, *alerts):
	"""Nothing, or what promtool says: exactly these alerts must fire after MINUTES of it."""
	series = {name: values for name, values in {**HEALTHY, **trouble}.items() if values}
	test = {"rule_files": [ALERTS], "evaluation_interval": "1m", "tests": [{"interval": "1m",
		"input_series": [{"series": name, "values": values} for name, values in series.items()],
		"promql_expr_test": [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{MINUTES}m",
			"exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]}]}]}
	path = tmp_path / "test.yaml"
	path.write_text(yaml.safe_dump(test))
	done = promtool("test", "rules", str(path))
	return "" if done.returncode == 0 else done.stdout + done.stderr


def rules():
	with open(ALERTS, encoding="utf-8") as file:
		return yaml.safe_load(file)["groups"][0]["rules"]


def test_no_alert_fires_at_a_healthy_site(tmp_path):
	assert not fires(tmp_path, {})


@pytest.mark.parametrize("alert", [rule["alert"] for rule in rules()])
def test_alert_fires_for_its_trouble_alone(tmp_path, alert):
	assert not fires(tmp_path, TROUBLES[alert], alert)


@pytest.mark.parametrize("series", ["slurm_k8s_holds", "slurm_k8s_foreign_pods"])
def test_alert_fires_for_lost_pods_whosever_they_are(tmp_path, series):
	assert not fires(tmp_path, {f'{series}{{{CLUSTER}, state="lost"}}': f"1x{MINUTES}"}, "SlurmK8sLostHolds")


def test_alert_fires_when_nothing_is_scraped_at_all(tmp_path):
	assert not fires(tmp_path, dict.fromkeys(HEALTHY), "SlurmK8sAbsent")


def test_each_alert_says_how_urgent_it_is_and_what_happened():
	assert {rule["alert"] for rule in rules()} == set(TROUBLES)
	for rule in rules():
		assert rule["labels"]["severity"] in ("page", "ticket") and rule["annotations"]["summary"], rule["alert"]


def test_prometheus_can_read_what_the_dashboard_asks(tmp_path):
	with open(DASHBOARD, encoding="utf-8") as file:
		panels = [panel for panel in json.load(file)["panels"] if panel["type"] != "row"]
	assert all(panel["targets"] for panel in panels)
	asked = [target["expr"].replace("$__rate_interval", "5m") for panel in panels for target in panel["targets"]]
	assert len(asked) > 20
	record = [{"record": f"n{i}", "expr": re.sub(r"\$cluster\b", "prod", expr)} for i, expr in enumerate(asked)]
	path = tmp_path / "rules.yaml"
	path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": record}]}))
	done = promtool("check", "rules", str(path))
	assert done.returncode == 0, done.stdout + done.stderr
