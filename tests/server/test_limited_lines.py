"""Repeated failures, for hours or for a year, neither fill the log nor are omitted from it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

import pytest

from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authentication.plain import PlainMechanism
from hms_cache.limited_log import INTERVAL_S, MAX_ERROR_CHARACTERS, MAX_TRACED, LimitedLog
from hms_cache.notifications.event_log import LogHead
from hms_cache.server.faults import MAX_LOGGED_TEXT
from hms_cache.server.layer import LOGGED_AGAIN_S, MAX_LOGGED_ADDRESSES, Handshakes
from hms_cache.server.position_sources import InlineSource, PacketSource, ThreadSource
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.position_wire import PositionConnection
from tests.manual_clock import ManualClock


def test_lines_of_one_kind_are_counted_and_others_are_not_hidden(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    log = LimitedLog(logging.getLogger("hms_cache.test"), clock.monotonic_s)
    for number in range(100):
        log.warning("no answer: %s", number)
    log.error("another thing")
    clock.advance(INTERVAL_S)
    log.warning("no answer: %s", "still")
    clock.advance(INTERVAL_S)
    log.warning("no answer: %s", "still")
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "no answer: 0"),
        ("ERROR", "another thing"),
        ("WARNING", "no answer: still (99 more of such since the last line)"),
        ("WARNING", "no answer: still"),
    ]


def test_a_trace_is_never_left_out(caplog: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger("hms_cache.test"), ManualClock().monotonic_s)
    for error in (None, None, ValueError("another one"), None):
        log.error("it failed: %s", error, exc_info=error)
    assert [one.getMessage() for one in caplog.records] == [
        "it failed: None",
        "it failed: another one (1 more of such since the last line)",
    ]
    assert caplog.records[1].exc_info is not None


def test_a_fault_has_its_trace_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    log = LimitedLog(logging.getLogger("hms_cache.test"), clock.monotonic_s)
    for error in (ValueError("of one kind"), ValueError("of the same"), KeyError("of another")):
        log.fault("%s could not be read", error, "it")
    clock.advance(INTERVAL_S)
    log.fault("%s could not be read", ValueError("x" * 2 * MAX_ERROR_CHARACTERS), "it")
    told = "it could not be read: ValueError: "
    assert [(one.getMessage()[: len(told) + 11], bool(one.exc_info)) for one in caplog.records] == [
        (f"{told}of one kind", True),
        ("it could not be read: KeyError: 'of another' ", True),
        (f"{told}{'x' * 11}", False),
    ]
    assert len(caplog.records[-1].getMessage()) < MAX_ERROR_CHARACTERS + 100
    for number in range(2 * MAX_TRACED):
        log.fault(f"thing {number} failed", ValueError())
    assert sum(bool(one.exc_info) for one in caplog.records) == MAX_TRACED


@pytest.mark.parametrize("kind", ["inline", "thread", "packets"])
def test_position_checks_of_an_outage_are_few_lines(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each read checks the position, thousands a second, for as long as the database is down."""

    def read_position() -> LogHead:
        raise DatabaseUnavailable("connection refused")

    def connect() -> PositionConnection | None:
        raise DatabaseUnavailable("connection refused")

    async def ask() -> list[LogHead | None]:
        loop = asyncio.get_running_loop()
        if kind == "inline":
            source: InlineSource | ThreadSource | PacketSource = InlineSource(read_position, loop)
        elif kind == "thread":
            source = ThreadSource(read_position, loop)
        else:
            source = PacketSource(connect, read_position, loop)
        answers: asyncio.Queue[LogHead | None] = asyncio.Queue()
        try:
            for _ in range(200):
                source.check(answers.put_nowait)
            return [await answers.get() for _ in range(200)]
        finally:
            source.close()

    assert asyncio.run(ask()) == [None] * 200
    assert Counter(one.getMessage() for one in caplog.records) == {"the position check failed: connection refused": 1}


def test_a_refusal_repeats_no_long_text_of_its_client(caplog: pytest.LogCaptureFixture) -> None:
    """Each address has a line in the log: with its length of some hundred kilobytes, a thousand addresses would fill
    it."""
    with pytest.raises(AuthenticationError) as refused:
        PlainMechanism(lambda *_: None).step(b"x" * 100_000 + b"\0user\0password")
    assert len(str(refused.value)) < 100
    Handshakes("TLS", ["closed"]).failed("closed", "10.0.0.1", "x" * 100_000)
    assert len(caplog.messages[-1]) < 2 * MAX_LOGGED_TEXT


def test_a_handshake_that_fails_is_told_though_others_failed_long_ago(caplog: pytest.LogCaptureFixture) -> None:
    """In a year, more addresses occur than are remembered, and one that failed once may have an expired certificate
    later."""
    clock = ManualClock()
    handshakes = Handshakes("TLS", ["closed"], clock.monotonic_s)
    for number in range(MAX_LOGGED_ADDRESSES + 100):
        handshakes.failed("closed", f"10.0.{number // 256}.{number % 256}", "reason")
    handshakes.failed("closed", "10.0.0.0", "reason")
    assert len(caplog.records) == MAX_LOGGED_ADDRESSES
    caplog.clear()
    clock.advance(LOGGED_AGAIN_S)
    for address in ("10.9.9.9", "10.0.0.0", "10.0.0.0"):
        handshakes.failed("closed", address, "expired")
    assert [one.getMessage().partition(" (")[0] for one in caplog.records] == [
        "no TLS with 10.9.9.9: expired",
        "no TLS with 10.0.0.0: expired",
    ]
    assert handshakes.outcomes == {"closed": MAX_LOGGED_ADDRESSES + 100 + 1 + 3}
