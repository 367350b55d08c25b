"""Transactions, write ids, locks and compactions: each call is passed to the transaction store unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hms_cache.batches import batches
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.faults import require
from hms_cache.server.handlers.names import table_name
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.transactions.write_notifications import TableWrite
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CompactionRequest,
    FindNextCompactRequest,
    Partition,
    WriteNotificationLogBatchResponse,
    WriteNotificationLogRequest,
    WriteNotificationLogResponse,
)

handlers = HandlerTable()

PARTITIONS_AT_A_TIME = 1_000
"""Partitions that are read at a time for the log of written files."""


def _forward(method: str, argument: str, store_method: str | None = None) -> Callable[[Call, Any], Any]:
    """A handler that passes on the only request struct."""

    def forward(call: Call, arguments: Any) -> Any:
        return getattr(call.stores.transactions, store_method or method)(getattr(arguments, argument))

    return forward


def _nothing(method: str) -> Callable[[Call, Any], Any]:
    """A handler without arguments."""

    def handle(call: Call, arguments: Any) -> Any:
        return getattr(call.stores.transactions, method)()

    return handle


def _named(method: str) -> Callable[[Any], str]:
    """Audit text: the method's name alone."""
    return lambda arguments: method


READS = {
    "get_open_txns_req": "getOpenTxnsRequest",
    "get_valid_write_ids": "rqst",
    "get_max_allocated_table_write_id": "rqst",
    "show_locks": "rqst",
    "show_compact": "rqst",
    "get_latest_committed_compaction_info": "rqst",
    "get_all_write_event_info": "request",
    "find_columns_with_stats": "cr",
}
WRITES = {
    "open_txns": "rqst",
    "abort_txn": "rqst",
    "commit_txn": "rqst",
    "repl_tbl_writeid_state": "rqst",
    "allocate_table_write_ids": "rqst",
    "seed_write_id": "rqst",
    "seed_txn_id": "rqst",
    "heartbeat": "ids",
    "heartbeat_txn_range": "txns",
    "add_dynamic_partitions": "rqst",
    "lock": "rqst",
    "check_lock": "rqst",
    "unlock": "rqst",
    "compact2": "rqst",
    "find_next_compact2": "rqst",
    "mark_cleaned": "cr",
    "mark_compacted": "cr",
    "mark_failed": "cr",
    "mark_refused": "cr",
    "update_compaction_metrics_data": "data",
    "remove_compaction_metrics_data": "request",
}
"""Methods with one argument, which the store takes: method to the name of the argument."""

for _method, _argument in READS.items():
    handlers.read(_method, audit=_named(_method), request=_argument)(_forward(_method, _argument))
for _method, _argument in WRITES.items():
    handlers.write(_method, audit=_named(_method), request=_argument)(_forward(_method, _argument))
handlers.read("get_open_txns", request="")(_nothing("get_open_txns"))
handlers.read("get_open_txns_info")(_nothing("get_open_txns_info"))
handlers.write("abort_Compactions", audit=lambda a: "abort_Compactions")(
    _forward("abort_Compactions", "rqst", "abort_compactions")
)


@handlers.write("abort_txns", about=lambda a: a.rqst.txn_ids)
def abort_txns(call: Call, arguments: methods.abort_txns_args) -> None:
    """Aborts what can be aborted. The reply has no place for the store's list of aborted transactions."""
    call.stores.transactions.abort_txns(arguments.rqst)


@handlers.read("get_latest_txnid_in_conflict")
def get_latest_txnid_in_conflict(call: Call, arguments: methods.get_latest_txnid_in_conflict_args) -> int:
    return int(call.stores.transactions.get_latest_txnid_in_conflict(arguments.txnId))


@handlers.read("get_replayed_txns_for_policy")
def get_replayed_txns_for_policy(call: Call, arguments: methods.get_replayed_txns_for_policy_args) -> Any:
    return call.stores.transactions.get_replayed_txns_for_policy(arguments.policyName)


@handlers.write("add_write_ids_to_min_history")
def add_write_ids_to_min_history(call: Call, arguments: methods.add_write_ids_to_min_history_args) -> None:
    call.stores.transactions.add_write_ids_to_min_history(arguments.txnId, arguments.writeIds or {})


# Materialized views


def _view(of: Any) -> tuple[str, str]:
    name = table_name(of.dbName, of.tableName)
    return name.database, name.table


@handlers.write("get_lock_materialization_rebuild")
def get_lock_materialization_rebuild(call: Call, arguments: methods.get_lock_materialization_rebuild_args) -> Any:
    return call.stores.transactions.get_lock_materialization_rebuild(*_view(arguments), arguments.txnId)


@handlers.write("get_lock_materialization_rebuild_req")
def get_lock_materialization_rebuild_req(
    call: Call, arguments: methods.get_lock_materialization_rebuild_req_args
) -> Any:
    request = arguments.req
    return call.stores.transactions.get_lock_materialization_rebuild(*_view(request), request.txnId)


