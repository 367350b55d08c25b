"""Who and what keeps the server busy: calls, their time and their loads by user, client address and table.

Of each only the busiest are counted, by the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005): a new name
takes the place of the least busy one and starts from its time. So whoever has more than a part of `PLACES` of all the
time is in the list, however many names clients make up, and `less_s` says by how much a time may be too long.

Requests that are answered from their bytes do not come here: what connections have sent and received is asked of the
system, and reads from memory of each table are counted by the cache.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

PLACES = 100
"""Names that are counted of each kind: several screens, and the search for the least busy one takes some 5 µs."""

LONGEST_NAME = 300
"""Characters of a name that are kept: a client may call a table anything."""


class Load(NamedTuple):
    """What one name has caused since the start, as far as it was counted."""

    name: str
    busy_s: float
    """Time of calls, from the decoded request to the encoded reply. Waiting for a thread is not in it."""
    calls: int
    loads: int
    """Loads into the cache that these calls ran."""
    less_s: float
    """By so much ``busy_s`` may be too long: the time of the name before it in its place."""


class _Place:
    __slots__ = ("busy_s", "calls", "less_s", "loads")

    def __init__(self, less_s: float) -> None:
        self.busy_s = self.less_s = less_s
        self.calls = 0
        self.loads = 0


class BusiestNames:
    """One space-saving counter. Not thread-safe: its owner has the lock."""

    def __init__(self, places: int = PLACES) -> None:
        self._most = places
        self._places: dict[str, _Place] = {}

    def add(self, name: str, busy_s: float, loads: int) -> None:
        """One call."""
        name = name[:LONGEST_NAME]
        place = self._places.get(name)
        if place is None:
            less_s = 0.0
            if len(self._places) >= self._most:
                least = min(self._places, key=lambda one: self._places[one].busy_s)
                less_s = self._places.pop(least).busy_s
            place = self._places[name] = _Place(less_s)
        place.busy_s += busy_s
        place.calls += 1
        place.loads += loads

    def busiest(self) -> list[Load]:
        """The busiest first."""
        found = [Load(name, one.busy_s, one.calls, one.loads, one.less_s) for name, one in self._places.items()]
        return sorted(found, key=lambda one: (-one.busy_s, one.name))


class CallLoads:
    """The counters of one server. ``_lock`` guards them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = BusiestNames()
        self._addresses = BusiestNames()
        self._tables = BusiestNames()

    def add(self, user: str, address: str, table: str, busy_s: float, loads: int) -> None:
        """A call has ended. `table`: empty when it is about none."""
        with self._lock:
            self._users.add(user, busy_s, loads)
            self._addresses.add(address, busy_s, loads)
            if table:
                self._tables.add(table, busy_s, loads)

    def by_user(self) -> list[Load]:
        """The busiest first."""
        with self._lock:
            return self._users.busiest()

    def by_address(self) -> list[Load]:
        """The busiest first."""
        with self._lock:
            return self._addresses.busiest()

    def by_table(self) -> list[Load]:
        """The busiest first."""
        with self._lock:
            return self._tables.busiest()


class Traffic(NamedTuple):
    """What the open connections of one user or address have carried, requests answered from their bytes included."""

    name: str
    connections: int
    received_bytes: int
    sent_bytes: int
    """That the client's system has acknowledged."""
