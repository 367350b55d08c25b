"""Transactions, write ids, snapshots, compactions and rebuilding materialized views, one call after the other.

Both metastores start without transactions, so their ids are the same and are compared. Locks have a suite of their own.
"""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortCompactionRequest,
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionRequest,
    CompactionType,
    CreationMetadata,
    DataOperationType,
    FindNextCompactRequest,
    GetAllWriteEventInfoRequest,
    GetLatestCommittedCompactionInfoRequest,
    GetOpenTxnsRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MaxAllocatedTableWriteIdRequest,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    TxnToWriteId,
    TxnType,
    UnlockRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, partition, table
from tests.differential.reasons import (
    KEY_TAKEN,
    NAMELESS_WORKER,
    NO_TXN,
    NOT_CLEANED,
    OPEN_AT_SOURCE,
    OVER,
    REBUILD_IS_OVER,
    SAME_REBUILD,
    SHARED_WRITERS,
    STATE_NAMES,
)


def begin(count: int | None = 1, **fields: Any) -> Call:
    return call("open_txns", OpenTxnRequest(count, "u", "h", **fields))


def commit(txn: int | None, *, differs: str = "", **fields: Any) -> Call:
    return call("commit_txn", CommitTxnRequest(txn, **fields), differs=differs)


def abort(txn: int | None, **fields: Any) -> Call:
    return call("abort_txn", AbortTxnRequest(txn, **fields))


def abort_all(*txns: int) -> Call:
    return call("abort_txns", AbortTxnsRequest(list(txns)))


def allocate(*txns: int, of: str | None = "t", place: str | None = "d", differs: str = "", **fields: Any) -> Call:
    request = AllocateTableWriteIdsRequest(place, of, list(txns) or None, **fields)
    return call("allocate_table_write_ids", request, differs=differs)


def valid(*names: str, snapshot: str | None = None, write_id: int | None = None) -> Call:
    return call("get_valid_write_ids", GetValidWriteIdsRequest(list(names), snapshot, write_id))


def highest(of: str | None = "t", place: str | None = "d") -> Call:
    return call("get_max_allocated_table_write_id", MaxAllocatedTableWriteIdRequest(place, of))


def open_without(*types: int) -> Call:
    return call("get_open_txns_req", GetOpenTxnsRequest(list(types)))


def lock(
    txn: int | None, operation: int, of: str = "t", part: str | None = None, *, differs: str = "", **fields: Any
) -> Call:
    kinds = {
        DataOperationType.SELECT: LockType.SHARED_READ,
        DataOperationType.INSERT: LockType.SHARED_READ,
        DataOperationType.UPDATE: LockType.SHARED_WRITE,
        DataOperationType.DELETE: LockType.SHARED_WRITE,
    }
    given = {
        "type": kinds[operation],
        "level": LockLevel.TABLE if part is None else LockLevel.PARTITION,
        "dbname": "d",
        "tablename": of,
        "partitionname": part,
        "operationType": operation,
        "isTransactional": True,
        "isDynamicPartitionWrite": False,
    }
    request = LockRequest([LockComponent(**{**given, **fields})], txn, "u", "h", agentInfo="agent")
    return call("lock", request, differs=differs)


def add_partitions(
    txn: int, write_id: int, *names: str, of: str = "t", operation: int = DataOperationType.UPDATE, differs: str = ""
) -> Call:
    request = AddDynamicPartitions(txn, write_id, "d", of, list(names), operation)
    return call("add_dynamic_partitions", request, differs=differs)


ALL_OPEN = call("get_open_txns")
INFO = call("get_open_txns_info", is_ordered=False)
SELECT, INSERT, UPDATE, DELETE = (
    DataOperationType.SELECT,
    DataOperationType.INSERT,
    DataOperationType.UPDATE,
    DataOperationType.DELETE,
)

