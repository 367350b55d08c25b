"""Calls that need tables which the schemas of older Hive releases lack, or spell in lower case (PostgreSQL)."""

from __future__ import annotations

from sqlalchemy import Table

from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


def require_table(database: Database, table: Table) -> None:
    """Call it before a transaction, since the first question reads the schema over a connection of its own.

    :raises MetaException: the database does not have the table.
    """
    if not database.features.has(table):
        version = database.features.version
        raise MetaException(f"The metastore schema {version} has no table {table.name} as Hive 4.0 has it")
