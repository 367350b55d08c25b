"""Requests answered from their bytes: who shares a question, what counts as an answer to it, what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from hms_cache.cache.answers import Answer
from hms_cache.cache.assembly import CacheOptions
from hms_cache.server.hot_path import HotPath
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, table
from tests.manual_clock import ManualClock

KEY = b"get_table d t"
INF = float("inf")


class Source:
    """Holds questions until the test answers them with the database's position."""

    def __init__(self) -> None:
        self.questions: list[Callable[[int | None], None]] = []

    def ask(self, answered: Callable[[int | None], None]) -> None:
        self.questions.append(answered)

    def close(self) -> None:
        """Holds nothing."""


class Connection:
    """Notes what becomes of its request."""

    def __init__(self) -> None:
        self.outcome = "waits"

    def send_hot(self, reply: bytes) -> None:
        self.outcome = reply.decode()

    def take_ordinary_way(self) -> None:
        self.outcome = "ordinary way"


class Loop:
    """A server, its hot path, and one answer that is held: that of table d.t."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.source = Source()
        self.path = HotPath(server.cache.reading, self.source, asyncio.new_event_loop())
        self.path._loop.close()
        create_database(server.store, "d")
        server.store.create_table(table("d", "t", version="old"))
        self.keep()

    def keep(self) -> None:
        """What the dispatcher does with the reply of an ordinary call."""
        reading = self.server.cache.reading
        reading.provenance.begin()
        version = self.server.store.get_table(CATALOG, "d", "t").parameters["version"]
        reading.keep_answer(KEY, "get_table", lambda sequence: sequence + version.encode(), 100)

    def found(self) -> Answer:
        found = self.path.find(KEY)
        assert found is not None
        return found

    def request(self) -> Connection:
        connection = Connection()
        reply = self.path.answer(connection, self.found(), b"1 ")
        if reply is not None:
            connection.send_hot(reply)
        return connection

    def answer(self, position: int | None = None, *, none: bool = False) -> None:
        """The oldest question comes back, with the database's position as it is now."""
        now = self.server.objects.current_event_id() if position is None else position
        self.source.questions.pop(0)(None if none else now)


def write(server: Server) -> None:
    server.objects.alter_table(CATALOG, "d", "t", changed_table(server.objects, "d", "t", version="new"))


def test_all_who_wait_share_a_question_and_who_comes_later_joins_the_next(servers: MakeServer) -> None:
    loop = Loop(servers())
    elsewhere = servers()
    first = loop.request()
    position = loop.server.objects.current_event_id()  # what the database answers to the first question
    write(elsewhere)
    late = [loop.request() for _ in range(3)]
    assert len(loop.source.questions) == 1
    loop.answer(position)
    assert [one.outcome for one in late] == ["waits"] * 3
    assert first.outcome == "1 old", "true when it was asked"
    loop.answer()
    assert [one.outcome for one in late] == ["ordinary way"] * 3
    assert (loop.path.checks, loop.path.requests) == (2, 4)


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
    second = loop.request()  # its question is sent when the first one's answer comes
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


def test_an_event_applied_between_the_look_up_and_the_reply_is_noticed(servers: MakeServer) -> None:
    loop = Loop(servers(CacheOptions(max_staleness_s=INF)))
    found = loop.found()
    write(loop.server)
    loop.server.poller.step()
    connection = Connection()
    assert loop.path.answer(connection, found, b"1 ") is None
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
    assert loop.path.find(KEY) is None
