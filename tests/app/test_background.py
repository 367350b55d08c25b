"""Background work: it continues after errors, wakes early, and ends on request."""

from __future__ import annotations

import logging
import math
import queue
import threading

import pytest

from hms_cache.app.background import BackgroundTask

MAX_WAIT_S = 30.0
DAY_S = 86_400.0


class Waits(threading.Event):
    """An event that records how long it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.told: queue.Queue[float | None] = queue.Queue()

    def wait(self, timeout: float | None = None) -> bool:
        self.told.put(timeout)
        return super().wait(timeout)


def test_the_work_is_done_again_after_its_pause_or_when_woken() -> None:
    calls = threading.Semaphore(0)
    pauses = iter([0.0, 0.0, 3600.0, float("inf")])

    def work() -> float:
        calls.release()
        return next(pauses)

    task = BackgroundTask("test", work)
    task.start()
    for _ in range(3):
        assert calls.acquire(timeout=MAX_WAIT_S)
    assert not calls.acquire(blocking=False)
    task.wake()
    assert calls.acquire(timeout=MAX_WAIT_S)
    assert task.stop(MAX_WAIT_S)


def test_nothing_is_done_in_the_first_pause_unless_woken() -> None:
    calls = threading.Semaphore(0)

    def work() -> float:
        calls.release()
        return 3600.0

    ended, woken = (BackgroundTask("test", work, first_pause_s=float("inf")) for _ in range(2))
    for task in (ended, woken):
        task.start()
    assert ended.stop(MAX_WAIT_S)
    assert not calls.acquire(blocking=False)
    woken.wake()
    assert calls.acquire(timeout=MAX_WAIT_S)
    assert woken.stop(MAX_WAIT_S)


@pytest.mark.parametrize("pause_s", [0.001, 3601.0, 7 * DAY_S, 36_500 * DAY_S])
def test_a_pause_is_as_long_as_the_work_says(pause_s: float) -> None:
    """Pauses ended after an hour: a daily task ran 24 times a day."""
    task = BackgroundTask("test", lambda: pause_s, first_pause_s=pause_s)
    task._woken = waits = Waits()
    task.start()
    assert waits.told.get(timeout=MAX_WAIT_S) == pause_s
    task.wake()
    assert waits.told.get(timeout=MAX_WAIT_S) == pause_s
    assert task.stop(MAX_WAIT_S)


@pytest.mark.parametrize("pause_s", [math.inf, 1e18])
def test_a_pause_without_end_is_one(pause_s: float) -> None:
    task = BackgroundTask("test", lambda: pause_s)
    task._woken = waits = Waits()
    task.start()
    for _ in range(2):
        assert waits.told.get(timeout=MAX_WAIT_S) is None
        task.wake()
    assert task.stop(MAX_WAIT_S)


def test_an_error_is_logged_and_does_not_end_the_task(caplog: pytest.LogCaptureFixture) -> None:
    again = threading.Event()
    attempts = []

    def work() -> float:
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("the first time it fails")
        again.set()
        return 3600.0

    task = BackgroundTask("test-task", work)
    with caplog.at_level(logging.ERROR):
        task.start()
        task.wake()
        assert again.wait(MAX_WAIT_S)
    assert task.stop(MAX_WAIT_S)
    assert "test-task failed" in caplog.text
    assert "the first time it fails" in caplog.text


def test_an_error_that_stays_has_its_trace_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    """A database that refuses the account: each task would write a traceback every five seconds."""
    failed = threading.Semaphore(0)

    def work() -> float:
        failed.release()
        raise RuntimeError("access denied")

    task = BackgroundTask("test-task", work)
    task.start()
    for _ in range(3):
        assert failed.acquire(timeout=MAX_WAIT_S)
        task.wake()
    assert task.stop(MAX_WAIT_S)
    traces = [bool(record.exc_info) for record in caplog.records if "access denied" in record.getMessage()]
    assert len(traces) >= 3 and traces.count(True) == 1


def test_stop_waits_for_the_running_call_and_no_longer_than_told() -> None:
    begun, finish = threading.Event(), threading.Event()

    def work() -> float:
        begun.set()
        finish.wait(MAX_WAIT_S)
        return 0.0

    task = BackgroundTask("test", work)
    task.start()
    assert begun.wait(MAX_WAIT_S)
    assert not task.stop(0.01)
    finish.set()
    assert task.stop(MAX_WAIT_S)


def test_a_task_that_was_never_started_stops_at_once() -> None:
    assert BackgroundTask("test", lambda: 0.0).stop(MAX_WAIT_S)
