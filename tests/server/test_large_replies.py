"""Calls with large replies leave threads and memory to others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pytest

from hms_cache.server.loads.large_replies import FORGOTTEN_AFTER, REMEMBERED_CALLS, LargeReplies
from hms_cache.server.thread_pool import ThreadPool
from hms_cache.store.databases.database_store import Databases
from tests.server.test_tls import wait_for
from tests.servers import MAX_WAIT_S

Serve = Callable[..., Any]


class Work:
    """Calls by name: each records that it runs, and runs until it may end."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self.begun: list[str] = []
        self._began = threading.Condition()
        self._may_end: dict[str, threading.Event] = {}

    def submit(self, name: str, *, is_large: bool = False) -> bool:
        end = self._may_end[name] = threading.Event()

        def run() -> None:
            with self._began:
                self.begun.append(name)
                self._began.notify_all()
            assert end.wait(MAX_WAIT_S)

        return self._pool.submit(run, name, is_large=is_large)

    def end(self, *names: str) -> None:
        for name in names:
            self._may_end[name].set()

    def wait_until_begun(self, *names: str) -> None:
        with self._began:
            assert self._began.wait_for(lambda: set(names) <= set(self.begun), MAX_WAIT_S)


@contextmanager
def working(threads: int, max_large: int | None, **options: Any) -> Iterator[tuple[ThreadPool, Work]]:
    pool = ThreadPool(threads, "reads", max_large=max_large, **options)
    work = Work(pool)
    pool.start()
    try:
        yield pool, work
    finally:
        work.end(*work._may_end)
        pool.close()
        pool.join(MAX_WAIT_S)
    assert not pool._threads or all(not one.is_alive() for one in pool._threads)


def test_others_pass_those_that_are_held_back() -> None:
    with working(3, 1) as (pool, work):
        for name in ("large 1", "large 2", "large 3"):
            assert work.submit(name, is_large=True)
        work.wait_until_begun("large 1")
        for name in ("small 1", "small 2"):
            assert work.submit(name)
        work.wait_until_begun("small 1", "small 2")
        assert work.begun == ["large 1", "small 1", "small 2"]
        load = pool.load()
        assert (load.running, load.waiting, load.deferred) == (3, 2, 2)
        assert work.submit("small 3")
        work.end("large 1")
        work.wait_until_begun("large 2")
        assert "small 3" not in work.begun, "whoever was held back is the next"
        work.end("large 2")
        work.wait_until_begun("large 3")
        work.end("small 1")
        work.wait_until_begun("small 3")


def test_without_a_limit_they_are_as_others() -> None:
    with working(2, None) as (pool, work):
        for name in ("large 1", "large 2", "large 3"):
            work.submit(name, is_large=True)
        work.wait_until_begun("large 1", "large 2")
        assert (pool.load().waiting, pool.load().deferred) == (1, 0)


def test_those_held_back_have_places_in_the_queue() -> None:
    with working(2, 1, max_waiting=2) as (pool, work):
        work.submit("large 1", is_large=True)
        work.wait_until_begun("large 1")
        for name in ("large 2", "large 3"):
            assert work.submit(name, is_large=True)
        wait_for(lambda: pool.load().deferred == 2)
        assert not work.submit("small")
        assert pool.withdraw("large 2")
        assert work.submit("small")
        work.wait_until_begun("small")
        work.end("large 1")
        work.wait_until_begun("large 3")
        assert "large 2" not in work.begun


def test_one_that_is_stuck_makes_way() -> None:
    with working(2, 1) as (pool, work):
        work.submit("large 1", is_large=True)
        work.wait_until_begun("large 1")
        for name in ("large 2", "large 3"):
            work.submit(name, is_large=True)
        wait_for(lambda: pool.load().deferred == 2)
        assert pool.give_up("large 3"), "it had not begun"
        assert not pool.give_up("large 1")
        work.wait_until_begun("large 2")
        work.submit("large 4", is_large=True)
        wait_for(lambda: pool.load().deferred == 1)
        work.end("large 1")  # its place was given away
        work.submit("small")
        work.wait_until_begun("small")
        assert "large 4" not in work.begun
        work.end("large 2")
        work.wait_until_begun("large 4")


