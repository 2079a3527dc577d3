# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine, and credentials that change under it: tokens, client certificates and authorities are replaced, the
server's certificate expires.

Run: /usr/bin/python3 -m pytest test/engine/test_credentials.py; variables as in test_engine.py
"""
import functools
import os
import shutil
import signal
import subprocess
import time

from play import BACK, MOST, Play, write
from test_engine import api_server, server_up

from kube import Kube
from stands import pki
from stands.waiting import wait_for

HOLD = 6  # seconds in which nothing that the engine has is accepted, or it accepts nothing
NAMES = "IP:127.0.0.1", "DNS:localhost"


def kill(play):
	play.signal(signal.SIGKILL)


def refused(play):
	return sum(code == 401 for code in play.codes())


def token(folder):
	tokens, mine, options = f"{folder}/tokens", f"{folder}/token", ["--token-file", f"{folder}/tokens"]

	def server_knows(text):
		write(tokens, f'{text},slurm-k8s,1,""\n')
		server_up(folder, *options)
	play = Play(folder)
	play.reach(user={"tokenFile": mine})
	kill(play)
	write(mine, "the-first-token")
	server_knows("the-first-token")
	with play.engine():
		play.begin()
		kill(play)
		before = refused(play)
		server_knows("the-second-token")
		play.users_act()
		time.sleep(HOLD)  # what is measured is a rate
		assert 1 <= refused(play) - before <= HOLD * MOST
		assert play.nothing_was_done()
		write(mine, "the-second-token")
		seconds = play.seconds_until_all_is_over()
	assert not play.lines("first-token") and not play.lines("second-token")
	return play, seconds


def rotated_token(folder):
	"""The server knows both, and nothing is refused: the file is believed for a minute."""
	tokens, mine = f"{folder}/tokens", f"{folder}/token"
	play = Play(folder)
	play.reach(user={"tokenFile": mine})
	kill(play)
	write(mine, "the-first-token")
	write(tokens, 'the-first-token,slurm-k8s,1,""\nthe-second-token,later,2,"system:masters"\n')
	server_up(folder, "--token-file", tokens)

	def used_by(name):
		return sum(entry["user"]["username"] == name for entry in play.answered())
	with play.engine():
		play.begin()
		write(mine, "the-second-token")
		time.sleep(61)  # the minute
		play.users_act()
		seconds = play.seconds_until_all_is_over()
	assert used_by("later") > 0 and refused(play) == 0 and not play.lines("cluster sim: lost")
	return play, seconds


def new_authority(folder):
	pki.authority(f"{folder}/new")
	return f"{folder}/new"


def client_certificate(folder):
	"""The server believes certificates of another authority from then on. The new one comes in two steps: the certificate
	before its key."""
	def give(part, source):
		with open(f"{source}/slurm-k8s.{part}", encoding="ascii") as file:
			write(f"{folder}/client.{part}", file.read())
	play, new = Play(folder), new_authority(folder)
	for name, subject in (("slurm-k8s", "/CN=slurm-k8s"), ("admin", "/O=system:masters/CN=admin")):
		pki.certificate(new, name, subject)
	for part in ("crt", "key"):
		give(part, f"{folder}/pki")
	play.reach(user={"client-certificate": f"{folder}/client.crt", "client-key": f"{folder}/client.key"})
	with play.engine():
		play.begin()
		kill(play)
		before = refused(play)
		for part in ("crt", "key"):
			shutil.copy(f"{new}/admin.{part}", f"{folder}/pki")
		server_up(folder, "--client-ca", f"{new}/ca.crt")
		play.kube = Kube(f"{folder}/admin.conf")
		play.users_act()
		wait_for("a refusal", lambda: refused(play) > before, BACK)
		give("crt", new)
		time.sleep(HOLD)  # what is measured is a rate
		assert refused(play) - before <= HOLD * MOST
		assert play.nothing_was_done()
		give("key", new)
		seconds = play.seconds_until_all_is_over()
	return play, seconds


def authority(folder):
	"""The server's certificate is of another authority from then on."""
	play, new = Play(folder), new_authority(folder)
	pki.certificate(new, "server", "/CN=kubesim", NAMES)
	shutil.copy(f"{folder}/pki/ca.crt", f"{folder}/believed.crt")
	play.reach({"certificate-authority-data": None, "certificate-authority": f"{folder}/believed.crt"})
	with play.engine():
		play.begin()
		kill(play)
		before = play.asked()
		for part in ("crt", "key"):
			shutil.copy(f"{new}/server.{part}", f"{folder}/pki")
		# the others believe both
		with open(f"{new}/ca.crt", encoding="ascii") as file, open(f"{folder}/pki/ca.crt", "a", encoding="ascii") as both:
			text = file.read()
			both.write(text)
		server_up(folder)
		play.kube = Kube(f"{folder}/admin.conf")
		play.users_act()
		time.sleep(HOLD)  # in which it could ask
		assert play.asked() == before and play.nothing_was_done()
		write(f"{folder}/believed.crt", text)
		seconds = play.seconds_until_all_is_over()
	assert len(play.lines("cluster sim: lost")) == 1
	return play, seconds


def expired_certificate(folder):
	play = Play(folder)
	with play.engine():
		play.begin()
		kill(play)
		before = play.asked()
		good = f"{folder}/pki/server.crt"
		os.rename(good, good + ".good")
		write(f"{folder}/names", f"subjectAltName={','.join(NAMES)}\n")  # nothing is wrong but the time
		expired = ["openssl", "x509", "-req", "-days", "0", "-CA", f"{folder}/pki/ca.crt", "-CAkey", f"{folder}/pki/ca.key",
			"-CAcreateserial", "-extfile", f"{folder}/names", "-out", good]
		request = subprocess.run(["openssl", "req", "-new", "-key", f"{folder}/pki/server.key", "-subj", "/CN=kubesim"],
			capture_output=True, check=True).stdout
		subprocess.run(expired, input=request, capture_output=True, check=True)
		server_up(folder)
		time.sleep(HOLD)  # in which it could ask
		assert play.asked() == before
		kill(play)
		os.rename(good + ".good", good)
		server_up(folder)
		play.users_act()
		seconds = play.seconds_until_all_is_over()
	assert len(play.lines("cluster sim: lost")) == 1
	return play, seconds


def played(story):
	with api_server() as folder:
		play, seconds = story(folder)
		assert play.bound_once(4)
		return seconds


STORIES = token, rotated_token, client_certificate, authority, expired_certificate
PLAYS = {story.__name__: functools.partial(played, story) for story in STORIES}


def check(play, since):
	seconds = play.result()
	print(f"all was over {seconds:.1f} s after {since}")
	assert seconds < BACK


def test_token_that_is_replaced_is_read_from_its_file_and_all_goes_on(plays):
	check(plays["token"], "the new token was there")


def test_token_that_is_replaced_while_the_old_one_is_still_good_is_used_after_a_minute(plays):
	check(plays["rotated_token"], "the second one was used")


def test_client_certificate_that_is_replaced_is_read_from_its_files_and_all_goes_on(plays):
	check(plays["client_certificate"], "the new key was there")


def test_server_of_another_authority_is_asked_nothing_before_that_authority_is_in_its_file(plays):
	check(plays["authority"], "the new authority was there")


def test_server_whose_certificate_expires_is_asked_nothing_and_used_again_when_it_is_renewed(plays):
	check(plays["expired_certificate"], "the certificate was renewed")
