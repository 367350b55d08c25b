"""Roles and grants of SQL-standard authorization."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column

from hms_cache.store.schema.column_types import BIGINT, SMALLINT, WIDE_INTEGER
from hms_cache.store.schema.definition import column, identifier, required, table
from hms_cache.store.schema.keys import auto_named_key, foreign_key, index, owner, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_767, WORD_128

PRINCIPAL = ("PRINCIPAL_NAME", "PRINCIPAL_TYPE")
GRANTOR = ("GRANTOR", "GRANTOR_TYPE")


def _principal() -> tuple[Column[Any], ...]:
    """Columns of whom something is granted to."""
    return column("PRINCIPAL_NAME", STRING_128), column("PRINCIPAL_TYPE", WORD_128)


def _grantor() -> tuple[Column[Any], ...]:
    """Columns of who granted it, and whether it may be granted on."""
    return required("GRANT_OPTION", SMALLINT), column("GRANTOR", STRING_128), column("GRANTOR_TYPE", WORD_128)


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
    column("GRANTOR", STRING_128),
    column("GRANTOR_TYPE", STRING_128),
    column("PRINCIPAL_NAME", STRING_128),
    column("PRINCIPAL_TYPE", STRING_128),
    column("ROLE_ID", BIGINT),
    index("ROLE_MAP_N49", "ROLE_ID"),
    unique("USERROLEMAPINDEX", "PRINCIPAL_NAME", "ROLE_ID", *GRANTOR),
    auto_named_key("ROLE_MAP_FK1", "ROLE_ID", "ROLES.ROLE_ID"),
)

GLOBAL_PRIVS = table(
    "GLOBAL_PRIVS",
    *identifier("USER_GRANT_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    *_grantor(),
    *_principal(),
    column("USER_PRIV", WORD_128),
    column("AUTHORIZER", STRING_128),
    unique("GLOBALPRIVILEGEINDEX", "AUTHORIZER", *PRINCIPAL, "USER_PRIV", *GRANTOR),
)

DB_PRIVS = table(
    "DB_PRIVS",
    *identifier("DB_GRANT_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    column("DB_ID", BIGINT),
    *_grantor(),
    *_principal(),
    column("DB_PRIV", WORD_128),
    column("AUTHORIZER", STRING_128),
    unique("DBPRIVILEGEINDEX", "AUTHORIZER", "DB_ID", *PRINCIPAL, "DB_PRIV", *GRANTOR),
    *owner("DB_PRIVS", "DB_ID", "DBS.DB_ID"),
)

DC_PRIVS = table(
    "DC_PRIVS",
    *identifier("DC_GRANT_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    column("NAME", STRING_128),
    *_grantor(),
    *_principal(),
    column("DC_PRIV", WORD_128),
    column("AUTHORIZER", STRING_128),
    unique("DCPRIVILEGEINDEX", "AUTHORIZER", "NAME", *PRINCIPAL, "DC_PRIV", *GRANTOR),
    index("DC_PRIVS_N49", "NAME"),
    foreign_key("DC_PRIVS_FK1", "NAME", "DATACONNECTORS.NAME", postgresql_name="DC_PRIVS_DC_ID_fkey"),
)

TBL_PRIVS = table(
    "TBL_PRIVS",
    *identifier("TBL_GRANT_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    *_grantor(),
    *_principal(),
    column("TBL_PRIV", WORD_128),
    column("TBL_ID", BIGINT),
    column("AUTHORIZER", STRING_128),
    index("TABLEPRIVILEGEINDEX", "AUTHORIZER", "TBL_ID", *PRINCIPAL, "TBL_PRIV", *GRANTOR),
    *owner("TBL_PRIVS", "TBL_ID", "TBLS.TBL_ID"),
)

TBL_COL_PRIVS = table(
    "TBL_COL_PRIVS",
    *identifier("TBL_COLUMN_GRANT_ID"),
    column("COLUMN_NAME", STRING_767),
    required("CREATE_TIME", WIDE_INTEGER),
    *_grantor(),
    *_principal(),
    column("TBL_COL_PRIV", WORD_128),
    column("TBL_ID", BIGINT),
    column("AUTHORIZER", STRING_128),
    index(
        "TABLECOLUMNPRIVILEGEINDEX",
        "AUTHORIZER",
        "TBL_ID",
        "COLUMN_NAME",
        *PRINCIPAL,
        "TBL_COL_PRIV",
        *GRANTOR,
        mysql_prefix={"COLUMN_NAME": 128},
    ),
    *owner("TBL_COL_PRIVS", "TBL_ID", "TBLS.TBL_ID"),
)

PART_PRIVS = table(
    "PART_PRIVS",
    *identifier("PART_GRANT_ID"),
    required("CREATE_TIME", WIDE_INTEGER),
    *_grantor(),
    column("PART_ID", BIGINT),
    *_principal(),
    column("PART_PRIV", WORD_128),
    column("AUTHORIZER", STRING_128),
    index("PARTPRIVILEGEINDEX", "AUTHORIZER", "PART_ID", *PRINCIPAL, "PART_PRIV", *GRANTOR),
    *owner("PART_PRIVS", "PART_ID", "PARTITIONS.PART_ID"),
)

PART_COL_PRIVS = table(
    "PART_COL_PRIVS",
    *identifier("PART_COLUMN_GRANT_ID"),
    column("COLUMN_NAME", STRING_767),
    required("CREATE_TIME", WIDE_INTEGER),
    *_grantor(),
    column("PART_ID", BIGINT),
    *_principal(),
    column("PART_COL_PRIV", WORD_128),
    column("AUTHORIZER", STRING_128),
    index(
        "PARTITIONCOLUMNPRIVILEGEINDEX",
        "AUTHORIZER",
        "PART_ID",
        "COLUMN_NAME",
        *PRINCIPAL,
        "PART_COL_PRIV",
        *GRANTOR,
        mysql_prefix={"COLUMN_NAME": 128},
    ),
    *owner("PART_COL_PRIVS", "PART_ID", "PARTITIONS.PART_ID"),
)
