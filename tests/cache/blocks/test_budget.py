"""Data that does not fit into the budget is returned, but not cached and not loaded completely."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions.partition_set import PartitionSet, SetTooLargeError
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.blocks.partitions import KEYS, page
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, encoded, partition, table


def test_pages_are_read_until_it_is_clear_that_they_are_too_many() -> None:
    read: list[int] = []

    def pages() -> Any:
        for first in range(0, 10_000, 1_000):
            read.append(first)
            yield page(first, 1_000)

    with pytest.raises(SetTooLargeError):
        PartitionSet.from_pages(KEYS, pages(), complete=True, max_bytes=100_000)
    assert read == [0, 1_000]


def test_a_set_that_fits_is_never_refused() -> None:
    whole = PartitionSet.from_pages(KEYS, [page(0, 3_000)], complete=True)
    again = PartitionSet.from_pages(KEYS, [page(0, 3_000)], complete=True, max_bytes=whole.memory_bytes())
    assert len(again) == 3_000
    with pytest.raises(SetTooLargeError):
        PartitionSet.from_pages(KEYS, [page(0, 3_000)], complete=True, max_bytes=int(0.8 * whole.memory_bytes()))


def test_a_table_larger_than_the_budget_is_answered_from_the_database_and_loaded_once(servers: MakeServer) -> None:
    server = servers(CacheOptions(budget_bytes=30_000))
    server.store.writes.databases.create_database(
        ttypes.Database(name="d", catalogName=CATALOG, description="", parameters={})
    )
    server.store.writes.tables.create_table(table("d", "t", (("dt", "string"),)))
    sent = [partition(table("d", "t"), (f"{number:04d}",)) for number in range(1_000)]
    server.store.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), sent)

    def ask(store: Any) -> Any:
        return lambda: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t")))

    expected = encoded(ask(server.objects))
    assert encoded(ask(server.store)) == expected
    loads = server.cache.loader.loads
    assert encoded(ask(server.store)) == expected
    assert server.cache.loader.loads == loads
    entry = server.cache.shared.tables.get(TableName(CATALOG, "d", "t"))
    assert entry is None or Facet.PARTITIONS not in entry.facets
