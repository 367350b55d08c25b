"""For each write method, the requests that succeed on the catalog; their fields are varied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.cache.world import CATALOG, descriptor, partition, table
from tests.every_write.catalog import (
    ACID,
    DATABASE,
    FLAT,
    KEYS,
    MADE,
    OTHER_DATABASE,
    PARTITIONED,
    POLICY,
    SOURCE,
    SOURCE_TXNS,
    VIEW,
    Facts,
    function,
    statistics,
)
from tests.every_write.values import Values

Arguments = dict[str, Any]
Bases = Callable[[Facts], list[Arguments]]

WITHOUT_EVENT: Mapping[str, str] = {
    "add_serde": "it belongs to the schema registry, and to no table",
}
"""Methods that may change rows of cached kinds without an event, and why no cached read shows it."""

NOTHING_CACHED = frozenset(
    {
        *("add_master_key", "add_package", "add_replication_metrics", "add_runtime_stats", "add_schema_version"),
        *("add_serde", "add_token", "add_write_ids_to_min_history", "alter_catalog", "alter_dataconnector"),
        *("alter_dataconnector_req", "alter_ischema", "alter_resource_plan", "alter_wm_pool", "alter_wm_trigger"),
        *("check_lock", "cm_recycle", "compact", "compact2", "abort_Compactions", "create_catalog"),
        *("create_dataconnector", "create_dataconnector_req", "create_ischema", "create_role"),
        *("create_or_drop_wm_trigger_to_pool_mapping", "create_or_update_wm_mapping", "create_resource_plan"),
        *("create_stored_procedure", "create_type", "create_wm_pool", "create_wm_trigger", "drop_catalog"),
        *("drop_dataconnector", "drop_dataconnector_req", "drop_ischema", "drop_package", "drop_resource_plan"),
        *("drop_role", "drop_schema_version", "drop_stored_procedure", "drop_type", "drop_wm_mapping"),
        *("drop_wm_pool", "drop_wm_trigger", "find_next_compact", "find_next_compact2"),
        *("get_lock_materialization_rebuild", "get_lock_materialization_rebuild_req", "grant_privileges"),
        *("grant_revoke_privileges", "grant_revoke_role", "grant_role", "heartbeat", "heartbeat_txn_range"),
        *("heartbeat_lock_materialization_rebuild", "heartbeat_lock_materialization_rebuild_req", "lock"),
        *("map_schema_version_to_serde", "markPartitionForEvent", "mark_cleaned", "mark_compacted", "mark_failed"),
        *("mark_refused", "refresh_privileges", "remove_compaction_metrics_data", "remove_master_key"),
        *("get_delegation_token", "renew_delegation_token", "cancel_delegation_token"),
        *("remove_token", "revoke_privileges", "revoke_role", "scheduled_query_maintenance"),
        *("scheduled_query_poll", "scheduled_query_progress", "seed_txn_id", "set_hadoop_jobid", "set_properties"),
        *("set_schema_version_state", "submit_for_cleanup", "unlock", "update_compaction_metrics_data"),
        *("update_compactor_state", "update_master_key", "add_dynamic_partitions"),
    }
)
"""Writes of what is never cached. Their requests are generated from the fields' names and need not succeed; that they
change no cached row, and no cached read, is asked of them all the same."""


def write_methods() -> list[str]:
    """All methods of the protocol that write."""
    return sorted(name for name, handler in all_handlers().items() if handler.kind is Kind.WRITE)


def base_requests(method: str, facts: Facts) -> list[Any]:
    """Argument structs of the method: those that succeed, otherwise a generated one."""
    kind = METHODS[method].args_class
    bases = BASES.get(method)
    if bases is not None:
        return [kind(**arguments) for arguments in bases(facts)]
    values = Values(facts)
    arguments = kind()
    for field in filter(None, kind.thrift_spec):
        found = values.others(field, None)
        setattr(arguments, field[2], found[0] if found else None)
    return [arguments]


def _altered(facts: Facts, name: str) -> t.Table:
    changed = facts.table(name)
    changed.parameters = {**changed.parameters, "changed": "yes"}
    return changed


def _altered_partition(facts: Facts, name: str) -> t.Partition:
    changed = facts.partition(name)
    changed.parameters = {**(changed.parameters or {}), "changed": "yes"}
    return changed


def _altered_database(facts: Facts) -> t.Database:
    database = facts.databases[DATABASE]
    return t.Database(
        name=DATABASE,
        description="changed",
        locationUri=database.locationUri,
        parameters={**database.parameters, "changed": "yes"},
        ownerName=database.ownerName,
        ownerType=database.ownerType,
        catalogName=CATALOG,
    )


def _new_partition(facts: Facts, name: str = PARTITIONED) -> t.Partition:
    return partition(facts.table(name), ("7",), k="v")


def _constraint(**more: Any) -> dict[str, Any]:
    common = {"table_db": DATABASE, "enable_cstr": True, "validate_cstr": False, "rely_cstr": True}
    return {**common, "catName": CATALOG, "table_name": PARTITIONED, "column_name": "b", **more}


def _on(*names: str) -> Callable[[Callable[[Facts, str], Arguments]], Bases]:
    return lambda make: lambda facts: [make(facts, name) for name in names]


def _one(make: Callable[[Facts], Arguments]) -> Bases:
    return lambda facts: [make(facts)]


def _request(field: str, make: Callable[[Facts, str], Any], *names: str) -> Bases:
    return lambda facts: [{field: make(facts, name)} for name in names]


_CONTEXT = {"environment_context": None}
_PLAIN = {"db_name": DATABASE}
_TWO = (PARTITIONED, ACID)


def _alter_table(facts: Facts, name: str) -> Arguments:
    return {"dbname": DATABASE, "tbl_name": name, "new_tbl": _altered(facts, name)}


def _alter_partition(facts: Facts, name: str) -> Arguments:
    return {"db_name": DATABASE, "tbl_name": name, "new_part": _altered_partition(facts, name)}


def _alter_partitions(facts: Facts, name: str) -> Arguments:
    return {"db_name": DATABASE, "tbl_name": name, "new_parts": [_altered_partition(facts, name)]}


def _renamed(facts: Facts, name: str) -> t.Partition:
    changed = facts.partition(name)
    changed.values = ["7"]
    return changed


def _exchange(facts: Facts) -> Arguments:
    names = {"source_table_name": SOURCE, "dest_table_name": PARTITIONED}
    return {"partitionSpecs": {"p": "8"}, "source_db": DATABASE, "dest_db": DATABASE, **names}


def _specs(facts: Facts) -> Arguments:
    new = _new_partition(facts)
    location = f"{facts.tables[PARTITIONED].sd.location}/p=7"
    shared = t.PartitionSpecWithSharedSD(
        partitions=[t.PartitionWithoutSD(values=["6"], relativePath="/p=6", parameters={})],
        sd=descriptor(facts.tables[PARTITIONED].sd.location),
    )
    new.sd.location = location
    listed = t.PartitionSpec(
        dbName=DATABASE,
        tableName=PARTITIONED,
        rootPath=facts.tables[PARTITIONED].sd.location,
        partitionList=t.PartitionListComposingSpec([new]),
    )
    with_shared = t.PartitionSpec(
        dbName=DATABASE,
        tableName=PARTITIONED,
        rootPath=facts.tables[PARTITIONED].sd.location,
        sharedSDPartitionSpec=shared,
    )
    return {"new_parts": [listed, with_shared]}


def _set_statistics(facts: Facts) -> list[t.SetPartitionsStatsRequest]:
    return [
        t.SetPartitionsStatsRequest([statistics(FLAT, maximum=50)], engine="hive"),
        t.SetPartitionsStatsRequest([statistics(FLAT, maximum=50)], needMerge=True, engine="hive"),
        *(
            t.SetPartitionsStatsRequest(
                [statistics(name, "p=1", maximum=50), statistics(name, "p=3", maximum=60)],
                needMerge=merge,
                engine="hive",
            )
            for name in _TWO
            for merge in (False, True)
        ),
    ]


def _fire(facts: Facts) -> list[Arguments]:
    insert = t.InsertEventRequestData(replace=False, filesAdded=["file:/a"])
    events = [
        t.FireEventRequest(True, t.FireEventRequestData(insertData=insert), DATABASE, FLAT),
        t.FireEventRequest(True, t.FireEventRequestData(insertData=insert), DATABASE, PARTITIONED, ["1"]),
        t.FireEventRequest(True, t.FireEventRequestData(refreshEvent=True), DATABASE, PARTITIONED),
    ]
    return [{"rqst": event} for event in events]


def _commits(facts: Facts) -> list[Arguments]:
    replayed = {"txnid": SOURCE_TXNS[0], "replPolicy": POLICY, "txn_type": t.TxnType.REPL_CREATED}
    mark = t.ReplLastIdInfo(DATABASE, 88, table=PARTITIONED, catalog=CATALOG, partitionList=["p=1", "p=2"])
    requests = [
        t.CommitTxnRequest(facts.open_txns[0]),
        t.CommitTxnRequest(facts.open_txns[1], replLastIdInfo=mark),
        t.CommitTxnRequest(**replayed, replLastIdInfo=mark),
        t.CommitTxnRequest(
            **replayed, writeEventInfos=[t.WriteEventInfo(4, DATABASE, ACID, files="f", partition="p=1")]
        ),
    ]
    return [{"rqst": request} for request in requests]


def _aborts(facts: Facts) -> list[Arguments]:
    replayed = t.AbortTxnRequest(SOURCE_TXNS[1], replPolicy=POLICY, txn_type=t.TxnType.REPL_CREATED)
    plain = [t.AbortTxnRequest(txn) for txn in (facts.open_txns[0], facts.replicated_txns[0])]
    return [{"rqst": request} for request in [*plain, replayed]]


def _acid_write(facts: Facts) -> t.WriteNotificationLogRequest:
    files = t.InsertEventRequestData(replace=False, filesAdded=["file:/a"])
    return t.WriteNotificationLogRequest(facts.open_txns[0], facts.write_ids[0], DATABASE, ACID, files, ["1"])


def _constrained_table(facts: Facts) -> Arguments:
    made = table(DATABASE, MADE, KEYS)
    return {
        "tbl": made,
        "primaryKeys": [t.SQLPrimaryKey(**_constraint(table_name=MADE, column_name="a", key_seq=1, pk_name="pkm"))],
    }


def _drop_expression() -> t.DropPartitionsExpr:
    return t.DropPartitionsExpr(expr=b'p = "1"')


BASES: dict[str, Bases] = {
    # Databases
    "create_database": _one(lambda f: {"database": t.Database(name=MADE, description="m", parameters={"k": "v"})}),
    "create_database_req": _one(lambda f: {"createDatabaseRequest": t.CreateDatabaseRequest(MADE)}),
    "alter_database": _one(lambda f: {"dbname": DATABASE, "db": _altered_database(f)}),
    "alter_database_req": _one(lambda f: {"alterDbReq": t.AlterDatabaseRequest(DATABASE, _altered_database(f))}),
    "drop_database": lambda f: [
        {"name": OTHER_DATABASE, "deleteData": False, "cascade": False},
        {"name": DATABASE, "deleteData": True, "cascade": True},
    ],
    "drop_database_req": lambda f: [
        {"req": t.DropDatabaseRequest(OTHER_DATABASE, ignoreUnknownDb=False, deleteData=False, cascade=False)},
        {"req": t.DropDatabaseRequest(DATABASE, ignoreUnknownDb=False, deleteData=True, cascade=True)},
    ],
    # Tables
    "create_table": _one(lambda f: {"tbl": table(DATABASE, MADE, KEYS)}),
    "create_table_req": _one(lambda f: {"request": t.CreateTableRequest(table(DATABASE, MADE, KEYS))}),
    "create_table_with_constraints": _one(_constrained_table),
    "create_table_with_environment_context": _one(lambda f: {"tbl": table(DATABASE, MADE, KEYS), **_CONTEXT}),
    "alter_table": _on(FLAT, *_TWO, VIEW)(_alter_table),
    "alter_table_with_cascade": _on(*_TWO)(lambda f, name: {**_alter_table(f, name), "cascade": True}),
    "alter_table_with_environment_context": _on(FLAT, *_TWO)(lambda f, name: {**_alter_table(f, name), **_CONTEXT}),
    "alter_table_req": _request(
        "req", lambda f, name: t.AlterTableRequest(CATALOG, DATABASE, name, _altered(f, name)), FLAT, *_TWO
    ),
    "drop_table": _on(FLAT, *_TWO, VIEW)(lambda f, name: {"dbname": DATABASE, "name": name, "deleteData": True}),
    "drop_table_req": _request("dropTableReq", lambda f, name: t.DropTableRequest(None, DATABASE, name), FLAT, *_TWO),
    "drop_table_with_environment_context": _on(FLAT, *_TWO)(
        lambda f, name: {"dbname": DATABASE, "name": name, "deleteData": False, **_CONTEXT}
    ),
    "truncate_table": lambda f: [
        {"dbName": DATABASE, "tableName": FLAT, "partNames": None},
        {"dbName": DATABASE, "tableName": PARTITIONED, "partNames": ["p=1"]},
        {"dbName": DATABASE, "tableName": PARTITIONED, "partNames": None},
    ],
    "truncate_table_req": lambda f: [
        {"req": t.TruncateTableRequest(DATABASE, FLAT)},
        {"req": t.TruncateTableRequest(DATABASE, PARTITIONED, ["p=1"])},
        # Statistics of a transactional table change with a writer's list only, as in Hive.
        {"req": t.TruncateTableRequest(DATABASE, ACID, ["p=1"], f.write_ids[0], f.valid_write_ids)},
    ],
    "update_table_params": _one(
        lambda f: {"updates": [t.TableParamsUpdate(CATALOG, DATABASE, PARTITIONED, {"changed": "yes"})]}
    ),
    "update_creation_metadata": _one(
        lambda f: {
            "catName": CATALOG,
            "dbname": DATABASE,
            "tbl_name": VIEW,
            "creation_metadata": t.CreationMetadata(CATALOG, DATABASE, VIEW, {f"{DATABASE}.{PARTITIONED}"}),
        }
    ),
    "update_transaction_statistics": _one(
        lambda f: {"req": t.UpdateTransactionalStatsRequest(f.tables[ACID].id, 1, 1, 1)}
    ),
    "fire_listener_event": _fire,
    # Partitions
    "add_partition": _one(lambda f: {"new_part": _new_partition(f)}),
    "add_partition_with_environment_context": _one(lambda f: {"new_part": _new_partition(f), **_CONTEXT}),
    "add_partitions": _on(*_TWO)(lambda f, name: {"new_parts": [_new_partition(f, name)]}),
    "add_partitions_pspec": _one(_specs),
    "add_partitions_req": _request(
        "request", lambda f, name: t.AddPartitionsRequest(DATABASE, name, [_new_partition(f, name)], False), *_TWO
    ),
    "append_partition": _on(*_TWO)(lambda f, name: {**_PLAIN, "tbl_name": name, "part_vals": ["7"]}),
    "append_partition_by_name": _one(lambda f: {**_PLAIN, "tbl_name": PARTITIONED, "part_name": "p=7"}),
    "append_partition_by_name_with_environment_context": _one(
        lambda f: {**_PLAIN, "tbl_name": PARTITIONED, "part_name": "p=7", **_CONTEXT}
    ),
    "append_partition_req": lambda f: [
        {"appendPartitionsReq": t.AppendPartitionsRequest(CATALOG, DATABASE, PARTITIONED, name="p=7")},
        {"appendPartitionsReq": t.AppendPartitionsRequest(CATALOG, DATABASE, PARTITIONED, partVals=["7"])},
    ],
    "append_partition_with_environment_context": _one(
        lambda f: {**_PLAIN, "tbl_name": PARTITIONED, "part_vals": ["7"], **_CONTEXT}
    ),
    "alter_partition": _on(*_TWO)(_alter_partition),
    "alter_partition_with_environment_context": _on(*_TWO)(lambda f, name: {**_alter_partition(f, name), **_CONTEXT}),
    "alter_partitions": _on(*_TWO)(_alter_partitions),
    "alter_partitions_with_environment_context": _on(*_TWO)(lambda f, name: {**_alter_partitions(f, name), **_CONTEXT}),
    "alter_partitions_req": _request(
        "req",
        lambda f, name: t.AlterPartitionsRequest(None, DATABASE, name, [_altered_partition(f, name)]),
        *_TWO,
    ),
    "rename_partition": _on(*_TWO)(
        lambda f, name: {**_PLAIN, "tbl_name": name, "part_vals": ["1"], "new_part": _renamed(f, name)}
    ),
    "rename_partition_req": _request(
        "req", lambda f, name: t.RenamePartitionRequest(None, DATABASE, name, ["1"], _renamed(f, name)), *_TWO
    ),
    "drop_partition": _on(*_TWO)(lambda f, name: {**_PLAIN, "tbl_name": name, "part_vals": ["1"], "deleteData": False}),
    "drop_partition_with_environment_context": _on(*_TWO)(
        lambda f, name: {**_PLAIN, "tbl_name": name, "part_vals": ["1"], "deleteData": False, **_CONTEXT}
    ),
    "drop_partition_by_name": _one(
        lambda f: {**_PLAIN, "tbl_name": PARTITIONED, "part_name": "p=1", "deleteData": False}
    ),
    "drop_partition_by_name_with_environment_context": _one(
        lambda f: {**_PLAIN, "tbl_name": PARTITIONED, "part_name": "p=1", "deleteData": False, **_CONTEXT}
    ),
    "drop_partition_req": lambda f: [
        {"dropPartitionReq": t.DropPartitionRequest(None, DATABASE, PARTITIONED, partName="p=1")},
        {"dropPartitionReq": t.DropPartitionRequest(None, DATABASE, PARTITIONED, partVals=["1"])},
    ],
    "drop_partitions_req": lambda f: [
        {"req": t.DropPartitionsRequest(DATABASE, name, parts)}
        for name in _TWO
        for parts in (t.RequestPartsSpec(names=["p=1", "p=2"]), t.RequestPartsSpec(exprs=[_drop_expression()]))
    ],
    "exchange_partition": _one(_exchange),
    "exchange_partitions": _one(_exchange),
    # Statistics
    "update_table_column_statistics": _one(lambda f: {"stats_obj": statistics(FLAT, maximum=50)}),
    "update_table_column_statistics_req": _one(lambda f: {"req": _set_statistics(f)[0]}),
    "update_partition_column_statistics": _on(*_TWO)(
        lambda f, name: {"stats_obj": statistics(name, "p=1", maximum=50)}
    ),
    "update_partition_column_statistics_req": _request(
        "req", lambda f, name: t.SetPartitionsStatsRequest([statistics(name, "p=1", maximum=50)], engine="hive"), *_TWO
    ),
    "set_aggr_stats_for": lambda f: [{"request": request} for request in _set_statistics(f)],
    "delete_table_column_statistics": _one(lambda f: {**_PLAIN, "tbl_name": FLAT, "col_name": "a", "engine": "hive"}),
    "delete_partition_column_statistics": _one(
        lambda f: {**_PLAIN, "tbl_name": PARTITIONED, "part_name": "p=1", "col_name": "a", "engine": "hive"}
    ),
    "delete_column_statistics_req": lambda f: [
        {"req": t.DeleteColumnStatisticsRequest(db_name=DATABASE, tbl_name=FLAT, tableLevel=True)},
        {"req": t.DeleteColumnStatisticsRequest(db_name=DATABASE, tbl_name=PARTITIONED, part_names=["p=1"])},
        {"req": t.DeleteColumnStatisticsRequest(db_name=DATABASE, tbl_name=PARTITIONED)},
    ],
    # Constraints
    "add_primary_key": _one(
        lambda f: {
            "req": t.AddPrimaryKeyRequest([t.SQLPrimaryKey(**_constraint(table_name=FLAT, key_seq=1, pk_name="pk2"))])
        }
    ),
    "add_foreign_key": _one(lambda f: {"req": t.AddForeignKeyRequest([Values(f).sample(t.SQLForeignKey)])}),
    "add_unique_constraint": _one(
        lambda f: {"req": t.AddUniqueConstraintRequest([t.SQLUniqueConstraint(**_constraint(key_seq=1, uk_name="uk"))])}
    ),
    "add_not_null_constraint": _one(
        lambda f: {"req": t.AddNotNullConstraintRequest([t.SQLNotNullConstraint(**_constraint(nn_name="nn2"))])}
    ),
    "add_default_constraint": _one(
        lambda f: {
            "req": t.AddDefaultConstraintRequest(
                [t.SQLDefaultConstraint(**_constraint(dc_name="dc", default_value="1"))]
            )
        }
    ),
    "add_check_constraint": _one(
        lambda f: {
            "req": t.AddCheckConstraintRequest(
                [t.SQLCheckConstraint(**_constraint(dc_name="cc", check_expression="b > 1"))]
            )
        }
    ),
    "drop_constraint": lambda f: [
        {"req": t.DropConstraintRequest(DATABASE, PARTITIONED, "pk")},
        {"req": t.DropConstraintRequest(DATABASE, FLAT, "nn")},
    ],
    # Functions
    "create_function": _one(lambda f: {"func": function(MADE)}),
    "alter_function": _one(lambda f: {"dbName": DATABASE, "funcName": "f", "newFunc": _changed_function()}),
    "drop_function": _one(lambda f: {"dbName": DATABASE, "funcName": "f"}),
    # Transactions, whose write ids are the tags of cached tables
    "open_txns": lambda f: [
        {"rqst": t.OpenTxnRequest(2, "u", "h")},
        {"rqst": t.OpenTxnRequest(1, "u", "h", "a", POLICY, [999], t.TxnType.REPL_CREATED)},
    ],
    "commit_txn": _commits,
    "abort_txn": _aborts,
    "abort_txns": _one(
        lambda f: {"rqst": t.AbortTxnsRequest([f.open_txns[0], f.replicated_txns[0], f.replicated_txns[1]])}
    ),
    "allocate_table_write_ids": _one(
        lambda f: {"rqst": t.AllocateTableWriteIdsRequest(DATABASE, ACID, txnIds=[f.open_txns[0]], reallocate=True)}
    ),
    "seed_write_id": _one(lambda f: {"rqst": t.SeedTableWriteIdsRequest(DATABASE, "seeded", 5)}),
    "repl_tbl_writeid_state": _one(
        lambda f: {"rqst": t.ReplTblWriteIdStateRequest(f"{DATABASE}.made:7:9:6", "u", "h", DATABASE, MADE, ["p=1"])}
    ),
    "add_write_notification_log": _one(lambda f: {"rqst": _acid_write(f)}),
    "add_write_notification_log_in_batch": _one(
        lambda f: {"rqst": t.WriteNotificationLogBatchRequest(CATALOG, DATABASE, ACID, [_acid_write(f)])}
    ),
}
"""Method to the requests that succeed."""


def _changed_function() -> t.Function:
    changed = function("f")
    changed.className = "other"
    return changed


__all__ = ["BASES", "NOTHING_CACHED", "WITHOUT_EVENT", "base_requests", "write_methods"]
