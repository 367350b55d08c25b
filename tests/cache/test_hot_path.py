"""Requests answered by their bytes: which requests share a position check, what counts as its result, what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.call_context import call_context
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.event_log import History, LogHead
from hms_cache.server.hot_path import WAITS, HotPath
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, table
from tests.manual_clock import ManualClock

KEY = b"get_table d t"
INF = float("inf")


class Source:
    """Holds checks until the test answers them with the database's position."""

    def __init__(self) -> None:
        self.gather_s = 0.0
        self.questions: list[Callable[[LogHead | None], None]] = []

    def check(self, answered: Callable[[LogHead | None], None]) -> None:
        self.questions.append(answered)

    def close(self) -> None:
        """Caches nothing."""


class Connection:
    """Records the outcome of its request."""

    def __init__(self) -> None:
        self.outcome = "waits"

    def send_hot(self, reply: bytes) -> None:
        self.outcome = reply.decode()

    def dispatch_normally(self) -> None:
        self.outcome = "ordinary way"

    def abort(self) -> None:
        self.outcome = "closed"


class Broken(Connection):
    """Fails unexpectedly, for example on what its client has sent ahead."""

    def send_hot(self, reply: bytes) -> None:
        raise RuntimeError("a defect")

    def dispatch_normally(self) -> None:
        raise RuntimeError("a defect")


class Loop:
    """A server, its hot path, and one cached answer: that of table d.t."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.source = Source()
        self.history: History | None = None
        """What the next answers claim to be of; None: what the database says."""
        self.path = HotPath(server.cache.reading, self.source, asyncio.new_event_loop())
        self.path._loop.close()
        create_database(server.store, "d")
        server.store.writes.tables.create_table(table("d", "t", version="old"))
        self.keep()

    def keep(self) -> None:
        """What the dispatcher does with the reply of an ordinary call."""
        reading = self.server.cache.reading
        call_context.source.begin()
        version = self.server.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).parameters["version"]
        reading.keep_answer(KEY, "get_table", lambda sequence: sequence + version.encode(), 100)

    def request(self) -> Connection:
        connection = Connection()
        reply = self.path.answer(connection, KEY, b"1 ")
        assert reply is not None
        if reply:
            connection.send_hot(reply)
        return connection

    def answer(self, position: int | None = None, *, none: bool = False) -> None:
        """The oldest check returns with the current position of the database."""
        now = self.server.objects.reads.current_event_id() if position is None else position
        history = self.server.objects.reads.log_head().history if self.history is None else self.history
        self.source.questions.pop(0)(None if none else LogHead(now, history))


def write(server: Server) -> None:
    server.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(server.objects, "d", "t", version="new")
    )


def test_all_who_wait_share_a_question_and_who_comes_later_joins_the_next(servers: MakeServer) -> None:
    loop = Loop(servers())
    elsewhere = servers()
    first = loop.request()
    position = loop.server.objects.reads.current_event_id()  # the result of the first check
    write(elsewhere)
    late = [loop.request() for _ in range(3)]
    assert len(loop.source.questions) == 1
    loop.answer(position)
    assert [one.outcome for one in late] == ["waits"] * 3
    assert first.outcome == "1 old", "true when it was asked"
    loop.answer()
    assert [one.outcome for one in late] == ["ordinary way"] * 3
    assert (loop.path.checks, loop.path.requests) == (2, 4)


@pytest.mark.parametrize("none", [False, True], ids=["memory answers", "the database is away"])
def test_a_request_that_fails_leaves_no_other_without_its_answer(none: bool, servers: MakeServer) -> None:
    """They shared a check: those behind it in the list waited as long as their clients did."""
    loop = Loop(servers())
    first = loop.request()
    broken = Broken()
    assert loop.path.answer(broken, KEY, b"1 ") == WAITS
    others = [loop.request() for _ in range(3)]
    for _ in range(2):
        loop.answer(none=none)
    assert broken.outcome == "closed"
    assert [one.outcome for one in (first, *others)] == ["ordinary way" if none else "1 old"] * 4


@pytest.mark.parametrize("applied", [False, True], ids=["behind", "caught up"])
def test_after_a_write_elsewhere_the_ordinary_way_is_taken(applied: bool, servers: MakeServer) -> None:
    loop = Loop(servers())
    waiting = loop.request()
    write(servers())
    if applied:
        loop.server.poller.step()
    loop.answer()
    assert waiting.outcome == "ordinary way"
    loop.keep()
    again = loop.request()
    loop.answer()
    assert again.outcome == "1 new"


def test_a_question_without_an_answer_lets_its_requests_take_the_ordinary_way(servers: MakeServer) -> None:
    loop = Loop(servers())
    waiting = loop.request()
    loop.answer(none=True)
    assert waiting.outcome == "ordinary way"


def test_a_position_below_what_is_applied_is_no_answer(servers: MakeServer) -> None:
    loop = Loop(servers())
    waiting = loop.request()
    loop.answer(loop.server.cache.shared.position - 1)
    assert waiting.outcome == "ordinary way"


def test_the_age_counts_from_the_sending_of_the_question_that_was_answered(servers: MakeServer) -> None:
    clock = ManualClock()
    loop = Loop(servers(CacheOptions(max_staleness_s=0.5), clock))
    clock.advance(1)
    first = loop.request()
    clock.advance(0.4)
    second = loop.request()  # its check is sent when the result of the first one arrives
    loop.answer()
    assert (first.outcome, second.outcome) == ("1 old", "waits")
    clock.advance(0.2)
    third = loop.request()
    assert third.outcome == "waits", "0.6 s after the question that was answered"
    loop.answer()
    assert (second.outcome, third.outcome) == ("1 old", "waits")
    loop.answer()
    assert third.outcome == "1 old"


def test_within_max_staleness_replies_are_sent_at_once(servers: MakeServer) -> None:
    clock = ManualClock()
    loop = Loop(servers(CacheOptions(max_staleness_s=0.5), clock))
    clock.advance(1)
    loop.request()
    loop.answer()
    clock.advance(0.5)
    assert loop.request().outcome == "1 old"
    clock.advance(0.001)
    assert loop.request().outcome == "waits"


def test_an_event_applied_between_the_look_up_and_the_reply_is_noticed(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(servers(CacheOptions(max_staleness_s=INF)))
    is_recent = loop.path._freshness.is_recent

    def is_recent_after_an_event() -> bool:
        write(loop.server)
        loop.server.poller.step()
        return is_recent()

    monkeypatch.setattr(loop.path._freshness, "is_recent", is_recent_after_an_event)
    connection = loop.request()
    assert connection.outcome == "waits"
    loop.answer()
    assert connection.outcome == "ordinary way"


@pytest.mark.parametrize("max_staleness_s", [0.0, 0.5, INF])
def test_an_own_write_is_never_answered_with_what_was_before_it(max_staleness_s: float, servers: MakeServer) -> None:
    loop = Loop(servers(CacheOptions(max_staleness_s=max_staleness_s)))
    write(loop.server)
    connection = loop.request()
    if connection.outcome == "waits":
        loop.answer()
    assert connection.outcome == "ordinary way"


def test_a_server_without_a_cache_has_no_hot_path(servers: MakeServer) -> None:
    loop = Loop(servers())
    reading = loop.server.cache.reading
    reading.modes = replace(reading.modes, enabled=False)
    assert loop.path.answer(Connection(), KEY, b"1 ") is None


class Turns:
    """The part of an event loop that the hot path uses: the callbacks of the next turn."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def turn(self) -> None:
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()


