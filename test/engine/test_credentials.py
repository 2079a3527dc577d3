# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The whole engine, and credentials that change under it: tokens are replaced, the server's certificate expires.

Run: /usr/bin/python3 -m pytest test/engine/test_credentials.py; variables as in test_engine.py
"""
import os
import signal
import subprocess
import time

import yaml
from play import BACK, MOST, Play
from test_engine import api_server, server_up

HOLD = 6  # seconds in which nothing that the engine has is accepted


def write(path, text):
	"""As a whole, and for its owner only."""
	with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
		file.write(text)
	os.rename(path + ".new", path)


def kill(play):
	play.signal(signal.SIGKILL)


def token_is_replaced():
	with api_server() as folder:
		tokens, token, options = f"{folder}/tokens", f"{folder}/token", ["--token-file", f"{folder}/tokens"]
		config = f"{folder}/slurm-k8s.conf"

		def engine_has_token():  # up writes certificates into its kubeconfig
			with open(config, encoding="utf-8") as file:
				about = yaml.safe_load(file)
			about["users"][0]["user"] = {"tokenFile": token}
			write(config, yaml.safe_dump(about))

		def server_knows(text):
			write(tokens, f'{text},slurm-k8s,1,""\n')
			server_up(folder, *options)
			engine_has_token()
		play = Play(folder)
		kill(play)
		write(token, "the-first-token")
		server_knows("the-first-token")
		with play.engine():
			play.begin()
			kill(play)
			before = len(play.codes())
			server_knows("the-second-token")
			play.users_act()
			time.sleep(HOLD)  # what is measured is a rate
			refused = sum(code == 401 for code in play.codes()[before:])
			assert 1 <= refused <= HOLD * MOST
			assert set(play.left()) >= {"made", "ends"}  # nothing is done for it
			write(token, "the-second-token")
			seconds = play.seconds_until_all_is_over()
		assert play.bound_once(4)
		assert not play.lines("first-token") and not play.lines("second-token")
		return seconds


def certificate_expires():
	with api_server() as folder:
		play = Play(folder)
		with play.engine():
			play.begin()
			kill(play)
			before = play.asked()
			good = f"{folder}/pki/server.crt"
			os.rename(good, good + ".good")
			write(f"{folder}/names", "subjectAltName=IP:127.0.0.1,DNS:localhost\n")  # nothing is wrong but the time
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
		assert play.bound_once(4)
		assert len(play.lines("cluster sim: lost")) == 1
		return seconds


PLAYS = {"token": token_is_replaced, "certificate": certificate_expires}


def test_token_that_is_replaced_is_read_from_its_file_and_all_goes_on(plays):
	seconds = plays["token"].result()
	print(f"all was over {seconds:.1f} s after the new token was there")
	assert seconds < BACK


def test_server_whose_certificate_expires_is_asked_nothing_and_used_again_when_it_is_renewed(plays):
	seconds = plays["certificate"].result()
	print(f"all was over {seconds:.1f} s after the certificate was renewed")
	assert seconds < BACK
