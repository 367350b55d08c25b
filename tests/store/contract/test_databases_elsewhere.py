"""The cost of a write does not grow with databases at other locations that it does not concern."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, table

WRITTEN_TO = "written_to"
OTHERS = 60
FEW, MANY = 2, 22
SLACK = 1_000
"""Calls of functions by which equal work differs: a block of ids takes some 400. One call more for each partition and
other database is 1,200."""


class Work:
    """What was done within `counted`: path checks by any thread, and function calls of this one."""

    looks = 0
    calls = 0


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    work = Work()
    lstat = os.lstat

    def counting(*arguments: Any, **options: Any) -> os.stat_result:
        work.looks += 1
        return lstat(*arguments, **options)

    def note(_frame: object, event: str, _argument: object) -> None:
        if event == "call":
            work.calls += 1

    before = sys.getprofile()
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", counting)
        sys.setprofile(note)
        try:
            yield work
        finally:
            sys.setprofile(before)


def writes(t: StoreUnderTest, elsewhere: Path, name: str, partitions: int) -> dict[str, Callable[[], object]]:
    """One write of each kind, in an order in which they succeed."""
    place = f"file:{elsewhere}/{WRITTEN_TO}/{name}"
    created = table(name, dbName=WRITTEN_TO, location=place, keys=[("k", "string")])

    def alter() -> None:
        changed = t.get(name, WRITTEN_TO)
        changed.parameters["changed"] = "1"
        t.store.writes.tables.alter_table(TableName(CATALOG, WRITTEN_TO, name), changed)

    def add() -> None:
        added = [
            ttypes.Partition(
                values=[str(n)],
                dbName=WRITTEN_TO,
                tableName=name,
                sd=table(name, location=f"{place}/k={n}").sd,
                parameters={},
                catName=CATALOG,
            )
            for n in range(partitions)
        ]
        t.store.writes.partitions.add_partitions(TableName(CATALOG, WRITTEN_TO, name), added)

    return {
        "create_table": lambda: t.store.writes.tables.create_table(created),
        "add_partitions": add,
        "alter_table": alter,
        "drop_partitions": lambda: t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, WRITTEN_TO, name), AllPartitions(), delete_data=True
        ),
        "drop_table": lambda: t.store.writes.tables.drop_table(TableName(CATALOG, WRITTEN_TO, name), delete_data=True),
    }


def test_writes_look_at_their_own_directories_alone(
    catalog: StoreUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"

    def costs(name: str, partitions: int) -> dict[str, Work]:
        found = {}
        for what, write in writes(catalog, elsewhere, name, partitions).items():
            with counted(monkeypatch) as found[what]:
                write()
        return found

    catalog.create_database(WRITTEN_TO, locationUri=f"file:{elsewhere}/{WRITTEN_TO}")
    costs("first", FEW)
    alone = {partitions: costs(f"alone_{partitions:02d}", partitions) for partitions in (FEW, MANY)}
    for number in range(OTHERS):
        catalog.create_database(f"other_{number:02d}", locationUri=f"file:{elsewhere}/other_{number:02d}")
    among = {partitions: costs(f"among_{partitions:02d}", partitions) for partitions in (FEW, MANY)}
    assert among[MANY]["add_partitions"].looks > MANY
    for what, cost in among[MANY].items():
        assert cost.looks == alone[MANY][what].looks, what
        calls = {partitions: among[partitions][what].calls - alone[partitions][what].calls for partitions in among}
        assert calls[MANY] - calls[FEW] < SLACK, what
