"""Connections between members: one from each to each other, kept open, on an event loop of their own.

Whoever writes calls; announcements and ends go out on its connection and acknowledgements come back on it. Messages of
one connection keep their order. What is lost with a connection is not sent again: the other side then finds out by
itself (`LeaseState.unheard`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from hms_cache.errors import StartupError
from hms_cache.lease.frames import (
    CHALLENGE_BYTES,
    HEADER,
    PROOF_BYTES,
    BadFrameError,
    Channel,
    body_length,
    challenge,
    is_proof,
    proof,
)

_log = logging.getLogger(__name__)

Message = tuple[str | int | None, ...]

HANDSHAKE_S: Final = 5.0
"""Two round trips on one network."""

MOST_QUEUED: Final = 1_000
"""Messages that wait for a connection: a second of writes. Then they are dropped, and the connection is closed."""

MOST_CONNECTIONS: Final = 256
"""Members that may call at once; a set has a handful."""

_RECONNECT_S: Final = 0.1
_BUFFER_BYTES: Final = 64 * 1024


class _Peer:
    """What is known of another member; only the loop touches it, but for `queue` appends."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.queue: deque[Message] = deque()
        self.wanted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.is_connected = False
        self.is_dropped = False


class Transport:
    """See the module. Thread-safe; `start` and `stop` once each."""

    def __init__(
        self,
        member: str,
        secret: bytes,
        on_message: Callable[[str, list[str | int | None]], Message | None],
        on_reply: Callable[[str, list[str | int | None]], None],
        first_message: Callable[[], Message],
    ) -> None:
        """`on_message`: another member's message, and what to answer; `on_reply`: an answer; `first_message`: what is
        said first on each new connection. All on the loop."""
        self._member = member
        self._secret = secret
        self._on_message = on_message
        self._on_reply = on_reply
        self._first_message = first_message
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hms-members", daemon=True)
        self._peers: dict[str, _Peer] = {}
        self._server: asyncio.Server | None = None
        self._called: set[asyncio.Task[None]] = set()
        self.counts: Counter[str] = Counter()
        """sent, received, dropped (messages), refused (connections)."""

    def start(self, host: str, port: int) -> int:
        """Listen; the port. Raises `StartupError`."""
        self._thread.start()
        try:
            self._server = asyncio.run_coroutine_threadsafe(
                asyncio.start_server(self._serve, host, port, limit=_BUFFER_BYTES), self._loop
            ).result()
        except OSError as error:
            self._end_loop()
            raise StartupError(
                f"cannot listen on {host}:{port} for other members: {error.strerror or error}",
                remedy="Choose another lease.port; 0 picks a free one.",
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Close everything."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(HANDSHAKE_S)
        self._end_loop()

    def send(self, member: str, message: Message) -> None:
        """Queue a message for a member; one that is not known gets none. Does not wait."""
        with suppress(RuntimeError):  # closed: nobody hears of it, as if the connection had broken
            self._loop.call_soon_threadsafe(self._queue, member, message)

    def meet(self, addresses: Mapping[str, str]) -> None:
        """These are the other members: connections to who is gone are closed, to who is new opened."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._meet, dict(addresses))

    def connected(self) -> list[str]:
        """Members that this one has a connection to."""
        return [name for name, peer in self._peers.copy().items() if peer.is_connected]

    # ---- on the loop ----

    def _queue(self, member: str, message: Message) -> None:
        peer = self._peers.get(member)
        if peer is None:
            return
        if len(peer.queue) >= MOST_QUEUED:
            self.counts["dropped"] += len(peer.queue)
            peer.queue.clear()
            if peer.is_connected and peer.task is not None:
                self._drop(member)
                self._add(member, peer.address)
            return
        peer.queue.append(message)
        peer.wanted.set()

    def _meet(self, addresses: dict[str, str]) -> None:
        for member in [one for one in self._peers if addresses.get(one) != self._peers[one].address]:
            self._drop(member)
        for member, address in addresses.items():
            if member not in self._peers:
                self._add(member, address)

    def _add(self, member: str, address: str) -> None:
        peer = self._peers[member] = _Peer(address)
        peer.task = self._loop.create_task(self._call(member, peer))

    def _drop(self, member: str) -> None:
        peer = self._peers.pop(member)
        if peer.task is not None:
            peer.task.cancel()

    async def _call(self, member: str, peer: _Peer) -> None:
        host, _, port = peer.address.rpartition(":")
        while True:
            try:
                async with asyncio.timeout(HANDSHAKE_S):
                    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), limit=_BUFFER_BYTES)
                try:
                    async with asyncio.timeout(HANDSHAKE_S):
                        channel = await self._introduce(member, reader, writer)
                    peer.queue.appendleft(self._first_message())
                    peer.is_connected = True
                    await self._exchange(member, peer, channel, reader, writer)
                finally:
                    peer.is_connected = False
                    writer.close()
            except (OSError, TimeoutError, asyncio.IncompleteReadError, BadFrameError, ValueError) as error:
                _log.debug("no connection to member %s at %s: %s", member, peer.address, error)
            await asyncio.sleep(_RECONNECT_S)

    async def _introduce(self, member: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Channel:
        """The caller's side of the handshake: own challenge and name; the other's challenge and proof; own proof."""
        own = challenge()
        writer.write(own + self._member.encode().ljust(64))
        answer = await reader.readexactly(CHALLENGE_BYTES + 64 + PROOF_BYTES)
        other, name, given = answer[:CHALLENGE_BYTES], answer[CHALLENGE_BYTES:-PROOF_BYTES], answer[-PROOF_BYTES:]
        names = self._member.encode().ljust(64) + name
        if name.strip().decode() != member or not is_proof(given, self._secret, b"called" + names, other, own):
            raise BadFrameError("who answers is not the member that the table names, or does not know the secret")
        writer.write(proof(self._secret, b"caller" + names, own, other))
        return Channel(self._secret, own, other, calls=True)

    async def _exchange(
        self,
        member: str,
        peer: _Peer,
        channel: Channel,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        async def read() -> None:
            while True:
                body = await reader.readexactly(body_length(await reader.readexactly(HEADER.size)))
                self.counts["received"] += 1
                self._on_reply(member, channel.decode(body))

        reading = self._loop.create_task(read())
        wanting: asyncio.Task[bool] | None = None
        try:
            while True:
                while peer.queue:
                    writer.write(channel.encode(peer.queue.popleft()))
                    self.counts["sent"] += 1
                await writer.drain()
                peer.wanted.clear()
                if peer.queue:
                    continue
                wanting = self._loop.create_task(peer.wanted.wait())
                await asyncio.wait({reading, wanting}, return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    reading.result()
        finally:
            for task in (reading, wanting):
                if task is not None:
                    task.cancel()
            with suppress(BaseException):
                if reading.done() and not reading.cancelled():
                    reading.exception()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._called) >= MOST_CONNECTIONS:
            self.counts["refused"] += 1
            writer.close()
            return
        self._called.add(task)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                member, channel = await self._welcome(reader, writer)
            while True:
                body = await reader.readexactly(body_length(await reader.readexactly(HEADER.size)))
                self.counts["received"] += 1
                answer = self._on_message(member, channel.decode(body))
                if answer is not None:
                    writer.write(channel.encode(answer))
                    self.counts["sent"] += 1
                    await writer.drain()
        except BadFrameError as error:
            self.counts["refused"] += 1
            _log.warning("a connection that is no member's is closed: %s", error)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError, UnicodeDecodeError):
            pass  # gone, or this transport is closed; the stream's own callback would log a cancelled task
        finally:
            self._called.discard(task)
            writer.close()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, Channel]:
        """The called side of the handshake."""
        greeting = await reader.readexactly(CHALLENGE_BYTES + 64)
        other, name = greeting[:CHALLENGE_BYTES], greeting[CHALLENGE_BYTES:]
        own = challenge()
        own_name = self._member.encode().ljust(64)
        names = name + own_name
        writer.write(own + own_name + proof(self._secret, b"called" + names, own, other))
        given = await reader.readexactly(PROOF_BYTES)
        if not is_proof(given, self._secret, b"caller" + names, other, own):
            raise BadFrameError("who calls does not know the secret")
        return name.strip().decode(), Channel(self._secret, other, own, calls=False)

    async def _close(self) -> None:
        for member in list(self._peers):
            self._drop(member)
        if self._server is not None:
            self._server.close()
        for task in self._called:
            task.cancel()
        await asyncio.sleep(0)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANDSHAKE_S)
        if not self._loop.is_running():
            self._loop.close()
