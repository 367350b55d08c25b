"""A proxy between clients and the primary: forwards all bytes unchanged, and decodes copies of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hms_cache.app.shadow.comparing import Rules
from hms_cache.app.shadow.mirror import Read
from hms_cache.app.shadow.reads import is_compared
from hms_cache.app.shadow.reply_reader import ReplyReader
from hms_cache.authentication.negotiation import START
from hms_cache.authentication.servers import Address, verifying_context
from hms_cache.wire import Message, MessageReader, MethodSpec, WireError

#: Maximum number of client connections, as in Hive's metastore (metastore.server.max.threads).
MAX_CONNECTIONS: Final = 1000
#: Maximum number of calls without a reply on one connection. Metastore clients send one call at a time.
MAX_PENDING: Final = 100
_CONNECT_TIMEOUT_S: Final = 10.0
_CHUNK_BYTES: Final = 256 * 1024
#: The start of a SASL negotiation: a status byte, and the length of a mechanism's name.
SASL_START: Final = bytes([START, 0, 0, 0])

Note = Callable[[str], None]


class Conversation:
    """Decodes one connection, and assigns replies to requests. A connection that cannot be decoded is no longer
    compared, but still forwarded."""

    def __init__(self, rules: Rules, on_read: Callable[[Read], None], note: Note) -> None:
        self._rules = rules
        self._on_read = on_read
        self._note = note
        self._requests = MessageReader()
        self._replies: ReplyReader | None = None
        self._pending: deque[Message] = deque()
        self._reply_bytes = 0
        self._is_lost = False

    def requested(self, data: bytes) -> None:
        """Takes bytes from the client, before they are forwarded."""
        if self._is_lost:
            return
        if self._requests.encoding is None and data.startswith(SASL_START):
            self._lose("its client authenticates by SASL, which may encrypt the calls: use --walk or --replay")
            return
        try:
            self._requests.feed(data)
            while (message := self._requests.next_message()) is not None:
                if message.expects_reply:
                    self._pending.append(message)
        except WireError as error:
            self._lose(f"a request cannot be read: {error}")
        if len(self._pending) > MAX_PENDING:
            self._lose(f"more than {MAX_PENDING} calls without reply on one connection")

    def replied(self, data: bytes) -> None:
        """Takes bytes from the primary, after they were forwarded."""
        if self._is_lost:
            return
        if self._replies is None:
            encoding = self._requests.encoding
            if encoding is None:
                self._lose("the metastore sent data before its client did")
                return
            self._replies = ReplyReader(encoding, self._method_of_next, self._rules)
        self._reply_bytes += len(data)
        try:
            self._replies.feed(data)
            while (answer := self._replies.next_reply()) is not None:
                message = self._pending.popleft()
                if message.method is not None and is_compared(message.name):
                    self._on_read(Read(message.name, message.args, answer, self._reply_bytes))
                self._reply_bytes = 0
        except (WireError, IndexError) as error:
            self._lose(f"a reply cannot be read: {error}")

    def close(self) -> None:
        """Frees the buffers."""
        self._requests.close()
        if self._replies is not None:
            self._replies.close()
        self._pending.clear()

    def _method_of_next(self) -> MethodSpec | None:
        return self._pending[0].method

    def _lose(self, reason: str) -> None:
        self._is_lost = True
        self._note(f"calls of a connection are no longer compared: {reason}")
        self.close()


class Proxy:
    """Listens, and connects each client to the primary. All methods run on one event loop."""

    def __init__(self, primary: Address, rules: Rules, on_read: Callable[[Read], None], note: Note) -> None:
        self._primary = primary
        self._rules = rules
        self._on_read = on_read
        self._note = note
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> Address:
        """Starts to listen. Returns the address with the actual port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=_CHUNK_BYTES)
        name = self._server.sockets[0].getsockname()
        return Address(str(name[0]), int(name[1]))

    async def close(self) -> None:
        """Stops listening and closes the connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            try:
                if len(self._tasks) > MAX_CONNECTIONS:
                    self._note(f"connection refused: {MAX_CONNECTIONS} are open")
                else:
                    await self._connect(reader, writer)
            finally:
                await _close(writer)
        except asyncio.CancelledError:
            pass  # the shadow ends; asyncio would log it as an error of the callback
        finally:
            self._tasks.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                primary_reader, primary_writer = await asyncio.open_connection(
                    self._primary.host,
                    self._primary.port,
                    limit=_CHUNK_BYTES,
                    ssl=verifying_context() if self._primary.tls else None,
                )
        except OSError as error:
            self._note(f"no answer: {self._primary}: {error}")
            return
        conversation = Conversation(self._rules, self._on_read, self._note)
        directions = (
            asyncio.create_task(_pass_requests(reader, primary_writer, conversation)),
            asyncio.create_task(_pass_replies(primary_reader, writer, conversation)),
        )
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            conversation.close()
            await _close(primary_writer)


async def _pass_requests(source: asyncio.StreamReader, sink: asyncio.StreamWriter, conversation: Conversation) -> None:
    while data := await source.read(_CHUNK_BYTES):
        conversation.requested(data)  # first, so that a reply always finds its request
        sink.write(data)
        await sink.drain()


async def _pass_replies(source: asyncio.StreamReader, sink: asyncio.StreamWriter, conversation: Conversation) -> None:
    while data := await source.read(_CHUNK_BYTES):
        sink.write(data)
        await sink.drain()
        conversation.replied(data)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
