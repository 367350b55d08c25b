"""How long memory is locked by work in the background: no longer where more is held. Reads wait meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hms_cache.cache.dump import capture as capturing
from hms_cache.cache.entries import Facet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming import prewarm
from hms_cache.cache.warming.prewarm import most_used
from hms_cache.cache.warming.refill import BATCH_TABLES
from hms_cache.notifications.event_log import LogPosition
from tests.cache.conftest import MakeServer
from tests.cache.test_event_cells import FENCE, new_cache
from tests.cache.test_wide_events import hold_others, other
from tests.manual_clock import ManualClock
from tests.work import CountedLock

FEW, MANY = 100, 1_000


def most_under_the_lock(cache: SharedCache, work: Callable[[], object]) -> int:
    lock = CountedLock()
    own, cache._lock = cache._lock, lock  # type: ignore[assignment]
    try:
        work()
    finally:
        cache._lock = own
    return lock.most


def with_tables(count: int) -> SharedCache:
    cache = new_cache()
    hold_others(cache, count)
    return cache


def test_a_dump_locks_no_longer_for_many_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at its end either, when those that changed are left out; and what it leaves out is what changed."""
    monkeypatch.setattr(capturing, "AT_ONCE", 10)
    most = {}
    for count in (FEW, MANY):
        cache = with_tables(count)
        tries = 0

        def place(cache: SharedCache = cache) -> LogPosition:
            """Not reached at once, and meanwhile two of the tables change."""
            nonlocal tries
            tries += 1
            if tries == 1:
                cache.forget(other(1))
                cache.forget(other(2), frozenset({Facet.CONSTRAINTS}))
            return LogPosition(cache.position - (tries == 1), "digest", "")

        found: list[capturing.Capture | None] = []

        def take(cache: SharedCache = cache, found: list[capturing.Capture | None] = found) -> None:
            found.append(capturing.capture(cache, place, threading.Event()))

        most[count] = most_under_the_lock(cache, take)
        [captured] = found
        assert captured is not None
        left_out = {other(number) for number in range(count)} - {one.key for one in captured.entries}
        assert left_out == {other(1), other(2)}
        assert not cache.change_notes
    assert most[MANY] < 1.5 * most[FEW], most


def test_nothing_is_left_of_a_dump_when_everything_goes_meanwhile() -> None:
    cache = with_tables(3)
    tries = 0

    def place() -> LogPosition:
        nonlocal tries
        tries += 1
        if tries == 1:
            cache.forget_all()
            hold_others(cache, 1)  # read anew, perhaps at another moment
        return LogPosition(FENCE - (tries == 1), "digest", "")

    captured = capturing.capture(cache, place, threading.Event())
    assert captured is not None and not captured.entries


def test_the_list_of_the_most_used_tables_locks_no_longer_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prewarm, "REMEMBERED_TABLES", 7)
    most = {}
    for count in (FEW, MANY):
        cache = with_tables(count)
        for number in range(count):
            cache.tables[other(number)].reads = number % 90
        most[count] = most_under_the_lock(cache, lambda cache=cache: most_used(cache))
        found = most_used(cache)
        assert [int(name.table[1:]) % 90 for name in found] == sorted((n % 90 for n in range(count)), reverse=True)[:7]
    assert most[MANY] <= most[FEW], most


def test_a_refill_locks_no_longer_where_many_tables_wait(servers: MakeServer) -> None:
    most = {}
    for count in (FEW, MANY):
        clock = ManualClock()
        server = servers(clock=clock)
        cache, now_s = server.cache.shared, clock.monotonic_s()
        for number in range(count):
            cache.invalidated[other(number)] = (frozenset({Facet.TABLE}), now_s)
            if number % 5:
                server.cache.refill._rests.begin(other(number), now_s - 1, now_s)
        taken: list[object] = []
        refill = server.cache.refill
        most[count] = most_under_the_lock(
            cache, lambda refill=refill, taken=taken, now_s=now_s: taken.extend(refill._take(now_s))
        )
        assert len(taken) == min(BATCH_TABLES, count // 5)
        assert len(cache.invalidated) == count - len(taken)
    # A batch is taken under it.
    assert most[MANY] < 4 * most[FEW], most
