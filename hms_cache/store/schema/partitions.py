"""Partitions, their key values and parameters."""

from __future__ import annotations

from sqlalchemy import text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, WIDE_INTEGER, plane_string, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table, unique

PARTITIONS = table(
    "PARTITIONS",
    column("PART_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("LAST_ACCESS_TIME", WIDE_INTEGER, nullable=False),
    column("PART_NAME", plane_string(767)),
    column("SD_ID", BIGINT),
    column("TBL_ID", BIGINT),
    column("WRITE_ID", BIGINT, default=text("0")),
    primary_key("PART_ID"),
    index("PARTITIONS_N50", "SD_ID"),
    unique("UNIQUEPARTITION", "TBL_ID", "PART_NAME"),
    foreign_key("PARTITIONS_FK1", "TBL_ID", "TBLS.TBL_ID", postgresql_name="PARTITIONS_TBL_ID_fkey", deferrable=True),
    foreign_key("PARTITIONS_FK2", "SD_ID", "SDS.SD_ID", postgresql_name="PARTITIONS_SD_ID_fkey", deferrable=True),
)

PARTITION_PARAMS = table(
    "PARTITION_PARAMS",
    column("PART_ID", BIGINT, nullable=False),
    column("PARAM_KEY", string(256), nullable=False),
    column("PARAM_VALUE", MEDIUM_TEXT),
    primary_key("PART_ID", "PARAM_KEY"),
    index("PARTITION_PARAMS_N49", "PART_ID"),
    foreign_key(
        "PARTITION_PARAMS_FK1",
        "PART_ID",
        "PARTITIONS.PART_ID",
        postgresql_name="PARTITION_PARAMS_PART_ID_fkey",
        deferrable=True,
    ),
)

PARTITION_KEY_VALS = table(
    "PARTITION_KEY_VALS",
    column("PART_ID", BIGINT, nullable=False),
    column("PART_KEY_VAL", string(256)),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("PART_ID", "INTEGER_IDX"),
    index("PARTITION_KEY_VALS_N49", "PART_ID"),
    foreign_key(
        "PARTITION_KEY_VALS_FK1",
        "PART_ID",
        "PARTITIONS.PART_ID",
        postgresql_name="PARTITION_KEY_VALS_PART_ID_fkey",
        deferrable=True,
    ),
)

#: Markers set by markPartitionForEvent.
PARTITION_EVENTS = table(
    "PARTITION_EVENTS",
    column("PART_NAME_ID", BIGINT, nullable=False),
    column("CAT_NAME", string(256)),
    column("DB_NAME", string(128)),
    column("EVENT_TIME", BIGINT, nullable=False),
    column("EVENT_TYPE", INTEGER, nullable=False),
    column("PARTITION_NAME", string(767)),
    column("TBL_NAME", string(256)),
    primary_key("PART_NAME_ID"),
    index("PARTITIONEVENTINDEX", "PARTITION_NAME"),
)
