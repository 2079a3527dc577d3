# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine while the way to its API server is broken, and afterwards: no hot loop ever, and all goes on soon.

Run: /usr/bin/python3 -m pytest test/engine/test_faults.py; variables as in test_engine.py
"""
import functools
import signal
import time

import pytest
from play import BACK, MOST, PODS, Play
from test_engine import api_server, bindings, server_up

WRITES, ALL = 4, 12  # seconds that a fault hits all but lists and watches, and then all
HOLD = WRITES + ALL

RULES = {
	"401": {"action": "status", "code": 401},
	"403": {"action": "deny"},
	"404": {"action": "status", "code": 404},
	"409": {"action": "status", "code": 409},
	"410": {"action": "status", "code": 410},
	"422": {"action": "status", "code": 422},
	"429 with Retry-After": {"action": "status", "code": 429, "retryAfter": 1},
	"429": {"action": "status", "code": 429},
	"500": {"action": "status", "code": 500},
	"503": {"action": "status", "code": 503},
	"504": {"action": "status", "code": 504},
	"redirect": {"action": "status", "code": 302},
	"reset": {"action": "reset"},
	"truncated": {"action": "truncate", "bytes": 10},
	"slow": {"action": "delay", "delayMs": 3000},
	"invalid JSON": {"action": "answer", "body": '{"kind": nonsense'},
	"wrong content type": {"action": "answer", "type": "text/html", "body": "<html>log in here</html>"},
	"oversized": {"action": "answer", "body": " " * 1024, "bytes": 20 << 20},
}


def hold(play, name):
	"""The fault while it lasts. Returns how many requests met it in its two parts; None: nobody can count them."""
	if name in RULES:
		with play.rule(RULES[name], "get|create|update|patch|delete") as hits:
			play.users_act()
			time.sleep(WRITES)  # what is measured is a rate
			writes = hits()
		with play.rule(RULES[name], "") as hits:
			play.order(action="expire-watches")  # what is open meets it, too
			time.sleep(ALL)
			return writes, hits()
	if name == "watches that expire":
		play.users_act()
		return 1, play.storm("expire-watches", HOLD)
	play.users_act()
	play.signal(signal.SIGSTOP if name == "a server that hangs" else signal.SIGKILL)
	time.sleep(HOLD)
	if name == "a server that hangs":
		play.signal(signal.SIGCONT)
	else:
		server_up(play.folder)
	return None


def check_bindings(pods, counts, audit_may_lack):
	"""All four were bound, none of them twice. audit_may_lack: pods whose Binding the server may have done and not written
	down when it was killed, as a real one may, too: that they have a node says then that they were bound."""
	bound = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName")}
	assert set(bound) == {"ends", "made", "afterwards"}  # the fourth is deleted
	unwritten = {name for name, uid in bound.items() if uid not in counts}
	assert unwritten <= audit_may_lack, unwritten
	assert len(counts) + len(unwritten) == 4 and max(counts.values()) == 1, counts


def played(name):
	"""(what hold() returned, seconds until all was over, the engine's lines that it is lost)"""
	with api_server() as folder:
		play = Play(folder)
		with play.engine():
			play.begin()
			requests = hold(play, name)
			seconds = play.seconds_until_all_is_over()
		check_bindings(play.kube.get(PODS)["items"], bindings(folder),
			audit_may_lack={"made"} if name == "a server that is gone" else set())
		return requests, seconds, play.lines("cluster sim: lost")


FAULTS = [*RULES, "watches that expire", "a server that hangs", "a server that is gone"]
PLAYS = {name: functools.partial(played, name) for name in FAULTS}


@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_makes_a_hot_loop_and_all_goes_on_soon_after_it(plays, name):
	requests, seconds, lost = plays[name].result()
	print(f"{name}: {requests} requests in {HOLD} s, all was over {seconds:.1f} s after it")
	assert requests is None or min(requests) >= 1 and sum(requests) <= HOLD * MOST
	assert seconds < BACK
	assert len(lost) <= 1  # one line a minute at most
