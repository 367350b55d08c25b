"""Storage descriptors: columns, serialization, buckets, sort order and skew of tables and partitions."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, WIDE_INTEGER, Flag
from hms_cache.store.schema.definition import column, identifier, list_table, parameters_table, required, table
from hms_cache.store.schema.keys import auto_named_key, foreign_key, index, primary_key
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, STRING_4000, plane_string

#: Column descriptors: the identity that storage descriptors with equal columns share.
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
    column("SLIB", STRING_4000),
    column("DESCRIPTION", STRING_4000),
    column("SERIALIZER_CLASS", STRING_4000),
    column("DESERIALIZER_CLASS", STRING_4000),
    column("SERDE_TYPE", INTEGER),
)

SERDE_PARAMS = parameters_table("SERDE_PARAMS", "SERDE_ID", of="SERDES.SERDE_ID")

#: Storage descriptors; CD_ID and SERDE_ID are null for views only.
SDS = table(
    "SDS",
    *identifier("SD_ID"),
    column("CD_ID", BIGINT),
    column("INPUT_FORMAT", STRING_4000),
    required("IS_COMPRESSED", Flag()),
    required("IS_STOREDASSUBDIRECTORIES", Flag()),
    column("LOCATION", STRING_4000),
    required("NUM_BUCKETS", WIDE_INTEGER),
    column("OUTPUT_FORMAT", STRING_4000),
    column("SERDE_ID", BIGINT),
    index("SDS_N49", "SERDE_ID"),
    index("SDS_N50", "CD_ID"),
    auto_named_key("SDS_FK1", "SERDE_ID", "SERDES.SERDE_ID"),
    auto_named_key("SDS_FK2", "CD_ID", "CDS.CD_ID"),
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

SKEWED_STRING_LIST_VALUES = table(
    "SKEWED_STRING_LIST_VALUES",
    required("STRING_LIST_ID", BIGINT),
    column("STRING_LIST_VALUE", STRING_256),
    required("INTEGER_IDX", WIDE_INTEGER),
    primary_key("STRING_LIST_ID", "INTEGER_IDX"),
    index("SKEWED_STRING_LIST_VALUES_N49", "STRING_LIST_ID", on="mysql"),
    foreign_key(
        "SKEWED_STRING_LIST_VALUES_FK1",
        "STRING_LIST_ID",
        "SKEWED_STRING_LIST.STRING_LIST_ID",
        postgresql_name="SKEWED_STRING_LIST_VALUES_fkey",
    ),
)

SKEWED_COL_NAMES = table(
    "SKEWED_COL_NAMES",
    required("SD_ID", BIGINT),
    column("SKEWED_COL_NAME", STRING_256),
    required("INTEGER_IDX", WIDE_INTEGER),
    primary_key("SD_ID", "INTEGER_IDX"),
    index("SKEWED_COL_NAMES_N49", "SD_ID", on="mysql"),
    foreign_key("SKEWED_COL_NAMES_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="SKEWED_COL_NAMES_fkey"),
)

SKEWED_COL_VALUE_LOC_MAP = table(
    "SKEWED_COL_VALUE_LOC_MAP",
    required("SD_ID", BIGINT),
    required("STRING_LIST_ID_KID", BIGINT),
    column("LOCATION", STRING_4000),
    primary_key("SD_ID", "STRING_LIST_ID_KID"),
    index("SKEWED_COL_VALUE_LOC_MAP_N49", "STRING_LIST_ID_KID", on="mysql"),
    index("SKEWED_COL_VALUE_LOC_MAP_N50", "SD_ID", on="mysql"),
    foreign_key("SKEWED_COL_VALUE_LOC_MAP_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="SKEWED_COL_VALUE_LOC_MAP_fkey1"),
    foreign_key(
        "SKEWED_COL_VALUE_LOC_MAP_FK2",
        "STRING_LIST_ID_KID",
        "SKEWED_STRING_LIST.STRING_LIST_ID",
        postgresql_name="SKEWED_COL_VALUE_LOC_MAP_fkey2",
    ),
)

SKEWED_VALUES = table(
    "SKEWED_VALUES",
    required("SD_ID_OID", BIGINT),
    required("STRING_LIST_ID_EID", BIGINT),
    required("INTEGER_IDX", WIDE_INTEGER),
    primary_key("SD_ID_OID", "INTEGER_IDX"),
    index("SKEWED_VALUES_N49", "STRING_LIST_ID_EID", on="mysql"),
    index("SKEWED_VALUES_N50", "SD_ID_OID", on="mysql"),
    foreign_key("SKEWED_VALUES_FK1", "SD_ID_OID", "SDS.SD_ID", postgresql_name="SKEWED_VALUES_fkey2"),
    foreign_key(
        "SKEWED_VALUES_FK2",
        "STRING_LIST_ID_EID",
        "SKEWED_STRING_LIST.STRING_LIST_ID",
        postgresql_name="SKEWED_VALUES_fkey1",
    ),
)
