"""A database that no longer answers the position check: the requests get an error, and a new connection is opened."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import cast

import pytest

from hms_cache.event_loops import new_event_loop
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, History, LogHead
from hms_cache.server import position_sources
from hms_cache.server.position_sources import PacketSource
from hms_cache.store.engine.position_wire import PositionConnection


class Wire:
    """A connection whose other end answers when the test says so."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.closed = False
        self.history = History("server")

    def fileno(self) -> int:
        return self.here.fileno()

    def send_query(self) -> None:
        self.here.sendall(b"?")

    def receive(self) -> LogHead | None:
        return LogHead(int.from_bytes(self.here.recv(8), "big"), self.history)

    def close(self) -> None:
        self.closed = True
        self.here.close()
        self.there.close()


class Questions:
    """A source over wires that the test holds; the thread answers 1."""

    def __init__(self, **limits: float) -> None:
        self.wires: list[Wire] = []
        self.source = PacketSource(
            self._connect,
            lambda: LogHead(1, UNKNOWN_HISTORY),
            asyncio.get_running_loop(),
            **{"answer_timeout_s": 0.05} | limits,
        )

    def _connect(self) -> PositionConnection:
        self.wires.append(Wire())
        return cast(PositionConnection, self.wires[-1])

    async def check(self, meanwhile: Callable[[], None] = lambda: None) -> int | None:
        answers: asyncio.Queue[LogHead | None] = asyncio.Queue()
        self.source.check(answers.put_nowait)
        meanwhile()
        head = await asyncio.wait_for(answers.get(), 30)
        assert answers.empty()
        return None if head is None else head.last_event_id


def test_a_question_without_an_answer_is_given_up_and_the_next_one_has_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(position_sources, "RECONNECT_INTERVAL_S", 0.0)

    async def ask() -> None:
        questions = Questions()
        try:
            assert await questions.check() == 1, "by the thread, which opens a connection"
            wire = questions.wires[0]
            for position in (5, 6):
                assert await questions.check(lambda sent=position: wire.there.send(sent.to_bytes(8, "big"))) == position
            while questions.source._timer is not None:  # the timer of answered checks finds nothing pending
                await asyncio.sleep(0.01)
            assert not wire.closed
            assert await questions.check() is None
            assert wire.closed
            assert await questions.check() == 1
            later = questions.wires[1]
            assert await questions.check(lambda: later.there.send((7).to_bytes(8, "big"))) == 7
        finally:
            questions.source.close()

    asyncio.run(ask())


def test_a_question_just_before_the_loop_stands_still_is_answered() -> None:
    """The timer of an earlier check is due when the loop continues; the answer has arrived meanwhile."""
    timeout_s = 0.4

    async def ask() -> None:
        questions = Questions(answer_timeout_s=timeout_s)
        try:
            await questions.check()
            wire = questions.wires[0]
            assert await questions.check(lambda: wire.there.send((5).to_bytes(8, "big"))) == 5
            while (timer := questions.source._timer) is not None and timer._left > 1:
                await asyncio.sleep(0.001)

            here, there = socket.socketpair()
            answers: asyncio.Queue[LogHead | None] = asyncio.Queue()

            def request_has_come() -> None:
                loop.remove_reader(here.fileno())
                questions.source.check(answers.put_nowait)
                wire.there.send((6).to_bytes(8, "big"))
                time.sleep(timeout_s * 3)

            loop = asyncio.get_running_loop()
            loop.add_reader(here.fileno(), request_has_come)
            there.send(b"!")
            with here, there:
                head = await asyncio.wait_for(answers.get(), 30)
            assert head is not None
            assert head.last_event_id == 6
            assert not wire.closed
        finally:
            questions.source.close()

    # uvloop runs due timers before it reads; asyncio reads first.
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(ask())


def test_a_connection_that_leads_elsewhere_or_is_given_up_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_sources, "RECONNECT_INTERVAL_S", 0.0)

    async def ask() -> None:
        questions = Questions()
        try:
            await questions.check()
            first = questions.wires[0]
            assert await questions.check(lambda: first.there.send((5).to_bytes(8, "big"))) == 5
            first.history = History("another server")
            assert await questions.check(lambda: first.there.send((5).to_bytes(8, "big"))) is None, "an equal id"
            assert first.closed
            await questions.check()
            second = questions.wires[1]

            def answer_after_renewal() -> None:
                questions.source.renew()
                second.there.send((6).to_bytes(8, "big"))

            assert await questions.check(answer_after_renewal) == 6, "the question on its way is answered"
            assert await questions.check() == 1, "by the thread"
            assert second.closed
        finally:
            questions.source.close()

    asyncio.run(ask())


def test_an_old_connection_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like all others: its address may lead to another server by now, and a firewall may have dropped it."""
    monkeypatch.setattr(position_sources, "RECONNECT_INTERVAL_S", 0.0)

    async def ask() -> None:
        questions = Questions(answer_timeout_s=30.0, recycle_s=0.05)
        try:
            await questions.check()
            first = questions.wires[0]
            assert await questions.check(lambda: first.there.send((5).to_bytes(8, "big"))) == 5
            async with asyncio.timeout(30):
                while not first.closed:
                    await asyncio.sleep(0.01)
            assert await questions.check() == 1, "by the thread"
            questions.source._recycle_s = 3600.0
            second = questions.wires[1]
            assert await questions.check(lambda: second.there.send((6).to_bytes(8, "big"))) == 6
            assert not second.closed
        finally:
            questions.source.close()

    asyncio.run(ask())


@pytest.mark.parametrize("moment", ["while it is opened", "before its first question"])
def test_a_connection_from_before_a_renewal_is_not_asked(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """It may lead to the former primary, whose answers prove nothing: no read would be answered immediately as long as
    it is open."""
    monkeypatch.setattr(position_sources, "RECONNECT_INTERVAL_S", 0.0)

    class Renewed(Questions):
        def _connect(self) -> PositionConnection:
            if moment == "while it is opened" and not self.wires:
                self.source.renew()
            return super()._connect()

    async def ask() -> None:
        questions = Renewed()
        try:
            assert await questions.check() == 1, "by the thread, which opens a connection"
            if moment == "before its first question":
                questions.source.renew()
            assert await questions.check() == 1, "by the thread, which opens another one"
            assert questions.wires[0].closed
            second = questions.wires[1]
            assert await questions.check(lambda: second.there.send((6).to_bytes(8, "big"))) == 6
            assert not second.closed
        finally:
            questions.source.close()

    asyncio.run(ask())


def test_a_connection_that_nobody_has_asked_is_closed_at_the_end() -> None:
    async def ask() -> None:
        questions = Questions()
        assert await questions.check() == 1, "by the thread, which opens a connection"
        questions.source.close()
        assert questions.wires[0].closed

    asyncio.run(ask())
