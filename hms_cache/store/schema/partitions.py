"""Partitions, their key values and parameters."""

from __future__ import annotations

from sqlalchemy import text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, WIDE_INTEGER
from hms_cache.store.schema.definition import (
    all_required,
    column,
    columns,
    identifier,
    list_table,
    parameters_table,
    required,
    table,
)
from hms_cache.store.schema.keys import auto_named_keys, index, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, plane_string

PARTITIONS = table(
    "PARTITIONS",
    *identifier("PART_ID"),
    *all_required(WIDE_INTEGER, "CREATE_TIME", "LAST_ACCESS_TIME"),
    column("PART_NAME", plane_string(767)),
    *columns(BIGINT, "SD_ID", "TBL_ID"),
    column("WRITE_ID", BIGINT, default=text("0")),
    index("PARTITIONS_N50", "SD_ID"),
    unique("UNIQUEPARTITION", "TBL_ID", "PART_NAME"),
    *auto_named_keys("PARTITIONS", "TBLS.TBL_ID", "SDS.SD_ID"),
)

PARTITION_PARAMS = parameters_table("PARTITION_PARAMS", "PART_ID", of="PARTITIONS.PART_ID")

PARTITION_KEY_VALS = list_table(
    "PARTITION_KEY_VALS", "PART_ID", column("PART_KEY_VAL", STRING_256), of="PARTITIONS.PART_ID"
)

#: Markers set by markPartitionForEvent.
PARTITION_EVENTS = table(
    "PARTITION_EVENTS",
    *identifier("PART_NAME_ID"),
    column("CAT_NAME", STRING_256),
    column("DB_NAME", STRING_128),
    required("EVENT_TIME", BIGINT),
    required("EVENT_TYPE", INTEGER),
    column("PARTITION_NAME", STRING_767),
    column("TBL_NAME", STRING_256),
    index("PARTITIONEVENTINDEX", "PARTITION_NAME"),
)
