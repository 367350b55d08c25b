"""The readiness probe: it queries rarely, one at a time, and never waits long."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hms_cache.admin.health import PROBE_VALID_S, DatabaseProbe
from hms_cache.store.engine.errors import DatabaseUnavailable
from tests.manual_clock import ManualClock


def at_once(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()


def test_an_answer_is_given_again_until_it_is_too_old() -> None:
    clock, requested = ManualClock(), []
    probe = DatabaseProbe(lambda: requested.append(1) or 7, clock, at_once)
    assert probe.error() is None
    assert probe.error() is None
    assert len(requested) == 1
    clock.advance(PROBE_VALID_S + 0.1)
    assert probe.error() is None
    assert len(requested) == 2


def test_an_outage_is_told_and_ends_with_the_next_probe() -> None:
    clock = ManualClock()
    outcomes: list[Exception | None] = [DatabaseUnavailable("no route"), RuntimeError("a defect"), None]

    def ask() -> int:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return 9

    probe = DatabaseProbe(ask, clock, at_once)
    assert probe.error() == "no route"
    clock.advance(PROBE_VALID_S + 0.1)
    assert probe.error() == "RuntimeError: a defect"
    clock.advance(PROBE_VALID_S + 0.1)
    assert probe.log_end == 0, "nobody has said yet"
    assert probe.error() is None
    assert probe.log_end == 9


def test_a_failure_that_stays_writes_one_trace(caplog: pytest.LogCaptureFixture) -> None:
    """A password that is no longer valid: a load balancer probes each second."""
    clock = ManualClock()

    def ask() -> int:
        raise RuntimeError("access denied")

    probe = DatabaseProbe(ask, clock, at_once)
    for _ in range(3):
        assert probe.error() == "RuntimeError: access denied"
        clock.advance(PROBE_VALID_S + 0.1)
    assert [record.exc_info is not None for record in caplog.records if record.exc_info] == [True]


def test_many_who_ask_at_once_share_one_probe() -> None:
    clock, release, requested = ManualClock(), threading.Event(), []
    answers: list[str | None] = []

    def ask() -> int:
        requested.append(1)
        release.wait(30)
        return 3

    probe = DatabaseProbe(ask, clock, at_once)
    started = threading.Barrier(5, timeout=60)

    def client() -> None:
        started.wait(30)
        answers.append(probe.error())

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    started.wait(30)
    release.set()
    for thread in clients:
        thread.join(30)
    assert answers == [None] * 4
    assert len(requested) == 1


def test_a_thread_that_cannot_be_started_is_no_answer_for_good() -> None:
    """The system was out of threads for a moment: the server is ready again afterwards."""
    clock, starts = ManualClock(), []

    def start(work: Callable[[], None]) -> None:
        starts.append(1)
        if len(starts) == 1:
            raise RuntimeError("can't start new thread")
        at_once(work)

    probe = DatabaseProbe(lambda: 7, clock, start)
    assert probe.error() == "can't start new thread"
    assert probe.error() is None
    assert probe.log_end == 7
