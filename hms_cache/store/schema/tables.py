"""Tables, views and materialized views."""

from __future__ import annotations

from sqlalchemy import text

from hms_cache.store.schema.column_types import BIGINT, MEDIUM_TEXT, TEXT, WIDE_INTEGER, Flag
from hms_cache.store.schema.definition import (
    all_required,
    column,
    columns,
    fields_table,
    identifier,
    parameters_table,
    required,
    table,
)
from hms_cache.store.schema.keys import auto_named_keys, foreign_key, index, primary_key, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, STRING_4000, string

TBLS = table(
    "TBLS",
    *identifier("TBL_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    column("DB_ID", BIGINT),
    required("LAST_ACCESS_TIME", WIDE_INTEGER),
    column("OWNER", STRING_767),
    column("OWNER_TYPE", string(10)),
    required("RETENTION", WIDE_INTEGER),
    column("SD_ID", BIGINT),
    column("TBL_NAME", STRING_256),
    column("TBL_TYPE", STRING_128),
    *columns(MEDIUM_TEXT, "VIEW_EXPANDED_TEXT", "VIEW_ORIGINAL_TEXT"),
    required("IS_REWRITE_ENABLED", Flag(), default=text("false")),
    column("WRITE_ID", BIGINT, default=text("0")),
    index("TBLS_N49", "DB_ID"),
    index("TBLS_N50", "SD_ID"),
    unique("UNIQUETABLE", "TBL_NAME", "DB_ID"),
    *auto_named_keys("TBLS", "SDS.SD_ID", "DBS.DB_ID"),
)

TABLE_PARAMS = parameters_table("TABLE_PARAMS", "TBL_ID", of="TBLS.TBL_ID")

#: Partition columns of a table.
PARTITION_KEYS = fields_table(
    "PARTITION_KEYS", "TBL_ID", column("PKEY_COMMENT", STRING_4000), prefix="PKEY", of="TBLS.TBL_ID"
)

#: The sources of a materialized view, by name; not linked to TBLS.
MV_CREATION_METADATA = table(
    "MV_CREATION_METADATA",
    required("MV_CREATION_METADATA_ID", BIGINT),
    required("CAT_NAME", STRING_256),
    required("DB_NAME", STRING_128),
    required("TBL_NAME", STRING_256),
    column("TXN_LIST", TEXT),
    required("MATERIALIZATION_TIME", BIGINT),
    primary_key("MV_CREATION_METADATA_ID", name="MV_CREATION_METADATA_PK"),
    index("MV_UNIQUE_TABLE", "TBL_NAME", "DB_NAME"),
)

MV_TABLES_USED = table(
    "MV_TABLES_USED",
    *all_required(BIGINT, "MV_CREATION_METADATA_ID", "TBL_ID"),
    required("INSERTED_COUNT", BIGINT, default=text("0")),
    required("UPDATED_COUNT", BIGINT, default=text("0")),
    required("DELETED_COUNT", BIGINT, default=text("0")),
    primary_key("TBL_ID", "MV_CREATION_METADATA_ID", name="MV_TABLES_USED_PK"),
    foreign_key("MV_TABLES_USED_FK1", "MV_CREATION_METADATA_ID", "MV_CREATION_METADATA.MV_CREATION_METADATA_ID"),
    foreign_key("MV_TABLES_USED_FK2", "TBL_ID", "TBLS.TBL_ID"),
)
