"""Functions, stored procedures and packages."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, LONG_TEXT
from hms_cache.store.schema.definition import column, identifier, required, table
from hms_cache.store.schema.keys import foreign_key, index, primary_key
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_4000, string

FUNCS = table(
    "FUNCS",
    *identifier("FUNC_ID"),
    column("CLASS_NAME", STRING_4000),
    required("CREATE_TIME", INTEGER),
    column("DB_ID", BIGINT),
    column("FUNC_NAME", STRING_128),
    required("FUNC_TYPE", INTEGER),
    column("OWNER_NAME", STRING_128),
    column("OWNER_TYPE", string(10)),
    index("FUNCS_N49", "DB_ID"),
    index("UNIQUEFUNCTION", "FUNC_NAME", "DB_ID", is_unique=True),
    foreign_key("FUNCS_FK1", "DB_ID", "DBS.DB_ID"),
)

FUNC_RU = table(
    "FUNC_RU",
    required("FUNC_ID", BIGINT),
    required("RESOURCE_TYPE", INTEGER),
    column("RESOURCE_URI", STRING_4000),
    required("INTEGER_IDX", INTEGER),
    primary_key("FUNC_ID", "INTEGER_IDX"),
    index("FUNC_RU_N49", "FUNC_ID", on="postgresql"),
    foreign_key("FUNC_RU_FK1", "FUNC_ID", "FUNCS.FUNC_ID"),
)

STORED_PROCS = table(
    "STORED_PROCS",
    *identifier("SP_ID"),
    required("CREATE_TIME", INTEGER),
    required("DB_ID", BIGINT),
    required("NAME", STRING_256),
    required("OWNER_NAME", STRING_128),
    required("SOURCE", LONG_TEXT),
    index("UNIQUESTOREDPROC", "NAME", "DB_ID", is_unique=True),
    foreign_key("STOREDPROC_FK1", "DB_ID", "DBS.DB_ID"),
)

PACKAGES = table(
    "PACKAGES",
    *identifier("PKG_ID"),
    required("CREATE_TIME", INTEGER),
    required("DB_ID", BIGINT),
    required("NAME", STRING_256),
    required("OWNER_NAME", STRING_128),
    required("HEADER", LONG_TEXT),
    required("BODY", LONG_TEXT),
    index("UNIQUEPKG", "NAME", "DB_ID", is_unique=True),
    foreign_key("PACKAGES_FK1", "DB_ID", "DBS.DB_ID"),
)
