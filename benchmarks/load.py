"""Fills a metastore with the catalog."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.catalog import ROOT, CatalogPlan, TablePlan, columns, partition, partition_name, table
from benchmarks.client import connect
from hms_cache.thrift_gen.hive_metastore import ttypes

PARTITIONS_A_CALL = 100


def load(address: str, plan: CatalogPlan, report: Callable[[str], None] = print) -> dict[str, float]:
    """Creates everything that is missing; figures by name (partitions/s, …)."""
    client = connect(address)
    existing = set(client.get_all_databases())
    for database in sorted({one.database for one in plan.tables_planned()} - existing):
        client.create_database(
            ttypes.Database(name=database, description="bench", locationUri=f"file:{ROOT}/{database}", parameters={})
        )
    known = {database: set(client.get_all_tables(database)) for database in client.get_all_databases()}
    started = time.perf_counter()
    created = partitions = 0
    seconds_of_partitions = 0.0
    for one in plan.tables_planned():
        if one.name in known[one.database]:
            continue
        client.create_table(table(one))
        created += 1
        if one.partitions:
            began = time.perf_counter()
            _add_partitions(client, one)
            seconds_of_partitions += time.perf_counter() - began
            partitions += one.partitions
            _add_statistics(client, one)
            report(f"{one.database}.{one.name}: {one.partitions} partitions")
    for source, names in plan.copies_planned().items():
        model = next(one for one in plan.tables_planned() if one.name == source)
        for name in names:
            if name not in known[model.database]:
                client.create_table(table(replace(model, name=name)))
                created += 1
    seconds = time.perf_counter() - started
    figures = {"tables": created, "partitions": partitions, "seconds": seconds}
    if partitions:
        figures["partitions_per_second"] = partitions / seconds_of_partitions
    return figures


def _add_partitions(client: Any, plan: TablePlan) -> None:
    for start in range(0, plan.partitions, PARTITIONS_A_CALL):
        numbers = range(start, min(start + PARTITIONS_A_CALL, plan.partitions))
        request = ttypes.AddPartitionsRequest(
            dbName=plan.database,
            tblName=plan.name,
            parts=[partition(plan, number) for number in numbers],
            ifNotExists=False,
            needResult=False,
        )
        client.add_partitions_req(request)


def _statistics(name: str, number: int) -> ttypes.ColumnStatisticsObj:
    data = ttypes.LongColumnStatsData(lowValue=0, highValue=1000 + number, numNulls=number, numDVs=500)
    return ttypes.ColumnStatisticsObj(
        colName=name, colType="bigint", statsData=ttypes.ColumnStatisticsData(longStats=data)
    )


def _add_statistics(client: Any, plan: TablePlan) -> None:
    """Statistics of the table's and of 100 partitions' bigint columns."""
    names = [column.name for column in columns(plan.columns) if column.type == "bigint"]
    described: dict[str, Any] = {"dbName": plan.database, "tableName": plan.name}
    client.update_table_column_statistics(
        ttypes.ColumnStatistics(
            statsDesc=ttypes.ColumnStatisticsDesc(isTblLevel=True, **described),
            statsObj=[_statistics(name, 1) for name in names],
            engine="hive",
        )
    )
    for number in range(min(100, plan.partitions)):
        client.update_partition_column_statistics(
            ttypes.ColumnStatistics(
                statsDesc=ttypes.ColumnStatisticsDesc(isTblLevel=False, partName=partition_name(number), **described),
                statsObj=[_statistics(name, number) for name in names],
                engine="hive",
            )
        )
