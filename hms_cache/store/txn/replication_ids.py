"""The parameter `repl.last.id`: up to which event of its source an object has been replicated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, insert, select

from hms_cache.store.names import DEFAULT_CATALOG
from hms_cache.store.schema import DATABASE_PARAMS, DBS, PARTITION_PARAMS, PARTITIONS, TABLE_PARAMS, TBLS
from hms_cache.store.txn.names import plain_database, plain_table
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, ReplLastIdInfo

LAST_REPLICATED_ID_KEY = "repl.last.id"


def set_last_replicated_id(connection: Connection, info: ReplLastIdInfo) -> None:
    """Set the parameter on a database, and on its table and that table's partitions if they are named.

    Raises MetaException for a database or table that does not exist.
    """
    catalog, database = info.catalog or DEFAULT_CATALOG, plain_database(info.database)
    database_id = connection.execute(
        select(DBS.c.DB_ID).where(DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog)
    ).scalar()
    if database_id is None:
        raise MetaException(f"DB with name {database} does not exist in catalog {catalog}")
    _set(connection, DATABASE_PARAMS, DATABASE_PARAMS.c.DB_ID, [database_id], info.lastReplId)
    if not info.table:
        return
    table = plain_table(info.table)
    table_id = connection.execute(
        select(TBLS.c.TBL_ID).where(TBLS.c.DB_ID == database_id, TBLS.c.TBL_NAME == table)
    ).scalar()
    if table_id is None:
        raise MetaException(f"Table with name {table} does not exist in db {database}")
    _set(connection, TABLE_PARAMS, TABLE_PARAMS.c.TBL_ID, [table_id], info.lastReplId)
    if info.partitionList:
        parts = PARTITIONS.c
        ids = connection.execute(
            select(parts.PART_ID).where(parts.TBL_ID == table_id, parts.PART_NAME.in_(list(info.partitionList)))
        )
        _set(connection, PARTITION_PARAMS, PARTITION_PARAMS.c.PART_ID, list(ids.scalars()), info.lastReplId)


def _set(connection: Connection, table: Table, owner: Column[Any], owner_ids: Sequence[int], value: int) -> None:
    if not owner_ids:
        return
    connection.execute(delete(table).where(owner.in_(list(owner_ids)), table.c.PARAM_KEY == LAST_REPLICATED_ID_KEY))
    connection.execute(
        insert(table),
        [
            {owner.name: owner_id, "PARAM_KEY": LAST_REPLICATED_ID_KEY, "PARAM_VALUE": str(value)}
            for owner_id in owner_ids
        ],
    )
