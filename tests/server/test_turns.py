"""Waiting for a turn of the loop: order, and how much one turn processes."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import ClassVar

from hms_cache.server.fairness import ROUND_S, SHORT_SLICE_S, SLICE_S, RoundRobin


class Long:
    """Has this many slices of work, each as long as a whole turn."""

    def __init__(
        self, round_robin: RoundRobin, address: str, slices: int, done: list[tuple[int, str]], turn: list[int]
    ) -> None:
        self.round_robin, self.address, self.slices, self.done, self.turn = round_robin, address, slices, done, turn
        round_robin.later(address, self)

    def run_slice(self) -> None:
        self.done.append((self.turn[0], self.address))
        end_s = perf_counter() + ROUND_S
        while perf_counter() < end_s:
            pass
        self.slices -= 1
        if self.slices:
            self.round_robin.later(self.address, self)


def test_a_turn_of_the_loop_has_one_slice_and_addresses_alternate() -> None:
    """A hundred connections of one address get as much as the only one of another."""

    async def run() -> list[tuple[int, str]]:
        loop = asyncio.get_running_loop()
        round_robin = RoundRobin(loop)
        done: list[tuple[int, str]] = []
        turn = [0]

        def count() -> None:
            turn[0] += 1
            loop.call_soon(count)

        loop.call_soon(count)
        for _ in range(100):
            Long(round_robin, "crowd", 1, done, turn)
        Long(round_robin, "one", 5, done, turn)
        while len(done) < 105:
            await asyncio.sleep(0)
        return done

    done = asyncio.run(run())
    assert [address for _, address in done[:10]] == ["crowd", "one"] * 5
    assert len({turn for turn, _ in done}) == 105


def test_slices_are_short_while_calls_are_on_their_way() -> None:
    busy = [False]

    class Slices(Long):
        found: ClassVar[list[float]] = []

        def run_slice(self) -> None:
            self.found.append(self.round_robin.slice_s)
            busy[0] = not busy[0]
            super().run_slice()

    async def run() -> None:
        round_robin = RoundRobin(asyncio.get_running_loop(), lambda: busy[0])
        done: list[tuple[int, str]] = []
        Slices(round_robin, "one", 4, done, [0])
        while len(done) < 4:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert Slices.found == [SLICE_S, SHORT_SLICE_S] * 2
