"""Connections between members: one from each to each other, kept open, on an event loop of their own.

A writing member calls: announcements and ends are sent on its connection, and acknowledgements come back on it.
Messages of one connection keep their order. Messages that are lost with a connection are not sent again: the other side
finds out by itself (`LeaseState.overdue_intents`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from hms_cache.errors import PortError
from hms_cache.event_loops import new_event_loop, use_short_thread_slices
from hms_cache.lease.frames import (
    CHALLENGE_BYTES,
    PROOF_BYTES,
    BadFrameError,
    Channel,
    challenge,
    is_proof,
    proof,
)
from hms_cache.lease.links import Link

_log = logging.getLogger(__name__)

Message = tuple[str | int | None, ...]

HANDSHAKE_S: Final = 5.0
"""Time limit for a handshake, which takes two round trips on one network."""

MAX_QUEUED: Final = 1_000
"""Messages that wait for a connection: a second of writes. Further ones are dropped."""

MAX_CONNECTIONS: Final = 256
"""Members that may call at once. A set has few."""

MAX_UNAUTHENTICATED: Final = 64
"""Connections that have not completed the handshake. Beyond them, the oldest is closed. They do not count as
members."""

MAX_LOGGED_ADDRESSES: Final = 256
"""Addresses whose first refusal is logged. All refusals are counted."""

_RECONNECT_S: Final = 0.1
_LONGEST_RECONNECT_S: Final = 1.0
"""Maximum interval between attempts, which doubles while nobody answers. A member that was killed stays in the table
until the next write, and by then its address may belong to another machine, or be a name that is resolved each time."""


class _Peer:
    """What is known of another member. Used on the loop only."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.queue: deque[Message] = deque()
        """Messages that wait for a connection."""
        self.link: Link | None = None
        self.channel: Channel | None = None
        """Both are set while there is a connection with a completed handshake."""
        self.task: asyncio.Task[None] | None = None


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
        """`on_message`: called with another member's message, returns the answer; `on_reply`: called with an answer;
        `first_message`: returns the first message of each new connection. All of them run on the loop."""
        self._member = member
        self._secret = secret
        self._on_message = on_message
        self._on_reply = on_reply
        self._first_message = first_message
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name="hms-members", daemon=True)
        self._peers: dict[str, _Peer] = {}
        self._server: asyncio.Server | None = None
        self._called: set[asyncio.Task[None]] = set()
        self._callers: dict[str, Link] = {}
        """The latest connection of each member that calls."""
        self._unauthenticated: dict[asyncio.Task[None], Link] = {}
        """Those of `_called` that are in their handshake, the oldest first."""
        self._logged: set[str] = set()
        """Addresses with a logged refusal."""
        self.counts: Counter[str] = Counter()
        """sent, received, dropped (messages), refused (connections)."""

    def start(self, host: str, port: int) -> int:
        """Listens. Returns the port. Raises `StartupError`."""
        self._thread.start()
        try:
            self._server = asyncio.run_coroutine_threadsafe(
                self._loop.create_server(self._answer_call, host, port), self._loop
            ).result()
        except (OSError, UnicodeError) as error:
            self._end_loop()
            raise PortError(
                f"{host}:{port} for other members", error, if_in_use="Choose another lease.port; 0 picks a free one."
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Closes everything."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(HANDSHAKE_S)
        self._end_loop()

    def send(self, member: str, message: Message) -> None:
        """Queues a message for a member. Nothing is sent to an unknown member. Does not wait."""
        with suppress(RuntimeError):  # closed: the message is lost, as if the connection had broken
            self._loop.call_soon_threadsafe(self._queue, member, message)

    def connect_to(self, addresses: Mapping[str, str]) -> None:
        """Sets the other members: closes connections to those that are gone, and opens some to new ones."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._connect_to, dict(addresses))

    def renew(self, member: str) -> None:
        """Opens another connection to a member that does not answer: the present one may be dead because a firewall has
        dropped it, which neither side would notice for a quarter of an hour."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._renew, member)

    def connected(self) -> list[str]:
        """Members to which there is a connection."""
        return [name for name, peer in self._peers.copy().items() if peer.channel is not None]

    # ---- on the loop ----

    def _run(self) -> None:
        use_short_thread_slices()
        self._loop.run_forever()

    def _queue(self, member: str, message: Message) -> None:
        peer = self._peers.get(member)
        if peer is None:
            return
        if peer.link is not None and peer.channel is not None:
            self._send(peer.link, peer.channel, message)
            return
        if len(peer.queue) >= MAX_QUEUED:
            self.counts["dropped"] += len(peer.queue)
            peer.queue.clear()
        peer.queue.append(message)

    def _send(self, link: Link, channel: Channel, message: Message) -> None:
        self.counts["sent" if link.write(channel.encode(message)) else "dropped"] += 1

    def _connect_to(self, addresses: dict[str, str]) -> None:
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

    def _renew(self, member: str) -> None:
        peer = self._peers.get(member)
        if peer is not None and peer.link is not None:
            peer.link.abort()
            peer.link = peer.channel = None  # messages from now on wait for the next connection

    async def _call(self, member: str, peer: _Peer) -> None:
        host, _, port = peer.address.rpartition(":")
        pause_s = _RECONNECT_S
        while True:
            try:
                async with asyncio.timeout(HANDSHAKE_S):
                    _, link = await self._loop.create_connection(lambda: Link(self._loop), host.strip("[]"), int(port))
                try:
                    async with asyncio.timeout(HANDSHAKE_S):
                        channel = await self._connect_handshake(member, link)
                    pause_s = _RECONNECT_S
                    await self._exchange(member, peer, channel, link)
                finally:
                    peer.link = peer.channel = None
                    link.close()
            except (OSError, TimeoutError, asyncio.IncompleteReadError, BadFrameError, ValueError) as error:
                _log.debug("no connection to member %s at %s: %s", member, peer.address, error)
            except Exception:
                # Without a connection, each write would cost a lease: one attempt too many is better than giving up.
                _log.exception("the connection to member %s at %s is replaced", member, peer.address)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_RECONNECT_S)

    async def _connect_handshake(self, member: str, link: Link) -> Channel:
        """The caller's side of the handshake: sends its challenge and name; receives the other's challenge and proof;
        sends its proof."""
        own = challenge()
        link.write(own + self._member.encode().ljust(64))
        answer = await link.read(CHALLENGE_BYTES + 64 + PROOF_BYTES)
        other, name, given = answer[:CHALLENGE_BYTES], answer[CHALLENGE_BYTES:-PROOF_BYTES], answer[-PROOF_BYTES:]
        names = self._member.encode().ljust(64) + name
        if name.strip().decode() != member or not is_proof(given, self._secret, b"called" + names, other, own):
            raise BadFrameError("who answers is not the member that the table names, or does not know the secret")
        link.write(proof(self._secret, b"caller" + names, own, other))
        return Channel(self._secret, own, other, calls=True)

    async def _exchange(self, member: str, peer: _Peer, channel: Channel, link: Link) -> None:
        """Runs until the connection is lost. Returns the reason."""

        def reply(body: bytes) -> None:
            self.counts["received"] += 1
            self._on_reply(member, channel.decode(body))

        link.receive(reply)
        self._send(link, channel, self._first_message())
        while peer.queue:
            self._send(link, channel, peer.queue.popleft())
        peer.link, peer.channel = link, channel
        if (error := await link.lost) is not None:
            raise error

    def _answer_call(self) -> Link:
        """The protocol for a connection that another member opens."""
        link = Link(self._loop)
        task = self._loop.create_task(self._serve(link))
        self._called.add(task)
        task.add_done_callback(self._called.discard)
        if len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
            oldest = next(iter(self._unauthenticated))
            self._unauthenticated.pop(oldest).abort()
            oldest.cancel()
            self.counts["refused"] += 1
        self._unauthenticated[task] = link
        task.add_done_callback(self._introduced)
        return link

    def _introduced(self, task: asyncio.Task[None]) -> None:
        self._unauthenticated.pop(task, None)

    async def _serve(self, link: Link) -> None:
        task = asyncio.current_task()
        assert task is not None, "it runs as one"
        member = None
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                member, channel = await self._welcome(link)
            self._introduced(task)
            # A member that calls again has given up the earlier connection, whose end may never be reported. And no
            # message of the earlier one may be processed after messages of this one.
            if (earlier := self._callers.pop(member, None)) is not None:
                earlier.abort()
            self._callers[member] = link
            if len(self._callers) > MAX_CONNECTIONS:
                self.counts["refused"] += 1
                return

            def answer(body: bytes) -> None:
                self.counts["received"] += 1
                response = self._on_message(member, channel.decode(body))
                if response is not None:
                    self._send(link, channel, response)

            link.receive(answer)
            if (error := await link.lost) is not None:
                raise error
        except BadFrameError as error:
            self._refused(link.address, error)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, UnicodeDecodeError) as error:
            _log.debug("a member's connection has ended: %s", error)
        finally:
            if member is not None and self._callers.get(member) is link:
                del self._callers[member]
            link.close()

    def _refused(self, address: str, error: BadFrameError) -> None:
        """Anyone who can reach the port can be refused repeatedly: this is logged once for each address."""
        self.counts["refused"] += 1
        if address not in self._logged and len(self._logged) < MAX_LOGGED_ADDRESSES:
            self._logged.add(address)
            _log.warning(
                "a connection from %s that is no member's is closed: %s (others from there are only counted)",
                address,
                error,
            )

    async def _welcome(self, link: Link) -> tuple[str, Channel]:
        """The called side of the handshake."""
        greeting = await link.read(CHALLENGE_BYTES + 64)
        other, name = greeting[:CHALLENGE_BYTES], greeting[CHALLENGE_BYTES:]
        own = challenge()
        own_name = self._member.encode().ljust(64)
        names = name + own_name
        link.write(own + own_name + proof(self._secret, b"called" + names, own, other))
        given = await link.read(PROOF_BYTES)
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
