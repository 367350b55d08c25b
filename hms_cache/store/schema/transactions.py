"""Transactions, write ids and locks. No table of this group refers to TBLS: names are kept, lower-cased."""

from __future__ import annotations

from sqlalchemy import CHAR, TIMESTAMP, text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table

#: Open, aborted and recently committed transactions; the highest row stays for ever.
TXNS = table(
    "TXNS",
    column("TXN_ID", BIGINT, nullable=False, autoincrement=True),
    column("TXN_STATE", CHAR(1), nullable=False),
    column("TXN_STARTED", BIGINT, nullable=False),
    column("TXN_LAST_HEARTBEAT", BIGINT, nullable=False),
    column("TXN_USER", string(128), nullable=False),
    column("TXN_HOST", string(128), nullable=False),
    column("TXN_AGENT_INFO", string(128)),
    column("TXN_META_INFO", string(128)),
    column("TXN_HEARTBEAT_COUNT", INTEGER),
    column("TXN_TYPE", INTEGER),
    primary_key("TXN_ID"),
    sqlite_autoincrement=True,
)

#: What an open transaction has written, by name.
TXN_COMPONENTS = table(
    "TXN_COMPONENTS",
    column("TC_TXNID", BIGINT, nullable=False),
    column("TC_DATABASE", string(128), nullable=False),
    column("TC_TABLE", string(256)),
    column("TC_PARTITION", string(767)),
    column("TC_OPERATION_TYPE", CHAR(1), nullable=False),
    column("TC_WRITEID", BIGINT),
    index("TC_TXNID_INDEX", "TC_TXNID", on="mysql"),
    index("tc_txnid_index", "TC_TXNID", hashed=True, on="postgresql"),
    foreign_key(None, "TC_TXNID", "TXNS.TXN_ID"),
)

#: What committed transactions have written; compaction and materialized views read it.
COMPLETED_TXN_COMPONENTS = table(
    "COMPLETED_TXN_COMPONENTS",
    column("CTC_TXNID", BIGINT, nullable=False),
    column("CTC_DATABASE", string(128), nullable=False),
    column("CTC_TABLE", string(256)),
    column("CTC_PARTITION", string(767)),
    column("CTC_TIMESTAMP", TIMESTAMP(), nullable=False, default=text("CURRENT_TIMESTAMP")),
    column("CTC_WRITEID", BIGINT),
    column("CTC_UPDATE_DELETE", CHAR(1), nullable=False),
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

#: One row that is only ever locked.
TXN_LOCK_TBL = table(
    "TXN_LOCK_TBL",
    column("TXN_LOCK", BIGINT, nullable=False),
)

HIVE_LOCKS = table(
    "HIVE_LOCKS",
    column("HL_LOCK_EXT_ID", BIGINT, nullable=False),
    column("HL_LOCK_INT_ID", BIGINT, nullable=False),
    column("HL_TXNID", BIGINT, nullable=False),
    column("HL_DB", string(128), nullable=False),
    column("HL_TABLE", string(256)),
    column("HL_PARTITION", string(767)),
    column("HL_LOCK_STATE", CHAR(1), nullable=False),
    column("HL_LOCK_TYPE", CHAR(1), nullable=False),
    column("HL_LAST_HEARTBEAT", BIGINT, nullable=False),
    column("HL_ACQUIRED_AT", BIGINT),
    column("HL_USER", string(128), nullable=False),
    column("HL_HOST", string(128), nullable=False),
    column("HL_HEARTBEAT_COUNT", INTEGER),
    column("HL_AGENT_INFO", string(128)),
    column("HL_BLOCKEDBY_EXT_ID", BIGINT),
    column("HL_BLOCKEDBY_INT_ID", BIGINT),
    primary_key("HL_LOCK_EXT_ID", "HL_LOCK_INT_ID"),
    index("HIVE_LOCK_TXNID_INDEX", "HL_TXNID", on="mysql"),
    index("HL_TXNID_IDX", "HL_TXNID", on="mysql"),
    index("hl_txnid_index", "HL_TXNID", hashed=True, on="postgresql"),
)

NEXT_LOCK_ID = table(
    "NEXT_LOCK_ID",
    column("NL_NEXT", BIGINT, nullable=False),
)

#: Recent updates and deletes, for write conflict detection.
WRITE_SET = table(
    "WRITE_SET",
    column("WS_DATABASE", string(128), nullable=False),
    column("WS_TABLE", string(256), nullable=False),
    column("WS_PARTITION", string(767)),
    column("WS_TXNID", BIGINT, nullable=False),
    column("WS_COMMIT_ID", BIGINT, nullable=False),
    column("WS_OPERATION_TYPE", CHAR(1), nullable=False),
)

#: Write ids given to transactions, per table.
TXN_TO_WRITE_ID = table(
    "TXN_TO_WRITE_ID",
    column("T2W_TXNID", BIGINT, nullable=False),
    column("T2W_DATABASE", string(128), nullable=False),
    column("T2W_TABLE", string(256), nullable=False),
    column("T2W_WRITEID", BIGINT, nullable=False),
    index("TBL_TO_TXN_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID", is_unique=True),
    index("TBL_TO_WRITE_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID", is_unique=True),
)

NEXT_WRITE_ID = table(
    "NEXT_WRITE_ID",
    column("NWI_DATABASE", string(128), nullable=False),
    column("NWI_TABLE", string(256), nullable=False),
    column("NWI_NEXT", BIGINT, nullable=False),
    index("NEXT_WRITE_ID_IDX", "NWI_DATABASE", "NWI_TABLE", is_unique=True),
)

MIN_HISTORY_LEVEL = table(
    "MIN_HISTORY_LEVEL",
    column("MHL_TXNID", BIGINT, nullable=False),
    column("MHL_MIN_OPEN_TXNID", BIGINT, nullable=False),
    primary_key("MHL_TXNID"),
    index("MIN_HISTORY_LEVEL_IDX", "MHL_MIN_OPEN_TXNID"),
)

MIN_HISTORY_WRITE_ID = table(
    "MIN_HISTORY_WRITE_ID",
    column("MH_TXNID", BIGINT, nullable=False),
    column("MH_DATABASE", string(128), nullable=False),
    column("MH_TABLE", string(256), nullable=False),
    column("MH_WRITEID", BIGINT, nullable=False),
    foreign_key(None, "MH_TXNID", "TXNS.TXN_ID"),
)

MATERIALIZATION_REBUILD_LOCKS = table(
    "MATERIALIZATION_REBUILD_LOCKS",
    column("MRL_TXN_ID", BIGINT, nullable=False),
    column("MRL_DB_NAME", string(128), nullable=False),
    column("MRL_TBL_NAME", string(256), nullable=False),
    column("MRL_LAST_HEARTBEAT", BIGINT, nullable=False),
    primary_key("MRL_TXN_ID"),
)

REPL_TXN_MAP = table(
    "REPL_TXN_MAP",
    column("RTM_REPL_POLICY", string(256), nullable=False),
    column("RTM_SRC_TXN_ID", BIGINT, nullable=False),
    column("RTM_TARGET_TXN_ID", BIGINT, nullable=False),
    primary_key("RTM_REPL_POLICY", "RTM_SRC_TXN_ID"),
)

#: Named mutexes, held by row locks.
AUX_TABLE = table(
    "AUX_TABLE",
    column("MT_KEY1", string(128), nullable=False),
    column("MT_KEY2", BIGINT, nullable=False),
    column("MT_COMMENT", string(255)),
    primary_key("MT_KEY1", "MT_KEY2"),
)
