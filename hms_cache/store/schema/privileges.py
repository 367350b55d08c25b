"""Roles and grants of SQL-standard authorization."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, SMALLINT, WIDE_INTEGER, string, word_string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table, unique

ROLES = table(
    "ROLES",
    column("ROLE_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("OWNER_NAME", string(128)),
    column("ROLE_NAME", string(128)),
    primary_key("ROLE_ID"),
    unique("ROLEENTITYINDEX", "ROLE_NAME"),
)

ROLE_MAP = table(
    "ROLE_MAP",
    column("ROLE_GRANT_ID", BIGINT, nullable=False),
    column("ADD_TIME", WIDE_INTEGER, nullable=False),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", string(128)),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", string(128)),
    column("ROLE_ID", BIGINT),
    primary_key("ROLE_GRANT_ID"),
    index("ROLE_MAP_N49", "ROLE_ID"),
    unique("USERROLEMAPINDEX", "PRINCIPAL_NAME", "ROLE_ID", "GRANTOR", "GRANTOR_TYPE"),
    foreign_key("ROLE_MAP_FK1", "ROLE_ID", "ROLES.ROLE_ID", postgresql_name="ROLE_MAP_ROLE_ID_fkey", deferrable=True),
)

GLOBAL_PRIVS = table(
    "GLOBAL_PRIVS",
    column("USER_GRANT_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("USER_PRIV", word_string(128)),
    column("AUTHORIZER", string(128)),
    primary_key("USER_GRANT_ID"),
    unique(
        "GLOBALPRIVILEGEINDEX", "AUTHORIZER", "PRINCIPAL_NAME", "PRINCIPAL_TYPE", "USER_PRIV", "GRANTOR", "GRANTOR_TYPE"
    ),
)

DB_PRIVS = table(
    "DB_PRIVS",
    column("DB_GRANT_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("DB_ID", BIGINT),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("DB_PRIV", word_string(128)),
    column("AUTHORIZER", string(128)),
    primary_key("DB_GRANT_ID"),
    unique(
        "DBPRIVILEGEINDEX",
        "AUTHORIZER",
        "DB_ID",
        "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE",
        "DB_PRIV",
        "GRANTOR",
        "GRANTOR_TYPE",
    ),
    index("DB_PRIVS_N49", "DB_ID"),
    foreign_key("DB_PRIVS_FK1", "DB_ID", "DBS.DB_ID", postgresql_name="DB_PRIVS_DB_ID_fkey", deferrable=True),
)

DC_PRIVS = table(
    "DC_PRIVS",
    column("DC_GRANT_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("NAME", string(128)),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("DC_PRIV", word_string(128)),
    column("AUTHORIZER", string(128)),
    primary_key("DC_GRANT_ID"),
    unique(
        "DCPRIVILEGEINDEX",
        "AUTHORIZER",
        "NAME",
        "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE",
        "DC_PRIV",
        "GRANTOR",
        "GRANTOR_TYPE",
    ),
    index("DC_PRIVS_N49", "NAME"),
    foreign_key("DC_PRIVS_FK1", "NAME", "DATACONNECTORS.NAME", postgresql_name="DC_PRIVS_DC_ID_fkey", deferrable=True),
)

TBL_PRIVS = table(
    "TBL_PRIVS",
    column("TBL_GRANT_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("TBL_PRIV", word_string(128)),
    column("TBL_ID", BIGINT),
    column("AUTHORIZER", string(128)),
    primary_key("TBL_GRANT_ID"),
    index(
        "TABLEPRIVILEGEINDEX",
        "AUTHORIZER",
        "TBL_ID",
        "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE",
        "TBL_PRIV",
        "GRANTOR",
        "GRANTOR_TYPE",
    ),
    index("TBL_PRIVS_N49", "TBL_ID"),
    foreign_key("TBL_PRIVS_FK1", "TBL_ID", "TBLS.TBL_ID", postgresql_name="TBL_PRIVS_TBL_ID_fkey", deferrable=True),
)

TBL_COL_PRIVS = table(
    "TBL_COL_PRIVS",
    column("TBL_COLUMN_GRANT_ID", BIGINT, nullable=False),
    column("COLUMN_NAME", string(767)),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("TBL_COL_PRIV", word_string(128)),
    column("TBL_ID", BIGINT),
    column("AUTHORIZER", string(128)),
    primary_key("TBL_COLUMN_GRANT_ID"),
    index(
        "TABLECOLUMNPRIVILEGEINDEX",
        "AUTHORIZER",
        "TBL_ID",
        "COLUMN_NAME",
        "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE",
        "TBL_COL_PRIV",
        "GRANTOR",
        "GRANTOR_TYPE",
        mysql_prefix={"COLUMN_NAME": 128},
    ),
    index("TBL_COL_PRIVS_N49", "TBL_ID"),
    foreign_key(
        "TBL_COL_PRIVS_FK1", "TBL_ID", "TBLS.TBL_ID", postgresql_name="TBL_COL_PRIVS_TBL_ID_fkey", deferrable=True
    ),
)

PART_PRIVS = table(
    "PART_PRIVS",
    column("PART_GRANT_ID", BIGINT, nullable=False),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PART_ID", BIGINT),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("PART_PRIV", word_string(128)),
    column("AUTHORIZER", string(128)),
    primary_key("PART_GRANT_ID"),
    index(
        "PARTPRIVILEGEINDEX",
        "AUTHORIZER",
        "PART_ID",
        "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE",
        "PART_PRIV",
        "GRANTOR",
        "GRANTOR_TYPE",
    ),
    index("PART_PRIVS_N49", "PART_ID"),
    foreign_key(
        "PART_PRIVS_FK1", "PART_ID", "PARTITIONS.PART_ID", postgresql_name="PART_PRIVS_PART_ID_fkey", deferrable=True
    ),
)

PART_COL_PRIVS = table(
    "PART_COL_PRIVS",
    column("PART_COLUMN_GRANT_ID", BIGINT, nullable=False),
    column("COLUMN_NAME", string(767)),
    column("CREATE_TIME", WIDE_INTEGER, nullable=False),
    column("GRANT_OPTION", SMALLINT, nullable=False),
    column("GRANTOR", string(128)),
    column("GRANTOR_TYPE", word_string(128)),
    column("PART_ID", BIGINT),
    column("PRINCIPAL_NAME", string(128)),
    column("PRINCIPAL_TYPE", word_string(128)),
    column("PART_COL_PRIV", word_string(128)),
    column("AUTHORIZER", string(128)),
    primary_key("PART_COLUMN_GRANT_ID"),
    index(
        "PARTITIONCOLUMNPRIVILEGEINDEX",
        "AUTHORIZER",
        "PART_ID",
        "COLUMN_NAME",
        "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE",
        "PART_COL_PRIV",
        "GRANTOR",
        "GRANTOR_TYPE",
        mysql_prefix={"COLUMN_NAME": 128},
    ),
    index("PART_COL_PRIVS_N49", "PART_ID"),
    foreign_key(
        "PART_COL_PRIVS_FK1",
        "PART_ID",
        "PARTITIONS.PART_ID",
        postgresql_name="PART_COL_PRIVS_PART_ID_fkey",
        deferrable=True,
    ),
)
