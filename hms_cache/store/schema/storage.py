"""Storage descriptors: columns, serialization, buckets, sort order and skew of tables and partitions."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, WIDE_INTEGER, Flag, plane_string, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table

#: Column descriptors: the identity that storage descriptors with equal columns share.
CDS = table(
    "CDS",
    column("CD_ID", BIGINT, nullable=False),
    primary_key("CD_ID"),
)

#: Columns of a descriptor, without partition keys.
COLUMNS_V2 = table(
    "COLUMNS_V2",
    column("CD_ID", BIGINT, nullable=False),
    column("COMMENT", string(4000)),
    column("COLUMN_NAME", plane_string(767), nullable=False),
    column("TYPE_NAME", MEDIUM_TEXT),
    column("INTEGER_IDX", INTEGER, nullable=False),
    primary_key("CD_ID", "COLUMN_NAME"),
    index("COLUMNS_V2_N49", "CD_ID", on="mysql"),
    foreign_key("COLUMNS_V2_FK1", "CD_ID", "CDS.CD_ID", postgresql_name="COLUMNS_V2_CD_ID_fkey", deferrable=True),
)

SERDES = table(
    "SERDES",
    column("SERDE_ID", BIGINT, nullable=False),
    column("NAME", string(128)),
    column("SLIB", string(4000)),
    column("DESCRIPTION", string(4000)),
    column("SERIALIZER_CLASS", string(4000)),
    column("DESERIALIZER_CLASS", string(4000)),
    column("SERDE_TYPE", INTEGER),
    primary_key("SERDE_ID"),
)

SERDE_PARAMS = table(
    "SERDE_PARAMS",
    column("SERDE_ID", BIGINT, nullable=False),
    column("PARAM_KEY", string(256), nullable=False),
    column("PARAM_VALUE", MEDIUM_TEXT),
    primary_key("SERDE_ID", "PARAM_KEY"),
    index("SERDE_PARAMS_N49", "SERDE_ID"),
    foreign_key(
        "SERDE_PARAMS_FK1", "SERDE_ID", "SERDES.SERDE_ID", postgresql_name="SERDE_PARAMS_SERDE_ID_fkey", deferrable=True
    ),
)

#: Storage descriptors; CD_ID and SERDE_ID are null for views only.
SDS = table(
    "SDS",
    column("SD_ID", BIGINT, nullable=False),
    column("CD_ID", BIGINT),
    column("INPUT_FORMAT", string(4000)),
    column("IS_COMPRESSED", Flag(), nullable=False),
    column("IS_STOREDASSUBDIRECTORIES", Flag(), nullable=False),
    column("LOCATION", string(4000)),
    column("NUM_BUCKETS", WIDE_INTEGER, nullable=False),
    column("OUTPUT_FORMAT", string(4000)),
    column("SERDE_ID", BIGINT),
    primary_key("SD_ID"),
    index("SDS_N49", "SERDE_ID"),
    index("SDS_N50", "CD_ID"),
    foreign_key("SDS_FK1", "SERDE_ID", "SERDES.SERDE_ID", postgresql_name="SDS_SERDE_ID_fkey", deferrable=True),
    foreign_key("SDS_FK2", "CD_ID", "CDS.CD_ID", postgresql_name="SDS_CD_ID_fkey", deferrable=True),
)

SD_PARAMS = table(
    "SD_PARAMS",
    column("SD_ID", BIGINT, nullable=False),
    column("PARAM_KEY", string(256), nullable=False),
    column("PARAM_VALUE", MEDIUM_TEXT),
    primary_key("SD_ID", "PARAM_KEY"),
    index("SD_PARAMS_N49", "SD_ID"),
    foreign_key("SD_PARAMS_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="SD_PARAMS_SD_ID_fkey", deferrable=True),
)

BUCKETING_COLS = table(
    "BUCKETING_COLS",
    column("SD_ID", BIGINT, nullable=False),
    column("BUCKET_COL_NAME", string(256)),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("SD_ID", "INTEGER_IDX"),
    index("BUCKETING_COLS_N49", "SD_ID"),
    foreign_key(
        "BUCKETING_COLS_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="BUCKETING_COLS_SD_ID_fkey", deferrable=True
    ),
)

SORT_COLS = table(
    "SORT_COLS",
    column("SD_ID", BIGINT, nullable=False),
    column("COLUMN_NAME", string(767)),
    column("ORDER", WIDE_INTEGER, nullable=False),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("SD_ID", "INTEGER_IDX"),
    index("SORT_COLS_N49", "SD_ID"),
    foreign_key("SORT_COLS_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="SORT_COLS_SD_ID_fkey", deferrable=True),
)

SKEWED_STRING_LIST = table(
    "SKEWED_STRING_LIST",
    column("STRING_LIST_ID", BIGINT, nullable=False),
    primary_key("STRING_LIST_ID"),
)

SKEWED_STRING_LIST_VALUES = table(
    "SKEWED_STRING_LIST_VALUES",
    column("STRING_LIST_ID", BIGINT, nullable=False),
    column("STRING_LIST_VALUE", string(256)),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("STRING_LIST_ID", "INTEGER_IDX"),
    index("SKEWED_STRING_LIST_VALUES_N49", "STRING_LIST_ID", on="mysql"),
    foreign_key(
        "SKEWED_STRING_LIST_VALUES_FK1",
        "STRING_LIST_ID",
        "SKEWED_STRING_LIST.STRING_LIST_ID",
        postgresql_name="SKEWED_STRING_LIST_VALUES_fkey",
        deferrable=True,
    ),
)

SKEWED_COL_NAMES = table(
    "SKEWED_COL_NAMES",
    column("SD_ID", BIGINT, nullable=False),
    column("SKEWED_COL_NAME", string(256)),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("SD_ID", "INTEGER_IDX"),
    index("SKEWED_COL_NAMES_N49", "SD_ID", on="mysql"),
    foreign_key("SKEWED_COL_NAMES_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="SKEWED_COL_NAMES_fkey", deferrable=True),
)

SKEWED_COL_VALUE_LOC_MAP = table(
    "SKEWED_COL_VALUE_LOC_MAP",
    column("SD_ID", BIGINT, nullable=False),
    column("STRING_LIST_ID_KID", BIGINT, nullable=False),
    column("LOCATION", string(4000)),
    primary_key("SD_ID", "STRING_LIST_ID_KID"),
    index("SKEWED_COL_VALUE_LOC_MAP_N49", "STRING_LIST_ID_KID", on="mysql"),
    index("SKEWED_COL_VALUE_LOC_MAP_N50", "SD_ID", on="mysql"),
    foreign_key(
        "SKEWED_COL_VALUE_LOC_MAP_FK1",
        "SD_ID",
        "SDS.SD_ID",
        postgresql_name="SKEWED_COL_VALUE_LOC_MAP_fkey1",
        deferrable=True,
    ),
    foreign_key(
        "SKEWED_COL_VALUE_LOC_MAP_FK2",
        "STRING_LIST_ID_KID",
        "SKEWED_STRING_LIST.STRING_LIST_ID",
        postgresql_name="SKEWED_COL_VALUE_LOC_MAP_fkey2",
        deferrable=True,
    ),
)

SKEWED_VALUES = table(
    "SKEWED_VALUES",
    column("SD_ID_OID", BIGINT, nullable=False),
    column("STRING_LIST_ID_EID", BIGINT, nullable=False),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("SD_ID_OID", "INTEGER_IDX"),
    index("SKEWED_VALUES_N49", "STRING_LIST_ID_EID", on="mysql"),
    index("SKEWED_VALUES_N50", "SD_ID_OID", on="mysql"),
    foreign_key("SKEWED_VALUES_FK1", "SD_ID_OID", "SDS.SD_ID", postgresql_name="SKEWED_VALUES_fkey2", deferrable=True),
    foreign_key(
        "SKEWED_VALUES_FK2",
        "STRING_LIST_ID_EID",
        "SKEWED_STRING_LIST.STRING_LIST_ID",
        postgresql_name="SKEWED_VALUES_fkey1",
        deferrable=True,
    ),
)
