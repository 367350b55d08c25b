"""Adding, altering or dropping many partitions accesses file systems as often as a few, wherever the partitions are.

Each access is passed to a thread with a time limit, which costs more than most accesses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions, PartitionQuery
from hms_cache.store.warehouse import deletions
from hms_cache.store.warehouse.deadlines import FileThreads
from hms_cache.store.warehouse.waits import current_waits
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest, table


@pytest.fixture
def warehouse_settings(tmp_path: Path, request: pytest.FixtureRequest) -> WarehouseSettings:
    options = {"trash_directory": f"file:{tmp_path}/trash", **getattr(request, "param", {})}
    return WarehouseSettings(directory=f"file:{tmp_path}/warehouse", **options)


T = TableName(CATALOG, DATABASE, "t")
FEW, MANY = 5, 25


@pytest.mark.parametrize("write", ["add", "add where files are", "alter"])
@pytest.mark.parametrize("place", ["default", "given", "elsewhere"])
def test_questions_do_not_grow_with_partitions(
    place: str, write: str, catalog: StoreUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[str] = []
    run = FileThreads.run

    def noting(self: FileThreads, file_system: str, what: str, *arguments: object, **options: object) -> object:
        requested.append(what)
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
        requested.clear()
        assert len(writes.add_partitions(T, partitions)) == count
        if write == "alter":
            for number in range(count):
                (directory / f"k={number}").mkdir(parents=True, exist_ok=True)
                (directory / f"k={number}" / "data").write_text("x" * number)
            altered = catalog.store.reads.partitions.get_partitions(PartitionQuery(T)).partitions
            for partition in altered:
                partition.parameters = {"a": "b"}
            requested.clear()
            writes.alter_partitions(T, altered)
        counts.append(len(requested))
        if write != "add" and place != "elsewhere":  # files there must not be accessed
            found = catalog.store.reads.partitions.get_partitions(PartitionQuery(T)).partitions
            sizes = {partition.values[0]: partition.parameters["totalSize"] for partition in found}
            assert sizes == {str(number): str(number) for number in range(count)}
        catalog.drop()
    assert counts[0] == counts[1], requested


BATCH = 12
MORE_THAN_A_BATCH = BATCH + 5


@pytest.mark.parametrize(
    "warehouse_settings", [{}, {"trash_interval_min": 5}], indirect=True, ids=["delete", "move to the trash"]
)
@pytest.mark.parametrize("keys", [1, 2])
def test_dropping_partitions_asks_for_batches_after_the_commit(
    keys: int, catalog: StoreUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One access to check that the file system answers, then one for each batch; none while the write holds locks."""
    requested: list[tuple[str, bool]] = []
    run = FileThreads.run

    def noting(self: FileThreads, file_system: str, what: str, *arguments: object, **options: object) -> object:
        waits = current_waits()
        requested.append((what, waits is not None and waits.holds_locks))
        return run(self, file_system, what, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileThreads, "run", noting)
    monkeypatch.setattr(deletions, "AT_ONCE", BATCH)
    counts, statements = [], []
    for count in (FEW, MORE_THAN_A_BATCH):
        catalog.create_table(keys=[(f"k{number}", "string") for number in range(keys)])
        values = [tuple(f"{number}" for _ in range(keys)) for number in range(count)]
        catalog.add_partitions("t", *values)
        directory = catalog.directory / "d.db" / "t"
        places = [directory.joinpath(*(f"k{key}={value}" for key, value in enumerate(each))) for each in values]
        assert all(place.is_dir() for place in places)
        for place in places:
            (place / "data").touch()
        requested.clear()
        with catalog.counting() as sent:
            catalog.store.writes.partitions.drop_partitions(T, AllPartitions(), delete_data=True)
        assert not list(directory.iterdir())
        assert not [what for what, holds_locks in requested if holds_locks]
        counts.append(len(requested))
        statements.append(sent[0])
        catalog.drop()
    per_batch = keys  # the partitions' directories, and those above them that are empty then
    assert counts == [1 + per_batch, 1 + 2 * per_batch], requested
    assert statements[1] <= statements[0]


def test_a_link_out_of_the_table_stays_when_its_partition_is_dropped(
    catalog: StoreUnderTest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.create_table(keys=[("k", "string")])
    catalog.add_partitions("t", ("1",), ("2",), ("3",))
    directory, elsewhere = catalog.directory / "d.db" / "t", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "data").touch()
    (directory / "k=2").rmdir()
    (directory / "k=2").symlink_to(elsewhere)
    catalog.store.writes.partitions.drop_partitions(T, AllPartitions(), delete_data=True)
    assert [each.name for each in directory.iterdir()] == ["k=2"]
    assert (elsewhere / "data").exists()
    assert any("k=2 stay: " in message and "symbolic link" in message for message in caplog.messages)
