"""Limits on connections: how many are open at once, how many come from one address, and how long one may stay idle.

A connection that has never sent a call is the least valuable: scanners, health checks of load balancers and attackers
open such connections. When all places are taken, the oldest of them is closed for a new one.
"""

from __future__ import annotations

from typing import Protocol

REFUSED_AT_ONCE = 32
"""Connections that are open only so that their clients can be told why they are refused. Further ones are closed
without an answer."""


class Counts(dict[str, int]):
    """The number of connections of each address. An address without connections has no entry."""

    def add(self, address: str) -> None:
        """One more."""
        self[address] = self.get(address, 0) + 1

    def decrement(self, address: str) -> None:
        """One less."""
        remaining = self.pop(address) - 1
        if remaining:
            self[address] = remaining


class AdmittedConnection(Protocol):
    """A connection."""

    def abort(self) -> None:
        """Closes at once."""

    def has_other_limit(self) -> bool:
        """Whether another time limit applies now: part of a message has arrived, or the connection is ending."""


class Admission:
    """Counts connections. Everything runs on the event loop."""

    def __init__(self, max_connections: int, max_per_address: int) -> None:
        """`max_per_address` 0: no limit for each address."""
        self._max = max_connections
        self._max_per_address = max_per_address
        self.admitted: set[AdmittedConnection] = set()
        self._refused: set[AdmittedConnection] = set()
        self._by_address = Counts()
        self._uncalled: dict[AdmittedConnection, float] = {}
        """Connections that have not sent a call, the oldest first, with the time since which they have been idle."""
        self.refused = 0
        """Number of refused connections."""
        self.displaced = 0
        """Number of connections that were closed for a new one."""

    def __len__(self) -> int:
        return len(self.admitted) + len(self._refused)

    def everyone(self) -> list[AdmittedConnection]:
        """All that are open."""
        return [*self.admitted, *self._refused]

    def admit(self, connection: AdmittedConnection, address: str, now_s: float) -> str | None:
        """Counts a new connection. Returns the reason if it is refused.

        `address`: empty while a proxy has not named the client, which is then not limited by its address.
        """
        of_address = self._by_address.get(address, 0)
        if address and 0 < self._max_per_address <= of_address:
            return self._refuse(
                connection,
                f"too many connections: {of_address} are open from {address} (setting "
                "server.max_connections_per_address); close those that are not in use",
            )
        if len(self.admitted) >= self._max and not self._displace_one():
            return self._refuse(
                connection,
                f"too many connections: {self._max} are open (setting server.max_connections); "
                "retry, or use another server of the set",
            )
        self.admitted.add(connection)
        self._by_address.add(address)
        self._uncalled[connection] = now_s
        return None

    def refuse(self, connection: AdmittedConnection) -> None:
        """The caller refuses a connection for a reason of its own."""
        self._refuse(connection, "")

    def first_call(self, connection: AdmittedConnection) -> None:
        """The connection has sent a call."""
        self._uncalled.pop(connection, None)

    def release(self, connection: AdmittedConnection, address: str) -> None:
        """Removes a connection, however it was counted."""
        self._refused.discard(connection)
        if connection not in self.admitted:
            return
        self.admitted.discard(connection)
        self._uncalled.pop(connection, None)
        self._by_address.decrement(address)

    def expire_uncalled(self, now_s: float, timeout_s: float) -> tuple[int, float | None]:
        """Closes connections that have sent nothing for `timeout_s`. Returns how many, and when the next one is due. A
        connection to which another time limit applies is left to that one."""
        closed = 0
        while self._uncalled:
            connection, since_s = next(iter(self._uncalled.items()))
            if since_s + timeout_s > now_s:
                return closed, since_s + timeout_s
            del self._uncalled[connection]
            if connection.has_other_limit():
                self._uncalled[connection] = now_s
            else:
                closed += 1
                connection.abort()
        return closed, None

    def _refuse(self, connection: AdmittedConnection, reason: str) -> str:
        self.refused += 1
        if len(self._refused) >= REFUSED_AT_ONCE:
            connection.abort()
        self._refused.add(connection)
        return reason

    def _displace_one(self) -> bool:
        connection = next(iter(self._uncalled), None)
        if connection is None:
            return False
        self.displaced += 1
        # Its place is free at once. The rest of its cleanup happens in the loop's next turn.
        del self._uncalled[connection]
        connection.abort()
        return True
