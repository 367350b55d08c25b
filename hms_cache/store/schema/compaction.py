"""The compaction queue and its history."""

from __future__ import annotations

from sqlalchemy import CHAR, text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, SHORT_BLOB, string
from hms_cache.store.schema.definition import column, index, primary_key, table

COMPACTION_QUEUE = table(
    "COMPACTION_QUEUE",
    column("CQ_ID", BIGINT, nullable=False),
    column("CQ_DATABASE", string(128), nullable=False),
    column("CQ_TABLE", string(256), nullable=False),
    column("CQ_PARTITION", string(767)),
    column("CQ_STATE", CHAR(1), nullable=False),
    column("CQ_TYPE", CHAR(1), nullable=False),
    column("CQ_TBLPROPERTIES", string(2048)),
    column("CQ_WORKER_ID", string(128)),
    column("CQ_ENQUEUE_TIME", BIGINT),
    column("CQ_START", BIGINT),
    column("CQ_RUN_AS", string(128)),
    column("CQ_HIGHEST_WRITE_ID", BIGINT),
    column("CQ_META_INFO", SHORT_BLOB),
    column("CQ_HADOOP_JOB_ID", string(32)),
    column("CQ_ERROR_MESSAGE", MEDIUM_TEXT),
    column("CQ_NEXT_TXN_ID", BIGINT),
    column("CQ_TXN_ID", BIGINT),
    column("CQ_COMMIT_TIME", BIGINT),
    column("CQ_INITIATOR_ID", string(128)),
    column("CQ_INITIATOR_VERSION", string(128)),
    column("CQ_WORKER_VERSION", string(128)),
    column("CQ_CLEANER_START", BIGINT),
    column("CQ_RETRY_RETENTION", BIGINT, nullable=False, default=text("0")),
    column("CQ_POOL_NAME", string(128)),
    column("CQ_NUMBER_OF_BUCKETS", INTEGER),
    column("CQ_ORDER_BY", string(4000)),
    primary_key("CQ_ID"),
)

NEXT_COMPACTION_QUEUE_ID = table(
    "NEXT_COMPACTION_QUEUE_ID",
    column("NCQ_NEXT", BIGINT, nullable=False),
)

COMPLETED_COMPACTIONS = table(
    "COMPLETED_COMPACTIONS",
    column("CC_ID", BIGINT, nullable=False),
    column("CC_DATABASE", string(128), nullable=False),
    column("CC_TABLE", string(256), nullable=False),
    column("CC_PARTITION", string(767)),
    column("CC_STATE", CHAR(1), nullable=False),
    column("CC_TYPE", CHAR(1), nullable=False),
    column("CC_TBLPROPERTIES", string(2048)),
    column("CC_WORKER_ID", string(128)),
    column("CC_ENQUEUE_TIME", BIGINT),
    column("CC_START", BIGINT),
    column("CC_END", BIGINT),
    column("CC_RUN_AS", string(128)),
    column("CC_HIGHEST_WRITE_ID", BIGINT),
    column("CC_META_INFO", SHORT_BLOB),
    column("CC_HADOOP_JOB_ID", string(32)),
    column("CC_ERROR_MESSAGE", MEDIUM_TEXT),
    column("CC_NEXT_TXN_ID", BIGINT),
    column("CC_TXN_ID", BIGINT),
    column("CC_COMMIT_TIME", BIGINT),
    column("CC_INITIATOR_ID", string(128)),
    column("CC_INITIATOR_VERSION", string(128)),
    column("CC_WORKER_VERSION", string(128)),
    column("CC_POOL_NAME", string(128)),
    column("CC_NUMBER_OF_BUCKETS", INTEGER),
    column("CC_ORDER_BY", string(4000)),
    primary_key("CC_ID"),
    index("COMPLETED_COMPACTIONS_RES", "CC_DATABASE", "CC_TABLE", "CC_PARTITION", mysql_prefix={"CC_PARTITION": 128}),
)

COMPACTION_METRICS_CACHE = table(
    "COMPACTION_METRICS_CACHE",
    column("CMC_DATABASE", string(128), nullable=False),
    column("CMC_TABLE", string(256), nullable=False),
    column("CMC_PARTITION", string(767)),
    column("CMC_METRIC_TYPE", string(128), nullable=False),
    column("CMC_METRIC_VALUE", INTEGER, nullable=False),
    column("CMC_VERSION", INTEGER, nullable=False),
)
