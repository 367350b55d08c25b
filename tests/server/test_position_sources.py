"""A database that no longer answers the position check: the requests are told, and a new connection is opened."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

import pytest

from hms_cache.server import position_sources
from hms_cache.server.position_sources import PacketSource
from hms_cache.store.engine.position_wire import PositionConnection


class Wire:
    """A connection whose other end answers when the test says so."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.closed = False

    def fileno(self) -> int:
        return self.here.fileno()

    def ask(self) -> None:
        self.here.sendall(b"?")

    def receive(self) -> int | None:
        return int.from_bytes(self.here.recv(8), "big")

    def close(self) -> None:
        self.closed = True
        self.here.close()
        self.there.close()


class Questions:
    """A source over wires that the test holds; the thread answers 1."""

    def __init__(self) -> None:
        self.wires: list[Wire] = []
        self.source = PacketSource(self._connect, lambda: 1, asyncio.get_running_loop())

    def _connect(self) -> PositionConnection:
        self.wires.append(Wire())
        return cast(PositionConnection, self.wires[-1])

    async def ask(self, meanwhile: Callable[[], None] = lambda: None) -> int | None:
        answers: asyncio.Queue[int | None] = asyncio.Queue()
        self.source.ask(answers.put_nowait)
        meanwhile()
        position = await asyncio.wait_for(answers.get(), 30)
        assert answers.empty()
        return position


def test_a_question_without_an_answer_is_given_up_and_the_next_one_has_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(position_sources, "ANSWER_TIMEOUT_S", 0.05)
    monkeypatch.setattr(position_sources, "RECONNECT_INTERVAL_S", 0.0)

    async def ask() -> None:
        questions = Questions()
        try:
            assert await questions.ask() == 1, "by the thread, which opens a connection"
            wire = questions.wires[0]
            for position in (5, 6):
                assert await questions.ask(lambda sent=position: wire.there.send(sent.to_bytes(8, "big"))) == position
            while questions.source._timer is not None:  # the timer of answered questions finds nothing open
                await asyncio.sleep(0.01)
            assert not wire.closed
            assert await questions.ask() is None
            assert wire.closed
            assert await questions.ask() == 1
            later = questions.wires[1]
            assert await questions.ask(lambda: later.there.send((7).to_bytes(8, "big"))) == 7
        finally:
            questions.source.close()

    asyncio.run(ask())
