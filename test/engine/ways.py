# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What lies on the way to an API server: names that can lead elsewhere, and a proxy."""
import asyncio
import os

from link import Link


class Hosts:
	"""Where one name leads to, for a program that has an /etc/hosts of its own. Needs root; the host's stays as it is."""

	SIZE = 256

	def __init__(self, folder, name):
		self.name, self.file = name, f"{folder}/hosts"
		# Words that start a program with it.
		self.inside = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.file]

	def set(self, *addresses):
		"""At once and in place: what is mounted is this file, and nobody may find it half written."""
		text = "".join(f"{address} {self.name}\n" for address in addresses)
		with open(os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="ascii") as file:
			file.write(text.ljust(self.SIZE - 1) + "\n")


class Proxy(Link):
	"""A proxy that makes tunnels (CONNECT). mode: as of a link, or refuse: it answers 404, and means itself."""

	def __init__(self):
		self.heard = []  # heads of requests
		super().__init__(None)

	@property
	def url(self):
		return f"http://127.0.0.1:{self.port}"

	async def _reach(self, reader, writer):
		try:
			head = (await reader.readuntil(b"\r\n\r\n")).decode()
		except asyncio.IncompleteReadError as error:
			raise OSError("no request") from error
		self.heard.append(head)
		if self.mode == "refuse":
			writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			writer.close()
			await writer.wait_closed()
			raise OSError("refused")
		host, _, port = head.split(" ")[1].rpartition(":")
		far = await asyncio.open_connection(host, int(port))
		writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
		return far
