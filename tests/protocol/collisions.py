"""Each place where a release intentionally differs from this IDL, with the reason. The comparison fails on any
other."""

from __future__ import annotations

HIVE_2_3 = "2.3"

_READ_TWICE = "2.3 numbers the fields otherwise; wire.versions reads such a request a second time"
_BIT_VECTORS = "the bytes are the same; they are no UTF-8 text"

#: (release family or None for all, struct, field id): reason why name or type differ from ours.
COLLISIONS: dict[tuple[str | None, str, int], str] = {
    (HIVE_2_3, "AddDynamicPartitions", 2): _READ_TWICE,
    (HIVE_2_3, "AddDynamicPartitions", 3): _READ_TWICE,
    (HIVE_2_3, "AddDynamicPartitions", 4): _READ_TWICE,
    (HIVE_2_3, "AddDynamicPartitions", 5): _READ_TWICE,
    (HIVE_2_3, "InsertEventRequestData", 1): _READ_TWICE,
    (HIVE_2_3, "InsertEventRequestData", 2): _READ_TWICE,
    (HIVE_2_3, "GetOpenTxnsResponse", 2): "a set in 2.3; wire.versions writes a set and a list",
    (HIVE_2_3, "Table", 16): "catName, a string, in 2.3.10, which its client never writes; the decoder skips it",
    (HIVE_2_3, "LockComponent", 7): "isAcid was renamed to isTransactional",
    (HIVE_2_3, "BinaryColumnStatsData", 4): _BIT_VECTORS,
    (HIVE_2_3, "BooleanColumnStatsData", 4): _BIT_VECTORS,
    (HIVE_2_3, "DateColumnStatsData", 5): _BIT_VECTORS,
    (HIVE_2_3, "DecimalColumnStatsData", 5): _BIT_VECTORS,
    (HIVE_2_3, "DoubleColumnStatsData", 5): _BIT_VECTORS,
    (HIVE_2_3, "LongColumnStatsData", 5): _BIT_VECTORS,
    (HIVE_2_3, "StringColumnStatsData", 5): _BIT_VECTORS,
    (HIVE_2_3, "get_partition_names_result", 1): "MetaException in 2.3; every exception is written under 1",
    ("3.1", "create_ischema_result", -1): "an exception without an id of its own; wire.versions writes both ids",
    ("4.0.0", "CreateDatabaseRequest", 11): "a string in 4.0.0, where no call uses the struct",
}

#: Fields, structs and methods that no released jar has: calls that were added after 4.2.
NEWER_STRUCTS = {
    "AsyncOperationResp",
    "LockMaterializationRebuildRequest",
    "TableParamsUpdate",
    "get_lock_materialization_rebuild_req_args",
    "get_lock_materialization_rebuild_req_result",
    "heartbeat_lock_materialization_rebuild_req_args",
    "heartbeat_lock_materialization_rebuild_req_result",
    "update_table_params_args",
    "update_table_params_result",
}
NEWER_FIELDS = {
    ("DropDatabaseRequest", 9),
    ("DropDatabaseRequest", 10),
    ("DropDatabaseRequest", 11),
    ("DropTableRequest", 7),
    ("DropTableRequest", 8),
    ("DropTableRequest", 9),
    ("LockComponent", 9),
    ("ShowLocksRequest", 6),
    ("ShowLocksResponseElement", 17),
    ("drop_database_req_result", 0),
    ("drop_table_req_result", 0),
}
#: Our own fields, with ids from 100 on, which all other readers skip.
OWN_FIELDS = {("TableValidWriteIds", 100)}
NEWER_ENUM_VALUES = {("CompactionType", "DEFERRED_CLEANUP")}
