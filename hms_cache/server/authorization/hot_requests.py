"""The hot path of a server that authorizes: kept answers are found by the request's bytes and the decision class.

Two users share an answer when the policy grants them the same. A new policy gives every class another tag, so that its
first request finds nothing and is decided anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_cache.cache.answers import Reply

if TYPE_CHECKING:
    from hms_cache.server.authorization.guard import Guard
    from hms_cache.server.connection import Connection
    from hms_cache.server.hot_path import HotPath


class AuthorizedHotPath:
    """Stands before the `HotPath` of all connections."""

    __slots__ = ("_guard", "_hot")

    def __init__(self, hot: HotPath, guard: Guard) -> None:
        self._hot = hot
        self._guard = guard

    def answer(self, connection: Connection, key: bytes, sequence: bytes) -> Reply | None:
        """As `HotPath.answer`."""
        decisions = connection.session().decisions
        if decisions is None or not self._guard.authorizer.is_current(decisions):
            decisions = self._guard.decisions(connection.session())
        return self._hot.answer(connection, key + decisions.tag, sequence)