def test_what_is_held_back_still_runs_when_the_pool_closes() -> None:
    with working(3, 1) as (pool, work):
        for name in ("large 1", "large 2", "large 3"):
            work.submit(name, is_large=True)
        work.wait_until_begun("large 1")
        pool.close()
        work.end("large 1", "large 2", "large 3")
        work.wait_until_begun("large 2", "large 3")


def test_what_is_remembered() -> None:
    replies = LargeReplies(1000)
    assert not replies and not replies.is_of_interest(999) and replies.is_of_interest(1000)
    replies.note("get", "d.t", 500, 999)
    assert not replies.expects("get", "d.t", 500)
    replies.note("get", "d.t", 500, 1000)
    assert replies and replies.expects("get", "d.t", 500) and replies.expects("get", "d.t", 260)
    for other in (("get", "d.t", 600), ("get", "d.u", 500), ("other", "d.t", 500)):
        assert not replies.expects(*other)
    for _ in range(FORGOTTEN_AFTER - 1):
        replies.note("get", "d.t", 500, 10)
    assert replies.expects("get", "d.t", 500)
    replies.note("get", "d.t", 500, 2000)
    for _ in range(FORGOTTEN_AFTER):
        assert replies.expects("get", "d.t", 500)
        replies.note("get", "d.t", 500, 10)
    assert not replies


def test_no_more_than_the_latest_are_remembered() -> None:
    replies = LargeReplies(1)
    for number in range(2 * REMEMBERED_CALLS):
        replies.note("get", f"d.t{number}", 500, 1)
    assert len(replies._left) == REMEMBERED_CALLS
    assert not replies.expects("get", "d.t0", 500)
    assert replies.expects("get", f"d.t{2 * REMEMBERED_CALLS - 1}", 500)


def test_none_is_large() -> None:
    replies = LargeReplies(0)
    replies.note("get", "d.t", 500, 1 << 40)
    assert not replies and not replies.is_of_interest(1 << 40)


def test_a_small_read_is_answered_while_large_ones_wait(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first large reply predicts the next ones."""
    settings = {"server.threads": 3, "server.large_reply_threads": 1, "server.large_reply_bytes": "20KiB"}
    server = serve(**settings, **{"cache.enabled": False, "database.pool_size": 5})
    proceed, running = threading.Event(), threading.Semaphore(0)
    proceed.set()

    def slow(*arguments: object, **options: object) -> list[str]:
        running.release()
        assert proceed.wait(MAX_WAIT_S)
        return [f"database {number}" for number in range(2_000)]

    monkeypatch.setattr(Databases, "get_database_names", slow)
    assert len(server.link().call("get_all_databases")) == 2_000
    assert running.acquire(timeout=MAX_WAIT_S)
    proceed.clear()
    with ThreadPoolExecutor(3) as pool:
        large = [pool.submit(server.link().call, "get_all_databases") for _ in range(3)]
        try:
            assert running.acquire(timeout=MAX_WAIT_S)
            wait_for(lambda: _reads(server)["deferred"] == 2)
            assert server.link().call("get_database", name="default").name == "default"
            assert (_reads(server)["running"], _reads(server)["waiting"]) == (1, 2)
        finally:
            proceed.set()
        assert [len(one.result(timeout=MAX_WAIT_S)) for one in large] == [2_000] * 3
    wait_for(lambda: _reads(server)["deferred"] == _reads(server)["running"] == 0)


def _reads(server: Any) -> dict[str, Any]:
    return next(asdict(one) for one in server.service._thread_pool_loads() if one.pool == "reads")
