"""The compaction queue and its history."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CHAR, Column, text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, SHORT_BLOB
from hms_cache.store.schema.definition import (
    all_required,
    column,
    columns,
    number_table,
    recorded_table,
    required,
    table,
)
from hms_cache.store.schema.keys import index, primary_key
from hms_cache.store.schema.text_types import STRING_128, STRING_767, STRING_4000, string


def _request(prefix: str) -> tuple[Column[Any], ...]:
    """Columns of the request, and the time at which a worker began."""
    return (
        required(f"{prefix}_ID", BIGINT),
        *recorded_table(prefix),
        column(f"{prefix}_PARTITION", STRING_767),
        *all_required(CHAR(1), f"{prefix}_STATE", f"{prefix}_TYPE"),
        column(f"{prefix}_TBLPROPERTIES", string(2048)),
        column(f"{prefix}_WORKER_ID", STRING_128),
        *columns(BIGINT, f"{prefix}_ENQUEUE_TIME", f"{prefix}_START"),
    )


def _work(prefix: str) -> tuple[Column[Any], ...]:
    """Columns of the worker's and the cleaner's records."""
    return (
        column(f"{prefix}_RUN_AS", STRING_128),
        column(f"{prefix}_HIGHEST_WRITE_ID", BIGINT),
        column(f"{prefix}_META_INFO", SHORT_BLOB),
        column(f"{prefix}_HADOOP_JOB_ID", string(32)),
        column(f"{prefix}_ERROR_MESSAGE", MEDIUM_TEXT),
        *columns(BIGINT, f"{prefix}_NEXT_TXN_ID", f"{prefix}_TXN_ID", f"{prefix}_COMMIT_TIME"),
        *columns(STRING_128, f"{prefix}_INITIATOR_ID", f"{prefix}_INITIATOR_VERSION", f"{prefix}_WORKER_VERSION"),
    )


def _pool(prefix: str) -> tuple[Column[Any], ...]:
    """Columns of the worker pool that may take it, and of bucketing and order."""
    return (
        column(f"{prefix}_POOL_NAME", STRING_128),
        column(f"{prefix}_NUMBER_OF_BUCKETS", INTEGER),
        column(f"{prefix}_ORDER_BY", STRING_4000),
    )


COMPACTION_QUEUE = table(
    "COMPACTION_QUEUE",
    *_request("CQ"),
    *_work("CQ"),
    column("CQ_CLEANER_START", BIGINT),
    required("CQ_RETRY_RETENTION", BIGINT, default=text("0")),
    *_pool("CQ"),
    primary_key("CQ_ID"),
)

NEXT_COMPACTION_QUEUE_ID = number_table("NEXT_COMPACTION_QUEUE_ID", "NCQ_NEXT")

COMPLETED_COMPACTIONS = table(
    "COMPLETED_COMPACTIONS",
    *_request("CC"),
    column("CC_END", BIGINT),
    *_work("CC"),
    *_pool("CC"),
    primary_key("CC_ID"),
    index("COMPLETED_COMPACTIONS_RES", "CC_DATABASE", "CC_TABLE", "CC_PARTITION", mysql_prefix={"CC_PARTITION": 128}),
)

COMPACTION_METRICS_CACHE = table(
    "COMPACTION_METRICS_CACHE",
    *recorded_table("CMC"),
    column("CMC_PARTITION", STRING_767),
    required("CMC_METRIC_TYPE", STRING_128),
    *all_required(INTEGER, "CMC_METRIC_VALUE", "CMC_VERSION"),
)
