"""Work of connections that can wait: long messages and requests sent ahead have one budget for each turn of the loop.

A request that is short and comes alone is decoded when it comes, so it waits for what one turn takes, however many
clients send long messages meanwhile.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from time import perf_counter
from typing import Protocol

TURN_S = 0.0005
"""Of each turn of the loop, for all that waits together. A hot read takes a tenth of it."""


class Waiter(Protocol):
    """A connection that has more to decode than one slice."""

    def take_turn(self) -> None:
        """Does a slice of its work; it asks for another turn if there is more. Must not raise."""


class Turns:
    """Who waits, by address: addresses take turns, and so do the connections of each. All on the event loop."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[str, deque[Waiter]] = {}
        """The addresses in the order of their turns."""
        self._runs_next = False

    def later(self, address: str, waiter: Waiter) -> None:
        """The waiter has its turn after those that wait; it must not wait already."""
        queue = self._waiting.get(address)
        if queue is None:
            queue = self._waiting[address] = deque()
        queue.append(waiter)
        if not self._runs_next:
            self._runs_next = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        end_s = perf_counter() + TURN_S
        waiting = self._waiting
        try:
            while waiting:
                address = next(iter(waiting))
                queue = waiting.pop(address)
                waiter = queue.popleft()
                if queue:
                    waiting[address] = queue
                waiter.take_turn()
                if perf_counter() >= end_s:
                    break
        finally:
            self._runs_next = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)
