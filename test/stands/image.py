# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Container images for tests: one layer with a static busybox, as OCI archives."""
import hashlib
import io
import json
import os
import struct
import subprocess
import tarfile

from .waiting import StandError

BUSYBOX = ("/bin/busybox", "/usr/bin/busybox", "/bin/busybox.static")
TEST_IMAGE, PAUSE_IMAGE = "localhost/busybox:test", "localhost/pause:test"


def _busybox():
	for path in BUSYBOX:
		if os.path.exists(path):
			return path
	raise StandError("busybox is missing; run script/install-deps containers")


def _as_root():
	"""An ELF program that runs that of its first argument with the rest of them: as root, if that is its owner and the kernel lets it.
	busybox, which has no need of it, gives such rights back."""
	code = bytes.fromhex("488b1c24" "31ff" "b869000000" "0f05"  # rbx = argc; setuid(0), whatever comes of it
		"488b7c2410" "488d742410" "488d54dc10" "b83b000000" "0f05"  # execve(argv[1], argv + 1, envp)
		"bf01000000" "b83c000000" "0f05")  # exit(1)
	base, headers = 0x400000, 64 + 56
	header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, base + headers, 64, 0, 0, 64, 56, 1, 0, 0, 0)
	segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, headers + len(code), headers + len(code), 0x1000)
	return header + segment + code


def _layer():
	"""A tar of busybox with a link for each of its commands, the same bytes every time."""
	path = _busybox()
	commands = subprocess.run([path, "--list"], capture_output=True, text=True, check=True).stdout.split()
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w") as tar:
		def add(name, kind, mode=0o755, data=b"", target=""):
			info = tarfile.TarInfo(name)
			info.type, info.mode, info.size, info.linkname = kind, mode, len(data), target
			tar.addfile(info, io.BytesIO(data))
		for folder in ("bin", "etc", "proc", "sys", "dev", "root"):
			add(folder, tarfile.DIRTYPE)
		add("tmp", tarfile.DIRTYPE, 0o1777)
		add("etc/passwd", tarfile.REGTYPE, 0o644, b"root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/tmp:/bin/sh\n")
		add("etc/group", tarfile.REGTYPE, 0o644, b"root:x:0:\nimages:x:4712:daemon\n")
		add("to-etc", tarfile.SYMTYPE, target="/etc")  # as an image may have them to lead who mounts something astray
		add("to-node", tarfile.SYMTYPE, target="/proc/1/root")
		with open(path, "rb") as file:
			add("bin/busybox", tarfile.REGTYPE, data=file.read())
		add("bin/as-root", tarfile.REGTYPE, 0o4755, _as_root())
		for command in sorted(set(commands) - {"busybox"}):
			add("bin/" + command, tarfile.SYMTYPE, target="busybox")
	return out.getvalue()


def _digest(data):
	return "sha256:" + hashlib.sha256(data).hexdigest()


def _descriptor(kind, data):
	return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": _digest(data), "size": len(data)}


def _archive(path, name, layer, entrypoint):
	config = json.dumps({"architecture": "amd64", "os": "linux",
		"config": {"Entrypoint": entrypoint, "Env": ["PATH=/bin"]},
		"rootfs": {"type": "layers", "diff_ids": [_digest(layer)]}}).encode()
	manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": _descriptor("config.v1+json", config), "layers": [_descriptor("layer.v1.tar", layer)]}).encode()
	index = json.dumps({"schemaVersion": 2, "manifests": [{**_descriptor("manifest.v1+json", manifest),
		"annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}}]}).encode()
	with tarfile.open(path, "w") as tar:
		files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
		files.update({"blobs/sha256/" + _digest(data)[7:]: data for data in (layer, config, manifest)})
		for file, data in files.items():
			info = tarfile.TarInfo(file)
			info.size = len(data)
			tar.addfile(info, io.BytesIO(data))


def build(folder):
	"""Writes the two archives into folder; returns their paths."""
	os.makedirs(folder, exist_ok=True)
	layer = _layer()
	paths = []
	for name, entrypoint in ((TEST_IMAGE, ["/bin/sh"]), (PAUSE_IMAGE, ["/bin/sleep", "infinity"])):
		path = os.path.join(folder, name.split("/")[1].replace(":", "-") + ".tar")
		if not os.path.exists(path):
			_archive(path, name, layer, entrypoint)
		paths.append(path)
	return paths
