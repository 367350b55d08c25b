"""A plan on disk: its contents after a kill at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.repair.plan import ADD, DROP, Change
from hms_cache.jobs.repair.plan_file import Batch, PlanFile

BATCHES = [
    Batch("hive", "d", "t", ADD, (Change("p=1", "file:/t/p=1"), Change("p=ü%2F", "file:/t/p=ü%2F"))),
    Batch("hive", "d", "t", DROP, (Change("p=2", "file:/t/p=2"),)),
    Batch("spark", "d", "u", ADD, (Change("p=3", "file:/u/p=3"),)),
]
OPTIONS = {"mode": "sync", "tables": ["d.*"]}


@pytest.mark.parametrize("done", range(len(BATCHES) + 1))
def test_what_a_killed_run_left(tmp_path: Path, done: int) -> None:
    path = tmp_path / "plan.json"
    first = PlanFile(path, OPTIONS)
    assert not first.load()
    first.plan(BATCHES)
    remaining = first.remaining()
    for _ in range(min(done + 1, len(BATCHES))):
        next(remaining)  # which makes the one before it done
    if done == len(BATCHES):
        next(remaining, None)
    second = PlanFile(path, OPTIONS)
    assert second.load()
    assert list(second.remaining()) == BATCHES[done:]
    second.finish()
    assert not path.exists()
    assert not PlanFile(path, OPTIONS).load()


def test_a_line_that_was_cut_off_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PlanFile(path, OPTIONS).plan(BATCHES)
    with path.open("a") as file:
        file.write('{"done": 0')
    again = PlanFile(path, OPTIONS)
    assert again.load()
    remaining = again.remaining()
    assert [next(remaining), next(remaining)] == BATCHES[:2]
    third = PlanFile(path, OPTIONS)
    assert third.load()
    assert list(third.remaining()) == BATCHES[1:]


def test_a_plan_that_another_run_has_ended_stays_ended(tmp_path: Path) -> None:
    """Two runs execute it: what the slower one records is not a plan, on which each later run would fail."""
    path = tmp_path / "plan.json"
    PlanFile(path, OPTIONS).plan(BATCHES)
    fast, slow = PlanFile(path, OPTIONS), PlanFile(path, OPTIONS)
    assert fast.load() and slow.load()
    remaining = slow.remaining()
    next(remaining)
    assert list(fast.remaining()) == BATCHES
    fast.finish()
    assert list(remaining) == BATCHES[1:]
    assert not path.exists()
    slow.finish()


def test_a_plan_for_other_options_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PlanFile(path, OPTIONS).plan(BATCHES)
    with pytest.raises(ConfigurationError, match="other options"):
        PlanFile(path, OPTIONS | {"mode": "drop"}).load()


@pytest.mark.parametrize("text", ["", "nothing\n", '{"format": 2, "options": {}}\n', '{"format": 1}\n{"batch": [1]}\n'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="not a plan"):
        PlanFile(path, OPTIONS).load()


def test_without_a_path_it_is_kept_in_memory() -> None:
    file = PlanFile(None, OPTIONS)
    assert not file.load()
    file.plan(BATCHES)
    assert list(file.remaining()) == BATCHES
    assert list(file.remaining()) == []
