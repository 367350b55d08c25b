"""The parts of the schema that are required: what the schemas of Hive 3.1 and later releases have in common.

Parts are missing if an upgrade or a restore was interrupted, or if a schema has a version that is too high.
"""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.store.engine.features import SchemaFeatures

#: Tables newer than 3.1, and tables that 3.1's script for PostgreSQL spells differently: only calls about them need
#: them.
_OPTIONAL_TABLES = frozenset(
    {
        *("AUX_TABLE", "CATALOG_PARAMS", "COMPACTION_METRICS_CACHE", "COMPACTION_QUEUE", "COMPLETED_COMPACTIONS"),
        *("COMPLETED_TXN_COMPONENTS", "DATACONNECTORS", "DATACONNECTOR_PARAMS", "DC_PRIVS", "HIVE_LOCKS"),
        *("MATERIALIZATION_REBUILD_LOCKS", "MIN_HISTORY_LEVEL", "MIN_HISTORY_WRITE_ID", "NEXT_COMPACTION_QUEUE_ID"),
        *("NEXT_LOCK_ID", "NEXT_WRITE_ID", "NUCLEUS_TABLES", "PACKAGES", "REPLICATION_METRICS", "REPL_TXN_MAP"),
        *("RUNTIME_STATS", "SCHEDULED_EXECUTIONS", "SCHEDULED_QUERIES", "STORED_PROCS", "TXNS", "TXN_COMPONENTS"),
        *("TXN_LOCK_TBL", "TXN_TO_WRITE_ID", "TXN_WRITE_NOTIFICATION_LOG", "WRITE_SET"),
    }
)

#: Columns of other tables that are newer than 3.1, or were removed in 4.1.
_OPTIONAL_COLUMNS = frozenset(
    {
        ("CTLGS", "CREATE_TIME"),
        *(("DBS", one) for one in ("CREATE_TIME", "DATACONNECTOR_NAME", "DB_MANAGED_LOCATION_URI")),
        *(("DBS", one) for one in ("REMOTE_DBNAME", "TYPE")),
        ("METASTORE_DB_PROPERTIES", "PROPERTYCONTENT"),
        *(("MV_TABLES_USED", f"{one}_COUNT") for one in ("DELETED", "INSERTED", "UPDATED")),
        *((table, "WRITE_ID") for table in ("PARTITIONS", "TBLS")),
        *(
            (table, one)
            for table in ("PART_COL_STATS", "TAB_COL_STATS")
            for one in ("CAT_NAME", "DB_NAME", "ENGINE", "HISTOGRAM", "PARTITION_NAME", "TABLE_NAME")
        ),
        ("WM_RESOURCEPLAN", "NS"),
    }
)


#: Names listed in a text.
_MAX_NAMED = 5


def summary_of(names: Sequence[str]) -> str:
    """The first of the names, and the number of others, for a text."""
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def lacking_parts(features: SchemaFeatures) -> list[str]:
    """Tables and columns (``TABLE.COLUMN``) that the server requires and the database lacks; sorted."""
    tables = features.missing_tables - _OPTIONAL_TABLES
    columns = (
        (table, column)
        for table, column in features.missing_columns - _OPTIONAL_COLUMNS
        if table not in _OPTIONAL_TABLES
    )
    return sorted([*tables, *(f"{table}.{column}" for table, column in columns)])
