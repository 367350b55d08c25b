"""Transactions, write ids and locks. These tables do not refer to TBLS; they contain names in lower case."""

from __future__ import annotations

from sqlalchemy import CHAR, TIMESTAMP, text

from hms_cache.store.schema.column_types import BIGINT, INTEGER
from hms_cache.store.schema.definition import (
    all_required,
    column,
    columns,
    identifier,
    number_table,
    recorded_object,
    recorded_table,
    required,
    table,
)
from hms_cache.store.schema.keys import index, primary_key, unnamed_key
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, string

#: Open, aborted and recently committed transactions. The row with the highest id is never deleted.
TXNS = table(
    "TXNS",
    required("TXN_ID", BIGINT, autoincrement=True),
    required("TXN_STATE", CHAR(1)),
    *all_required(BIGINT, "TXN_STARTED", "TXN_LAST_HEARTBEAT"),
    *all_required(STRING_128, "TXN_USER", "TXN_HOST"),
    *columns(STRING_128, "TXN_AGENT_INFO", "TXN_META_INFO"),
    *columns(INTEGER, "TXN_HEARTBEAT_COUNT", "TXN_TYPE"),
    primary_key("TXN_ID"),
    sqlite_autoincrement=True,
)

#: Writes of open transactions, by name.
TXN_COMPONENTS = table(
    "TXN_COMPONENTS",
    required("TC_TXNID", BIGINT),
    *recorded_object("TC"),
    required("TC_OPERATION_TYPE", CHAR(1)),
    column("TC_WRITEID", BIGINT),
    index("TC_TXNID_INDEX", "TC_TXNID", on="mysql"),
    index("tc_txnid_index", "TC_TXNID", hashed=True, on="postgresql"),
    unnamed_key("TC_TXNID", "TXNS.TXN_ID"),
)

#: Writes of committed transactions, for compaction and materialized views.
COMPLETED_TXN_COMPONENTS = table(
    "COMPLETED_TXN_COMPONENTS",
    required("CTC_TXNID", BIGINT),
    *recorded_object("CTC"),
    required("CTC_TIMESTAMP", TIMESTAMP(), default=text("CURRENT_TIMESTAMP")),
    column("CTC_WRITEID", BIGINT),
    required("CTC_UPDATE_DELETE", CHAR(1)),
    index(
        "COMPLETED_TXN_COMPONENTS_IDX",
        "CTC_DATABASE",
        "CTC_TABLE",
        "CTC_PARTITION",
        on="mysql",
        mysql_prefix={"CTC_PARTITION": 128},
    ),
    index("completed_txn_components_index", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", on="postgresql"),
)

#: One row, which is only locked.
TXN_LOCK_TBL = number_table("TXN_LOCK_TBL", "TXN_LOCK")

HIVE_LOCKS = table(
    "HIVE_LOCKS",
    *all_required(BIGINT, "HL_LOCK_EXT_ID", "HL_LOCK_INT_ID", "HL_TXNID"),
    required("HL_DB", STRING_128),
    column("HL_TABLE", STRING_256),
    column("HL_PARTITION", STRING_767),
    *all_required(CHAR(1), "HL_LOCK_STATE", "HL_LOCK_TYPE"),
    required("HL_LAST_HEARTBEAT", BIGINT),
    column("HL_ACQUIRED_AT", BIGINT),
    *all_required(STRING_128, "HL_USER", "HL_HOST"),
    column("HL_HEARTBEAT_COUNT", INTEGER),
    column("HL_AGENT_INFO", STRING_128),
    *columns(BIGINT, "HL_BLOCKEDBY_EXT_ID", "HL_BLOCKEDBY_INT_ID"),
    primary_key("HL_LOCK_EXT_ID", "HL_LOCK_INT_ID"),
    index("HIVE_LOCK_TXNID_INDEX", "HL_TXNID", on="mysql"),
    index("HL_TXNID_IDX", "HL_TXNID", on="mysql"),
    index("hl_txnid_index", "HL_TXNID", hashed=True, on="postgresql"),
)

NEXT_LOCK_ID = number_table("NEXT_LOCK_ID", "NL_NEXT")

#: Recent updates and deletes, to detect write conflicts.
WRITE_SET = table(
    "WRITE_SET",
    *recorded_table("WS"),
    column("WS_PARTITION", STRING_767),
    *all_required(BIGINT, "WS_TXNID", "WS_COMMIT_ID"),
    required("WS_OPERATION_TYPE", CHAR(1)),
)

#: Write ids of transactions, per table.
TXN_TO_WRITE_ID = table(
    "TXN_TO_WRITE_ID",
    required("T2W_TXNID", BIGINT),
    *recorded_table("T2W"),
    required("T2W_WRITEID", BIGINT),
    index("TBL_TO_TXN_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID", is_unique=True),
    index("TBL_TO_WRITE_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID", is_unique=True),
)

NEXT_WRITE_ID = table(
    "NEXT_WRITE_ID",
    *recorded_table("NWI"),
    required("NWI_NEXT", BIGINT),
    index("NEXT_WRITE_ID_IDX", "NWI_DATABASE", "NWI_TABLE", is_unique=True),
)

MIN_HISTORY_LEVEL = table(
    "MIN_HISTORY_LEVEL",
    *identifier("MHL_TXNID"),
    required("MHL_MIN_OPEN_TXNID", BIGINT),
    index("MIN_HISTORY_LEVEL_IDX", "MHL_MIN_OPEN_TXNID"),
)

MIN_HISTORY_WRITE_ID = table(
    "MIN_HISTORY_WRITE_ID",
    required("MH_TXNID", BIGINT),
    *recorded_table("MH"),
    required("MH_WRITEID", BIGINT),
    unnamed_key("MH_TXNID", "TXNS.TXN_ID"),
)

MATERIALIZATION_REBUILD_LOCKS = table(
    "MATERIALIZATION_REBUILD_LOCKS",
    *identifier("MRL_TXN_ID"),
    required("MRL_DB_NAME", STRING_128),
    required("MRL_TBL_NAME", STRING_256),
    required("MRL_LAST_HEARTBEAT", BIGINT),
)

REPL_TXN_MAP = table(
    "REPL_TXN_MAP",
    required("RTM_REPL_POLICY", STRING_256),
    *all_required(BIGINT, "RTM_SRC_TXN_ID", "RTM_TARGET_TXN_ID"),
    primary_key("RTM_REPL_POLICY", "RTM_SRC_TXN_ID"),
)

#: Named mutexes, held by row locks.
AUX_TABLE = table(
    "AUX_TABLE",
    required("MT_KEY1", STRING_128),
    required("MT_KEY2", BIGINT),
    column("MT_COMMENT", string(255)),
    primary_key("MT_KEY1", "MT_KEY2"),
)
