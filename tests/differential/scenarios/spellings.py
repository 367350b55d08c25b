"""Calls that have other names in 4.0.1: of earlier releases, which it removed, and of later ones."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlterDataConnectorRequest,
    CreateDataConnectorRequest,
    DataConnector,
    DeleteColumnStatisticsRequest,
    DropDataConnectorRequest,
    LockMaterializationRebuildRequest,
    PartitionsStatsRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, descriptor, partition, table
from tests.differential.scenarios.auxiliary import CONNECTOR_NAMES, connector, get_connector
from tests.differential.scenarios.statistics import COLUMNS, NAMES, table_request, update
from tests.differential.scenarios.transactions import begin, commit


def spelt(method: str, arguments: tuple[Any, ...], java_method: str, *java_arguments: Any) -> Call:
    """A call, and its form in 4.0.1."""
    return call(method, *arguments, java_spelling=(java_method, java_arguments, lambda answer: answer))


def create(made: DataConnector) -> Call:
    return spelt("create_dataconnector", (made,), "create_dataconnector_req", CreateDataConnectorRequest(made))


def alter(name: str, to: DataConnector) -> Call:
    request = AlterDataConnectorRequest(name, to)
    return spelt("alter_dataconnector", (name, to), "alter_dataconnector_req", request)


def drop(name: str, if_exists: bool) -> Call:
    request = DropDataConnectorRequest(name, if_exists, False)
    return spelt("drop_dataconnector", (name, if_exists, False), "drop_dataconnector_req", request)


CONNECTORS = Scenario.of(
    "connectors of 4.0.0",
    create(connector()),
    create(connector()),
    create(connector("PG2", parameters={})),
    create(connector("bad-name")),
    get_connector("pg"),
    alter("pg", connector(description="altered")),
    get_connector("pg"),
    alter("none", connector("none")),
    drop("none", False),
    drop("none", True),
    drop("PG", False),
    drop("pg2", False),
    CONNECTOR_NAMES,
)


def rebuild(place: str, of: str, txn: int) -> list[Call]:
    request = LockMaterializationRebuildRequest("hive", place, of, txn)
    return [
        spelt(f"{method}_req", (request,), method, place, of, txn)
        for method in ("get_lock_materialization_rebuild", "heartbeat_lock_materialization_rebuild")
    ]


REBUILDS = Scenario.of(
    "rebuilds of later releases",
    call("create_database", database()),
    begin(2),
    rebuild("d", "v", 1),
    rebuild("d", "v", 2),
    rebuild("d", "w", 2),
    commit(1),
    rebuild("d", "v", 2),
)


def delete(of: str, column: str | None, part: str | None = None, place: str = "d") -> Call:
    request = DeleteColumnStatisticsRequest(
        cat_name="hive",
        db_name=place,
        tbl_name=of,
        part_names=None if part is None else [part],
        col_names=None if column is None else [column],
        engine="hive",
        tableLevel=part is None,
    )
    if part is None:
        positional = ("delete_table_column_statistics", place, of, column, "hive")
    else:
        positional = ("delete_partition_column_statistics", place, of, part, column, "hive")
    return spelt("delete_column_statistics_req", (request,), *positional)


OF_TABLE = table_request(NAMES, tblName="t")
OF_PARTITION = call(
    "get_partitions_statistics_req", PartitionsStatsRequest("d", "p", NAMES, ["k=1"], engine="hive"), is_ordered=False
)

STATISTICS = Scenario.of(
    "statistics of later releases",
    call("create_database", database()),
    call("create_table", table("t", sd=descriptor(*COLUMNS))),
    call("create_table", table("p", keys=("k:string",), sd=descriptor(*COLUMNS))),
    call("add_partition", partition("1", sd=descriptor(*COLUMNS))),
    update(NAMES),
    update(NAMES, part="k=1", of="p"),
    delete("t", "i"),
    delete("T", "S"),
    delete("none", "i"),
    delete("t", "i", place="none"),
    OF_TABLE,
    delete("t", None),
    OF_TABLE,
    delete("p", "i", "k=1"),
    OF_PARTITION,
    delete("none", "i", "k=1"),
    delete("p", None, "k=1"),
    OF_PARTITION,
)

SCENARIOS = (CONNECTORS, REBUILDS, STATISTICS)
