"""Column statistics of tables and partitions, and statistics of executed operators."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column
from sqlalchemy.types import TypeEngine

from hms_cache.store.schema.column_types import BIGINT, BLOB, STATISTIC_DOUBLE
from hms_cache.store.schema.definition import column, identifier, required, table
from hms_cache.store.schema.keys import foreign_key, index
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, STRING_4000


def _statistics() -> tuple[Column[Any], ...]:
    """Columns of the statistics themselves, the same for tables and partitions."""
    return (
        column("LONG_LOW_VALUE", BIGINT),
        column("LONG_HIGH_VALUE", BIGINT),
        column("DOUBLE_HIGH_VALUE", STATISTIC_DOUBLE),
        column("DOUBLE_LOW_VALUE", STATISTIC_DOUBLE),
        column("BIG_DECIMAL_LOW_VALUE", STRING_4000),
        column("BIG_DECIMAL_HIGH_VALUE", STRING_4000),
        required("NUM_NULLS", BIGINT),
        column("NUM_DISTINCTS", BIGINT),
        column("BIT_VECTOR", BLOB),
        column("AVG_COL_LEN", STATISTIC_DOUBLE),
        column("MAX_COL_LEN", BIGINT),
        column("NUM_TRUES", BIGINT),
        column("NUM_FALSES", BIGINT),
        required("LAST_ANALYZED", BIGINT),
        required("ENGINE", STRING_128),
        column("HISTOGRAM", BLOB),
    )


def _name(column_name: str, column_type: TypeEngine[str]) -> Column[str]:
    """A column of a name, which Hive's MySQL script alone makes NOT NULL."""
    return required(column_name, column_type, nullable_on_postgresql=True)


#: One row per table, column and engine. 4.1 drops the four name columns.
TAB_COL_STATS = table(
    "TAB_COL_STATS",
    *identifier("CS_ID"),
    _name("CAT_NAME", STRING_256),
    _name("DB_NAME", STRING_128),
    _name("TABLE_NAME", STRING_256),
    _name("COLUMN_NAME", STRING_767),
    _name("COLUMN_TYPE", STRING_128),
    required("TBL_ID", BIGINT),
    *_statistics(),
    index("TAB_COL_STATS_IDX", "DB_NAME", "TABLE_NAME", "COLUMN_NAME", "CAT_NAME", mysql_prefix={"COLUMN_NAME": 128}),
    index("TAB_COL_STATS_N49", "TBL_ID", on="postgresql"),
    foreign_key("TAB_COL_STATS_FK", "TBL_ID", "TBLS.TBL_ID", postgresql_name="TAB_COL_STATS_fkey"),
)

#: One row per partition, column and engine. 4.1 drops the five name columns.
PART_COL_STATS = table(
    "PART_COL_STATS",
    *identifier("CS_ID"),
    _name("CAT_NAME", STRING_256),
    _name("DB_NAME", STRING_128),
    _name("TABLE_NAME", STRING_256),
    _name("PARTITION_NAME", STRING_767),
    _name("COLUMN_NAME", STRING_767),
    _name("COLUMN_TYPE", STRING_128),
    required("PART_ID", BIGINT),
    *_statistics(),
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
    foreign_key("PART_COL_STATS_FK", "PART_ID", "PARTITIONS.PART_ID", postgresql_name="PART_COL_STATS_fkey"),
)

RUNTIME_STATS = table(
    "RUNTIME_STATS",
    *identifier("RS_ID"),
    required("CREATE_TIME", BIGINT),
    required("WEIGHT", BIGINT),
    column("PAYLOAD", BLOB),
    index("IDX_RUNTIME_STATS_CREATE_TIME", "CREATE_TIME"),
)
