"""Hive 4.0's metastore schema as SQLAlchemy tables, with the names, types, keys and defaults of Hive's schematool.

Use: ``from hms_cache.store import schema``, then ``schema.TBLS.c.TBL_ID``. The facts are those of Hive 4.0.1's scripts
``hive-schema-4.0.0.mysql.sql`` and ``hive-schema-4.0.0.postgres.sql``; a test loads them and compares every column, key
and default.
"""

from __future__ import annotations

from hms_cache.store.schema.catalog import CTLGS, DATABASE_PARAMS, DATACONNECTOR_PARAMS, DATACONNECTORS, DBS
from hms_cache.store.schema.compaction import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    NEXT_COMPACTION_QUEUE_ID,
)
from hms_cache.store.schema.constraints import KEY_CONSTRAINTS
from hms_cache.store.schema.definition import METADATA
from hms_cache.store.schema.functions import FUNC_RU, FUNCS, PACKAGES, STORED_PROCS
from hms_cache.store.schema.metastore import (
    METASTORE_DB_PROPERTIES,
    NUCLEUS_TABLES,
    SEQUENCE_TABLE,
    TYPE_FIELDS,
    TYPES,
    VERSION,
)
from hms_cache.store.schema.newer_tables import CATALOG_PARAMS, LATER_METADATA
from hms_cache.store.schema.notifications import (
    NOTIFICATION_LOG,
    NOTIFICATION_SEQUENCE,
    REPLICATION_METRICS,
    TXN_WRITE_NOTIFICATION_LOG,
)
from hms_cache.store.schema.partitions import PARTITION_EVENTS, PARTITION_KEY_VALS, PARTITION_PARAMS, PARTITIONS
from hms_cache.store.schema.privileges import (
    DB_PRIVS,
    DC_PRIVS,
    GLOBAL_PRIVS,
    PART_COL_PRIVS,
    PART_PRIVS,
    ROLE_MAP,
    ROLES,
    TBL_COL_PRIVS,
    TBL_PRIVS,
)
from hms_cache.store.schema.registry import I_SCHEMA, SCHEMA_VERSION
from hms_cache.store.schema.scheduling import SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES
from hms_cache.store.schema.security import DELEGATION_TOKENS, MASTER_KEYS
from hms_cache.store.schema.statistics import PART_COL_STATS, RUNTIME_STATS, TAB_COL_STATS
from hms_cache.store.schema.storage import (
    BUCKETING_COLS,
    CDS,
    COLUMNS_V2,
    SD_PARAMS,
    SDS,
    SERDE_PARAMS,
    SERDES,
    SKEWED_COL_NAMES,
    SKEWED_COL_VALUE_LOC_MAP,
    SKEWED_STRING_LIST,
    SKEWED_STRING_LIST_VALUES,
    SKEWED_VALUES,
    SORT_COLS,
)
from hms_cache.store.schema.tables import MV_CREATION_METADATA, MV_TABLES_USED, PARTITION_KEYS, TABLE_PARAMS, TBLS
from hms_cache.store.schema.transactions import (
    AUX_TABLE,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    NEXT_LOCK_ID,
    NEXT_WRITE_ID,
    REPL_TXN_MAP,
    TXN_COMPONENTS,
    TXN_LOCK_TBL,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.schema.workload import WM_MAPPING, WM_POOL, WM_POOL_TO_TRIGGER, WM_RESOURCEPLAN, WM_TRIGGER

__all__ = [
    "AUX_TABLE",
    "BUCKETING_COLS",
    "CATALOG_PARAMS",
    "CDS",
    "COLUMNS_V2",
    "COMPACTION_METRICS_CACHE",
    "COMPACTION_QUEUE",
    "COMPLETED_COMPACTIONS",
    "COMPLETED_TXN_COMPONENTS",
    "CTLGS",
    "DATABASE_PARAMS",
    "DATACONNECTORS",
    "DATACONNECTOR_PARAMS",
    "DBS",
    "DB_PRIVS",
    "DC_PRIVS",
    "DELEGATION_TOKENS",
    "FUNCS",
    "FUNC_RU",
    "GLOBAL_PRIVS",
    "HIVE_LOCKS",
    "I_SCHEMA",
    "KEY_CONSTRAINTS",
    "LATER_METADATA",
    "MASTER_KEYS",
    "MATERIALIZATION_REBUILD_LOCKS",
    "METADATA",
    "METASTORE_DB_PROPERTIES",
    "MIN_HISTORY_LEVEL",
    "MIN_HISTORY_WRITE_ID",
    "MV_CREATION_METADATA",
    "MV_TABLES_USED",
    "NEXT_COMPACTION_QUEUE_ID",
    "NEXT_LOCK_ID",
    "NEXT_WRITE_ID",
    "NOTIFICATION_LOG",
    "NOTIFICATION_SEQUENCE",
    "NUCLEUS_TABLES",
    "PACKAGES",
    "PARTITIONS",
    "PARTITION_EVENTS",
    "PARTITION_KEYS",
    "PARTITION_KEY_VALS",
    "PARTITION_PARAMS",
    "PART_COL_PRIVS",
    "PART_COL_STATS",
    "PART_PRIVS",
    "REPLICATION_METRICS",
    "REPL_TXN_MAP",
    "ROLES",
    "ROLE_MAP",
    "RUNTIME_STATS",
    "SCHEDULED_EXECUTIONS",
    "SCHEDULED_QUERIES",
    "SCHEMA_VERSION",
    "SDS",
    "SD_PARAMS",
    "SEQUENCE_TABLE",
    "SERDES",
    "SERDE_PARAMS",
    "SKEWED_COL_NAMES",
    "SKEWED_COL_VALUE_LOC_MAP",
    "SKEWED_STRING_LIST",
    "SKEWED_STRING_LIST_VALUES",
    "SKEWED_VALUES",
    "SORT_COLS",
    "STORED_PROCS",
    "TABLE_PARAMS",
    "TAB_COL_STATS",
    "TBLS",
    "TBL_COL_PRIVS",
    "TBL_PRIVS",
    "TXNS",
    "TXN_COMPONENTS",
    "TXN_LOCK_TBL",
    "TXN_TO_WRITE_ID",
    "TXN_WRITE_NOTIFICATION_LOG",
    "TYPES",
    "TYPE_FIELDS",
    "VERSION",
    "WM_MAPPING",
    "WM_POOL",
    "WM_POOL_TO_TRIGGER",
    "WM_RESOURCEPLAN",
    "WM_TRIGGER",
    "WRITE_SET",
]
