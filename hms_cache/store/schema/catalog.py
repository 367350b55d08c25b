"""Catalogs, databases and data connectors."""

from __future__ import annotations

from sqlalchemy import text

from hms_cache.store.schema.column_types import BIGINT, INTEGER, WIDE_INTEGER, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table, unique

#: Catalogs. The row `hive` is there from the start.
CTLGS = table(
    "CTLGS",
    column("CTLG_ID", BIGINT, nullable=False),
    column("NAME", string(256)),
    column("DESC", string(4000)),
    column("LOCATION_URI", string(4000), nullable=False),
    column("CREATE_TIME", WIDE_INTEGER),
    primary_key("CTLG_ID"),
    unique("UNIQUE_CATALOG", "NAME", on="mysql"),
    unique("CTLGS_NAME_key", "NAME", on="postgresql"),
)

#: Databases, native and remote.
DBS = table(
    "DBS",
    column("DB_ID", BIGINT, nullable=False),
    column("DESC", string(4000)),
    column("DB_LOCATION_URI", string(4000), nullable=False),
    column("NAME", string(128)),
    column("OWNER_NAME", string(128)),
    column("OWNER_TYPE", string(10)),
    column("CTLG_NAME", string(256), nullable=False, default=text("'hive'")),
    column("CREATE_TIME", WIDE_INTEGER),
    column("DB_MANAGED_LOCATION_URI", string(4000)),
    column("TYPE", string(32), nullable=False, default=text("'NATIVE'")),
    column("DATACONNECTOR_NAME", string(128)),
    column("REMOTE_DBNAME", string(128)),
    primary_key("DB_ID"),
    unique("UNIQUE_DATABASE", "NAME", "CTLG_NAME"),
    foreign_key("CTLG_FK1", "CTLG_NAME", "CTLGS.NAME", postgresql_name="DBS_FK1"),
)

DATABASE_PARAMS = table(
    "DATABASE_PARAMS",
    column("DB_ID", BIGINT, nullable=False),
    column("PARAM_KEY", string(180), nullable=False),
    column("PARAM_VALUE", string(4000)),
    primary_key("DB_ID", "PARAM_KEY"),
    index("DATABASE_PARAMS_N49", "DB_ID"),
    foreign_key(
        "DATABASE_PARAMS_FK1", "DB_ID", "DBS.DB_ID", postgresql_name="DATABASE_PARAMS_DB_ID_fkey", deferrable=True
    ),
)

DATACONNECTORS = table(
    "DATACONNECTORS",
    column("NAME", string(128), nullable=False),
    column("TYPE", string(32), nullable=False),
    column("URL", string(4000), nullable=False),
    column("COMMENT", string(256)),
    column("OWNER_NAME", string(256)),
    column("OWNER_TYPE", string(10)),
    column("CREATE_TIME", INTEGER, nullable=False),
    primary_key("NAME"),
)

DATACONNECTOR_PARAMS = table(
    "DATACONNECTOR_PARAMS",
    column("NAME", string(128), nullable=False),
    column("PARAM_KEY", string(180), nullable=False),
    column("PARAM_VALUE", string(4000)),
    primary_key("NAME", "PARAM_KEY"),
    foreign_key("DATACONNECTOR_NAME_FK1", "NAME", "DATACONNECTORS.NAME", cascade=True),
)
