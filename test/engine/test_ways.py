# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine, and the way to its API server: names that lead elsewhere, IPv6, proxies.

Run: /usr/bin/python3 -m pytest test/engine/test_ways.py; variables as in test_engine.py
"""
import functools
import os
import signal
import socket
import time

import pytest
from play import BACK, MOST, Play
from test_engine import api_server, server_up
from ways import Hosts, Proxy

from link import Link
from stands import pki

HOLD = 6  # seconds in which no way is open
NAME = "api.example"


def link_at(play, address, port=0):
	family = socket.AF_INET6 if ":" in address else socket.AF_INET
	return Link(play.port(), socket.create_server((address, port), family=family))


def named(play, port, *addresses):
	"""The engine is to know the server by its name only, which leads to these addresses."""
	play.reach({"server": f"https://{NAME}:{port}"})
	hosts = Hosts(play.folder, NAME)
	hosts.set(*addresses)
	return hosts


def two_places(play):
	"""The name leads to the old one; the new one is at 127.0.0.3."""
	old = link_at(play, "127.0.0.2")
	new = link_at(play, "127.0.0.3", old.port)
	return old, new, named(play, old.port, "127.0.0.2")


def name_then_place(play):
	"""The name leads elsewhere, then the old place goes."""
	old, new, hosts = two_places(play)
	with play.engine(*hosts.inside):
		play.begin()
		hosts.set("127.0.0.3")
		play.users_act()
		old.set("gone")
		seconds = play.seconds_until_all_is_over()
		assert new.pairs
		return seconds


def place_then_name(play):
	"""The old place goes, and only later the name leads elsewhere."""
	old, new, hosts = two_places(play)
	with play.engine(*hosts.inside):
		play.begin()
		old.set("gone")
		play.users_act()
		time.sleep(HOLD)  # in which it could look for another way
		assert play.nothing_was_done()
		hosts.set("127.0.0.3")
		seconds = play.seconds_until_all_is_over()
		assert new.pairs
		return seconds


def one_of_two(play):
	"""The name has two addresses, and the one that is used goes."""
	six = link_at(play, "::1")
	four = link_at(play, "127.0.0.2", six.port)
	with play.engine(*named(play, six.port, "::1", "127.0.0.2").inside):
		play.begin()
		used, other = (six, four) if six.pairs else (four, six)
		assert not other.pairs
		used.set("gone")
		play.users_act()
		seconds = play.seconds_until_all_is_over()
		assert other.pairs
		return seconds


def ipv6(play):
	"""The server is known by its IPv6 address, and is away for a while."""
	six = link_at(play, "::1")
	play.reach({"server": f"https://[::1]:{six.port}"})
	with play.engine():
		play.begin()
		six.set("gone")
		play.users_act()
		time.sleep(HOLD)  # in which it could look for another way
		assert play.nothing_was_done()
		six.set("open")
		return play.seconds_until_all_is_over()


def proxy_of_kubeconfig(play):
	"""It dies, comes back but cannot make tunnels yet, and then can. What the environment says of proxies is another matter."""
	proxy, other = Proxy(), Proxy()
	play.reach({"proxy-url": proxy.url})
	with play.engine("env", f"HTTPS_PROXY={other.url}", f"ALL_PROXY={other.url}", "NO_PROXY=*", "no_proxy=127.0.0.1"):
		play.begin()
		proxy.set("gone")
		play.users_act()
		time.sleep(HOLD)  # in which it could look for another way
		heard = len(proxy.heard)
		proxy.set("refuse")
		time.sleep(HOLD)  # what is measured is a rate
		assert len(proxy.heard) - heard <= HOLD * MOST
		assert play.nothing_was_done()  # around it
		proxy.set("open")
		seconds = play.seconds_until_all_is_over()
	assert not other.heard
	assert {head.split("\r\n")[0] for head in proxy.heard} == {f"CONNECT 127.0.0.1:{play.port()} HTTP/1.1"}
	assert not any("uthorization" in head for head in proxy.heard)
	return seconds


def proxy_of_environment(play):
	proxy = Proxy()
	names = [name + "_PROXY" for name in ("HTTPS", "HTTP", "ALL")]
	with play.engine("env", *(f"{name}={proxy.url}" for name in [*names, *map(str.lower, names)])):
		play.begin()
		play.users_act()
		seconds = play.seconds_until_all_is_over()
	assert proxy.heard == []
	return seconds


ONLY_ROOT = {"the name leads elsewhere, then the old place goes": name_then_place,
	"the old place goes, then the name leads elsewhere": place_then_name, "one of two addresses": one_of_two}
STORIES = {"IPv6": ipv6, "proxy of the kubeconfig": proxy_of_kubeconfig, "proxy of the environment": proxy_of_environment}


def played(story):
	with api_server() as folder:
		play = Play(folder)
		pki.certificate(f"{folder}/pki", "server", "/CN=kubesim", ["IP:127.0.0.1", "IP:::1", f"DNS:{NAME}"])
		play.signal(signal.SIGKILL)
		server_up(folder)
		seconds = story(play)
		assert play.bound_once(4)
		return seconds


PLAYS = {name: functools.partial(played, story)
	for name, story in (STORIES if os.geteuid() else STORIES | ONLY_ROOT).items()}


def check(plays, name):
	if name not in plays:
		pytest.skip("only root has names of its own")
	seconds = plays[name].result()
	print(f"{name}: all was over after {seconds:.1f} s")
	assert seconds < BACK


@pytest.mark.parametrize("name", [name for name in ONLY_ROOT if "elsewhere" in name])
def test_server_whose_name_leads_elsewhere_is_found_there(plays, name):
	check(plays, name)


def test_server_with_two_addresses_is_used_at_the_other_one_when_one_goes(plays):
	check(plays, "one of two addresses")


def test_server_that_is_known_by_its_ipv6_address_is_used_again_when_it_is_back(plays):
	check(plays, "IPv6")


def test_proxy_of_the_kubeconfig_that_dies_is_never_gone_around_and_used_again_when_it_is_back(plays):
	check(plays, "proxy of the kubeconfig")


def test_proxy_of_the_environment_is_never_asked(plays):
	check(plays, "proxy of the environment")
