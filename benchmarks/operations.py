"""The measured operations: named calls with their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.catalog import CatalogPlan, partition_name, partition_values
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. `variants` are argument structs that a client sends in turn, so that several objects are read."""

    name: str
    method: str
    variants: list[Any]


def _arguments(method: str, **values: Any) -> Any:
    return METHODS[method].args_class(**values)


def read_operations(plan: CatalogPlan, *, plain_get_table: bool) -> list[Operation]:
    """Returns the reads with bars."""
    small = [one for one in plan.tables_planned() if not one.partitions]
    requested = small[:: max(1, len(small) // 64)][:64]
    hundred, thousand, large = "part_100", "part_1000", "part_large"
    database = "bench_00"
    names = [one.name for one in small if one.database == "bench_01"][:50]
    by_names = [partition_name(n) for n in range(0, 1000, 10)]
    many_names = [partition_name(n) for n in range(0, plan.large, max(1, plan.large // 1000))][:1000]
    day = partition_values(24 * 30)[0]
    last_day = partition_values(24 * 60)[0]
    statistics_columns = ["column_00", "column_05", "column_10", "column_15"]

    def get_table(db: str, name: str) -> tuple[str, Any]:
        if plain_get_table:
            return "get_table", _arguments("get_table", dbname=db, tbl_name=name)
        request = ttypes.GetTableRequest(dbName=db, tblName=name)
        return "get_table_req", _arguments("get_table_req", req=request)

    def partitioned(name: str, method: str, table: str, **values: Any) -> Operation:
        return Operation(name, method, [_arguments(method, db_name=database, tbl_name=table, **values)])

    tables = [get_table(one.database, one.name) for one in requested]
    objects = ttypes.GetTablesRequest(dbName="bench_01", tblNames=names)
    return [
        Operation("get_table", tables[0][0], [arguments for _, arguments in tables]),
        Operation(
            "get_database",
            "get_database",
            [_arguments("get_database", name=f"bench_{d:02d}") for d in range(plan.databases)],
        ),
        Operation("get_all_databases", "get_all_databases", [_arguments("get_all_databases")]),
        Operation("get_tables", "get_tables", [_arguments("get_tables", db_name="bench_01", pattern="table_0*")]),
        Operation(
            "get_table_objects_by_name 50",
            "get_table_objects_by_name_req",
            [_arguments("get_table_objects_by_name_req", req=objects)],
        ),
        Operation(
            "get_partition",
            "get_partition",
            [
                _arguments("get_partition", db_name=database, tbl_name=thousand, part_vals=partition_values(n))
                for n in range(0, 1000, 16)
            ],
        ),
        partitioned("get_partitions 1,000", "get_partitions", thousand, max_parts=-1),
        partitioned(f"get_partitions {plan.large:,}", "get_partitions", large, max_parts=-1),
        partitioned(f"get_partition_names {plan.large:,}", "get_partition_names", large, max_parts=-1),
        partitioned("get_partitions_by_names 100", "get_partitions_by_names", large, names=by_names),
        partitioned("get_partitions_by_names 1,000", "get_partitions_by_names", large, names=many_names),
        partitioned("filter =, 24 answers", "get_partitions_by_filter", large, filter=f'dt = "{day}"', max_parts=-1),
        partitioned(
            "filter range, 720 answers",
            "get_partitions_by_filter",
            large,
            filter=f'dt >= "{day}" and dt < "{last_day}"',
            max_parts=-1,
        ),
        partitioned(
            "get_partitions_ps_with_auth 24",
            "get_partitions_ps_with_auth",
            large,
            part_vals=[day, ""],
            max_parts=-1,
            user_name="bench",
            group_names=[],
        ),
        Operation(
            "get_table_statistics",
            "get_table_statistics_req",
            [
                _arguments(
                    "get_table_statistics_req",
                    request=ttypes.TableStatsRequest(
                        dbName=database, tblName=hundred, colNames=statistics_columns, engine="hive"
                    ),
                )
            ],
        ),
        Operation(
            "get_aggr_stats_for 100",
            "get_aggr_stats_for",
            [
                _arguments(
                    "get_aggr_stats_for",
                    request=ttypes.PartitionsStatsRequest(
                        dbName=database,
                        tblName=hundred,
                        colNames=statistics_columns,
                        partNames=[partition_name(n) for n in range(100)],
                        engine="hive",
                    ),
                )
            ],
        ),
    ]
