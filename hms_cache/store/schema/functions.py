"""Functions, stored procedures and packages."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, LONG_TEXT, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table

FUNCS = table(
    "FUNCS",
    column("FUNC_ID", BIGINT, nullable=False),
    column("CLASS_NAME", string(4000)),
    column("CREATE_TIME", INTEGER, nullable=False),
    column("DB_ID", BIGINT),
    column("FUNC_NAME", string(128)),
    column("FUNC_TYPE", INTEGER, nullable=False),
    column("OWNER_NAME", string(128)),
    column("OWNER_TYPE", string(10)),
    primary_key("FUNC_ID"),
    index("FUNCS_N49", "DB_ID"),
    index("UNIQUEFUNCTION", "FUNC_NAME", "DB_ID", is_unique=True),
    foreign_key("FUNCS_FK1", "DB_ID", "DBS.DB_ID", deferrable=True),
)

FUNC_RU = table(
    "FUNC_RU",
    column("FUNC_ID", BIGINT, nullable=False),
    column("RESOURCE_TYPE", INTEGER, nullable=False),
    column("RESOURCE_URI", string(4000)),
    column("INTEGER_IDX", INTEGER, nullable=False),
    primary_key("FUNC_ID", "INTEGER_IDX"),
    index("FUNC_RU_N49", "FUNC_ID", on="postgresql"),
    foreign_key("FUNC_RU_FK1", "FUNC_ID", "FUNCS.FUNC_ID", deferrable=True),
)

STORED_PROCS = table(
    "STORED_PROCS",
    column("SP_ID", BIGINT, nullable=False),
    column("CREATE_TIME", INTEGER, nullable=False),
    column("DB_ID", BIGINT, nullable=False),
    column("NAME", string(256), nullable=False),
    column("OWNER_NAME", string(128), nullable=False),
    column("SOURCE", LONG_TEXT, nullable=False),
    primary_key("SP_ID"),
    index("UNIQUESTOREDPROC", "NAME", "DB_ID", is_unique=True),
    foreign_key("STOREDPROC_FK1", "DB_ID", "DBS.DB_ID", deferrable=True),
)

PACKAGES = table(
    "PACKAGES",
    column("PKG_ID", BIGINT, nullable=False),
    column("CREATE_TIME", INTEGER, nullable=False),
    column("DB_ID", BIGINT, nullable=False),
    column("NAME", string(256), nullable=False),
    column("OWNER_NAME", string(128), nullable=False),
    column("HEADER", LONG_TEXT, nullable=False),
    column("BODY", LONG_TEXT, nullable=False),
    primary_key("PKG_ID"),
    index("UNIQUEPKG", "NAME", "DB_ID", is_unique=True),
    foreign_key("PACKAGES_FK1", "DB_ID", "DBS.DB_ID", deferrable=True),
)
