"""Descriptors that differ in a letter's case, in a trailing blank or after a thousand equal letters are different."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions, ByNames, PartitionQuery, PartitionSelection
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Order, SerDeInfo, StorageDescriptor
from tests.store.partitions.catalog import PartitionCatalog, descriptor, partition

T = TableName("hive", "d", "t")
_LONG = "x" * 1_400
_PAIRS = {
    "case": ("struct<A:int>", "struct<a:int>"),
    "space": ("ab ", "ab"),
    "long": (_LONG + "bigint", _LONG + "string"),
    "very long": (_LONG * 60 + "bigint", _LONG * 60 + "string"),
}


def _with_serde(**changes: object) -> StorageDescriptor:
    return descriptor(serdeInfo=SerDeInfo(**{"serializationLib": "l", "parameters": {}, **changes}))


_PLACES: dict[str, tuple[int, Callable[[str], StorageDescriptor]]] = {
    "column's type": (1_000_000, lambda value: descriptor(columns=(("c", value),))),
    "column's comment": (200, lambda value: descriptor(cols=[FieldSchema("c", "int", value)])),
    "serde's parameter": (1_000_000, lambda value: _with_serde(parameters={"k": value})),
    "serde's library": (4_000, lambda value: _with_serde(serializationLib=value)),
    "serde's description": (4_000, lambda value: _with_serde(description=value)),
    "parameter": (1_000_000, lambda value: descriptor(parameters={"k": value})),
    "input format": (4_000, lambda value: descriptor(inputFormat=value)),
    "bucket column": (200, lambda value: descriptor(bucketCols=[value], numBuckets=2)),
    "sort column": (200, lambda value: descriptor(sortCols=[Order(value, 1)])),
}
"""Texts of a descriptor, and how long they may be."""


def _ignore_case(database: Database) -> None:
    """Like this column in Hive's script for MySQL."""
    with database.writing() as connection:
        of_hive = "MEDIUMTEXT CHARACTER SET latin1 COLLATE latin1_swedish_ci"
        connection.execute(text(f"ALTER TABLE COLUMNS_V2 MODIFY TYPE_NAME {of_hive}"))
        connection.commit()


@pytest.mark.parametrize("ignores_case", [False, True])
def test_similar_ones_are_read_and_altered_apart(empty_database: Database, tmp_path: Path, ignores_case: bool) -> None:
    if ignores_case and empty_database.dialect != "mysql":
        pytest.skip("texts are compared exactly")
    init_schema(empty_database)
    if ignores_case:
        _ignore_case(empty_database)
    catalog = PartitionCatalog(empty_database, tmp_path, files="leave")
    catalog.create_table(keys=(("p", "string"),))
    made = [
        (f"{place}, {pair}, {number}", make(value))
        for place, (longest, make) in _PLACES.items()
        for pair, values in _PAIRS.items()
        for number, value in enumerate(values)
        if len(value) <= longest
    ]
    sent = {}
    for number, (_, one) in enumerate(made):
        # One by one: partitions added together share what the database treats as equal.
        catalog.writes.add_partitions(T, [partition(str(number), sd=one)])
        sent[str(number)] = one
    names = tuple(f"p={number}" for number in sent)

    selections_of: dict[str, list[PartitionSelection]] = {
        "all": [AllPartitions()],
        "by names": [ByNames(names)],
        "alone": [ByNames((name,)) for name in names],
    }

    def wrong(expected: dict[str, StorageDescriptor]) -> list[tuple[str, str]]:
        found = []
        for how, selections in selections_of.items():
            answers = [
                one
                for selection in selections
                for one in catalog.reads.get_partitions(PartitionQuery(T, selection)).partitions
            ]
            assert len(answers) == len(expected)
            for one in answers:
                one.sd.location = None
                if one.sd != _stored(expected[one.values[0]]):
                    found.append((how, made[int(one.values[0])][0]))
        return found

    assert wrong(sent) == []
    # Each got the values of the one beside it.
    swapped = {number: sent[str(int(number) ^ 1)] for number in sent}
    altered = [partition(number, sd=one) for number, one in swapped.items()]
    locations = {
        one.values[0]: one.sd.location
        for one in catalog.reads.get_partitions(PartitionQuery(T, ByNames(names))).partitions
    }
    for changed in altered:
        changed.sd.location = locations[changed.values[0]]
    catalog.writes.alter_partitions(T, altered)
    assert wrong(swapped) == []


def _stored(sent: StorageDescriptor) -> StorageDescriptor:
    """A descriptor as returned. Names of sort columns are stored like those of columns."""
    one = copy.copy(sent)
    one.location = None
    one.sortCols = [Order(order.col.strip().lower(), order.order) for order in sent.sortCols]
    return one
