# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine, and connections or watches that are not what they seem: dead without a word, telling things twice or
in another order, without bookmarks, of a server that was restored from a backup.

Run: /usr/bin/python3 -m pytest test/engine/test_streams.py; variables as in test_engine.py
"""
import functools
import os
import shutil
import signal
import time

import pytest
from dead_network import DeadNetwork
from play import BACK, MOST, PODS, Play
from test_engine import api_server, server_up

from link import Link
from stands.waiting import wait_for

HOLD = 10  # seconds
GIVEN_UP = 30  # seconds until a connection without a word counts as dead
AHEAD = 500  # versions that a backup is behind: more than the rest of the play makes


def through(play, link):
	"""The engine's kubeconfig leads through the link."""
	play.reach({"server": f"https://127.0.0.1:{link.port}"})


def lists(play):
	"""Complete lists, without those of one object that ask where the server is."""
	return sum(r["verb"] == "list" and "limit=1" not in r["requestURI"] for r in play.requests())


def half_open(play):
	network = DeadNetwork()
	through(play, Link(play.port(), network.listener))
	with play.engine(*network.inside):
		play.begin()
		before = play.asked()
		assert network.forget() >= 2  # watches of pods and nodes at least
		began = time.monotonic()
		play.users_act()
		play.seconds_until_all_is_over()
		seconds = time.monotonic() - began
		asked = play.asked() - before
		assert asked <= seconds * MOST
	network.close()
	return seconds, GIVEN_UP + BACK


def spoiled(play, action):
	"""All watches for a while; a new one is as it should be, so it is done again and again. Returns how many lists that cost."""
	with play.engine():
		play.order(action=action)
		play.begin()
		listed = lists(play)
		play.users_act()
		assert play.storm(action, HOLD, pause=1) <= HOLD * MOST
		return play.seconds_until_all_is_over(), lists(play) - listed


def told_twice(play):
	seconds, listed = spoiled(play, "duplicate-events")
	assert listed == 0
	return seconds, BACK


def mixed_up(play):
	return spoiled(play, "reorder-events")[0], BACK


def no_bookmarks(play):
	link = Link(play.port())
	through(play, link)
	with play.engine():
		play.begin()
		before, listed = play.asked(), lists(play)
		for _ in range(2):
			link.set("cut")
			link.set("open")
			play.storm("duplicate-events", 2)  # time in which it comes back; news, but no bookmark
		play.users_act()
		seconds = play.seconds_until_all_is_over()
		assert lists(play) == listed  # it went on at the last event
		assert play.asked() - before <= (seconds + HOLD) * MOST
		return seconds, BACK


def restored(play):
	"""Afterwards the server knows nothing of "made", "deleted" is back, and the versions are far behind what was seen."""
	data, backup = f"{play.folder}/objects.jsonl", f"{play.folder}/backup"
	with play.engine():
		play.begin()
		before = play.asked()
		shutil.copy(data, backup)
		play.users_act()
		for n in range(AHEAD):
			assert play.kube.patch(f"{PODS}/ends", {"metadata": {"labels": {"n": str(n)}}}).code == 200
		wait_for("what users did", lambda: not play.left(), 60)
		play.signal(signal.SIGKILL)
		shutil.copy(backup, data)
		server_up(play.folder)
		began = time.monotonic()
		assert play.kube.get(f"{PODS}/made").code == 404
		assert play.kube.delete(f"{PODS}/deleted").code == 200
		seconds = play.seconds_until_all_is_over()
		assert play.asked() - before <= (time.monotonic() - began + HOLD) * MOST
		return seconds, BACK


SERVER = {"watches without bookmarks": ["--bookmark-seconds", "100000"]}
STREAMS = {
	"half-open connections": half_open,
	"events told twice": told_twice,
	"events in another order": mixed_up,
	"watches without bookmarks": no_bookmarks,
	"etcd restored from a backup": restored,
}


def played(name):
	"""(seconds until all was over, at most so many, what the engine said of the cluster)"""
	with api_server(*SERVER.get(name, [])) as folder:
		play = Play(folder)
		seconds, most = STREAMS[name](play)
		assert play.bound_once(4)
		return seconds, most, play.lines("cluster sim: ")


PLAYS = {name: functools.partial(played, name) for name in STREAMS if name != "half-open connections" or os.geteuid() == 0}


@pytest.mark.parametrize("name", STREAMS)
def test_whatever_a_stream_does_all_goes_on_and_nothing_is_asked_hot(plays, name):
	if name not in plays:
		pytest.skip("only root makes networks")
	seconds, most, said = plays[name].result()
	print(f"{name}: all was over after {seconds:.1f} s", *said, sep="\n")
	assert seconds < most
