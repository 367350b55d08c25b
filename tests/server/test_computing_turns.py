"""Threads that read compute one at a time, and give way while they wait: nobody waits behind all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

import hms_cache.store.engine.drivers.mysql_driver
import hms_cache.store.engine.drivers.postgresql_driver
from hms_cache.computing import Turns
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


def wait_until_queued(turns: Turns, count: int) -> None:
    queued = threading.Event()
    for _ in range(int(MAX_WAIT_S * 1000)):
        if turns.waiting_threads >= count:
            return
        queued.wait(0.001)
    raise AssertionError(f"{turns.waiting_threads} of {count} wait")


def test_one_at_a_time_computes_and_those_who_wait_come_in_order() -> None:
    turns = Turns(NEVER_S)
    order: list[int] = []
    computing = 0

    def compute(number: int) -> None:
        nonlocal computing
        with turns.held_turn():
            computing += 1
            assert turns.has_turn and computing == 1
            order.append(number)
            computing -= 1

    threads = []
    with turns.held_turn():
        for number in range(THREADS):
            threads.append(started(lambda number=number: compute(number)))  # type: ignore[misc]
            wait_until_queued(turns, number + 1)
        assert not order
    joined(*threads)
    assert order == list(range(THREADS))


def test_who_waits_gives_way_and_takes_part_again() -> None:
    turns = Turns(NEVER_S)
    paused, proceed = threading.Event(), threading.Event()
    ended: list[bool] = []

    def wait() -> None:
        with turns.held_turn():
            with turns.waiting():
                turns.resume()  # as a driver does internally: a wait for others' work does not wait for a turn
                assert not turns.has_turn
                paused.set()
                assert proceed.wait(MAX_WAIT_S)
            ended.append(turns.has_turn)
        ended.append(turns.has_turn)

    thread = started(wait)
    assert paused.wait(MAX_WAIT_S)
    with turns.held_turn():
        proceed.set()
        wait_until_queued(turns, 1)
        assert not ended
    joined(thread)
    assert ended == [True, False]


def test_who_takes_no_part_waits_for_nobody() -> None:
    turns = Turns(NEVER_S)
    with turns.held_turn():
        joined(started(lambda: (turns.resume(), turns.pause())))


def test_who_computes_for_long_loses_its_turn_once_and_each_turn_has_one_owner() -> None:
    turns = Turns(0.001)
    proceed = threading.Event()
    begun = threading.Semaphore(0)
    held: list[bool] = []

    def compute_on() -> None:
        with turns.held_turn():
            begun.release()
            assert proceed.wait(MAX_WAIT_S)  # notifies nobody
            held.append(turns.has_turn)

    long_ones = [started(compute_on) for _ in range(THREADS)]
    for _ in range(THREADS):
        assert begun.acquire(timeout=MAX_WAIT_S)
    joined(started(lambda: turns.begin() or turns.end()))  # type: ignore[func-returns-value]
    proceed.set()
    joined(*long_ones)
    assert held.count(True) == 0
    assert not turns.waiting_threads
    with turns.held_turn():
        assert turns.has_turn


def test_no_turn_begins_while_a_call_goes_first() -> None:
    turns = Turns(NEVER_S, NEVER_S)
    order: list[int] = []

    def compute(number: int) -> None:
        with turns.held_turn():
            order.append(number)

    def queue(number: int) -> threading.Thread:
        thread = started(lambda: compute(number))
        wait_until_queued(turns, number + 1)
        return thread

    with turns.first():
        with turns.first():
            threads = [queue(0)]
        threads.append(queue(1))
        assert not order
    joined(*threads)
    assert order == [0, 1]
    with turns.held_turn():
        with turns.first():
            assert turns.has_turn  # what has begun continues
            threads = [queue(0), queue(1)]
            turns.end()
            assert len(order) == 2 and turns.waiting_threads == 2
        joined(*threads)
    assert order == [0, 1, 0, 1]


def test_who_holds_locks_of_the_database_comes_before_readers_and_is_not_withheld() -> None:
    """Others wait for the rows that it has locked, as long as it waits for its turn."""
    turns = Turns(NEVER_S, NEVER_S)
    order: list[str] = []
    locked, proceed = threading.Event(), threading.Event()

    def read() -> None:
        with turns.held_turn():
            order.append("read")

    def write() -> None:
        with turns.held_turn(), turns.holding_locks():
            with turns.waiting():
                locked.set()
                assert proceed.wait(MAX_WAIT_S)
            order.append("write")

    writing = started(write)
    assert locked.wait(MAX_WAIT_S)
    with turns.first():
        reading = started(read)
        wait_until_queued(turns, 1)
        proceed.set()
        joined(writing)
        assert order == ["write"] and turns.waiting_threads == 1
    joined(reading)
    assert order == ["write", "read"]


def test_who_holds_locks_comes_next() -> None:
    turns = Turns(NEVER_S)
    order: list[str] = []

    def compute(name: str) -> None:
        with turns.holding_locks() if name == "write" else nullcontext(), turns.held_turn():
            order.append(name)

    threads = []
    with turns.held_turn():
        for number, name in enumerate(("read", "write", "read", "write"), 1):
            threads.append(started(lambda name=name: compute(name)))  # type: ignore[misc]
            wait_until_queued(turns, number)
    joined(*threads)
    assert order == ["write", "write", "read", "read"]


def test_a_write_transaction_holds_locks(initialized_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    turns = Turns(NEVER_S)
    monkeypatch.setattr(work_units, "turns", turns)
    run_write(initialized_database, lambda _: held.append(turns.holds_locks))
    assert held == [True] and not turns.holds_locks


def test_a_call_that_takes_long_keeps_nobody_waiting_for_long() -> None:
    turns = Turns(0.001, 0.001)
    with turns.first():
        joined(started(lambda: turns.begin() or turns.end()))  # type: ignore[func-returns-value]


def test_calls_that_follow_each_other_keep_nobody_waiting_for_long() -> None:
    """Each checks whether a turn is overdue before it counts as one with precedence."""
    turns = Turns(NEVER_S, 0.001)
    ended = threading.Event()

    def compute() -> None:
        with turns.held_turn():
            pass
        ended.set()

    with turns.held_turn():
        started(compute)
        wait_until_queued(turns, 1)
        first = turns.first()
        first.__enter__()
    for _ in range(int(MAX_WAIT_S * 1000)):
        following = turns.first()
        following.__enter__()
        first.__exit__(None, None, None)
        first = following
        if ended.wait(0.001):
            break
    first.__exit__(None, None, None)
    assert ended.is_set()


@pytest.mark.parametrize("name", [name for name in PoolName if name not in SCHEDULED_POOLS])
def test_calls_of_other_pools_go_first(name: PoolName, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(NEVER_S, NEVER_S)
    monkeypatch.setattr(thread_pool, "turns", turns)
    pool = thread_pool.ThreadPool(1, name.value)
    pool.start()
    begun, proceed = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        assert proceed.wait(MAX_WAIT_S)

    try:
        assert pool.submit(call, "call") and begun.wait(MAX_WAIT_S)
        reading = started(lambda: turns.begin() or turns.end())  # type: ignore[func-returns-value]
        wait_until_queued(turns, 1)
        proceed.set()
        joined(reading)
    finally:
        proceed.set()
        pool.close()
        pool.join(MAX_WAIT_S)


@pytest.mark.parametrize("name", list(PoolName))
def test_pools_of_reads_take_turns_and_no_other_waits_for_one(name: PoolName, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(NEVER_S)
    monkeypatch.setattr(thread_pool, "turns", turns)
    pool = thread_pool.ThreadPool(1, name.value, uses_turns=name in SCHEDULED_POOLS)
    pool.start()
    answered = threading.Event()
    try:
        with turns.held_turn():
            assert pool.submit(answered.set, "call")
            if name in SCHEDULED_POOLS:
                wait_until_queued(turns, 1)
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
    turns = Turns(NEVER_S)
    monkeypatch.setattr(thread_pool, "turns", turns)
    with turns.held_turn():
        reading = started(lambda: server.link().call("get_all_databases"))
        wait_until_queued(turns, 1)
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
    turns = Turns(NEVER_S)
    monkeypatch.setattr(hms_cache.store.engine.drivers.mysql_driver, "turns", turns)
    monkeypatch.setattr(hms_cache.store.engine.drivers.postgresql_driver, "turns", turns)
    held: list[bool] = []
    connected = threading.Event()

    def wait_for_lock() -> None:
        with initialized_database.loading() as connection:
            connection.exec_driver_sql("SELECT 1")
            with turns.held_turn():
                connected.set()
                connection.exec_driver_sql(lock)
                held.append(turns.has_turn)
            connection.exec_driver_sql(unlock)

    with initialized_database.loading() as connection:
        connection.exec_driver_sql(lock)
        waiting = started(wait_for_lock)
        assert connected.wait(MAX_WAIT_S)
        joined(started(lambda: turns.begin() or turns.end()))  # type: ignore[func-returns-value]
        assert not held
        connection.exec_driver_sql(unlock)
    joined(waiting)
    assert held == [True]
