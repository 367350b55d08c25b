"""A write that conflicts with another transaction is repeated, on SQLite also one that must revoke a lease: the result
is that of a single attempt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine import work_units
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import METADATA
from tests.every_write.requests import base_requests, write_methods
from tests.every_write.world import World

pytestmark = [pytest.mark.soak]

TIMES = re.compile(r"\b\d{10}(\d{3})?\b|\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b")
NUMBERS = re.compile(r"\d+")


class Losing:
    """Replaces `_write_once`: meanwhile, each write has a conflict once, when its work is done."""

    def __init__(self) -> None:
        self.is_on = False
        self.losses = 0
        self._once: Callable[..., Any] = work_units._write_once
        self._lost: list[object] = []

    def __call__(self, database: Database, work: Callable[[WriteTransaction], Any], wanted: Any, waits: Any) -> Any:
        if not self.is_on or any(one is waits for one in self._lost):
            return self._once(database, work, wanted, waits)

        def lose(transaction: WriteTransaction) -> None:
            work(transaction)
            self._lost.append(waits)  # one object for all runs of a write
            self.losses += 1
            raise RetryableConflict("another transaction was first")

        return self._once(database, lose, wanted, waits)


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Losing:
    made = Losing()
    monkeypatch.setattr(work_units, "_write_once", made)
    return made


@pytest.fixture
def world(losing: Losing, sqlite_database: Database, tmp_path: Path) -> Iterator[World]:
    url = sqlite_database.url.render_as_string(hide_password=False)
    with closing(World(url, tmp_path, MessageFormat.JSON)) as made:
        yield made


def _by_type(one: Any) -> tuple[str, Any]:
    return type(one).__name__, one if one is not None else 0


def without_ids(name: str, rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows of a table, without times, and with the order of ids instead of the ids, which differ each time."""
    ids = [at for at, column in enumerate(METADATA.tables[name].columns) if column.name.endswith("ID")]
    orders = {
        at: {one: order for order, one in enumerate(sorted({row[at] for row in rows}, key=_by_type))} for at in ids
    }
    return sorted(
        TIMES.sub("T", repr(tuple(orders[at][one] if at in orders else one for at, one in enumerate(row))))
        for row in rows
    )


def left_by(world: World, method: str, arguments: Any) -> tuple[str, list[str], dict[str, list[str]]]:
    """The answer and the events of a write, and the rows that it changed. The catalog is restored afterwards."""
    outcome = world.call(method, arguments)
    rows = {name: without_ids(name, found) for name, found in world.rows().items() if name in outcome.changed}
    if outcome.changed or outcome.events:
        world.set_back(outcome.changed)
    return NUMBERS.sub("N", repr(outcome.error)), outcome.events, rows


def test_a_write_that_is_run_again_leaves_the_same(world: World, losing: Losing) -> None:
    problems = []
    for method in write_methods():
        for number, arguments in enumerate(base_requests(method, world.facts)):
            losing.is_on = False
            at_once = left_by(world, method, arguments)
            losing.is_on = True
            again = left_by(world, method, arguments)
            if at_once != again:
                problems.append(f"{method} {number}: {again!s:.2000} instead of {at_once!s:.2000}")
    assert problems == []
    assert losing.losses > 100
