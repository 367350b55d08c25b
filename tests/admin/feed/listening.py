"""A listener of the change feed: reads server-sent events from a socket, without a library."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from hms_cache.app.service import Service


class Running(Protocol):
    """A server that a test has started."""

    @property
    def service(self) -> Service: ...


@dataclass(frozen=True)
class Received:
    """A dispatched event, as the HTML standard defines it."""

    kind: str
    data: Any


class Listener:
    """Reads one feed. `last_id` is the value that an EventSource would send as Last-Event-ID."""

    def __init__(
        self,
        running: Running,
        last_id: str = "",
        token: str = "",
        receive_bytes: int | None = None,
        source: str = "127.0.0.1",
        **query: str | list[str],
    ) -> None:
        """`receive_bytes`: how much its socket buffers unread."""
        assert running.service.management_address is not None
        self.connection = http.client.HTTPConnection(
            *running.service.management_address, timeout=30, source_address=(source, 0)
        )
        if receive_bytes is not None:
            self.connection.sock = socket.socket()
            self.connection.sock.settimeout(30)
            self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.connection.sock.connect(running.service.management_address)
        headers = {"Last-Event-ID": last_id} if last_id else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.connection.request("GET", f"/changes?{urlencode(query, doseq=True)}", headers=headers)
        self.answer = self.connection.getresponse()
        self.last_id = last_id
        self.received = b""
        """All lines so far, as they came."""
        self.positions = 0
        """Frames that moved the place without an event."""

    @property
    def status(self) -> int:
        return self.answer.status

    def step(self) -> Received | None:
        """Returns the next frame: an event, or None for one without data. Raises EOFError at the end."""
        kind, data, is_empty = "message", "", True
        while True:
            received = self.answer.readline()
            self.received += received
            line = received.decode().rstrip("\n")
            if not line:
                if is_empty:
                    raise EOFError
                return Received(kind, json.loads(data)) if data else None
            is_empty = False
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
                self.positions += not data
            elif name == "event":
                kind = value
            elif name == "data":
                data = value

    def next(self) -> Received:
        """Returns the next event; if many heartbeats arrive instead, there is none."""
        for _ in range(60):
            found = self.step()
            if found is not None:
                return found
        raise AssertionError("nothing but heartbeats")

    def changes(self, count: int) -> list[Any]:
        """The data of this many events."""
        found = [self.next() for _ in range(count)]
        assert [one.kind for one in found] == ["change"] * count, found
        return [one.data for one in found]

    def end(self) -> Any:
        """Returns the event that ends the feed; nothing may follow it."""
        found = self.next()
        assert found.kind == "end", found
        try:
            while True:
                assert self.step() is None
        except EOFError:
            return found.data

    def body(self) -> Any:
        """Of a refusal."""
        return self.answer.read().decode()

    def close(self) -> None:
        self.answer.close()
        self.connection.close()
