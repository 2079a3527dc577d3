# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Certificates and kubeconfig files of a stand."""
import base64
import os
import tempfile

from .process import run


def _openssl(*args):
	return run(["openssl", *args])


def authority(folder):
	"""Makes folder/ca.crt and ca.key."""
	os.makedirs(folder, exist_ok=True)
	_openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
		"-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.crt", "-subj", "/CN=stand-ca",
		"-addext", "keyUsage=critical,keyCertSign,cRLSign")


def key(path):
	_openssl("ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", path)


def certificate(folder, name, subject, names=()):
	"""Makes folder/NAME.crt and NAME.key, signed by the authority. names: "IP:127.0.0.1", "DNS:x"."""
	usage = "serverAuth,clientAuth" if names else "clientAuth"
	with tempfile.NamedTemporaryFile("w", suffix=".ext") as extensions:
		extensions.write(f"extendedKeyUsage={usage}\n")
		if names:
			extensions.write("subjectAltName=" + ",".join(names) + "\n")
		extensions.flush()
		_openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
			"-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.csr", "-subj", subject)
		_openssl("x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", f"{folder}/ca.crt",
			"-CAkey", f"{folder}/ca.key", "-CAcreateserial", "-days", "30", "-extfile", extensions.name,
			"-out", f"{folder}/{name}.crt")
	os.unlink(f"{folder}/{name}.csr")


def _inline(path):
	with open(path, "rb") as file:
		return base64.b64encode(file.read()).decode()


def kubeconfig(path, folder, name, server):
	"""Writes a kubeconfig with everything inline, for the user of folder/NAME.crt. Mode 600."""
	text = f"""apiVersion: v1
kind: Config
clusters:
- name: stand
  cluster:
    server: {server}
    certificate-authority-data: {_inline(f"{folder}/ca.crt")}
users:
- name: {name}
  user:
    client-certificate-data: {_inline(f"{folder}/{name}.crt")}
    client-key-data: {_inline(f"{folder}/{name}.key")}
contexts:
- name: stand
  context:
    cluster: stand
    user: {name}
current-context: stand
"""
	with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
		file.write(text)
