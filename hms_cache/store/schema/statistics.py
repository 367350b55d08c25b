"""Column statistics of tables and partitions, and statistics of executed operators."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index

from hms_cache.store.schema.column_types import BIGINT, BLOB, STATISTIC_DOUBLE
from hms_cache.store.schema.definition import all_required, column, columns, identifier, required, table
from hms_cache.store.schema.keys import SidedForeignKey, foreign_key, index
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, STRING_4000, plane_string


def _statistics() -> tuple[Column[Any], ...]:
    """Columns of the statistics themselves, equal for tables and partitions."""
    return (
        *columns(BIGINT, "LONG_LOW_VALUE", "LONG_HIGH_VALUE"),
        *columns(STATISTIC_DOUBLE, "DOUBLE_HIGH_VALUE", "DOUBLE_LOW_VALUE"),
        *columns(STRING_4000, "BIG_DECIMAL_LOW_VALUE", "BIG_DECIMAL_HIGH_VALUE"),
        required("NUM_NULLS", BIGINT),
        column("NUM_DISTINCTS", BIGINT),
        column("BIT_VECTOR", BLOB),
        column("AVG_COL_LEN", STATISTIC_DOUBLE),
        *columns(BIGINT, "MAX_COL_LEN", "NUM_TRUES", "NUM_FALSES"),
        required("LAST_ANALYZED", BIGINT),
        required("ENGINE", STRING_128),
        column("HISTOGRAM", BLOB),
    )


def _names(*partition: str) -> tuple[Column[Any], ...]:
    """Columns with the names of the object of the statistics. Only Hive's MySQL script makes them NOT NULL.

    The column's name has the type of the column itself: with four bytes per character, the index that the upgrade to
    Hive 4.1 creates, of the owner's id and the whole name, would be too long.

    :param partition: the column of the partition's name, if there is one.
    """
    types = {"CAT_NAME": STRING_256, "DB_NAME": STRING_128, "TABLE_NAME": STRING_256}
    types |= dict.fromkeys(partition, STRING_767) | {"COLUMN_NAME": plane_string(767), "COLUMN_TYPE": STRING_128}
    return tuple(required(name, kind, nullable_on_postgresql=True) for name, kind in types.items())


def _keys(table: str, column: str, target: str) -> tuple[Index, SidedForeignKey]:
    """Like `owner`, with the names of Hive's scripts for statistics. MySQL has no such index."""
    return (
        index(f"{table}_N49", column, on="postgresql"),
        foreign_key(f"{table}_FK", column, target, postgresql_name=f"{table}_fkey"),
    )


#: One row per table, column and engine. 4.1 drops the four name columns.
TAB_COL_STATS = table(
    "TAB_COL_STATS",
    *identifier("CS_ID"),
    *_names(),
    required("TBL_ID", BIGINT),
    *_statistics(),
    index("TAB_COL_STATS_IDX", "DB_NAME", "TABLE_NAME", "COLUMN_NAME", "CAT_NAME", mysql_prefix={"COLUMN_NAME": 128}),
    *_keys("TAB_COL_STATS", "TBL_ID", "TBLS.TBL_ID"),
)

#: One row per partition, column and engine. 4.1 drops the five name columns.
PART_COL_STATS = table(
    "PART_COL_STATS",
    *identifier("CS_ID"),
    *_names("PARTITION_NAME"),
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
    *_keys("PART_COL_STATS", "PART_ID", "PARTITIONS.PART_ID"),
)

RUNTIME_STATS = table(
    "RUNTIME_STATS",
    *identifier("RS_ID"),
    *all_required(BIGINT, "CREATE_TIME", "WEIGHT"),
    column("PAYLOAD", BLOB),
    index("IDX_RUNTIME_STATS_CREATE_TIME", "CREATE_TIME"),
)
