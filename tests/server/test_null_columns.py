"""Columns that other programs leave NULL, each one that may be: reads answer, or raise what their method declares."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException

from hms_cache.store.schema import METADATA
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve, database, table

LONGS = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(0, 1, 2, 3))


def fill(link: Link) -> None:
    """Writes few rows into as many tables as possible."""
    call = link.call
    call("create_database", database=database("d"))
    made = table("d", "t", k="v", transactional="true")
    made.sd.inputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    made.sd.outputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
    made.sd.serdeInfo = t.SerDeInfo("s", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"x": "y"})
    made.sd.parameters = {"x": "y"}
    made.sd.bucketCols, made.sd.numBuckets = ["a"], 2
    made.sd.skewedInfo = t.SkewedInfo(["a"], [["1"]], {("1",): "file:/x"})
    call("create_table", tbl=made)
    plain = table("d", "u", k="v")
    plain.partitionKeys = []
    plain.sd.bucketCols, plain.sd.numBuckets, plain.sd.sortCols = ["a"], 2, [t.Order("a", 1)]
    plain.sd.skewedInfo = t.SkewedInfo(["a"], [["1"]], {("1",): "file:/x"})
    call("create_table", tbl=plain)
    view = table("d", "v")
    view.partitionKeys, view.tableType = [], "MATERIALIZED_VIEW"
    view.viewOriginalText = view.viewExpandedText = "select 1"
    view.creationMetadata = t.CreationMetadata("hive", "d", "v", {"d.t"}, "1$d.t:1:1::")
    call("create_table", tbl=view)
    call("append_partition", db_name="d", tbl_name="t", part_vals=["1"])
    of_table = t.ColumnStatistics(t.ColumnStatisticsDesc(True, "d", "u"), [t.ColumnStatisticsObj("a", "int", LONGS)])
    call("update_table_column_statistics", stats_obj=of_table)
    call(
        "add_primary_key",
        req=t.AddPrimaryKeyRequest([t.SQLPrimaryKey("d", "u", "a", 1, "pk", True, True, True, catName="hive")]),
    )
    call(
        "add_foreign_key",
        req=t.AddForeignKeyRequest(
            [t.SQLForeignKey("d", "u", "a", "d", "t", "a", 1, 0, 0, "fk", "pk", True, True, True, "hive")]
        ),
    )
    call("create_function", func=t.Function("f", "d", "c", "o", 1, 1, 1, [t.ResourceUri(1, "file:/j")]))
    call("create_role", role=t.Role("r", 1, "o"))
    call(
        "grant_role",
        role_name="r",
        principal_name="ann",
        principal_type=1,
        grantor="o",
        grantorType=1,
        grant_option=True,
    )
    references = [
        t.HiveObjectRef(1, None, None, None, None),
        t.HiveObjectRef(2, "d", None, None, None),
        t.HiveObjectRef(3, "d", "u", None, None),
        t.HiveObjectRef(5, "d", "u", None, "a"),
    ]
    bag = [
        t.HiveObjectPrivilege(one, "ann", 1, t.PrivilegeGrantInfo("SELECT", 1, "o", 1, True), "SQL")
        for one in references
    ]
    call("grant_privileges", privileges=t.PrivilegeBag(bag))
    call("create_dataconnector", connector=t.DataConnector("c", "mysql", "u", parameters={"a": "b"}))
    call("create_ischema", schema=t.ISchema(1, "s", "hive", "d", 1, 1, True))
    call("add_schema_version", schemaVersion=t.SchemaVersion(t.ISchemaName("hive", "d", "s"), 1, 1, []))
    call("create_resource_plan", request=t.WMCreateResourcePlanRequest(t.WMResourcePlan("p", 1)))
    call("create_wm_pool", request=t.WMCreatePoolRequest(t.WMPool("p", "q", 0.5, 1)))
    call("create_wm_trigger", request=t.WMCreateTriggerRequest(t.WMTrigger("p", "g", "X > 1", "KILL")))
    call(
        "scheduled_query_maintenance",
        request=t.ScheduledQueryMaintenanceRequest(
            1, t.ScheduledQuery(t.ScheduledQueryKey("x", "n"), True, "0 0 0 * * ? *", "u", "select 1")
        ),
    )
    call("create_stored_procedure", proc=t.StoredProcedure("sp", "d", "hive", "o", "body"))
    call("add_package", request=t.AddPackageRequest("hive", "d", "pk", "o", "h", "b"))
    call("add_runtime_stats", stat=t.RuntimeStat(1, 1, b"x"))
    call("open_txns", rqst=t.OpenTxnRequest(1, "u", "h"))
    call("allocate_table_write_ids", rqst=t.AllocateTableWriteIdsRequest("d", "t", [1]))
    lock = t.LockComponent(type=1, level=3, dbname="d", tablename="t", partitionname="p=1", operationType=2)
    call("lock", rqst=t.LockRequest([lock], 1, "u", "h"))
    call("lock", rqst=t.LockRequest([t.LockComponent(type=1, level=2, dbname="d", tablename="w")], None, "u", "h"))
    call("compact2", rqst=t.CompactionRequest("d", "t", "p=1", 1))


READS: dict[str, tuple[Any, ...]] = {
    "get_catalog": (t.GetCatalogRequest("hive"),),
    "get_all_databases": (),
    "get_database_req": (t.GetDatabaseRequest("d", "hive"),),
    "get_all_tables": ("d",),
    "get_table_meta": (
        "*",
        "*",
        [],
    ),
    "get_table": (
        "d",
        "u",
    ),
    "get_table_objects_by_name": (
        "d",
        ["t", "u", "v"],
    ),
    "get_partitions": (
        "d",
        "t",
        -1,
    ),
    "get_partition_names": (
        "d",
        "t",
        -1,
    ),
    "get_partitions_by_filter": (
        "d",
        "t",
        'p = "1"',
        -1,
    ),
    "get_table_column_statistics": (
        "d",
        "u",
        "a",
    ),
    "get_all_table_constraints": (t.AllTableConstraintsRequest("d", "u", "hive"),),
    "get_all_functions": (),
    "get_role_names": (),
    "list_roles": (
        "ann",
        1,
    ),
    "get_principals_in_role": (t.GetPrincipalsInRoleRequest("r"),),
    "list_privileges": (
        "ann",
        1,
        None,
    ),
    "get_privilege_set": (t.HiveObjectRef(3, "d", "u", None, None), "ann", []),
    "get_dataconnector_req": (t.GetDataConnectorRequest("c"),),
    "get_ischema": (t.ISchemaName("hive", "d", "s"),),
    "get_schema_all_versions": (t.ISchemaName("hive", "d", "s"),),
    "get_resource_plan": (t.WMGetResourcePlanRequest("p"),),
    "get_all_resource_plans": (t.WMGetAllResourcePlanRequest(),),
    "get_triggers_for_resourceplan": (t.WMGetTriggersForResourePlanRequest("p"),),
    "get_scheduled_query": (t.ScheduledQueryKey("x", "n"),),
    "scheduled_query_poll": (t.ScheduledQueryPollRequest("n"),),
    "get_stored_procedure": (t.StoredProcedureRequest("hive", "d", "sp"),),
    "find_package": (t.GetPackageRequest("hive", "d", "pk"),),
    "get_runtime_stats": (t.GetRuntimeStatsRequest(-1, -1),),
    "get_open_txns": (),
    "get_open_txns_info": (),
    "get_valid_write_ids": (t.GetValidWriteIdsRequest(["d.t"]),),
    "show_locks": (t.ShowLocksRequest(),),
    "show_compact": (t.ShowCompactRequest(),),
    "get_next_notification": (t.NotificationEventRequest(0),),
    "get_current_notificationEventId": (),
    "heartbeat": (t.HeartbeatRequest(None, 1),),
}


class World:
    """A server, and direct access to its database."""

    def __init__(self, link: Link, file: Path) -> None:
        self.link = link
        self.file = sqlite3.connect(file, isolation_level=None, timeout=30)

    def undeclared(self) -> list[str]:
        """Reads that raise an undeclared exception."""
        found = []
        for method, arguments in READS.items():
            try:
                self.link.call(method, **dict(zip(METHODS[method].args_class.__slots__, arguments, strict=True)))
            except TApplicationException as error:
                found.append(f"{method}: {error.message}")
            except TException:
                pass
        return found


NAMES = {("DBS", "NAME"), ("TBLS", "TBL_NAME"), ("PARTITIONS", "PART_NAME"), ("ROLES", "ROLE_NAME")}
"""By which things are found: nobody leaves them out, although the schema would let them."""


def nullable() -> set[tuple[str, str]]:
    columns = [(name, column) for name, one in METADATA.tables.items() for column in one.columns]
    return {(name, column.name) for name, column in columns if column.nullable} - NAMES


@pytest.mark.soak
def test_nothing_that_is_null_makes_a_read_fail_inside(serve: Serve, tmp_path: Path) -> None:
    """An empty value of a skewed column is NULL in Oracle: no table requested together with such a one was returned."""
    link = serve(**{"cache.enabled": False, "security.accept_insecure": True}).link()
    fill(link)
    world = World(link, tmp_path / "metastore.db")
    assert world.undeclared() == []
    wrong, tried = {}, 0
    for name, column in sorted(nullable()):
        rows = world.file.execute(f'SELECT rowid, "{column}" FROM "{name}" WHERE "{column}" IS NOT NULL').fetchall()
        if not rows:
            continue
        try:
            world.file.execute(f'UPDATE "{name}" SET "{column}" = NULL')
        except sqlite3.IntegrityError:
            continue  # a key
        tried += 1
        if found := world.undeclared():
            wrong[f"{name}.{column}"] = found
        for number, value in rows:
            world.file.execute(f'UPDATE "{name}" SET "{column}" = ? WHERE rowid = ?', (value, number))
    world.file.close()
    assert wrong == {} and tried > 100
