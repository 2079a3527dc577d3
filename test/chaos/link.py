# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The network between slurmctld and the API server, which can be cut.

A relay on a port of its own, and not a network namespace: slurmctld, slurmd and all
clients of both meet on the loopback of one host, and only this one way is to break.
It can also do what a namespace cannot: lose the answers of requests that arrived.
"""
import asyncio
import os
import re
import socket
import struct
import threading

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends a reset


class Link:
	"""mode: open; cut: connections are reset, new ones too; gone: the same, as nobody listens any more; hang: nothing flows,
	nothing ends; mute: requests arrive, answers are lost, and their connections end when it is over."""

	def __init__(self, port, listener=None):
		"""port: of the API server. listener: a socket that listens; None: on a port of its own."""
		self.to, self.port, self.mode, self.listener = port, None, "open", listener or socket.create_server(("127.0.0.1", 0))
		self.loop, self.flows, self.pairs, self.spoiled = asyncio.new_event_loop(), None, set(), set()
		self.server, self.place, self.family = None, self.listener.getsockname()[:2], self.listener.family
		listening = threading.Event()
		threading.Thread(target=self._run, args=(listening,), daemon=True).start()
		listening.wait()

	def kubeconfig(self, source, target):
		"""A copy of the kubeconfig `source` that comes this way."""
		with open(source, encoding="utf-8") as file:
			text = re.sub(r"(server: https://[^:\s]+):\d+", rf"\1:{self.port}", file.read())
		with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
			file.write(text)

	def set(self, mode):
		"""Returns when it is so."""
		asyncio.run_coroutine_threadsafe(self._set(mode), self.loop).result(10)

	# -- in the loop's thread

	def _run(self, listening):
		asyncio.set_event_loop(self.loop)
		self.flows = asyncio.Event()
		self.flows.set()
		self.loop.run_until_complete(self._listen())
		self.port = self.server.sockets[0].getsockname()[1]
		listening.set()
		self.loop.run_forever()

	async def _listen(self):
		self.server = await asyncio.start_server(self._accept, sock=self.listener)

	async def _set(self, mode):
		if mode == "gone":
			self.server.close()
		elif not self.server.is_serving():
			self.listener = socket.create_server(self.place, family=self.family)
			await self._listen()
		self.mode = mode
		for pair in list(self.pairs if mode in ("cut", "gone") else self.spoiled):
			_reset(pair)
		self.spoiled.clear()
		if mode == "hang":
			self.flows.clear()
		else:
			self.flows.set()

	async def _accept(self, reader, writer):
		if self.mode == "cut":
			_reset((writer,))
			return
		try:
			far_reader, far_writer = await self._reach(reader, writer)
		except OSError:
			_reset((writer,))
			return
		pair = (writer, far_writer)
		self.pairs.add(pair)
		await asyncio.gather(self._pump(reader, far_writer, pair, False), self._pump(far_reader, writer, pair, True))
		self.pairs.discard(pair)
		self.spoiled.discard(pair)
		_reset(pair)

	async def _reach(self, _reader, _writer):
		"""The far end of a connection; OSError: there is none."""
		return await asyncio.open_connection("127.0.0.1", self.to)

	async def _pump(self, reader, writer, pair, answers):
		try:
			while data := await reader.read(65536):
				await self.flows.wait()
				if answers and self.mode == "mute":
					self.spoiled.add(pair)
				if pair in self.spoiled and answers:
					continue
				writer.write(data)
				await writer.drain()
			writer.write_eof()
		except (OSError, RuntimeError):
			_reset(pair)


def _reset(writers):
	for writer in writers:
		transport = writer.transport
		sock = transport.get_extra_info("socket")
		if sock is not None and not transport.is_closing():
			sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
		transport.abort()
