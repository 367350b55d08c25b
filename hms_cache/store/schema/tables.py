"""Tables, views and materialized views."""

from __future__ import annotations

from sqlalchemy import text

from hms_cache.store.schema.column_types import BIGINT, MEDIUM_TEXT, TEXT, WIDE_INTEGER, Flag, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table, unique

TBLS = table(
    "TBLS",
    column("TBL_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("DB_ID", BIGINT),
    column("LAST_ACCESS_TIME", WIDE_INTEGER, nullable=False),
    column("OWNER", string(767)),
    column("OWNER_TYPE", string(10)),
    column("RETENTION", WIDE_INTEGER, nullable=False),
    column("SD_ID", BIGINT),
    column("TBL_NAME", string(256)),
    column("TBL_TYPE", string(128)),
    column("VIEW_EXPANDED_TEXT", MEDIUM_TEXT),
    column("VIEW_ORIGINAL_TEXT", MEDIUM_TEXT),
    column("IS_REWRITE_ENABLED", Flag(), nullable=False, default=text("false")),
    column("WRITE_ID", BIGINT, default=text("0")),
    primary_key("TBL_ID"),
    index("TBLS_N49", "DB_ID"),
    index("TBLS_N50", "SD_ID"),
    unique("UNIQUETABLE", "TBL_NAME", "DB_ID"),
    foreign_key("TBLS_FK1", "SD_ID", "SDS.SD_ID", postgresql_name="TBLS_SD_ID_fkey", deferrable=True),
    foreign_key("TBLS_FK2", "DB_ID", "DBS.DB_ID", postgresql_name="TBLS_DB_ID_fkey", deferrable=True),
)

TABLE_PARAMS = table(
    "TABLE_PARAMS",
    column("TBL_ID", BIGINT, nullable=False),
    column("PARAM_KEY", string(256), nullable=False),
    column("PARAM_VALUE", MEDIUM_TEXT),
    primary_key("TBL_ID", "PARAM_KEY"),
    index("TABLE_PARAMS_N49", "TBL_ID"),
    foreign_key(
        "TABLE_PARAMS_FK1", "TBL_ID", "TBLS.TBL_ID", postgresql_name="TABLE_PARAMS_TBL_ID_fkey", deferrable=True
    ),
)

#: Partition columns of a table.
PARTITION_KEYS = table(
    "PARTITION_KEYS",
    column("TBL_ID", BIGINT, nullable=False),
    column("PKEY_COMMENT", string(4000)),
    column("PKEY_NAME", string(128), nullable=False),
    column("PKEY_TYPE", string(767), nullable=False),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("TBL_ID", "PKEY_NAME"),
    index("PARTITION_KEYS_N49", "TBL_ID"),
    foreign_key(
        "PARTITION_KEYS_FK1", "TBL_ID", "TBLS.TBL_ID", postgresql_name="PARTITION_KEYS_TBL_ID_fkey", deferrable=True
    ),
)

#: What a materialized view was built from, by name; not tied to TBLS.
MV_CREATION_METADATA = table(
    "MV_CREATION_METADATA",
    column("MV_CREATION_METADATA_ID", BIGINT, nullable=False),
    column("CAT_NAME", string(256), nullable=False),
    column("DB_NAME", string(128), nullable=False),
    column("TBL_NAME", string(256), nullable=False),
    column("TXN_LIST", TEXT),
    column("MATERIALIZATION_TIME", BIGINT, nullable=False),
    primary_key("MV_CREATION_METADATA_ID", name="MV_CREATION_METADATA_PK"),
    index("MV_UNIQUE_TABLE", "TBL_NAME", "DB_NAME"),
)

MV_TABLES_USED = table(
    "MV_TABLES_USED",
    column("MV_CREATION_METADATA_ID", BIGINT, nullable=False),
    column("TBL_ID", BIGINT, nullable=False),
    column("INSERTED_COUNT", BIGINT, nullable=False, default=text("0")),
    column("UPDATED_COUNT", BIGINT, nullable=False, default=text("0")),
    column("DELETED_COUNT", BIGINT, nullable=False, default=text("0")),
    primary_key("TBL_ID", "MV_CREATION_METADATA_ID", name="MV_TABLES_USED_PK"),
    foreign_key(
        "MV_TABLES_USED_FK1", "MV_CREATION_METADATA_ID", "MV_CREATION_METADATA.MV_CREATION_METADATA_ID", deferrable=True
    ),
    foreign_key("MV_TABLES_USED_FK2", "TBL_ID", "TBLS.TBL_ID", deferrable=True),
)
