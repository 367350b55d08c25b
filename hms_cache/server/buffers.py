"""One budget for the bytes in flight on all connections: incomplete requests, and replies that clients have not taken.

Most connections are never counted here: a request that arrives whole and a reply that the system takes at once take no
room. Counted are parts of messages with what was decoded of them, requests sent ahead, requests whose call is running,
and replies that wait for their client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Holder(Protocol):
    """A connection that holds bytes."""

    charged_bytes: int
    """What the budget knows of it. Only `BufferBudget` changes it."""
    charged_since_s: float
    """When this became more than zero."""

    def disconnect(self, reason: str) -> None:
        """Frees the bytes and closes the connection. `reason` is for the client, if it can be told."""


class BufferBudget:
    """See the module. Everything runs on the event loop.

    While the budget is exceeded, connections are closed, each time the one with the largest product of bytes and
    seconds: holders that are small, or that make progress, are more likely to be honest clients than large ones that
    stand still.
    """

    def __init__(self, limit_bytes: int, now_s: Callable[[], float]) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        """Bytes of all holders, and of the requests whose calls are running."""
        self.disconnected = 0
        """Connections that were closed because of the budget."""
        self._now_s = now_s
        self._holders: set[Holder] = set()

    def charge(self, holder: Holder, size_bytes: int) -> None:
        """Sets the number of bytes that `holder` has. May close this connection or others."""
        before = holder.charged_bytes
        self.used_bytes += size_bytes - before
        holder.charged_bytes = size_bytes
        if not size_bytes:
            self._holders.discard(holder)
            return
        if not before:
            holder.charged_since_s = self._now_s()
            self._holders.add(holder)
        if size_bytes > before and self.used_bytes > self.limit_bytes:
            self._relieve()

    def begin_request(self, size_bytes: int) -> bool:
        """A request's call begins. False if there is no room for it even after all other connections are closed."""
        self.used_bytes += size_bytes
        if self.used_bytes > self.limit_bytes:
            self._relieve()
            if self.used_bytes > self.limit_bytes:
                self.used_bytes -= size_bytes
                return False
        return True

    def end_request(self, size_bytes: int) -> None:
        """The call has ended."""
        self.used_bytes -= size_bytes

    def _relieve(self) -> None:
        now_s = self._now_s()
        while self.used_bytes > self.limit_bytes and self._holders:
            # One millisecond at least, so that holders of the same turn of the loop are told apart by their size.
            holder = max(self._holders, key=lambda one: one.charged_bytes * (now_s - one.charged_since_s + 0.001))
            self.disconnected += 1
            self.charge(holder, 0)
            holder.disconnect(
                f"the server holds as many bytes of unfinished requests and untaken replies as it may: "
                f"{self.limit_bytes} (setting server.buffer_budget_bytes); retry, or send less at a time"
            )