class GatheringLoop(Loop):
    """As `Loop`, with a distant database and turns made by the test."""

    def __init__(self, servers: MakeServer) -> None:
        self.clock = ManualClock()
        super().__init__(servers(CacheOptions(), self.clock))
        self.source.gather_s = 0.001
        self.turns = Turns()
        self.path._loop = self.turns  # type: ignore[assignment]

    def serve(self, count: int) -> None:
        """Creates this many requests: the first has a check of its own, the others share one."""
        for _ in range(count):
            self.request()
        self.answer()
        self.clock.advance(0.0011)
        self.turns.turn()
        self.answer()
        assert not self.source.questions and not self.turns.ready


def test_a_question_waits_for_those_who_just_were_answered(servers: MakeServer) -> None:
    loop = GatheringLoop(servers)
    loop.serve(9)
    for _ in range(7):
        loop.request()
        loop.clock.advance(0.0009)  # each arrival restarts the wait
        loop.turns.turn()
        assert not loop.source.questions
    eighth = loop.request()
    loop.turns.turn()
    assert len(loop.source.questions) == 1, "all that were expected are there"
    loop.answer()
    assert eighth.outcome == "1 old"
    assert (loop.path.checks, loop.path.requests) == (3, 17)


def test_a_question_waits_no_longer_than_it_is_worth(servers: MakeServer) -> None:
    loop = GatheringLoop(servers)
    loop.serve(9)
    alone = loop.request()
    for _ in range(3):
        loop.turns.turn()
    assert not loop.source.questions
    loop.clock.advance(0.0011)
    loop.turns.turn()
    assert len(loop.source.questions) == 1
    loop.answer()
    assert alone.outcome == "1 old"
    loop.request()
    assert len(loop.source.questions) == 1, "nobody else is expected now"


def test_a_held_question_proves_what_was_written_before_it_was_sent(servers: MakeServer) -> None:
    loop = GatheringLoop(servers)
    loop.serve(9)
    waiting = loop.request()
    write(servers())
    loop.clock.advance(0.0011)
    loop.turns.turn()
    loop.answer()
    assert waiting.outcome == "ordinary way"


def test_few_requests_never_wait_for_others(servers: MakeServer) -> None:
    loop = GatheringLoop(servers)
    loop.serve(3)
    loop.request()
    assert len(loop.source.questions) == 1
