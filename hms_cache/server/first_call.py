"""Finds out which connections have never sent a call, without a check in each later call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_cache.cache.answers import Reply

if TYPE_CHECKING:
    from hms_cache.server.connection import Connection
    from hms_cache.server.hot_path import HotPath
    from hms_cache.server.listener import Listener


class FirstCall:
    """Stands in for a connection's `HotPath` until its first hot request, and records that it has sent a call."""

    __slots__ = ("_hot", "_listener")

    def __init__(self, listener: Listener, hot: HotPath) -> None:
        self._listener = listener
        self._hot = hot

    def answer(self, connection: Connection, key: bytes, sequence: bytes) -> Reply | None:
        """Like `HotPath.answer`."""
        reply = self._hot.answer(connection, key, sequence)
        if reply is not None:
            self._listener.first_call(connection)
            connection.use_hot_path(self._hot)
        return reply
