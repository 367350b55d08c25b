"""The notification log, its sequence, and the records of replication."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, text
from sqlalchemy import column as named

from hms_cache.store.schema.column_types import BIGINT, INTEGER, LONG_TEXT
from hms_cache.store.schema.definition import all_required, column, columns, identifier, required, table
from hms_cache.store.schema.keys import index, primary_key
from hms_cache.store.schema.text_types import (
    LATIN1_128,
    STRING_128,
    STRING_256,
    STRING_4000,
    latin1_string,
    plane_string,
    string,
)

NOTIFICATION_LOG = table(
    "NOTIFICATION_LOG",
    *identifier("NL_ID"),
    required("EVENT_ID", BIGINT),
    required("EVENT_TIME", INTEGER),
    required("EVENT_TYPE", string(32)),
    column("CAT_NAME", STRING_256),
    column("DB_NAME", STRING_128),
    column("TBL_NAME", STRING_256),
    column("MESSAGE", LONG_TEXT),
    column("MESSAGE_FORMAT", string(16)),
    index("NOTIFICATION_LOG_EVENT_ID", "EVENT_ID", is_unique=True),
)

#: One row: the next event id. Its row lock serializes all writers.
NOTIFICATION_SEQUENCE = table(
    "NOTIFICATION_SEQUENCE",
    *identifier("NNI_ID"),
    required("NEXT_EVENT_ID", BIGINT),
    CheckConstraint(named("NNI_ID") == 1, name="ONE_ROW_CONSTRAINT"),
)

TXN_WRITE_NOTIFICATION_LOG = table(
    "TXN_WRITE_NOTIFICATION_LOG",
    *all_required(BIGINT, "WNL_ID", "WNL_TXNID", "WNL_WRITEID"),
    required("WNL_DATABASE", LATIN1_128),
    required("WNL_TABLE", latin1_string(256)),
    required("WNL_PARTITION", plane_string(767)),
    required("WNL_TABLE_OBJ", LONG_TEXT),
    *columns(LONG_TEXT, "WNL_PARTITION_OBJ", "WNL_FILES"),
    required("WNL_EVENT_TIME", INTEGER),
    primary_key("WNL_TXNID", "WNL_DATABASE", "WNL_TABLE", "WNL_PARTITION"),
)

REPLICATION_METRICS = table(
    "REPLICATION_METRICS",
    *identifier("RM_SCHEDULED_EXECUTION_ID"),
    required("RM_POLICY", STRING_256),
    required("RM_DUMP_EXECUTION_ID", BIGINT),
    column("RM_METADATA", STRING_4000),
    column("RM_PROGRESS", string(10000)),
    required("RM_START_TIME", INTEGER),
    column("MESSAGE_FORMAT", string(16), default=text("'json-0.2'")),
    index("DUMP_IDX", "RM_DUMP_EXECUTION_ID"),
    index("POLICY_IDX", "RM_POLICY"),
)
