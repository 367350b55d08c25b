"""Who may be connected: how many at once, how many from one address, and for how long without saying anything.

A connection that has never sent a call is worth least: it is what scanners, load balancers' probes and attackers have.
When all places are taken the oldest of them makes way for a new one.
"""

from __future__ import annotations

from typing import Protocol

REFUSED_AT_ONCE = 32
"""Connections that are open only to be told why they are refused. Beyond them a new one is closed without a word."""


class Counts(dict[str, int]):
    """How many there are of each address; of none there is no entry."""

    def add(self, address: str) -> None:
        """One more."""
        self[address] = self.get(address, 0) + 1

    def take_away(self, address: str) -> None:
        """One less."""
        left = self.pop(address) - 1
        if left:
            self[address] = left


class Guest(Protocol):
    """A connection."""

    def abort(self) -> None:
        """Closes at once."""

    def has_other_limit(self) -> bool:
        """Whether another time limit is its own now: part of a message has come, or the connection ends."""


class Admission:
    """Counts connections. Everything runs on the event loop."""

    def __init__(self, max_connections: int, max_per_address: int) -> None:
        """`max_per_address` 0: no limit of its own."""
        self._max = max_connections
        self._max_per_address = max_per_address
        self.admitted: set[Guest] = set()
        self._refused: set[Guest] = set()
        self._by_address = Counts()
        self._uncalled: dict[Guest, float] = {}
        """Those that have not sent a call, the oldest first, with the time since which they are expected to."""
        self.refused = 0
        """How many were refused so far."""
        self.displaced = 0
        """How many made way for a new one."""

    def __len__(self) -> int:
        return len(self.admitted) + len(self._refused)

    def everyone(self) -> list[Guest]:
        """All that are open."""
        return [*self.admitted, *self._refused]

    def admit(self, guest: Guest, address: str, now_s: float) -> str | None:
        """Counts one in; a text says why it is refused."""
        of_address = self._by_address.get(address, 0)
        if 0 < self._max_per_address <= of_address:
            return self._refuse(
                guest,
                f"too many connections: {of_address} are open from {address} (setting "
                "server.max_connections_per_address); close those that are not in use",
            )
        if len(self.admitted) >= self._max and not self._displace_one():
            return self._refuse(
                guest,
                f"too many connections: {self._max} are open (setting server.max_connections); "
                "retry, or use another server of the set",
            )
        self.admitted.add(guest)
        self._by_address.add(address)
        self._uncalled[guest] = now_s
        return None

    def refuse(self, guest: Guest) -> None:
        """One is refused for a reason of the caller's."""
        self._refuse(guest, "")

    def first_call(self, guest: Guest) -> None:
        """It has sent a call."""
        self._uncalled.pop(guest, None)

    def release(self, guest: Guest, address: str) -> None:
        """Counts one out, however it was counted in."""
        self._refused.discard(guest)
        if guest not in self.admitted:
            return
        self.admitted.discard(guest)
        self._uncalled.pop(guest, None)
        self._by_address.take_away(address)

    def expire_uncalled(self, now_s: float, timeout_s: float) -> tuple[int, float | None]:
        """Closes those that have sent nothing for `timeout_s`; how many, and when the next one's time is up.

        Who has another time limit has that one first.
        """
        closed = 0
        while self._uncalled:
            guest, since_s = next(iter(self._uncalled.items()))
            if since_s + timeout_s > now_s:
                return closed, since_s + timeout_s
            del self._uncalled[guest]
            if guest.has_other_limit():
                self._uncalled[guest] = now_s
            else:
                closed += 1
                guest.abort()
        return closed, None

    def _refuse(self, guest: Guest, reason: str) -> str:
        self.refused += 1
        if len(self._refused) >= REFUSED_AT_ONCE:
            guest.abort()
        self._refused.add(guest)
        return reason

    def _displace_one(self) -> bool:
        guest = next(iter(self._uncalled), None)
        if guest is None:
            return False
        self.displaced += 1
        # Its place is free at once; what is left of it ends in the loop's next turn.
        del self._uncalled[guest]
        guest.abort()
        return True
