"""Positions that worker processes share: one slot each, read by all."""

from __future__ import annotations

import os
import signal

from hms_cache.cache.worker_positions import CombinedPositions, WorkerPositions

HERE, THERE = "server one", "server two"
NEVER_S = float("-inf")


def test_the_highest_floor_and_the_latest_question_hold_for_all() -> None:
    page = WorkerPositions(3)
    one, two, three = (page.slot(index) for index in range(3))
    assert one.has_changed()
    assert one.read(HERE) == CombinedPositions(-1, NEVER_S, True)
    assert not one.has_changed()
    two.raise_floor(7, HERE)
    three.raise_floor(5, HERE)
    three.require_check(2.5)
    two.require_check(1.5)
    assert one.has_changed()
    told = one.read(HERE)
    assert (told.floor, told.agree) == (7, True)
    assert told.required_after_s >= 2.5
    two.raise_floor(6, HERE)
    assert not one.has_changed(), "a floor does not fall"


def test_the_latest_question_counts_in_whatever_order_threads_tell_of_theirs() -> None:
    page = WorkerPositions(2)
    one, two = page.slot(0), page.slot(1)
    two.require_check(2.5)
    two.require_check(1.5)
    assert one.read(HERE).required_after_s >= 2.5


def test_a_floor_of_another_history_is_none_but_shows_that_they_disagree() -> None:
    page = WorkerPositions(2)
    one, two = page.slot(0), page.slot(1)
    one.raise_floor(9, HERE)
    two.raise_floor(9, HERE)
    one.begin(4, THERE)
    assert one.read(THERE) == CombinedPositions(4, NEVER_S, False)
    assert two.read(HERE) == CombinedPositions(9, NEVER_S, False)
    two.begin(3, THERE)
    assert one.has_changed()
    assert one.read(THERE) == CombinedPositions(4, NEVER_S, True)


def test_a_worker_that_is_killed_leaves_its_slot_to_its_successor() -> None:
    page = WorkerPositions(2)
    process = os.fork()
    if process == 0:
        page.slot(1).raise_floor(11, HERE)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    assert page.slot(0).read(HERE).floor == 11
    successor = page.slot(1)
    successor.raise_floor(2, HERE)
    assert page.slot(0).read(HERE).floor == 11, "what the one before it has shown was shown"
