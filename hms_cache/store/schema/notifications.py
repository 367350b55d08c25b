"""The notification log, its sequence, and what replication records."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, text
from sqlalchemy import column as named

from hms_cache.store.schema.column_types import BIGINT, INTEGER, LONG_TEXT, plane_string, string, word_string
from hms_cache.store.schema.definition import column, index, primary_key, table

NOTIFICATION_LOG = table(
    "NOTIFICATION_LOG",
    column("NL_ID", BIGINT, nullable=False),
    column("EVENT_ID", BIGINT, nullable=False),
    column("EVENT_TIME", INTEGER, nullable=False),
    column("EVENT_TYPE", string(32), nullable=False),
    column("CAT_NAME", string(256)),
    column("DB_NAME", string(128)),
    column("TBL_NAME", string(256)),
    column("MESSAGE", LONG_TEXT),
    column("MESSAGE_FORMAT", string(16)),
    primary_key("NL_ID"),
    index("NOTIFICATION_LOG_EVENT_ID", "EVENT_ID", is_unique=True),
)

#: One row: the next event id. Its row lock orders all writers.
NOTIFICATION_SEQUENCE = table(
    "NOTIFICATION_SEQUENCE",
    column("NNI_ID", BIGINT, nullable=False),
    column("NEXT_EVENT_ID", BIGINT, nullable=False),
    primary_key("NNI_ID"),
    CheckConstraint(named("NNI_ID") == 1, name="ONE_ROW_CONSTRAINT"),
)

TXN_WRITE_NOTIFICATION_LOG = table(
    "TXN_WRITE_NOTIFICATION_LOG",
    column("WNL_ID", BIGINT, nullable=False),
    column("WNL_TXNID", BIGINT, nullable=False),
    column("WNL_WRITEID", BIGINT, nullable=False),
    column("WNL_DATABASE", word_string(128), nullable=False),
    column("WNL_TABLE", word_string(256), nullable=False),
    column("WNL_PARTITION", plane_string(767), nullable=False),
    column("WNL_TABLE_OBJ", LONG_TEXT, nullable=False),
    column("WNL_PARTITION_OBJ", LONG_TEXT),
    column("WNL_FILES", LONG_TEXT),
    column("WNL_EVENT_TIME", INTEGER, nullable=False),
    primary_key("WNL_TXNID", "WNL_DATABASE", "WNL_TABLE", "WNL_PARTITION"),
)

REPLICATION_METRICS = table(
    "REPLICATION_METRICS",
    column("RM_SCHEDULED_EXECUTION_ID", BIGINT, nullable=False),
    column("RM_POLICY", string(256), nullable=False),
    column("RM_DUMP_EXECUTION_ID", BIGINT, nullable=False),
    column("RM_METADATA", string(4000)),
    column("RM_PROGRESS", string(10000)),
    column("RM_START_TIME", INTEGER, nullable=False),
    column("MESSAGE_FORMAT", string(16), default=text("'json-0.2'")),
    primary_key("RM_SCHEDULED_EXECUTION_ID"),
    index("DUMP_IDX", "RM_DUMP_EXECUTION_ID"),
    index("POLICY_IDX", "RM_POLICY"),
)
