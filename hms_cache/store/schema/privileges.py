"""Roles and grants of SQL-standard authorization."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Table

from hms_cache.store.schema.column_types import BIGINT, SMALLINT, WIDE_INTEGER
from hms_cache.store.schema.definition import column, columns, identifier, required, table
from hms_cache.store.schema.keys import auto_named_key, foreign_key, index, owner, unique
from hms_cache.store.schema.text_types import LATIN1_128, STRING_128, STRING_767

PRINCIPAL = ("PRINCIPAL_NAME", "PRINCIPAL_TYPE")
GRANTOR = ("GRANTOR", "GRANTOR_TYPE")

_AFTER_ID = {"TBL_ID": "AUTHORIZER", "PART_ID": "PRINCIPAL_NAME"}
"""For tables of grants on tables and partitions: the column after the object's id."""


def _grant(right: str, *, on: Column[Any] | None = None, before: str = "") -> tuple[Column[Any], ...]:
    """Columns of a grant.

    :param right: the column of what is granted.
    :param on: the column of the object; None where there is only one.
    :param before: the column that follows it.
    """
    found: list[Column[Any]] = [
        required("CREATE_TIME", WIDE_INTEGER),
        required("GRANT_OPTION", SMALLINT),
        column("GRANTOR", STRING_128),
        column("GRANTOR_TYPE", LATIN1_128),
        column("PRINCIPAL_NAME", STRING_128),
        column("PRINCIPAL_TYPE", LATIN1_128),
        column(right, LATIN1_128),
        column("AUTHORIZER", STRING_128),
    ]
    if on is not None:
        found.insert([one.name for one in found].index(before), on)
    return tuple(found)


def _key(right: str, *on: str) -> tuple[str, ...]:
    """The columns that identify a grant. `on`: those of the object."""
    return "AUTHORIZER", *on, *PRINCIPAL, right, *GRANTOR


def _grants(name: str, key: str, index_name: str, *, of: str, of_columns: bool = False) -> Table:
    """Grants on tables or partitions, or on their columns.

    :param key: the column of its ids.
    :param of: ``TABLE.COLUMN`` of the object.
    """
    right, object_id = name.removesuffix("S"), of.partition(".")[2]
    column_names, prefix = (("COLUMN_NAME",), {"COLUMN_NAME": 128}) if of_columns else ((), None)
    return table(
        name,
        *identifier(key),
        *columns(STRING_767, *column_names),
        *_grant(right, on=column(object_id, BIGINT), before=_AFTER_ID[object_id]),
        index(index_name, *_key(right, object_id, *column_names), mysql_prefix=prefix),
        *owner(name, object_id, of),
    )


ROLES = table(
    "ROLES",
    *identifier("ROLE_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    column("OWNER_NAME", STRING_128),
    column("ROLE_NAME", STRING_128),
    unique("ROLEENTITYINDEX", "ROLE_NAME"),
)

ROLE_MAP = table(
    "ROLE_MAP",
    *identifier("ROLE_GRANT_ID"),
    required("ADD_TIME", WIDE_INTEGER),
    required("GRANT_OPTION", SMALLINT),
    *columns(STRING_128, *GRANTOR, *PRINCIPAL),
    column("ROLE_ID", BIGINT),
    index("ROLE_MAP_N49", "ROLE_ID"),
    unique("USERROLEMAPINDEX", "PRINCIPAL_NAME", "ROLE_ID", *GRANTOR),
    auto_named_key("ROLE_MAP_FK1", "ROLE_ID", "ROLES.ROLE_ID"),
)

GLOBAL_PRIVS = table(
    "GLOBAL_PRIVS",
    *identifier("USER_GRANT_ID"),
    *_grant("USER_PRIV"),
    unique("GLOBALPRIVILEGEINDEX", *_key("USER_PRIV")),
)

DB_PRIVS = table(
    "DB_PRIVS",
    *identifier("DB_GRANT_ID"),
    *_grant("DB_PRIV", on=column("DB_ID", BIGINT), before="GRANT_OPTION"),
    unique("DBPRIVILEGEINDEX", *_key("DB_PRIV", "DB_ID")),
    *owner("DB_PRIVS", "DB_ID", "DBS.DB_ID"),
)

DC_PRIVS = table(
    "DC_PRIVS",
    *identifier("DC_GRANT_ID"),
    *_grant("DC_PRIV", on=column("NAME", STRING_128), before="GRANT_OPTION"),
    unique("DCPRIVILEGEINDEX", *_key("DC_PRIV", "NAME")),
    index("DC_PRIVS_N49", "NAME"),
    foreign_key("DC_PRIVS_FK1", "NAME", "DATACONNECTORS.NAME", postgresql_name="DC_PRIVS_DC_ID_fkey"),
)

TBL_PRIVS = _grants("TBL_PRIVS", "TBL_GRANT_ID", "TABLEPRIVILEGEINDEX", of="TBLS.TBL_ID")

TBL_COL_PRIVS = _grants(
    "TBL_COL_PRIVS", "TBL_COLUMN_GRANT_ID", "TABLECOLUMNPRIVILEGEINDEX", of="TBLS.TBL_ID", of_columns=True
)

PART_PRIVS = _grants("PART_PRIVS", "PART_GRANT_ID", "PARTPRIVILEGEINDEX", of="PARTITIONS.PART_ID")

PART_COL_PRIVS = _grants(
    "PART_COL_PRIVS", "PART_COLUMN_GRANT_ID", "PARTITIONCOLUMNPRIVILEGEINDEX", of="PARTITIONS.PART_ID", of_columns=True
)
