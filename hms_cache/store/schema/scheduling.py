"""Scheduled queries and their executions."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, BOOLEAN, INTEGER, WIDE_INTEGER, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table

SCHEDULED_QUERIES = table(
    "SCHEDULED_QUERIES",
    column("SCHEDULED_QUERY_ID", BIGINT, nullable=False),
    column("CLUSTER_NAMESPACE", string(256)),
    column("ENABLED", BOOLEAN, nullable=False),
    column("NEXT_EXECUTION", INTEGER),
    column("QUERY", string(4000)),
    column("SCHEDULE", string(256)),
    column("SCHEDULE_NAME", string(256)),
    column("USER", string(256)),
    column("ACTIVE_EXECUTION_ID", WIDE_INTEGER),
    primary_key("SCHEDULED_QUERY_ID", name="SCHEDULED_QUERIES_PK"),
)

SCHEDULED_EXECUTIONS = table(
    "SCHEDULED_EXECUTIONS",
    column("SCHEDULED_EXECUTION_ID", BIGINT, nullable=False),
    column("END_TIME", INTEGER),
    column("ERROR_MESSAGE", string(2000)),
    column("EXECUTOR_QUERY_ID", string(256)),
    column("LAST_UPDATE_TIME", INTEGER),
    column("SCHEDULED_QUERY_ID", BIGINT),
    column("START_TIME", INTEGER),
    column("STATE", string(256)),
    primary_key("SCHEDULED_EXECUTION_ID", name="SCHEDULED_EXECUTIONS_PK"),
    index("IDX_SCHEDULED_EXECUTIONS_LAST_UPDATE_TIME", "LAST_UPDATE_TIME", on="mysql"),
    index("IDX_SCHEDULED_EXECUTIONS_SCHEDULED_QUERY_ID", "SCHEDULED_QUERY_ID", on="mysql"),
    index("UNIQUE_SCHEDULED_EXECUTIONS_ID", "SCHEDULED_EXECUTION_ID", is_unique=True, on="mysql"),
    index("idx_scheduled_executions_last_update_time", "LAST_UPDATE_TIME", on="postgresql"),
    index("idx_scheduled_executions_scheduled_query_id", "SCHEDULED_QUERY_ID", on="postgresql"),
    index("unique_scheduled_executions_id", "SCHEDULED_EXECUTION_ID", is_unique=True, on="postgresql"),
    foreign_key(
        "SCHEDULED_EXECUTIONS_SCHQ_FK", "SCHEDULED_QUERY_ID", "SCHEDULED_QUERIES.SCHEDULED_QUERY_ID", cascade=True
    ),
)
