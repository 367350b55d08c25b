"""Calls of a group that wait while a thread executes others are executed together, and stay independent."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from hms_cache.server import thread_pool
from hms_cache.server.thread_pool import LINGER_S, LINGER_SHARE, MAX_SKIPPED, Group, ThreadPool
from tests.consistency.observers import wait_until
from tests.servers import MAX_WAIT_S


class Calls:
    """Numbers that are doubled; a negative one in a group makes all of them run one by one, and then fails alone."""

    def __init__(self, pool: ThreadPool, most: int = 64) -> None:
        self.sizes: list[int] = []
        self.entered, self._proceed = threading.Semaphore(0), threading.Semaphore(0)
        self._pool = pool
        self.group = Group("numbers", most, self._together)
        self._futures: dict[int, Future[int]] = {}

    def submit(self, number: int) -> Future[int]:
        future = self._futures[number] = Future()
        assert self._pool.submit(lambda: self._alone(number), number, self.group, number)
        return future

    def gather(self, first: int, others: Sequence[int]) -> list[Future[int]]:
        """The others arrive while the first is being executed."""
        futures = [self.submit(first)]
        assert self.entered.acquire(timeout=MAX_WAIT_S)
        futures += [self.submit(number) for number in others]
        return futures

    def let(self, count: int = 100) -> None:
        """This many of those that have entered, or will, continue."""
        self._proceed.release(count)

    def _enter(self, count: int) -> None:
        self.sizes.append(count)
        self.entered.release()
        assert self._proceed.acquire(timeout=MAX_WAIT_S)

    def _alone(self, number: int) -> None:
        self._enter(1)
        if number < 0:
            self._futures[number].set_exception(ValueError(f"{number} is negative"))
        else:
            self._futures[number].set_result(2 * number)

    def _together(self, numbers: Sequence[int]) -> bool:
        self._enter(len(numbers))
        if any(number < 0 for number in numbers):
            return False
        for number in numbers:
            self._futures[number].set_result(2 * number)
        return True


@contextmanager
def running(threads: int = 3, **options: int) -> Iterator[ThreadPool]:
    pool = ThreadPool(threads, **options)
    pool.start()
    try:
        yield pool
    finally:
        pool.close()
        pool.join(MAX_WAIT_S)
        load = pool.load()
        assert (load.waiting, load.running, load.stuck) == (0, 0, 0)


def results(futures: Sequence[Future[int]]) -> list[int]:
    return [one.result(MAX_WAIT_S) for one in futures]


def told(pool: ThreadPool, futures: Sequence[Future[int]]) -> list[int]:
    """The results, when the pool has counted their calls as executed: a client that returns between the two would be
    expected twice."""
    found = results(futures)
    wait_until(lambda: pool.load().running == 0, "the calls have ended")
    return found


def test_what_gathers_is_carried_out_together() -> None:
    with running() as pool:
        calls = Calls(pool)
        futures = calls.gather(1, [2, 3, 4, 5])
        assert pool.load().waiting == 4, "other threads are free, and leave them"
        calls.let()
        assert results(futures) == [2, 4, 6, 8, 10]
        assert results([calls.submit(6)]) == [12], "nobody carries the group out any more"
    assert calls.sizes == [1, 4, 1]
    assert pool.load().started == 6


def test_no_more_than_the_group_takes() -> None:
    with running() as pool:
        calls = Calls(pool, most=3)
        futures = calls.gather(0, range(1, 8))
        calls.let()
        assert results(futures) == [2 * number for number in range(8)]
    assert calls.sizes == [1, 3, 3, 1]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_one_that_fails_fails_alone(failing: int) -> None:
    numbers = [-1 if number == failing else number + 1 for number in range(3)]
    with running() as pool:
        calls = Calls(pool)
        futures = calls.gather(100, numbers)
        calls.let()
        for number, future in zip([100, *numbers], futures, strict=True):
            if number < 0:
                with pytest.raises(ValueError, match="-1 is negative"):
                    future.result(MAX_WAIT_S)
            else:
                assert future.result(MAX_WAIT_S) == 2 * number
    assert sorted(calls.sizes) == [1, 1, 1, 1, 3]


def test_other_groups_and_single_calls_go_on() -> None:
    with running() as pool:
        busy, other, single = Calls(pool), Calls(pool), threading.Event()
        futures = busy.gather(1, [2, 3])
        other.let()
        assert results([other.submit(4)]) == [8]
        assert pool.submit(single.set, "single")
        assert single.wait(MAX_WAIT_S)
        busy.let()
        assert results(futures) == [2, 4, 6]


def test_those_that_gather_count_as_waiting() -> None:
    with running(max_waiting=2) as pool:
        calls = Calls(pool)
        futures = calls.gather(1, [2, 3])
        assert not pool.submit(lambda: None, "more", calls.group, 4)
        assert not pool.submit(lambda: None, "single")
        assert pool.load().refused == 2
        calls.let()
        assert results(futures) == [2, 4, 6]


def test_a_call_whose_time_is_up_while_it_gathers_is_not_begun() -> None:
    with running() as pool:
        calls = Calls(pool)
        futures = calls.gather(1, [2, 3])
        assert pool.give_up(2)
        assert pool.give_up(3)
        calls.let()
        assert results(futures[:1]) == [2]
        assert results([calls.submit(4)]) == [8], "a group of which all were given up can be used again"
    assert not any(one.done() for one in futures[1:])
    assert calls.sizes == [1, 1]


def test_a_stuck_group_does_not_keep_those_that_gathered() -> None:
    with running(threads=1) as pool:
        calls = Calls(pool)
        futures = calls.gather(1, [2, 3])
        assert not pool.give_up(1)
        assert calls.entered.acquire(timeout=MAX_WAIT_S), "another thread carries the others out"
        assert pool.load().stuck == 1
        calls.let()
        assert results(futures) == [2, 4, 6]
    assert calls.sizes == [1, 2]


def test_a_call_that_was_given_up_is_not_run_again() -> None:
    """Its client got the error that the outcome is unknown; the others of its group run one by one."""
    with running() as pool:
        calls = Calls(pool)
        futures = calls.gather(1, [2, 3, -4])
        calls.let(1)
        assert calls.entered.acquire(timeout=MAX_WAIT_S)
        assert not pool.give_up(2)
        calls.let()
        assert results(futures[2:3]) == [6]
        with pytest.raises(ValueError, match="-4"):
            futures[3].result(MAX_WAIT_S)
    assert not futures[1].done()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for others ends when they have arrived; if it took its whole time, the test would have failed."""
    monkeypatch.setattr(thread_pool, "LINGER_S", MAX_WAIT_S)
    monkeypatch.setattr(thread_pool, "LINGER_SHARE", float("inf"))


