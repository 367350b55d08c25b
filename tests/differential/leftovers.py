"""Deletes what scenarios leave and no call removes: transactions, compactions, registry, tokens, reports.

This is done in both databases before a scenario, so that both assign the same ids again and answers can be compared.
"""

from __future__ import annotations

import re

from sqlalchemy import Engine, inspect, text

_CLEARED = (
    # Transactions
    "TXN_COMPONENTS",
    "COMPLETED_TXN_COMPONENTS",
    "HIVE_LOCKS",
    "COMPACTION_QUEUE",
    "COMPLETED_COMPACTIONS",
    "COMPACTION_METRICS_CACHE",
    "WRITE_SET",
    "TXN_TO_WRITE_ID",
    "NEXT_WRITE_ID",
    "MIN_HISTORY_LEVEL",
    "MIN_HISTORY_WRITE_ID",
    "REPL_TXN_MAP",
    "MATERIALIZATION_REBUILD_LOCKS",
    "TXN_WRITE_NOTIFICATION_LOG",
    # The schema registry
    "SCHEMA_VERSION",
    "I_SCHEMA",
    # The rest
    "TYPE_FIELDS",
    "TYPES",
    "DELEGATION_TOKENS",
    "MASTER_KEYS",
    "PACKAGES",
    "STORED_PROCS",
    "RUNTIME_STATS",
    "REPLICATION_METRICS",
    "PARTITION_EVENTS",
)
_CHANGES = (
    # Those of tables and partitions were deleted with them.
    "DELETE FROM [SERDE_PARAMS] WHERE [SERDE_ID] NOT IN (SELECT [SERDE_ID] FROM [SDS])",
    "DELETE FROM [SERDES] WHERE [SERDE_ID] NOT IN (SELECT [SERDE_ID] FROM [SDS])",
    "DELETE FROM [METASTORE_DB_PROPERTIES] WHERE [PROPERTY_KEY] LIKE 'hms%'",
    # Hive's scripts start with this one; the high-water mark is read from the rows.
    "DELETE FROM [TXNS] WHERE [TXN_ID] > 0",
    "UPDATE [NEXT_LOCK_ID] SET [NL_NEXT] = 1",
    "UPDATE [NEXT_COMPACTION_QUEUE_ID] SET [NCQ_NEXT] = 1",
)
_STATEMENTS = (*(f"DELETE FROM [{table}]" for table in _CLEARED), *_CHANGES)


def forget(engine: Engine) -> None:
    """Deletes all of it, in tables that the schema has: those of older releases lack some."""
    present = set(inspect(engine).get_table_names())
    quote = engine.dialect.identifier_preparer.quote
    with engine.begin() as connection:
        for statement in _STATEMENTS:
            names = re.findall(r"\[(\w+)\]", statement)
            if names[0] in present:
                written = re.sub(r"\[(\w+)\]", lambda name: quote(name[1]), statement)
                connection.execute(text(written))
    if engine.dialect.name != "mysql" or "TXN_LOCK_TBL" not in present:
        return
    with engine.connect() as connection:
        connection.execute(text("SET lock_wait_timeout = 30"))
        connection.execute(text("ALTER TABLE TXNS AUTO_INCREMENT = 1"))
