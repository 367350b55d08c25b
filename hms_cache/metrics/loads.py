"""The users, client addresses and tables that keep the server busy: their calls, time and loads.

Only the busiest names of each kind are counted, with the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005): a
new name replaces the least busy one, and starts with its time. Therefore every name with more than one part in
`MAX_NAMES` of the total time is in the list, however many names clients invent. `max_error_s` is the maximum error of
a time.

Requests that are answered from their bytes are not counted here. The bytes of connections are read from the system, and
the cache counts the reads of each table from memory.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

MAX_NAMES = 100
"""Number of names counted per kind: several screens, and finding the least busy one takes some 5 µs."""

MAX_NAME_CHARACTERS = 300
"""Maximum length of a name: clients may send a table name of any length."""


class Load(NamedTuple):
    """The load of one name since the start, as far as it was counted."""

    name: str
    busy_s: float
    """Time of calls, from the decoded request to the encoded reply. The wait for a thread is not included."""
    calls: int
    loads: int
    """Loads of the cache run by these calls."""
    max_error_s: float
    """The maximum by which ``busy_s`` may be too high: the time of the name that this one replaced."""


class _Counter:
    __slots__ = ("busy_s", "calls", "loads", "max_error_s")

    def __init__(self, max_error_s: float) -> None:
        self.busy_s = self.max_error_s = max_error_s
        self.calls = 0
        self.loads = 0


class BusiestNames:
    """A space-saving counter. Not thread-safe: its owner has the lock."""

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._counters: dict[str, _Counter] = {}

    def add(self, name: str, busy_s: float, loads: int) -> None:
        """Counts one call."""
        name = name[:MAX_NAME_CHARACTERS]
        counter = self._counters.get(name)
        if counter is None:
            max_error_s = 0.0
            if len(self._counters) >= self._max_names:
                least = min(self._counters, key=lambda one: self._counters[one].busy_s)
                max_error_s = self._counters.pop(least).busy_s
            counter = self._counters[name] = _Counter(max_error_s)
        counter.busy_s += busy_s
        counter.calls += 1
        counter.loads += loads

    def busiest(self) -> list[Load]:
        """Returns the counted names, the busiest first."""
        found = [Load(name, one.busy_s, one.calls, one.loads, one.max_error_s) for name, one in self._counters.items()]
        return sorted(found, key=lambda one: (-one.busy_s, one.name))


class CallLoads:
    """The counters of a server. ``_lock`` guards them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = BusiestNames()
        self._addresses = BusiestNames()
        self._tables = BusiestNames()

    def add(self, user: str, address: str, table: str, busy_s: float, loads: int) -> None:
        """Counts a call that has ended. `table` is empty if the call is not about a table."""
        with self._lock:
            self._users.add(user, busy_s, loads)
            self._addresses.add(address, busy_s, loads)
            if table:
                self._tables.add(table, busy_s, loads)

    def by_user(self) -> list[Load]:
        """Returns the counted names, the busiest first."""
        with self._lock:
            return self._users.busiest()

    def by_address(self) -> list[Load]:
        """Returns the counted names, the busiest first."""
        with self._lock:
            return self._addresses.busiest()

    def by_table(self) -> list[Load]:
        """Returns the counted names, the busiest first."""
        with self._lock:
            return self._tables.busiest()


class Traffic(NamedTuple):
    """Bytes of the open connections of one user or address, including requests that were answered from their bytes."""

    name: str
    connections: int
    received_bytes: int
    sent_bytes: int
    """Bytes acknowledged by the client's system."""