@pytest.mark.usefixtures("patient")
def test_those_that_come_back_together_are_carried_out_together() -> None:
    with running() as pool:
        calls = Calls(pool)
        in_step(pool, calls, 3)
        calls.sizes.clear()
        for start in range(10, 40, 3):  # one by one each time, as their clients have read their replies
            assert told(pool, [calls.submit(number) for number in range(start, start + 3)])
    assert calls.sizes == [3] * 10


@pytest.mark.usefixtures("patient")
def test_one_that_came_meanwhile_waits_for_those_that_are_told() -> None:
    with running() as pool:
        calls = Calls(pool)
        futures = calls.gather(0, [1, 2, 3])
        calls.let(1)
        assert told(pool, [futures[0]]) == [0]
        assert calls.sizes == [1], "the three wait for the first to come back"
        futures.append(calls.submit(4))
        assert calls.entered.acquire(timeout=MAX_WAIT_S)
        late = calls.submit(5)
        calls.let()
        assert results([*futures, late, *(calls.submit(number) for number in (6, 7, 8, 9))]) == [
            2 * number for number in range(10)
        ]
    assert calls.sizes == [1, 4, 5]


def test_one_whose_companions_stay_away_goes_alone() -> None:
    with running() as pool:
        calls = Calls(pool)
        futures = calls.gather(0, [1, 2])
        calls.let()
        results(futures)
        calls.sizes.clear()
        assert [results([calls.submit(number)]) for number in (3, 4, 5)] == [[6], [8], [10]]
    assert calls.sizes == [1, 1, 1]


@pytest.mark.usefixtures("patient")
def test_a_call_that_is_withdrawn_while_it_waits_for_others_is_not_begun() -> None:
    with running() as pool:
        calls = Calls(pool)
        in_step(pool, calls, 2)
        first = calls.submit(1)
        assert pool.withdraw(1), "it waits"
        assert results([calls.submit(2), calls.submit(3)]) == [4, 6]
        assert not first.done()


def in_step(pool: ThreadPool, calls: Calls, count: int) -> None:
    """This many calls have been executed together, and none waits."""
    futures = calls.gather(0, range(1, count))
    calls.let(1)
    assert told(pool, futures[:1]) == [0]
    futures.append(calls.submit(count))  # the others wait for it
    assert calls.entered.acquire(timeout=MAX_WAIT_S)
    calls.let()
    told(pool, futures)
    assert calls.sizes == [1, count]
    calls.sizes.clear()


def after(done: int, gathered: int, took_s: float = 1.0) -> thread_pool.InStep:
    """A group of which this many calls were executed until second 10 of a clock, while this many arrived."""
    in_step = thread_pool.InStep(begun_s=10.0 - took_s)
    in_step.ended(done, gathered, 10.0)
    return in_step


@pytest.mark.parametrize(("done", "gathered", "come"), [(1, 0, 1), (2, 0, 2), (3, 1, 4), (8, 1, 1), (0, 0, 1)])
def test_nobody_waits_who_has_nobody_to_wait_for(done: int, gathered: int, come: int) -> None:
    assert after(done, gathered).wait_s(come, 10.0) == 0


def test_a_wait_is_short_and_a_share_of_what_was_done() -> None:
    assert after(3, 1).wait_s(1, 10.0) == pytest.approx(LINGER_S)
    assert after(3, 1, took_s=LINGER_S).wait_s(1, 10.0) == pytest.approx(LINGER_SHARE * LINGER_S)
    assert after(3, 1).wait_s(1, 10.0 + LINGER_S / 2) == pytest.approx(LINGER_S / 2), "from when they were told"
    assert after(3, 1).wait_s(1, 10.0 + LINGER_S) == 0, "they would be there"


def test_waits_for_nothing_grow_rare_until_one_is_worth_it() -> None:
    in_step = thread_pool.InStep()
    waited = []
    for number in range(1_000):
        in_step.ended(3, 0, 10.0)
        if in_step.wait_s(1, 10.0) > 0:
            waited.append(number)
            in_step.waited(1)
    between = [later - earlier for earlier, later in itertools.pairwise(waited)]
    assert between[:7] == [2, 4, 8, 16, 32, 64, MAX_SKIPPED + 1]
    assert set(between[7:]) == {MAX_SKIPPED + 1}
    in_step.skipped = MAX_SKIPPED
    assert in_step.wait_s(1, 10.0) > 0
    in_step.waited(3)
    assert in_step.wait_s(1, 10.0) > 0, "the next time at once"
