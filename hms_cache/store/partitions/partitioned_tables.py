"""What is needed of a table to read its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from hms_cache.expressions import PartitionKey
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import Plan, PlannedQuery, execute_plan, fetch
from hms_cache.store.schema import DBS, PARTITION_KEYS, TABLE_PARAMS, TBLS
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from hms_cache.values import frozen


@frozen
class PartitionedTable:
    """What is needed of a table to read its partitions. Names as stored."""

    table_id: int
    catalog: str
    database: str
    name: str
    table_type: str | None
    sd_id: int | None
    keys: tuple[PartitionKey, ...]
    is_transactional: bool = False
    """Whether writers allocate write ids."""

    @property
    def key_names(self) -> list[str]:
        """Names of the partition keys, in order."""
        return [name for name, _ in self.keys]


_TABLE = (
    select(
        TBLS.c.TBL_ID,
        DBS.c.NAME,
        TBLS.c.TBL_NAME,
        TBLS.c.TBL_TYPE,
        TBLS.c.SD_ID,
        PARTITION_KEYS.c.PKEY_NAME,
        PARTITION_KEYS.c.PKEY_TYPE,
        PARTITION_KEYS.c.INTEGER_IDX,
        select(TABLE_PARAMS.c.PARAM_VALUE)
        .where(TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID, TABLE_PARAMS.c.PARAM_KEY == "transactional")
        .correlate(TBLS)
        .scalar_subquery()
        .label("TRANSACTIONAL"),
    )
    .select_from(
        DBS.join(TBLS, TBLS.c.DB_ID == DBS.c.DB_ID).outerjoin(PARTITION_KEYS, PARTITION_KEYS.c.TBL_ID == TBLS.c.TBL_ID)
    )
    .where(
        DBS.c.CTLG_NAME == bindparam("catalog"),
        DBS.c.NAME == bindparam("database"),
        TBLS.c.TBL_NAME == bindparam("table"),
    )
)


_TABLE_QUERY = DirectQuery(_TABLE)


def find_partitioned_table(connection: Connection, table: TableName) -> PartitionedTable:
    """Reads the table by name, in one statement. Raises NoSuchObjectException with `get_table`'s text."""
    return execute_plan(connection, partitioned_table_plan(table))


def partitioned_table_plan(table: TableName) -> Plan[PartitionedTable]:
    """Like `find_partitioned_table`, as a plan."""
    found = partitioned_table(table, (yield from fetch(partitioned_table_query(table))))
    if found is None:
        raise NoSuchObjectException(f"{table.as_sent} table not found")
    return found


def partitioned_table_query(table: TableName) -> PlannedQuery:
    """The query whose rows `partitioned_table` parses."""
    return PlannedQuery(_TABLE_QUERY, table._asdict(), compares_texts=True)


def partitioned_table(table: TableName, rows: Sequence[Any]) -> PartitionedTable | None:
    """The table in these rows; None if it does not exist."""
    if not rows:
        return None
    first = rows[0]
    keys = sorted((row[7], row[5], row[6]) for row in rows if row[5] is not None)
    return PartitionedTable(
        first[0],
        table.catalog,
        first[1],
        first[2],
        first[3],
        first[4],
        tuple((name, type_) for _, name, type_ in keys),
        str(first[8]).lower() == "true",
    )
