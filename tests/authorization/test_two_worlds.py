"""A user who must not see a database can neither detect nor change it, by any method.

The calls are those of `tests.differential`: each method with meaningful requests. In each, every text that names a
database names the secret one in turn, in other spellings, too.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.authorization.two_worlds import MALLORY, OTHER, ROOT, SECRET, World, misnamed, named, shown
from tests.differential.comparison import Kept, _filled
from tests.differential.scenarios.every import SCENARIOS

SPELLINGS = (SECRET, " SECRET ", f"@hive#{SECRET}", f"d.{SECRET}")
SHORT = ("databases.read", "databases.write", "databases.drop", "tables.drop", "constraints.with_table")
"""Of some seconds each; the others together take a quarter of an hour."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak, *([] if name in SHORT else [pytest.mark.long])])
        for name in SCENARIOS
    ],
)
def test_nothing_is_learned_and_nothing_changed(tmp_path: Path, name: str) -> None:
    calls = SCENARIOS[name].calls
    with closing(World(tmp_path / "there", SECRET)) as there, closing(World(tmp_path / "here", OTHER)) as here:
        worlds = (there, here)
        for step in calls:
            answers = [
                world.call(ROOT, step.method, *named(filled(step.arguments, world), world.hidden)) for world in worlds
            ]
            keep(step.keeps, worlds, answers)
        assert not different(there, here), "the worlds begin alike"
        learned = []
        for step in calls:
            for arguments in misnamed(filled(step.arguments, there), SPELLINGS):
                told = [shown(world.call(MALLORY, step.method, *arguments)) for world in worlds]
                if told[0] != told[1]:
                    learned.append(f"{step.method}{arguments}\n  there: {told[0]}\n  here:  {told[1]}")
                if OTHER in told[1] or OTHER in told[0]:
                    learned.append(f"{step.method}{arguments} tells of {OTHER}: {told}")
            answers = [world.call(MALLORY, step.method, *filled(step.arguments, world)) for world in worlds]
            if shown(answers[0]) != shown(answers[1]):
                learned.append(f"{step.method}{step.arguments}, as it is\n  {shown(answers[0])}\n  {shown(answers[1])}")
            keep(step.keeps, worlds, answers)
        assert not learned, f"{len(learned)}:\n" + "\n".join(line[:1500] for line in learned[:20])
        assert not different(there, here)
        assert here.naming(SECRET) == []


def different(there: World, here: World) -> dict[str, list[str]]:
    """Rows that only one of them has, by table."""
    rows, other = there.rows(), here.rows()
    return {table: sorted(set(rows[table]) ^ set(other[table])) for table in rows if rows[table] != other[table]}


def filled(arguments: tuple[Any, ...], world: World) -> tuple[Any, ...]:
    return tuple(
        _filled(world.kept.get(one.name) if isinstance(one, Kept) else one, world.warehouse_uri) for one in arguments
    )


def keep(name: str, worlds: tuple[World, ...], answers: list[Any]) -> None:
    if name:
        for world, answer in zip(worlds, answers, strict=True):
            world.kept[name] = None if isinstance(answer, Exception) else answer
