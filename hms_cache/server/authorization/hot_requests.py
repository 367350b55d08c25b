"""The hot path of a server that authorizes calls: finds kept answers by the bytes of the request and the decision class
of the user.

Two users share an answer if the policy grants them the same rights. A new policy gives every class a new tag, so that
its first request finds no kept answer and is decided again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_cache.cache.answers import Reply

if TYPE_CHECKING:
    from hms_cache.server.authorization.guard import Guard
    from hms_cache.server.connection import Connection
    from hms_cache.server.hot_path import HotPath
    from hms_cache.server.session import Session


class AuthorizedHotPath:
    """Stands in front of the `HotPath`, for one connection."""

    __slots__ = ("_answer", "_authorizer", "_guard", "_session")

    def __init__(self, hot: HotPath, guard: Guard) -> None:
        self._answer = hot.answer
        self._guard = guard
        self._authorizer = guard.authorizer
        self._session: Session | None = None

    def answer(self, connection: Connection, key: bytes, sequence: bytes) -> Reply | None:
        """Like `HotPath.answer`."""
        session = self._session
        if session is None:
            session = self._session = connection.session()
            if connection.is_refused():
                return None
        decisions = session.decisions
        if decisions is None or decisions.policy is not self._authorizer.policy:
            decisions = self._guard.decisions(session)
        return self._answer(connection, key + decisions.tag, sequence)
