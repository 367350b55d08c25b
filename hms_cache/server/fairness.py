"""Limits on what one client may take of shared resources: calls in flight by user and address, and time on the event
loop.

No client shall occupy all threads. And all long messages and requests sent ahead share one time budget for each turn of
the loop. A short request that arrives alone is decoded at once, so it waits at most for the work of one turn, however
many clients send long messages meanwhile.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

ROUND_S = 0.00025
"""In each turn of the loop, for all that waits together. A hot read takes a fifth of it."""


SLICE_S = 0.00015
"""After this time spent on a long message, or on requests sent ahead, others have their turn. Structs of one byte take
more than a microsecond each, so that a message of them would block the loop for a second."""


SHORT_ROUND_S = 0.00005
"""Used instead of `ROUND_S` while calls are running: their threads, and requests that wait for a position check, need
the interpreter several times, and wait for the end of a slice each time. Not used always, since a slice costs some
microseconds in addition to what it decodes."""

SHORT_SLICE_S = 0.00004


class ClientLimits:
    """Counts calls that are running or waiting for a thread. Everything runs on the event loop.

    Holds one entry for each user and address with such a call: no more than `max_in_flight` and the queues of the
    thread pools allow.
    """

    def __init__(self, max_per_user: int, max_per_address: int) -> None:
        """0: no limit."""
        self._max_per_user = max_per_user
        self._max_per_address = max_per_address
        self.by_user: dict[str, int] = {}
        self.by_address: dict[str, int] = {}
        self.refused = {"user": 0, "address": 0}

    def refusal(self, user: str, address: str) -> str | None:
        """The reason if one more call must be refused, which is counted; None: it may begin."""
        of_user, of_address = self.by_user.get(user, 0), self.by_address.get(address, 0)
        if 0 < self._max_per_user <= of_user:
            self.refused["user"] += 1
            return f"{of_user} calls of user {user} are in flight (setting server.max_calls_per_user); retry"
        if 0 < self._max_per_address <= of_address:
            self.refused["address"] += 1
            return f"{of_address} calls from {address} are in flight (setting server.max_calls_per_address); retry"
        return None

    def begin(self, user: str, address: str) -> None:
        """Counts a new call."""
        self.by_user[user] = self.by_user.get(user, 0) + 1
        self.by_address[address] = self.by_address.get(address, 0) + 1

    def end(self, user: str, address: str) -> None:
        """Removes a call."""
        for counts, name in ((self.by_user, user), (self.by_address, address)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]


class Waiter(Protocol):
    """A connection that has more to decode than one slice."""

    def run_slice(self) -> None:
        """Does a slice of its work (`RoundRobin.slice_s`), and requests another if there is more. Must not raise."""


class RoundRobin:
    """Waiters by address: the addresses take turns, and so do the connections of each address. Everything runs on the
    event loop."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        others_wait: Callable[[], bool] = lambda: False,
        network_of: Callable[[str], str] = str,
    ) -> None:
        """`others_wait`: whether calls are running; `network_of`: maps an address to the network whose addresses share
        one turn."""
        self._loop = loop
        self._others_wait = others_wait
        self._network_of = network_of
        self.slice_s = SLICE_S
        """How long a waiter may work now."""
        self._waiting: dict[str, deque[Waiter]] = {}
        """The addresses in the order of their turns."""
        self._runs_next = False

    def later(self, address: str, waiter: Waiter) -> None:
        """The waiter has its turn after those that are waiting. It must not be waiting already."""
        address = self._network_of(address)
        queue = self._waiting.get(address)
        if queue is None:
            queue = self._waiting[address] = deque()
        queue.append(waiter)
        if not self._runs_next:
            self._runs_next = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        round_s, self.slice_s = (SHORT_ROUND_S, SHORT_SLICE_S) if self._others_wait() else (ROUND_S, SLICE_S)
        end_s = perf_counter() + round_s
        waiting = self._waiting
        try:
            while waiting:
                address = next(iter(waiting))
                queue = waiting.pop(address)
                waiter = queue.popleft()
                if queue:
                    waiting[address] = queue
                waiter.run_slice()
                if perf_counter() >= end_s:
                    break
        finally:
            self._runs_next = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)
