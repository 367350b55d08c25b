"""Two workers of one server without position checks (`inf`): what one returns, the other returns, too (P3, P4)."""

from __future__ import annotations

import pytest

from hms_cache.cache.freshness import Freshness
from hms_cache.cache.position_check import PositionCheck
from hms_cache.cache.worker_positions import WorkerPositions
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, LogHead
from tests.cache.test_freshness_cells import INF, Follower
from tests.manual_clock import ManualClock

Worker = tuple[Follower, Freshness]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log() -> list[int]:
    """Only the last event of the database."""
    return [10]


@pytest.fixture
def workers(clock: ManualClock, log: list[int]) -> tuple[Worker, Worker]:
    """Both are at event 10, and have answered a read."""
    page = WorkerPositions(2)

    def worker(index: int) -> Worker:
        follower = Follower()
        check = PositionCheck(lambda: LogHead(log[0], UNKNOWN_HISTORY), clock)
        freshness = Freshness(follower.cache, check, follower, clock, INF, workers=page.slot(index))
        follower.cache.reset("begun", 10)
        return follower, freshness

    both = worker(0), worker(1)
    for _ in range(2):  # the first one learns of the reset, and checks at its time
        for _, freshness in both:
            assert freshness.ensure()
        clock.advance(0.001)
    return both


def test_what_was_written_through_one_is_shown_by_the_other(workers: tuple[Worker, Worker]) -> None:
    (_, here), (other, there) = workers
    here.raise_floor(12)
    assert there.ensure()
    assert other.cache.position == 12


def test_what_one_has_applied_is_shown_by_the_other(workers: tuple[Worker, Worker]) -> None:
    (follower, here), (other, there) = workers
    assert follower.ensure_applied(11, 1)
    assert here.ensure()
    assert there.ensure()
    assert other.cache.position == 11


def test_a_read_that_the_database_answered_has_the_other_ask(workers: tuple[Worker, Worker]) -> None:
    (_, here), (_, there) = workers
    assert not there.is_check_required()
    here.require_check()
    assert there.is_check_required()


def test_what_a_lost_history_has_shown_ends_when_all_have_left_it(
    workers: tuple[Worker, Worker], clock: ManualClock, log: list[int]
) -> None:
    """P7: the database under the server was replaced by an older copy. One worker notices before the other."""
    (follower, here), (other, there) = workers
    there.raise_floor(12)
    log[0] = follower.reaches = other.reaches = 4
    follower.cache.reset("restored", 4)
    clock.advance(0.001)
    assert not here.ensure(), "the other one has shown event 12, and knows of nothing else yet"
    assert not there.ensure(), "it has to ask, and finds that the log ends before"
    other.cache.reset("restored", 4)
    clock.advance(0.001)
    for worker in (here, there):
        assert worker.ensure()
        assert worker.floor == 4
