"""Scheduled queries and their executions."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, BOOLEAN, INTEGER, WIDE_INTEGER
from hms_cache.store.schema.definition import column, columns, required, table
from hms_cache.store.schema.keys import foreign_key, index, primary_key
from hms_cache.store.schema.text_types import STRING_256, STRING_4000, string

SCHEDULED_QUERIES = table(
    "SCHEDULED_QUERIES",
    required("SCHEDULED_QUERY_ID", BIGINT),
    column("CLUSTER_NAMESPACE", STRING_256),
    required("ENABLED", BOOLEAN),
    column("NEXT_EXECUTION", INTEGER),
    column("QUERY", STRING_4000),
    *columns(STRING_256, "SCHEDULE", "SCHEDULE_NAME", "USER"),
    column("ACTIVE_EXECUTION_ID", WIDE_INTEGER),
    primary_key("SCHEDULED_QUERY_ID", name="SCHEDULED_QUERIES_PK"),
)

SCHEDULED_EXECUTIONS = table(
    "SCHEDULED_EXECUTIONS",
    required("SCHEDULED_EXECUTION_ID", BIGINT),
    column("END_TIME", INTEGER),
    column("ERROR_MESSAGE", string(2000)),
    column("EXECUTOR_QUERY_ID", STRING_256),
    column("LAST_UPDATE_TIME", INTEGER),
    column("SCHEDULED_QUERY_ID", BIGINT),
    column("START_TIME", INTEGER),
    column("STATE", STRING_256),
    primary_key("SCHEDULED_EXECUTION_ID", name="SCHEDULED_EXECUTIONS_PK"),
    index("IDX_SCHEDULED_EXECUTIONS_LAST_UPDATE_TIME", "LAST_UPDATE_TIME", on="mysql"),
    index("IDX_SCHEDULED_EXECUTIONS_SCHEDULED_QUERY_ID", "SCHEDULED_QUERY_ID", on="mysql"),
    index("UNIQUE_SCHEDULED_EXECUTIONS_ID", "SCHEDULED_EXECUTION_ID", is_unique=True, on="mysql"),
    index("idx_scheduled_executions_last_update_time", "LAST_UPDATE_TIME", on="postgresql"),
    index("idx_scheduled_executions_scheduled_query_id", "SCHEDULED_QUERY_ID", on="postgresql"),
    index("unique_scheduled_executions_id", "SCHEDULED_EXECUTION_ID", is_unique=True, on="postgresql"),
    foreign_key(
        "SCHEDULED_EXECUTIONS_SCHQ_FK",
        "SCHEDULED_QUERY_ID",
        "SCHEDULED_QUERIES.SCHEDULED_QUERY_ID",
        cascade=True,
        deferrable=False,
    ),
)
