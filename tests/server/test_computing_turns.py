"""Threads that read compute one at a time, and give way while they wait: nobody waits behind all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

import hms_cache.store.engine.drivers.mysql_driver
import hms_cache.store.engine.drivers.postgresql_driver
from hms_cache.computing import ThreadScheduler
from hms_cache.server import thread_pool
from hms_cache.server.method_pools import SCHEDULED_POOLS, PoolName
from hms_cache.store.engine import work_units
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write

MAX_WAIT_S = 10.0
NEVER_S = 3600.0
"""A slice within which nobody loses a turn in a test."""

THREADS = 8


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(MAX_WAIT_S)
        assert not thread.is_alive()


def wait_until_queued(scheduler: ThreadScheduler, count: int) -> None:
    queued = threading.Event()
    for _ in range(int(MAX_WAIT_S * 1000)):
        if scheduler.waiting_threads >= count:
            return
        queued.wait(0.001)
    raise AssertionError(f"{scheduler.waiting_threads} of {count} wait")


def test_one_at_a_time_computes_and_those_who_wait_come_in_order() -> None:
    scheduler = ThreadScheduler(NEVER_S)
    order: list[int] = []
    computing = 0

    def compute(number: int) -> None:
        nonlocal computing
        with scheduler.slot():
            computing += 1
            assert scheduler.is_owner and computing == 1
            order.append(number)
            computing -= 1

    threads = []
    with scheduler.slot():
        for number in range(THREADS):
            threads.append(started(lambda number=number: compute(number)))  # type: ignore[misc]
            wait_until_queued(scheduler, number + 1)
        assert not order
    joined(*threads)
    assert order == list(range(THREADS))


def test_who_waits_gives_way_and_takes_part_again() -> None:
    scheduler = ThreadScheduler(NEVER_S)
    paused, proceed = threading.Event(), threading.Event()
    ended: list[bool] = []

    def wait() -> None:
        with scheduler.slot():
            with scheduler.waiting():
                scheduler.resume()  # as a driver does internally: a wait for others' work does not wait for a turn
                assert not scheduler.is_owner
                paused.set()
                assert proceed.wait(MAX_WAIT_S)
            ended.append(scheduler.is_owner)
        ended.append(scheduler.is_owner)

    thread = started(wait)
    assert paused.wait(MAX_WAIT_S)
    with scheduler.slot():
        proceed.set()
        wait_until_queued(scheduler, 1)
        assert not ended
    joined(thread)
    assert ended == [True, False]


def test_who_takes_no_part_waits_for_nobody() -> None:
    scheduler = ThreadScheduler(NEVER_S)
    with scheduler.slot():
        joined(started(lambda: (scheduler.resume(), scheduler.pause())))


def test_who_computes_for_long_loses_its_turn_once_and_each_turn_has_one_owner() -> None:
    scheduler = ThreadScheduler(0.001)
    proceed = threading.Event()
    begun = threading.Semaphore(0)
    held: list[bool] = []

    def compute_on() -> None:
        with scheduler.slot():
            begun.release()
            assert proceed.wait(MAX_WAIT_S)  # notifies nobody
            held.append(scheduler.is_owner)

    long_ones = [started(compute_on) for _ in range(THREADS)]
    for _ in range(THREADS):
        assert begun.acquire(timeout=MAX_WAIT_S)
    joined(started(lambda: scheduler.begin() or scheduler.end()))  # type: ignore[func-returns-value]
    proceed.set()
    joined(*long_ones)
    assert held.count(True) == 0
    assert not scheduler.waiting_threads
    with scheduler.slot():
        assert scheduler.is_owner


def test_no_turn_begins_while_a_call_goes_first() -> None:
    scheduler = ThreadScheduler(NEVER_S, NEVER_S)
    order: list[int] = []

    def compute(number: int) -> None:
        with scheduler.slot():
            order.append(number)

    def queue(number: int) -> threading.Thread:
        thread = started(lambda: compute(number))
        wait_until_queued(scheduler, number + 1)
        return thread

    with scheduler.first():
        with scheduler.first():
            threads = [queue(0)]
        threads.append(queue(1))
        assert not order
    joined(*threads)
    assert order == [0, 1]
    with scheduler.slot():
        with scheduler.first():
            assert scheduler.is_owner  # what has begun continues
            threads = [queue(0), queue(1)]
            scheduler.end()
            assert len(order) == 2 and scheduler.waiting_threads == 2
        joined(*threads)
    assert order == [0, 1, 0, 1]


def test_who_holds_locks_of_the_database_comes_before_readers_and_is_not_withheld() -> None:
    """Others wait for the rows that it has locked, as long as it waits for its turn."""
    scheduler = ThreadScheduler(NEVER_S, NEVER_S)
    order: list[str] = []
    locked, proceed = threading.Event(), threading.Event()

    def read() -> None:
        with scheduler.slot():
            order.append("read")

    def write() -> None:
        with scheduler.slot(), scheduler.holding_locks():
            with scheduler.waiting():
                locked.set()
                assert proceed.wait(MAX_WAIT_S)
            order.append("write")

    writing = started(write)
    assert locked.wait(MAX_WAIT_S)
    with scheduler.first():
        reading = started(read)
        wait_until_queued(scheduler, 1)
        proceed.set()
        joined(writing)
        assert order == ["write"] and scheduler.waiting_threads == 1
    joined(reading)
    assert order == ["write", "read"]


def test_who_holds_locks_comes_next() -> None:
    scheduler = ThreadScheduler(NEVER_S)
    order: list[str] = []

    def compute(name: str) -> None:
        with scheduler.holding_locks() if name == "write" else nullcontext(), scheduler.slot():
            order.append(name)

    threads = []
    with scheduler.slot():
        for number, name in enumerate(("read", "write", "read", "write"), 1):
            threads.append(started(lambda name=name: compute(name)))  # type: ignore[misc]
            wait_until_queued(scheduler, number)
    joined(*threads)
    assert order == ["write", "write", "read", "read"]


def test_a_write_transaction_holds_locks(initialized_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    scheduler = ThreadScheduler(NEVER_S)
    monkeypatch.setattr(work_units, "scheduler", scheduler)
    run_write(initialized_database, lambda _: held.append(scheduler.holds_locks))
    assert held == [True] and not scheduler.holds_locks


def test_a_call_that_takes_long_keeps_nobody_waiting_for_long() -> None:
    scheduler = ThreadScheduler(0.001, 0.001)
    with scheduler.first():
        joined(started(lambda: scheduler.begin() or scheduler.end()))  # type: ignore[func-returns-value]


def test_calls_that_follow_each_other_keep_nobody_waiting_for_long() -> None:
    """Each checks whether a turn is overdue before it counts as one with precedence."""
    scheduler = ThreadScheduler(NEVER_S, 0.001)
    ended = threading.Event()

    def compute() -> None:
        with scheduler.slot():
            pass
        ended.set()

    with scheduler.slot():
        started(compute)
        wait_until_queued(scheduler, 1)
        first = scheduler.first()
        first.__enter__()
    for _ in range(int(MAX_WAIT_S * 1000)):
        following = scheduler.first()
        following.__enter__()
        first.__exit__(None, None, None)
        first = following
        if ended.wait(0.001):
            break
    first.__exit__(None, None, None)
    assert ended.is_set()


@pytest.mark.parametrize("name", [name for name in PoolName if name not in SCHEDULED_POOLS])
def test_calls_of_other_pools_go_first(name: PoolName, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = ThreadScheduler(NEVER_S, NEVER_S)
    monkeypatch.setattr(thread_pool, "scheduler", scheduler)
    pool = thread_pool.ThreadPool(1, name.value)
    pool.start()
    begun, proceed = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        assert proceed.wait(MAX_WAIT_S)

    try:
        assert pool.submit(call, "call") and begun.wait(MAX_WAIT_S)
        reading = started(lambda: scheduler.begin() or scheduler.end())  # type: ignore[func-returns-value]
        wait_until_queued(scheduler, 1)
        proceed.set()
        joined(reading)
    finally:
        proceed.set()
        pool.close()
        pool.join(MAX_WAIT_S)


@pytest.mark.parametrize("name", list(PoolName))
def test_pools_of_reads_take_turns_and_no_other_waits_for_one(name: PoolName, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = ThreadScheduler(NEVER_S)
    monkeypatch.setattr(thread_pool, "scheduler", scheduler)
    pool = thread_pool.ThreadPool(1, name.value, is_scheduled=name in SCHEDULED_POOLS)
    pool.start()
    answered = threading.Event()
    try:
        with scheduler.slot():
            assert pool.submit(answered.set, "call")
            if name in SCHEDULED_POOLS:
                wait_until_queued(scheduler, 1)
                assert not answered.is_set()
            else:
                assert answered.wait(MAX_WAIT_S)
        assert answered.wait(MAX_WAIT_S)
    finally:
        pool.close()
        pool.join(MAX_WAIT_S)
    assert SCHEDULED_POOLS == {PoolName.READS, PoolName.HEAVY}


def test_a_server_gives_turns_to_the_threads_of_its_reads(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat's pool continues while a reader keeps its turn for ever."""
    server = serve(**{"cache.enabled": False})
    scheduler = ThreadScheduler(NEVER_S)
    monkeypatch.setattr(thread_pool, "scheduler", scheduler)
    with scheduler.slot():
        reading = started(lambda: server.link().call("get_all_databases"))
        wait_until_queued(scheduler, 1)
        server.link().call("get_open_txns")
        assert reading.is_alive()
    joined(reading)


