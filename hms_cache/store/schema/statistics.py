"""Column statistics of tables and partitions, and statistics of executed operators."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, BLOB, STATISTIC_DOUBLE, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table

#: One row per table, column and engine. 4.1 drops the four name columns.
TAB_COL_STATS = table(
    "TAB_COL_STATS",
    column("CS_ID", BIGINT, nullable=False),
    column("CAT_NAME", string(256), nullable=False, nullable_on_postgresql=True),
    column("DB_NAME", string(128), nullable=False, nullable_on_postgresql=True),
    column("TABLE_NAME", string(256), nullable=False, nullable_on_postgresql=True),
    column("COLUMN_NAME", string(767), nullable=False, nullable_on_postgresql=True),
    column("COLUMN_TYPE", string(128), nullable=False, nullable_on_postgresql=True),
    column("TBL_ID", BIGINT, nullable=False),
    column("LONG_LOW_VALUE", BIGINT),
    column("LONG_HIGH_VALUE", BIGINT),
    column("DOUBLE_HIGH_VALUE", STATISTIC_DOUBLE),
    column("DOUBLE_LOW_VALUE", STATISTIC_DOUBLE),
    column("BIG_DECIMAL_LOW_VALUE", string(4000)),
    column("BIG_DECIMAL_HIGH_VALUE", string(4000)),
    column("NUM_NULLS", BIGINT, nullable=False),
    column("NUM_DISTINCTS", BIGINT),
    column("BIT_VECTOR", BLOB),
    column("AVG_COL_LEN", STATISTIC_DOUBLE),
    column("MAX_COL_LEN", BIGINT),
    column("NUM_TRUES", BIGINT),
    column("NUM_FALSES", BIGINT),
    column("LAST_ANALYZED", BIGINT, nullable=False),
    column("ENGINE", string(128), nullable=False),
    column("HISTOGRAM", BLOB),
    primary_key("CS_ID"),
    index("TAB_COL_STATS_IDX", "DB_NAME", "TABLE_NAME", "COLUMN_NAME", "CAT_NAME", mysql_prefix={"COLUMN_NAME": 128}),
    index("TAB_COL_STATS_N49", "TBL_ID", on="postgresql"),
    foreign_key("TAB_COL_STATS_FK", "TBL_ID", "TBLS.TBL_ID", postgresql_name="TAB_COL_STATS_fkey", deferrable=True),
)

#: One row per partition, column and engine. 4.1 drops the five name columns.
PART_COL_STATS = table(
    "PART_COL_STATS",
    column("CS_ID", BIGINT, nullable=False),
    column("CAT_NAME", string(256), nullable=False, nullable_on_postgresql=True),
    column("DB_NAME", string(128), nullable=False, nullable_on_postgresql=True),
    column("TABLE_NAME", string(256), nullable=False, nullable_on_postgresql=True),
    column("PARTITION_NAME", string(767), nullable=False, nullable_on_postgresql=True),
    column("COLUMN_NAME", string(767), nullable=False, nullable_on_postgresql=True),
    column("COLUMN_TYPE", string(128), nullable=False, nullable_on_postgresql=True),
    column("PART_ID", BIGINT, nullable=False),
    column("LONG_LOW_VALUE", BIGINT),
    column("LONG_HIGH_VALUE", BIGINT),
    column("DOUBLE_HIGH_VALUE", STATISTIC_DOUBLE),
    column("DOUBLE_LOW_VALUE", STATISTIC_DOUBLE),
    column("BIG_DECIMAL_LOW_VALUE", string(4000)),
    column("BIG_DECIMAL_HIGH_VALUE", string(4000)),
    column("NUM_NULLS", BIGINT, nullable=False),
    column("NUM_DISTINCTS", BIGINT),
    column("BIT_VECTOR", BLOB),
    column("AVG_COL_LEN", STATISTIC_DOUBLE),
    column("MAX_COL_LEN", BIGINT),
    column("NUM_TRUES", BIGINT),
    column("NUM_FALSES", BIGINT),
    column("LAST_ANALYZED", BIGINT, nullable=False),
    column("ENGINE", string(128), nullable=False),
    column("HISTOGRAM", BLOB),
    primary_key("CS_ID"),
    index(
        "PCS_STATS_IDX",
        "DB_NAME",
        "TABLE_NAME",
        "COLUMN_NAME",
        "PARTITION_NAME",
        "CAT_NAME",
        mysql_prefix={"CAT_NAME": 64, "PARTITION_NAME": 128, "COLUMN_NAME": 128},
    ),
    index("PART_COL_STATS_N49", "PART_ID", on="postgresql"),
    foreign_key(
        "PART_COL_STATS_FK", "PART_ID", "PARTITIONS.PART_ID", postgresql_name="PART_COL_STATS_fkey", deferrable=True
    ),
)

RUNTIME_STATS = table(
    "RUNTIME_STATS",
    column("RS_ID", BIGINT, nullable=False),
    column("CREATE_TIME", BIGINT, nullable=False),
    column("WEIGHT", BIGINT, nullable=False),
    column("PAYLOAD", BLOB),
    primary_key("RS_ID"),
    index("IDX_RUNTIME_STATS_CREATE_TIME", "CREATE_TIME"),
)
