"""All pages of partitions together contain the same as one read of all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.partitions.pages import read_partition_pages
from hms_cache.store.partitions.reads import partitions_of_rows
from hms_cache.store.schema import PARTITION_KEY_VALS
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, Partition
from tests.store.partitions.catalog import PartitionCatalog, descriptor, partition

T = ("hive", "d", "t")


def pages(catalog: PartitionCatalog, size: int) -> list[list[Partition]]:
    with catalog.database.snapshot():
        return [partitions_of_rows(page) for page in read_partition_pages(catalog.context, TableName(*T), size)]


@pytest.fixture
def catalog(initialized_database: Database, tmp_path: Path) -> PartitionCatalog:
    """Two tables whose partitions have interleaved ids."""
    unmanaged = PartitionCatalog(initialized_database, tmp_path, files="leave")
    unmanaged.create_table()
    unmanaged.create_table("other")
    for batch in range(6):
        sent = [
            partition(
                f"d{9 - batch}",
                str(number),
                parameters={"k": str(number)} if number else {},
                sd=descriptor(columns=[("id", "bigint"), ("v", "string")][: 1 + number % 2]),
            )
            for number in range(7)
        ]
        unmanaged.writes.add_partitions(TableName(*T), sent)
        others = [partition(f"d{batch}", str(number), table="other") for number in range(3)]
        unmanaged.writes.add_partitions(TableName("hive", "d", "other"), others)
    return unmanaged


@pytest.mark.parametrize("size", [1, 4, 42, 100])
def test_pages_hold_every_partition_once(catalog: PartitionCatalog, size: int) -> None:
    expected = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    found = pages(catalog, size)
    assert max(map(len, found)) <= size
    assert sorted((one for page in found for one in page), key=lambda one: one.values) == expected


def test_each_page_costs_a_fixed_number_of_statements(catalog: PartitionCatalog) -> None:
    def statements(size: int) -> int:
        before = catalog.statements()
        pages(catalog, size)
        return catalog.statements() - before

    one, two = statements(42), statements(21)
    assert two - one <= 5
    assert statements(11) - two <= 2 * 5


def test_values_that_are_stored_empty_are_found_in_any_page(catalog: PartitionCatalog) -> None:
    names = [DEFAULT_PARTITION_VALUE, "x"]
    catalog.writes.add_partitions(TableName(*T), [partition(name, DEFAULT_PARTITION_VALUE) for name in names])
    empty = update(PARTITION_KEY_VALS).where(PARTITION_KEY_VALS.c.PART_KEY_VAL == DEFAULT_PARTITION_VALUE)
    empty = empty.where(PARTITION_KEY_VALS.c.INTEGER_IDX == 1).values(PART_KEY_VAL="")
    run_write(catalog.database, lambda transaction: transaction.connection.execute(empty))
    expected = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    assert [DEFAULT_PARTITION_VALUE, ""] in [one.values for one in expected]
    for size in (1, 10):
        found = [one for page in pages(catalog, size) for one in page]
        assert sorted(found, key=lambda one: one.values) == sorted(expected, key=lambda one: one.values)


def test_a_table_without_partitions_has_no_page_and_one_that_is_not_there_is_refused(catalog: PartitionCatalog) -> None:
    catalog.create_table("empty")
    with catalog.database.snapshot():
        assert [*read_partition_pages(catalog.context, TableName("hive", "d", "empty"))] == []
        with pytest.raises(NoSuchObjectException):
            next(read_partition_pages(catalog.context, TableName("hive", "d", "nowhere")))
