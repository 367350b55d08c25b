"""Functions, stored procedures and packages."""

from __future__ import annotations

from sqlalchemy import Index, Table

from hms_cache.store.schema.column_types import BIGINT, INTEGER, LONG_TEXT
from hms_cache.store.schema.definition import all_required, column, identifier, list_table, required, table
from hms_cache.store.schema.keys import SidedForeignKey, foreign_key, index
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


def _owner(table: str, column: str, target: str) -> tuple[Index, SidedForeignKey]:
    """Like `owner`, but only PostgreSQL has the index, and the foreign key has the same name on both."""
    return index(f"{table}_N49", column, on="postgresql"), foreign_key(f"{table}_FK1", column, target)


def _code(name: str, key: str, *texts: str, unique_index: str, foreign_key_name: str) -> Table:
    """A table of code that belongs to a database.

    :param key: the column of its ids.
    :param texts: the columns of the code.
    """
    return table(
        name,
        *identifier(key),
        required("CREATE_TIME", INTEGER),
        required("DB_ID", BIGINT),
        required("NAME", STRING_256),
        required("OWNER_NAME", STRING_128),
        *all_required(LONG_TEXT, *texts),
        index(unique_index, "NAME", "DB_ID", is_unique=True),
        foreign_key(foreign_key_name, "DB_ID", "DBS.DB_ID"),
    )


FUNC_RU = list_table(
    "FUNC_RU",
    "FUNC_ID",
    required("RESOURCE_TYPE", INTEGER),
    column("RESOURCE_URI", STRING_4000),
    of="FUNCS.FUNC_ID",
    position=INTEGER,
    keys=_owner,
)

STORED_PROCS = _code(
    "STORED_PROCS", "SP_ID", "SOURCE", unique_index="UNIQUESTOREDPROC", foreign_key_name="STOREDPROC_FK1"
)

PACKAGES = _code("PACKAGES", "PKG_ID", "HEADER", "BODY", unique_index="UNIQUEPKG", foreign_key_name="PACKAGES_FK1")