LOCKS = {
    "mysql": ("SELECT GET_LOCK('turns', 60)", "SELECT RELEASE_LOCK('turns')"),
    "postgresql": ("SELECT pg_advisory_lock(17)", "SELECT pg_advisory_unlock(17)"),
}


def test_who_waits_for_the_database_gives_way(initialized_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if initialized_database.is_sqlite:
        pytest.skip("SQLite works in the thread itself")
    lock, unlock = LOCKS[initialized_database.dialect]
    scheduler = ThreadScheduler(NEVER_S)
    monkeypatch.setattr(hms_cache.store.engine.drivers.mysql_driver, "scheduler", scheduler)
    monkeypatch.setattr(hms_cache.store.engine.drivers.postgresql_driver, "scheduler", scheduler)
    held: list[bool] = []
    connected = threading.Event()

    def wait_for_lock() -> None:
        with initialized_database.loading() as connection:
            connection.exec_driver_sql("SELECT 1")
            with scheduler.slot():
                connected.set()
                connection.exec_driver_sql(lock)
                held.append(scheduler.is_owner)
            connection.exec_driver_sql(unlock)

    with initialized_database.loading() as connection:
        connection.exec_driver_sql(lock)
        waiting = started(wait_for_lock)
        assert connected.wait(MAX_WAIT_S)
        joined(started(lambda: scheduler.begin() or scheduler.end()))  # type: ignore[func-returns-value]
        assert not held
        connection.exec_driver_sql(unlock)
    joined(waiting)
    assert held == [True]
