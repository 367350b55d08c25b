"""Adding or altering many partitions asks file systems as often as a few, wherever the partitions lie.

Each question is handed to a thread with a time limit, which costs more than most answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions
from hms_cache.store.warehouse.deadlines import FileThreads
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest, table

T = TableName(CATALOG, DATABASE, "t")
FEW, MANY = 5, 25


@pytest.mark.parametrize("write", ["add", "add where files are", "alter"])
@pytest.mark.parametrize("place", ["default", "given", "elsewhere"])
def test_questions_do_not_grow_with_partitions(
    place: str, write: str, catalog: StoreUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = FileThreads.run

    def noting(self: FileThreads, file_system: str, what: str, *arguments: object, **options: object) -> object:
        asked.append(what)
        return run(self, file_system, what, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileThreads, "run", noting)
    roots = {"given": f"file:{catalog.directory}/d.db/t", "elsewhere": f"file:{tmp_path}/else/where"}
    root = roots.get(place)
    counts = []
    for count in (FEW, MANY):
        catalog.create_table(
            keys=[("k", "string")],
            tableType="EXTERNAL_TABLE",
            location=root,
            parameters={"EXTERNAL": "TRUE", "external.table.purge": "true"},
        )
        partitions = []
        for number in range(count):
            descriptor = table("t").sd
            descriptor.location = f"{root}/k={number}" if root else None
            partitions.append(
                ttypes.Partition([str(number)], DATABASE, "t", sd=descriptor, parameters={}, catName=CATALOG)
            )
        writes = catalog.store.writes.partitions
        directory = Path((root or f"file:{catalog.directory}/d.db/t").removeprefix("file:"))
        if write == "add where files are":
            for number in range(count):
                (directory / f"k={number}").mkdir(parents=True, exist_ok=True)
                (directory / f"k={number}" / "data").write_text("x" * number)
        asked.clear()
        assert len(writes.add_partitions(T, partitions)) == count
        if write == "alter":
            for number in range(count):
                (directory / f"k={number}").mkdir(parents=True, exist_ok=True)
                (directory / f"k={number}" / "data").write_text("x" * number)
            altered = catalog.store.reads.partitions.get_partitions(T, AllPartitions()).partitions
            for partition in altered:
                partition.parameters = {"a": "b"}
            asked.clear()
            writes.alter_partitions(T, altered)
        counts.append(len(asked))
        if write != "add" and place != "elsewhere":  # files there are not ours to look at
            found = catalog.store.reads.partitions.get_partitions(T, AllPartitions()).partitions
            sizes = {partition.values[0]: partition.parameters["totalSize"] for partition in found}
            assert sizes == {str(number): str(number) for number in range(count)}
        catalog.drop()
    assert counts[0] == counts[1], asked