LIFE = Scenario.of(
    "from opening to the end",
    ALL_OPEN,
    INFO,
    begin(),
    begin(3, agentInfo="agent"),
    begin(1, txn_type=TxnType.READ_ONLY),
    begin(1, txn_type=TxnType.COMPACTION),
    begin(0),
    ALL_OPEN,
    INFO,
    open_without(),
    open_without(TxnType.READ_ONLY),
    open_without(TxnType.READ_ONLY, TxnType.COMPACTION),
    commit(1),
    commit(1),
    abort(1),
    abort(2),
    abort(2),
    commit(2),
    commit(99),
    abort(99),
    abort_all(3, 4),
    abort_all(3, 4),
    abort_all(5, 99),
    abort_all(1),
    abort_all(),
    ALL_OPEN,
    INFO,
    open_without(),
    begin(2),
    call("heartbeat", HeartbeatRequest(txnid=7)),
    call("heartbeat", HeartbeatRequest(txnid=1)),
    call("heartbeat", HeartbeatRequest(txnid=2)),
    call("heartbeat", HeartbeatRequest(txnid=99)),
    call("heartbeat", HeartbeatRequest(lockid=99)),
    call("heartbeat", HeartbeatRequest()),
    call("heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 9)),
    call("heartbeat_txn_range", HeartbeatTxnRangeRequest(7, 8)),
    call("heartbeat_txn_range", HeartbeatTxnRangeRequest(8, 7)),
    call("heartbeat_txn_range", HeartbeatTxnRangeRequest(50, 51)),
    commit(7),
    abort(8, errorCode=1),
    ALL_OPEN,
    call("seed_txn_id", SeedTxnIdRequest(5)),
    call("seed_txn_id", SeedTxnIdRequest(50)),
    begin(),
    # For a moment, Java treats the ids in between as transactions that are being opened.
    call("get_open_txns", is_answer_compared=False),
    commit(50),
)

WRITE_IDS = Scenario.of(
    "write ids",
    call("create_database", database()),
    call("create_table", table()),
    highest(),
    valid("d.t"),
    begin(4),
    allocate(1),
    allocate(1),
    allocate(2, 3),
    allocate(4, 3, differs=KEY_TAKEN),
    allocate(4),
    allocate(4, of="u"),
    allocate(4, of="T", place="D"),
    allocate(99),
    allocate(1, 99),
    allocate(),
    allocate(1, reallocate=True),
    highest(),
    highest("T", "D"),
    highest("none"),
    highest(place="none"),
    valid("d.t"),
    valid("d.t", "d.u", "d.none"),
    valid("D.T"),
    valid("d.t", snapshot="4:9223372036854775807::"),
    valid("d.t", snapshot="2:9223372036854775807::"),
    valid("d.t", snapshot="3:1:1,2:"),
    valid("d.t", snapshot="4:2:2:3"),
    valid("d.t", write_id=2),
    valid("d.t", write_id=9),
    valid("t"),
    valid("a.b.c"),
    valid(),
    commit(1),
    valid("d.t"),
    abort(2),
    valid("d.t"),
    call("get_latest_txnid_in_conflict", 3),
    call("get_latest_txnid_in_conflict", 99),
    commit(3),
    valid("d.t"),
    commit(4),
    valid("d.t", "d.u"),
    call("seed_write_id", SeedTableWriteIdsRequest("d", "seeded", 10)),
    highest("seeded"),
    call("seed_write_id", SeedTableWriteIdsRequest("d", "seeded", 20)),
    call("seed_write_id", SeedTableWriteIdsRequest("d", "t", 3)),
    begin(),
    allocate(5, of="seeded"),
    call("add_write_ids_to_min_history", 5, {"d.t": 1}),
    commit(5),
    allocate(5),
    valid("d.seeded"),
    call("drop_table", "d", "t", True),
    valid("d.t"),
    highest(),
)

CONFLICTS = Scenario.of(
    "conflicts",
    call("create_database", database()),
    call("create_table", table()),
    call("create_table", table("p", keys=("k:string",))),
    begin(2),
    lock(1, UPDATE),
    allocate(1),
    lock(2, UPDATE, of="other"),
    allocate(2, of="other"),
    commit(1),
    commit(2),
    # Two writers of one table, whose locks are shared by dynamic partitioning
    begin(2),
    lock(3, UPDATE, of="p", isDynamicPartitionWrite=True),
    lock(4, INSERT, of="p", isDynamicPartitionWrite=True),
    allocate(3, 4, of="p"),
    add_partitions(3, 1, "k=1", "k=2", of="p"),
    add_partitions(4, 2, "k=2", of="p", operation=INSERT),
    add_partitions(99, 2, "k=2", of="p"),
    add_partitions(1, 2, "k=2", of="p", differs=OVER),
    call("show_locks", ShowLocksRequest("d", "p"), is_answer_compared=False),
    commit(3),
    commit(4),
    add_partitions(4, 2, "k=3", of="p", differs=OVER),
    # The first to commit succeeds
    begin(2),
    lock(5, UPDATE),
    allocate(5, 6),
    commit(5),
    lock(6, UPDATE),
    call("get_latest_txnid_in_conflict", 6),
    commit(6, exclWriteEnabled=False),
    abort(6),
    call("get_latest_txnid_in_conflict", 6),
    # A deletion of rows that were updated meanwhile
    begin(3),
    lock(7, DELETE, of="p", part="k=1"),
    lock(8, DELETE, of="p", part="k=2"),
    commit(7),
    lock(9, DELETE, of="p", part="k=1"),
    call("get_latest_txnid_in_conflict", 9),
    commit(9, exclWriteEnabled=False),
    commit(8),
    begin(2),
    lock(10, SELECT),
    commit(10, keyValue=CommitTxnKeyValue(1, "_meta_x", "1")),
    commit(10, exclWriteEnabled=False),
    lock(99, SELECT),
    lock(None, SELECT),
    call("check_lock", CheckLockRequest(99)),
    call("unlock", UnlockRequest(99)),
    valid("d.t", "d.p"),
    begin(2),
    lock(12, UPDATE),
    commit(12),
    lock(13, UPDATE),
    commit(13, differs=SHARED_WRITERS),
    lock(1, SELECT, differs=OVER),
)

REPLICATED = Scenario.of(
    "replicated transactions",
    call("create_database", database()),
    begin(2, replPolicy="d.*", replSrcTxnIds=[11, 12], txn_type=TxnType.REPL_CREATED),
    begin(2, replPolicy="d.*", replSrcTxnIds=[11, 12], txn_type=TxnType.REPL_CREATED),
    begin(1, replPolicy="d.*", replSrcTxnIds=[13], txn_type=TxnType.REPL_CREATED),
    [begin(count, replPolicy="d.*", replSrcTxnIds=[13], txn_type=TxnType.REPL_CREATED) for count in (2, 3)],
    ALL_OPEN,
    allocate(
        of="t",
        replPolicy="d.*",
        srcTxnToWriteIdList=[TxnToWriteId(11, 1), TxnToWriteId(12, 2)],
    ),
    allocate(
        of="t",
        replPolicy="d.*",
        srcTxnToWriteIdList=[TxnToWriteId(11, 1), TxnToWriteId(12, 2)],
    ),
    commit(11, replPolicy="d.*", txn_type=TxnType.REPL_CREATED),
    commit(11, replPolicy="d.*", txn_type=TxnType.REPL_CREATED),
    abort(12, replPolicy="d.*", txn_type=TxnType.REPL_CREATED),
    abort(12, replPolicy="d.*", txn_type=TxnType.REPL_CREATED),
    commit(99, replPolicy="d.*", txn_type=TxnType.REPL_CREATED),
    ALL_OPEN,
    valid("d.t"),
    call(
        "repl_tbl_writeid_state",
        ReplTblWriteIdStateRequest("d.loaded:5:9223372036854775807::3,4", "u", "h", "d", "loaded", None),
    ),
    valid("d.loaded"),
    highest("loaded"),
    call(
        "repl_tbl_writeid_state",
        ReplTblWriteIdStateRequest("d.loaded:9:9223372036854775807::", "u", "h", "d", "loaded", ["k=1"]),
    ),
    valid("d.loaded"),
    ALL_OPEN,
    call(
        "repl_tbl_writeid_state",
        ReplTblWriteIdStateRequest("d.half:5:3:3:4", "u", "h", "d", "half", None),
    ),
    call("get_valid_write_ids", GetValidWriteIdsRequest(["d.half"]), differs=OPEN_AT_SOURCE),
    call("get_open_txns", differs=OPEN_AT_SOURCE),
)


def compact(of: str | None = "t", kind: int | None = CompactionType.MAJOR, place: str = "d", **fields: Any) -> Call:
    return call("compact2", CompactionRequest(**{"dbname": place, "tablename": of, "type": kind, **fields}))


def show(*, differs: str = "", **fields: Any) -> Call:
    # Two of the same moment may be in any order.
    is_ordered = "order" in fields
    return call("show_compact", ShowCompactRequest(**fields), differs=differs, is_ordered=is_ordered)


def take(worker: str | None = "w", pool: str | None = None, **expectations: Any) -> Call:
    return call("find_next_compact2", FindNextCompactRequest(worker, "4.0.1", pool), **expectations)


def about(identity: int, of: str = "t", kind: int = CompactionType.MAJOR, **fields: Any) -> CompactionInfoStruct:
    given = {"partitionname": None, "runas": "u", "state": "w", "workerId": "w", "highestWriteId": 1}
    return CompactionInfoStruct(**{"id": identity, "dbname": "d", "tablename": of, "type": kind, **given, **fields})


COMPACTIONS = Scenario.of(
    "compactions",
    call("create_database", database()),
    call("create_table", table()),
    call("create_table", table("p", keys=("k:string",))),
    call("add_partition", partition("1")),
    begin(),
    lock(1, INSERT),
    allocate(1),
    commit(1),
    show(),
    take(),
    compact(runas="u", properties={"x": "y"}, initiatorId="i", initiatorVersion="4.0.1"),
    compact(runas="u"),
    compact(kind=CompactionType.MINOR, runas="u"),
    compact("p", CompactionType.MINOR, partitionname="k=1", runas="u", poolName="pool"),
    compact("p", CompactionType.REBALANCE, partitionname="k=2", runas="u", numberOfBuckets=3, orderByClause="a"),
    compact("T", place="D", runas="u"),
    compact("none", runas="u"),
    compact(kind=None),
    compact(None),
    call("compact", CompactionRequest("d", "u", None, CompactionType.MINOR, "u")),
    show(),
    show(dbName="d", tbName="p"),
    show(dbName="d", tbName="p", partName="k=1"),
    show(type=CompactionType.MINOR),
    show(poolName="pool"),
    show(state="i"),
    show(state="initiated", differs=STATE_NAMES),
    show(id=1),
    [show(**{name: ""}) for name in ("dbName", "tbName", "partName", "poolName", "state")],
    show(order="CC_ID desc"),
    show(order="CC_ID desc", limit=2),
    take(),
    take("v", "pool"),
    take("v", "none"),
    call("find_next_compact", "old"),
    show(),
    show(state="w"),
    call("set_hadoop_jobid", "job_1", 1),
    begin(1, txn_type=TxnType.COMPACTION),
    call("update_compactor_state", about(1), 2),
    show(id=1),
    call("find_columns_with_stats", about(1)),
    call("mark_compacted", about(1)),
    commit(2),
    show(id=1),
    compact(runas="u"),
    call("mark_cleaned", about(1)),
    show(id=1),
    call("mark_failed", about(2, "p", CompactionType.MINOR, partitionname="k=1", errorMessage="no")),
    show(id=2),
    call("mark_refused", about(3, "p", CompactionType.REBALANCE, partitionname="k=2", errorMessage="no")),
    show(id=3),
    call("mark_failed", about(99)),
    call("mark_cleaned", about(99), differs=NOT_CLEANED),
    call("mark_compacted", about(99)),
    call("get_latest_committed_compaction_info", GetLatestCommittedCompactionInfoRequest("d", "t"), is_ordered=False),
    call("get_latest_committed_compaction_info", GetLatestCommittedCompactionInfoRequest("d", "none")),
    call("get_latest_committed_compaction_info", GetLatestCommittedCompactionInfoRequest("d", "p", ["k=1"])),
    compact("t2", runas="u"),
    call("abort_Compactions", AbortCompactionRequest([6, 99])),
    call("abort_Compactions", AbortCompactionRequest([])),
    call("submit_for_cleanup", CompactionRequest("d", "s", None, CompactionType.MAJOR, "u"), 5, 1),
    show(),
    take(None, "none", differs=NAMELESS_WORKER),
)

METRICS = Scenario.of(
    "compaction metrics",
    call("update_compaction_metrics_data", CompactionMetricsDataStruct("d", "t", None, 0, 10, 1, 5)),
    call("update_compaction_metrics_data", CompactionMetricsDataStruct("d", "t", None, 0, 12, 2, 5)),
    call("update_compaction_metrics_data", CompactionMetricsDataStruct("d", "t", None, 0, 1, 3, 5)),
    call("update_compaction_metrics_data", CompactionMetricsDataStruct("d", "t", "k=1", 1, 9, 1, 5)),
    call("remove_compaction_metrics_data", CompactionMetricsDataRequest("d", "t", "k=1", 1)),
    call("remove_compaction_metrics_data", CompactionMetricsDataRequest("d", "none", None, 1)),
)

MATERIALIZED = Scenario.of(
    "materialized views",
    call("create_database", database()),
    call("create_table", table()),
    begin(3),
    call("get_lock_materialization_rebuild", "d", "v", 1),
    call("get_lock_materialization_rebuild", "d", "v", 1, differs=SAME_REBUILD),
    call("get_lock_materialization_rebuild", "d", "v", 2),
    call("get_lock_materialization_rebuild", "d", "w", 2),
    call("get_lock_materialization_rebuild", "d", "x", 99, differs=NO_TXN),
    call("heartbeat_lock_materialization_rebuild", "d", "v", 1),
    call("heartbeat_lock_materialization_rebuild", "d", "v", 2),
    call("heartbeat_lock_materialization_rebuild", "d", "none", 1),
    commit(1),
    call("heartbeat_lock_materialization_rebuild", "d", "v", 1),
    abort(2),
    call("get_lock_materialization_rebuild", "d", "w", 3, differs=REBUILD_IS_OVER),
    call(
        "get_materialization_invalidation_info",
        CreationMetadata("hive", "d", "v", {"d.t"}, "d.t:0:9223372036854775807::"),
        "3:9223372036854775807::",
    ),
    call("get_all_write_event_info", GetAllWriteEventInfoRequest(1)),
    call("get_all_write_event_info", GetAllWriteEventInfoRequest(99, "d", "t")),
)

SCENARIOS = (LIFE, WRITE_IDS, CONFLICTS, REPLICATED, COMPACTIONS, METRICS, MATERIALIZED)
