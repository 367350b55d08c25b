"""Projections of partitions: several paths return the same as each of them separately."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hms_cache.store.contract.partitions import PartitionProjection
from hms_cache.store.partitions.projections import project_partitions
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    FieldSchema,
    MetaException,
    Order,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)

PARTITION = Partition(
    values=["1", "2"],
    dbName="d",
    tableName="t",
    createTime=1,
    lastAccessTime=2,
    sd=StorageDescriptor(
        cols=[FieldSchema("a", "int", "first"), FieldSchema("b", "string", "second")],
        location="file:/w/d/t/k=1",
        inputFormat="in",
        outputFormat="out",
        compressed=True,
        numBuckets=4,
        serdeInfo=SerDeInfo("serde", "library", {"field.delim": ","}),
        bucketCols=["a"],
        sortCols=[Order("a", 1)],
        parameters={"p": "q"},
        skewedInfo=SkewedInfo(["a"], [["1"]], {}),
        storedAsSubDirectories=True,
    ),
    parameters={"k": "v"},
    catName="hive",
    writeId=7,
)
FIELDS = ("catName", "createTime", "dbName", "lastAccessTime", "parameters", "sd", "tableName", "values", "writeId")
WRONG = (
    *("none", "sd.none", "sd.cols.none", "sd.cols.name.none", "sd.location.none", "sd.skewedInfo.none"),
    *("values.none", "parameters.k", "sd.serdeInfo.parameters.none", "", "sd.", ".sd", "SD", " sd", "colStats"),
    "privileges",
)


def paths_of(struct: Any, prefix: str = "") -> list[str]:
    """All paths below a struct, including those of whole structs."""
    element = struct[0] if isinstance(struct, list) and struct else struct
    if not hasattr(element, "thrift_spec"):
        return []
    names = [entry[2] for entry in element.thrift_spec if entry is not None]
    found = []
    for name in names if prefix else FIELDS:
        found += [f"{prefix}{name}", *paths_of(getattr(element, name), f"{prefix}{name}.")]
    return found


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The set fields of a struct, by their path."""
    if isinstance(value, list):
        return {key: leaf for index, one in enumerate(value) for key, leaf in leaves(one, f"{path}[{index}]").items()}
    if not hasattr(value, "thrift_spec"):
        return {} if value is None else {path: value}
    names = [entry[2] for entry in value.thrift_spec if entry is not None]
    return {key: leaf for name in names for key, leaf in leaves(getattr(value, name), f"{path}.{name}").items()}


def projected(paths: list[str]) -> dict[str, Any]:
    [partition] = project_partitions([PARTITION], PartitionProjection(tuple(paths)))
    return leaves(partition)


ALL = paths_of(PARTITION)


@pytest.mark.parametrize("whole", [path for path in ALL if any(other.startswith(f"{path}.") for other in ALL)])
def test_a_whole_field_is_answered_whole_whatever_parts_of_it_are_asked_for_as_well(whole: str) -> None:
    expected = projected([whole])
    for part in (path for path in ALL if path.startswith(f"{whole}.")):
        assert projected([whole, part]) == projected([part, whole]) == expected


def test_several_paths_give_what_each_of_them_gives() -> None:
    chance = random.Random(1)
    assert len(ALL) > 30
    for _ in range(500):
        paths = chance.choices(ALL, k=chance.randint(1, 5))
        expected: dict[str, Any] = {}
        for path in paths:
            expected |= projected([path])
        assert projected(paths) == expected, paths


@pytest.mark.parametrize("path", WRONG)
@pytest.mark.parametrize("partitions", [[], [PARTITION], [Partition()]], ids=["none", "one", "an empty one"])
def test_a_path_that_no_partition_has_is_refused(path: str, partitions: list[Partition]) -> None:
    """Whether or not there are partitions, and whatever is set in them."""
    for paths in ((path,), ("values", path), (path, "sd")):
        with pytest.raises(MetaException, match="Invalid partition fields in the projection spec") as told:
            project_partitions(partitions, PartitionProjection(paths))
        assert f"[{path}]" in told.value.message


def test_many_wrong_paths_are_told_shortly() -> None:
    with pytest.raises(MetaException) as told:
        project_partitions([], PartitionProjection(tuple(f"none{number}" for number in range(10_000))))
    assert len(told.value.message) < 1_000
