"""Each read of the store's contract, for each existing object and for those that requests create."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_type_hints

from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.store.contract.metadata import MetadataReads, MetadataStore
from hms_cache.store.contract.partitions import ByFilter, ByNames, ByPartialValues, PartitionQuery
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery
from tests.cache.world import CATALOG
from tests.every_write.catalog import DATABASE, FLAT, KEYS, MADE, OTHER_DATABASE, SOURCE, TABLES, VIEW, Facts

FACETS = {
    method: facet
    for facet, contract in get_type_hints(MetadataReads).items()
    for method in contract.__abstractmethods__
}
"""The entity by which the contract has each method."""

Read = Callable[[MetadataStore], Any]

UNCACHED = frozenset(
    {
        "get_catalog",
        "get_catalog_names",
        "get_table_names_by_filter",
        "get_materialized_view_names",
        "is_partition_marked_for_event",
    }
)
"""Reads that no cache answers: there is nothing to compare."""


def all_reads(facts: Facts) -> dict[str, Read]:
    """Method and arguments as a text, mapped to the read."""
    reads: dict[str, Read] = {}

    def add(method: str, *arguments: Any, **options: Any) -> None:
        shown = ", ".join([*map(str, arguments), *(f"{key}={value}" for key, value in options.items())])
        reads[f"{method}({shown})"] = partial(_read, method, arguments, options)

    add("get_database_names", CATALOG)
    add("get_databases", CATALOG)
    for database in (DATABASE, OTHER_DATABASE, MADE):
        add("get_database", DatabaseName(CATALOG, database))
        add("get_table_names", DatabaseName(CATALOG, database))
        add("get_function_names", DatabaseName(CATALOG, database))
    add("get_functions", CATALOG)
    add("get_functions", CATALOG, DATABASE)
    add("get_function", FunctionName(CATALOG, DATABASE, "f"))
    add("get_function", FunctionName(CATALOG, DATABASE, MADE))
    add("get_table_names", DatabaseName(CATALOG, DATABASE), None, "MANAGED_TABLE")
    add("get_table_meta", CATALOG, None, None)
    add("get_table_meta", CATALOG, DATABASE, "*a*", ("MANAGED_TABLE",))
    # Materialized views, and so answers with one among the tables, are not cached.
    add("get_tables", DatabaseName(CATALOG, DATABASE), (*(name for name in TABLES if name != VIEW), MADE))
    add("get_tables", DatabaseName(CATALOG, DATABASE), (VIEW,))
    for name in (*TABLES, MADE):
        key = TableName(CATALOG, DATABASE, name)
        add("get_table", key)
        add("get_table_constraints", key)
        if name == FLAT:
            add("get_table_column_statistics", StatisticsQuery(key, ("a", "b")))
        elif name in (SOURCE, VIEW):
            add("get_partitions", PartitionQuery(key))
        else:
            _add_partition_reads(add, key)
    acid, covered = TableName(CATALOG, DATABASE, "acid"), ReadVersion(valid_write_ids=facts.valid_write_ids)
    add("get_table", acid, version=covered)
    add("get_table", acid, version=ReadVersion(table_id=facts.tables["acid"].id))
    add("get_partitions", PartitionQuery(acid, version=covered))
    add("get_foreign_keys", CATALOG, (DATABASE, "parts"), (DATABASE, FLAT))
    return reads


def _add_partition_reads(add: Callable[..., None], key: TableName) -> None:
    add("get_partition", key, ("1",))
    add("get_partitions", PartitionQuery(key))
    add("get_partitions", PartitionQuery(key, ByNames(("p=1", "p=7", "p=8"))))
    add("get_partitions", PartitionQuery(key, ByFilter("p > '1'")))
    add("get_partition_names", PartitionQuery(key, ByPartialValues(("1",))))
    add("get_partition_count", PartitionQuery(key))
    add("get_partition_values", PartitionQuery(key), [name for name, _ in KEYS])
    add("get_partition_column_statistics", StatisticsQuery(key, ("a", "b")), ("p=1", "p=2", "p=7"))
    add("get_aggregate_statistics", StatisticsQuery(key, ("a",)), ("p=1", "p=2"))


def _read(method: str, arguments: tuple[Any, ...], options: dict[str, Any], store: MetadataStore) -> Any:
    return getattr(getattr(store.reads, FACETS[method]), method)(*arguments, **options)
