"""Storage descriptors: columns, serialization, buckets, sort order and skew of tables and partitions."""

from __future__ import annotations

from sqlalchemy import Index

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, WIDE_INTEGER, Flag
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
from hms_cache.store.schema.keys import (
    SidedForeignKey,
    auto_named_key,
    auto_named_keys,
    foreign_key,
    index,
    primary_key,
)
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, STRING_4000, plane_string


def _skew_owner(table: str, column: str, target: str) -> tuple[Index, SidedForeignKey]:
    """Like `owner`, for lists that PostgreSQL indexes only by their primary keys."""
    return (
        index(f"{table}_N49", column, on="mysql"),
        foreign_key(f"{table}_FK1", column, target, postgresql_name=f"{table}_fkey"),
    )


def _skew_references(
    table: str, descriptor: str, values: str, *, postgresql_numbers: tuple[int, int]
) -> tuple[Index | SidedForeignKey, ...]:
    """Indexes and foreign keys of rows that belong to a storage descriptor and refer to a list of skewed values.

    :param descriptor: the column of the storage descriptor's id.
    :param values: the column of the list's id.
    :param postgresql_numbers: of the two foreign keys, in PostgreSQL's names.
    """
    of_descriptor, of_values = (f"{table}_fkey{number}" for number in postgresql_numbers)
    return (
        index(f"{table}_N49", values, on="mysql"),
        index(f"{table}_N50", descriptor, on="mysql"),
        foreign_key(f"{table}_FK1", descriptor, "SDS.SD_ID", postgresql_name=of_descriptor),
        foreign_key(f"{table}_FK2", values, "SKEWED_STRING_LIST.STRING_LIST_ID", postgresql_name=of_values),
    )


#: Column descriptors, shared by storage descriptors with equal columns.
CDS = table(
    "CDS",
    *identifier("CD_ID"),
)

#: Columns of a descriptor, without partition keys.
COLUMNS_V2 = table(
    "COLUMNS_V2",
    required("CD_ID", BIGINT),
    column("COMMENT", STRING_4000),
    required("COLUMN_NAME", plane_string(767)),
    column("TYPE_NAME", MEDIUM_TEXT),
    required("INTEGER_IDX", INTEGER),
    primary_key("CD_ID", "COLUMN_NAME"),
    index("COLUMNS_V2_N49", "CD_ID", on="mysql"),
    auto_named_key("COLUMNS_V2_FK1", "CD_ID", "CDS.CD_ID"),
)

SERDES = table(
    "SERDES",
    *identifier("SERDE_ID"),
    column("NAME", STRING_128),
    *columns(STRING_4000, "SLIB", "DESCRIPTION", "SERIALIZER_CLASS", "DESERIALIZER_CLASS"),
    column("SERDE_TYPE", INTEGER),
)

SERDE_PARAMS = parameters_table("SERDE_PARAMS", "SERDE_ID", of="SERDES.SERDE_ID")

#: Storage descriptors. CD_ID and SERDE_ID are null for views only.
SDS = table(
    "SDS",
    *identifier("SD_ID"),
    column("CD_ID", BIGINT),
    column("INPUT_FORMAT", STRING_4000),
    *all_required(Flag(), "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES"),
    column("LOCATION", STRING_4000),
    required("NUM_BUCKETS", WIDE_INTEGER),
    column("OUTPUT_FORMAT", STRING_4000),
    column("SERDE_ID", BIGINT),
    index("SDS_N49", "SERDE_ID"),
    index("SDS_N50", "CD_ID"),
    *auto_named_keys("SDS", "SERDES.SERDE_ID", "CDS.CD_ID"),
)

SD_PARAMS = parameters_table("SD_PARAMS", "SD_ID", of="SDS.SD_ID")

BUCKETING_COLS = list_table("BUCKETING_COLS", "SD_ID", column("BUCKET_COL_NAME", STRING_256), of="SDS.SD_ID")

SORT_COLS = list_table(
    "SORT_COLS", "SD_ID", column("COLUMN_NAME", STRING_767), required("ORDER", WIDE_INTEGER), of="SDS.SD_ID"
)

SKEWED_STRING_LIST = table(
    "SKEWED_STRING_LIST",
    *identifier("STRING_LIST_ID"),
)

SKEWED_STRING_LIST_VALUES = list_table(
    "SKEWED_STRING_LIST_VALUES",
    "STRING_LIST_ID",
    column("STRING_LIST_VALUE", STRING_256),
    of="SKEWED_STRING_LIST.STRING_LIST_ID",
    keys=_skew_owner,
)

SKEWED_COL_NAMES = list_table(
    "SKEWED_COL_NAMES", "SD_ID", column("SKEWED_COL_NAME", STRING_256), of="SDS.SD_ID", keys=_skew_owner
)

SKEWED_COL_VALUE_LOC_MAP = table(
    "SKEWED_COL_VALUE_LOC_MAP",
    *all_required(BIGINT, "SD_ID", "STRING_LIST_ID_KID"),
    column("LOCATION", STRING_4000),
    primary_key("SD_ID", "STRING_LIST_ID_KID"),
    *_skew_references("SKEWED_COL_VALUE_LOC_MAP", "SD_ID", "STRING_LIST_ID_KID", postgresql_numbers=(1, 2)),
)

SKEWED_VALUES = table(
    "SKEWED_VALUES",
    *all_required(BIGINT, "SD_ID_OID", "STRING_LIST_ID_EID"),
    required("INTEGER_IDX", WIDE_INTEGER),
    primary_key("SD_ID_OID", "INTEGER_IDX"),
    *_skew_references("SKEWED_VALUES", "SD_ID_OID", "STRING_LIST_ID_EID", postgresql_numbers=(2, 1)),
)
