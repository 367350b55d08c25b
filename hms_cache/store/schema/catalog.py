"""Catalogs, databases and data connectors."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from hms_cache.store.schema.column_types import BIGINT, INTEGER, WIDE_INTEGER
from hms_cache.store.schema.definition import column, columns, identifier, required, table
from hms_cache.store.schema.keys import foreign_key, owner, primary_key, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_4000, string


def _parameters(column_of_owner: str, column_type: TypeEngine[Any]) -> tuple[SchemaItem, ...]:
    """Columns and primary key of parameters with shorter keys and values than in `parameters_table`."""
    return (
        required(column_of_owner, column_type),
        required("PARAM_KEY", string(180)),
        column("PARAM_VALUE", STRING_4000),
        primary_key(column_of_owner, "PARAM_KEY"),
    )


#: Catalogs. The row `hive` always exists.
CTLGS = table(
    "CTLGS",
    *identifier("CTLG_ID"),
    column("NAME", STRING_256),
    column("DESC", STRING_4000),
    required("LOCATION_URI", STRING_4000),
    column("CREATE_TIME", WIDE_INTEGER),
    unique("UNIQUE_CATALOG", "NAME", on="mysql"),
    unique("CTLGS_NAME_key", "NAME", on="postgresql"),
)

#: Databases, native and remote.
DBS = table(
    "DBS",
    *identifier("DB_ID"),
    column("DESC", STRING_4000),
    required("DB_LOCATION_URI", STRING_4000),
    *columns(STRING_128, "NAME", "OWNER_NAME"),
    column("OWNER_TYPE", string(10)),
    required("CTLG_NAME", STRING_256, default=text("'hive'")),
    column("CREATE_TIME", WIDE_INTEGER),
    column("DB_MANAGED_LOCATION_URI", STRING_4000),
    required("TYPE", string(32), default=text("'NATIVE'")),
    *columns(STRING_128, "DATACONNECTOR_NAME", "REMOTE_DBNAME"),
    unique("UNIQUE_DATABASE", "NAME", "CTLG_NAME"),
    foreign_key("CTLG_FK1", "CTLG_NAME", "CTLGS.NAME", postgresql_name="DBS_FK1", deferrable=False),
)

DATABASE_PARAMS = table(
    "DATABASE_PARAMS",
    *_parameters("DB_ID", BIGINT),
    *owner("DATABASE_PARAMS", "DB_ID", "DBS.DB_ID"),
)

DATACONNECTORS = table(
    "DATACONNECTORS",
    required("NAME", STRING_128),
    required("TYPE", string(32)),
    required("URL", STRING_4000),
    *columns(STRING_256, "COMMENT", "OWNER_NAME"),
    column("OWNER_TYPE", string(10)),
    required("CREATE_TIME", INTEGER),
    primary_key("NAME"),
)

DATACONNECTOR_PARAMS = table(
    "DATACONNECTOR_PARAMS",
    *_parameters("NAME", STRING_128),
    foreign_key("DATACONNECTOR_NAME_FK1", "NAME", "DATACONNECTORS.NAME", cascade=True, deferrable=False),
)
