"""The compaction queue and its history."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CHAR, Column, text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, SHORT_BLOB
from hms_cache.store.schema.definition import column, required, table
from hms_cache.store.schema.keys import index, primary_key
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, STRING_4000, string


def _request(prefix: str) -> tuple[Column[Any], ...]:
    """What is to be compacted, and when a worker began."""
    return (
        required(f"{prefix}_ID", BIGINT),
        required(f"{prefix}_DATABASE", STRING_128),
        required(f"{prefix}_TABLE", STRING_256),
        column(f"{prefix}_PARTITION", STRING_767),
        required(f"{prefix}_STATE", CHAR(1)),
        required(f"{prefix}_TYPE", CHAR(1)),
        column(f"{prefix}_TBLPROPERTIES", string(2048)),
        column(f"{prefix}_WORKER_ID", STRING_128),
        column(f"{prefix}_ENQUEUE_TIME", BIGINT),
        column(f"{prefix}_START", BIGINT),
    )


def _work(prefix: str) -> tuple[Column[Any], ...]:
    """What the worker and the cleaner record."""
    return (
        column(f"{prefix}_RUN_AS", STRING_128),
        column(f"{prefix}_HIGHEST_WRITE_ID", BIGINT),
        column(f"{prefix}_META_INFO", SHORT_BLOB),
        column(f"{prefix}_HADOOP_JOB_ID", string(32)),
        column(f"{prefix}_ERROR_MESSAGE", MEDIUM_TEXT),
        column(f"{prefix}_NEXT_TXN_ID", BIGINT),
        column(f"{prefix}_TXN_ID", BIGINT),
        column(f"{prefix}_COMMIT_TIME", BIGINT),
        column(f"{prefix}_INITIATOR_ID", STRING_128),
        column(f"{prefix}_INITIATOR_VERSION", STRING_128),
        column(f"{prefix}_WORKER_VERSION", STRING_128),
    )


def _pool(prefix: str) -> tuple[Column[Any], ...]:
    """Which workers may take it, and how they write."""
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

NEXT_COMPACTION_QUEUE_ID = table(
    "NEXT_COMPACTION_QUEUE_ID",
    required("NCQ_NEXT", BIGINT),
)

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
    required("CMC_DATABASE", STRING_128),
    required("CMC_TABLE", STRING_256),
    column("CMC_PARTITION", STRING_767),
    required("CMC_METRIC_TYPE", STRING_128),
    required("CMC_METRIC_VALUE", INTEGER),
    required("CMC_VERSION", INTEGER),
)
