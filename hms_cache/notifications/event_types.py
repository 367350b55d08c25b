"""The values of EVENT_TYPE in all Hive releases."""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    """A value of NOTIFICATION_LOG.EVENT_TYPE (varchar(32)); Hive's ``EventMessage.EventType``, 3.1 to 4.1."""

    CREATE_DATABASE = "CREATE_DATABASE"
    ALTER_DATABASE = "ALTER_DATABASE"
    DROP_DATABASE = "DROP_DATABASE"
    CREATE_TABLE = "CREATE_TABLE"
    ALTER_TABLE = "ALTER_TABLE"
    DROP_TABLE = "DROP_TABLE"
    ADD_PARTITION = "ADD_PARTITION"
    ALTER_PARTITION = "ALTER_PARTITION"
    ALTER_PARTITIONS = "ALTER_PARTITIONS"
    DROP_PARTITION = "DROP_PARTITION"
    INSERT = "INSERT"
    RELOAD = "RELOAD"
    CREATE_FUNCTION = "CREATE_FUNCTION"
    DROP_FUNCTION = "DROP_FUNCTION"
    ADD_PRIMARYKEY = "ADD_PRIMARYKEY"
    ADD_FOREIGNKEY = "ADD_FOREIGNKEY"
    ADD_UNIQUECONSTRAINT = "ADD_UNIQUECONSTRAINT"
    ADD_NOTNULLCONSTRAINT = "ADD_NOTNULLCONSTRAINT"
    ADD_DEFAULTCONSTRAINT = "ADD_DEFAULTCONSTRAINT"
    ADD_CHECKCONSTRAINT = "ADD_CHECKCONSTRAINT"
    DROP_CONSTRAINT = "DROP_CONSTRAINT"
    CREATE_ISCHEMA = "CREATE_ISCHEMA"
    ALTER_ISCHEMA = "ALTER_ISCHEMA"
    DROP_ISCHEMA = "DROP_ISCHEMA"
    ADD_SCHEMA_VERSION = "ADD_SCHEMA_VERSION"
    ALTER_SCHEMA_VERSION = "ALTER_SCHEMA_VERSION"
    DROP_SCHEMA_VERSION = "DROP_SCHEMA_VERSION"
    CREATE_CATALOG = "CREATE_CATALOG"
    ALTER_CATALOG = "ALTER_CATALOG"
    DROP_CATALOG = "DROP_CATALOG"
    OPEN_TXN = "OPEN_TXN"
    COMMIT_TXN = "COMMIT_TXN"
    ABORT_TXN = "ABORT_TXN"
    ALLOC_WRITE_ID_EVENT = "ALLOC_WRITE_ID_EVENT"
    ACID_WRITE_EVENT = "ACID_WRITE_EVENT"
    BATCH_ACID_WRITE_EVENT = "BATCH_ACID_WRITE_EVENT"
    UPDATE_TBL_COL_STAT_EVENT = "UPDATE_TBL_COL_STAT_EVENT"
    DELETE_TBL_COL_STAT_EVENT = "DELETE_TBL_COL_STAT_EVENT"
    UPDATE_PART_COL_STAT_EVENT = "UPDATE_PART_COL_STAT_EVENT"
    UPDATE_PART_COL_STAT_EVENT_BATCH = "UPDATE_PART_COL_STAT_EVENT_BATCH"
    DELETE_PART_COL_STAT_EVENT = "DELETE_PART_COL_STAT_EVENT"
    COMMIT_COMPACTION_EVENT = "COMMIT_COMPACTION_EVENT"
    CREATE_DATACONNECTOR = "CREATE_DATACONNECTOR"
    ALTER_DATACONNECTOR = "ALTER_DATACONNECTOR"
    DROP_DATACONNECTOR = "DROP_DATACONNECTOR"


ONLY_OF_TRANSACTIONS = frozenset(
    {EventType.OPEN_TXN, EventType.ABORT_TXN, EventType.ALLOC_WRITE_ID_EVENT, EventType.COMMIT_TXN}
)
"""Event types about transactions and write ids, and not about objects of the catalog. A commit may nevertheless set a
parameter of a table (`EventRow.keeps_tables`)."""

GRANTS_CHANGED = "HMS_CACHE_GRANTS"
"""A grant or role was changed. Logged only by servers of this program with `authorization.sql_grants = logged`. Hive
has no type of this name, and no event for such changes."""

ONLY_OF_ITS_TABLE = frozenset(
    {
        EventType.ADD_PARTITION,
        EventType.ALTER_PARTITION,
        EventType.ALTER_PARTITIONS,
        EventType.DROP_PARTITION,
        EventType.INSERT,
        EventType.UPDATE_TBL_COL_STAT_EVENT,
        EventType.DELETE_TBL_COL_STAT_EVENT,
        EventType.UPDATE_PART_COL_STAT_EVENT,
        EventType.DELETE_PART_COL_STAT_EVENT,
        EventType.COMMIT_COMPACTION_EVENT,
    }
)
"""Event types that change only facets of the table named in their row. All others may change more: names and knowledge
of absence (create, alter, drop, reload), other tables (foreign keys and the keys to which they refer, other
constraints, which Hive logs together for several tables, a rename), tags of tables that are loaded later (transactions,
write ids), whole databases, or unknown objects (other types)."""