@handlers.write("heartbeat_lock_materialization_rebuild")
def heartbeat_lock_materialization_rebuild(
    call: Call, arguments: methods.heartbeat_lock_materialization_rebuild_args
) -> bool:
    return bool(call.stores.transactions.heartbeat_lock_materialization_rebuild(*_view(arguments), arguments.txnId))


@handlers.write("heartbeat_lock_materialization_rebuild_req")
def heartbeat_lock_materialization_rebuild_req(
    call: Call, arguments: methods.heartbeat_lock_materialization_rebuild_req_args
) -> bool:
    request = arguments.req
    return bool(call.stores.transactions.heartbeat_lock_materialization_rebuild(*_view(request), request.txnId))


@handlers.read("get_materialization_invalidation_info")
def get_materialization_invalidation_info(
    call: Call, arguments: methods.get_materialization_invalidation_info_args
) -> Any:
    return call.stores.transactions.get_materialization_invalidation_info(
        arguments.creation_metadata, arguments.validTxnList
    )


# Compactions whose arguments are no struct


@handlers.write("compact")
def compact(call: Call, arguments: methods.compact_args) -> None:
    """The older spelling, which cannot tell the client what happened to its request."""
    request: CompactionRequest = arguments.rqst
    call.stores.transactions.compact2(request)


@handlers.write("find_next_compact")
def find_next_compact(call: Call, arguments: methods.find_next_compact_args) -> Any:
    return call.stores.transactions.find_next_compact2(FindNextCompactRequest(workerId=arguments.workerId))


@handlers.write("submit_for_cleanup")
def submit_for_cleanup(call: Call, arguments: methods.submit_for_cleanup_args) -> bool:
    return bool(call.stores.transactions.submit_for_cleanup(arguments.o1, arguments.o2, arguments.o3))


@handlers.write("update_compactor_state")
def update_compactor_state(call: Call, arguments: methods.update_compactor_state_args) -> None:
    call.stores.transactions.update_compactor_state(arguments.cr, arguments.txn_id)


@handlers.write("set_hadoop_jobid")
def set_hadoop_jobid(call: Call, arguments: methods.set_hadoop_jobid_args) -> None:
    call.stores.transactions.set_hadoop_jobid(arguments.jobId, arguments.cq_id)


# What a transaction wrote


def _table_writes(
    call: Call, requests: Sequence[WriteNotificationLogRequest], catalog: str | None = None
) -> list[TableWrite]:
    """The writes with their tables and partitions from the catalog: a table is read once, its partitions together."""
    by_table: dict[TableName, list[WriteNotificationLogRequest]] = {}
    for request in requests:
        require("a write notification", request, "txnId", "writeId", "db", "table", "fileInfo")
        require("a write notification", request.fileInfo, "filesAdded")
        by_table.setdefault(table_name(request.db, request.table, catalog), []).append(request)
    writes: list[TableWrite] = []
    for name, of_table in by_table.items():
        table = call.stores.reads.tables.get_table(name)
        keys = [key.name for key in table.partitionKeys or ()]
        # For a table without keys, Hive asks for no partition, whatever the values are.
        names = {
            tuple(request.partitionVals): make_partition_name(keys, request.partitionVals)
            for request in of_table
            if request.partitionVals and keys
        }
        partitions = _partitions(call, name, names)
        for request in of_table:
            values = tuple(request.partitionVals or ())
            writes.append(
                TableWrite(
                    request.txnId,
                    request.writeId,
                    table,
                    partitions.get(values),
                    names.get(values, ""),
                    request.fileInfo,
                )
            )
    return writes


def _partitions(call: Call, table: TableName, names: Mapping[tuple[str, ...], str]) -> dict[tuple[str, ...], Partition]:
    """The partitions with these values, whose names are given. Raises NoSuchObjectException if one is missing."""
    reads, limit = call.stores.reads.partitions, call.stores.auxiliary.settings.partition_request_limit
    found: dict[tuple[str, ...], Partition] = {}
    if len(names) > 1:
        # In portions of what a request may ask for: that limit is not meant for this.
        requested, size = tuple(names.values()), limit if limit > 0 else PARTITIONS_AT_A_TIME
        for some in batches(requested, size):
            answer = reads.get_partitions(PartitionQuery(table, ByNames(some)))
            found |= {tuple(partition.values): partition for partition in answer.partitions}
    for values in names:
        if values not in found:
            found[values] = reads.get_partition(table, values)
    return found


@handlers.write("add_write_notification_log")
def add_write_notification_log(
    call: Call, arguments: methods.add_write_notification_log_args
) -> WriteNotificationLogResponse:
    call.stores.transactions.add_write_notifications(_table_writes(call, [arguments.rqst]))
    return WriteNotificationLogResponse()


@handlers.write("add_write_notification_log_in_batch")
def add_write_notification_log_in_batch(
    call: Call, arguments: methods.add_write_notification_log_in_batch_args
) -> WriteNotificationLogBatchResponse:
    """Writes to one table, logged in one transaction."""
    request = arguments.rqst
    writes = _table_writes(call, request.requestList or (), request.catalog)
    call.stores.transactions.add_write_notifications(writes)
    return WriteNotificationLogBatchResponse()
