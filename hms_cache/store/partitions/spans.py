"""A table's partitions in ranges of ids, which several processes read in parallel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, or_, select

from hms_cache.batches import batches
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.partitions.partitioned_tables import find_partitioned_table
from hms_cache.store.partitions.reads import PartitionRows, read_partition_page
from hms_cache.store.partitions.selection import empty_values
from hms_cache.store.schema import DBS, PARTITIONS, SDS, TBLS


@lru_cache(maxsize=1)
def _counts() -> Select[Any]:
    return (
        select(TBLS.c.TBL_NAME, func.count())
        .select_from(PARTITIONS.join(TBLS, TBLS.c.TBL_ID == PARTITIONS.c.TBL_ID).join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID))
        .where(DBS.c.CTLG_NAME == bindparam("catalog"), DBS.c.NAME == bindparam("database"))
        .group_by(TBLS.c.TBL_ID, TBLS.c.TBL_NAME)
    )


def partition_counts(database: Database, catalog: str, database_name: str) -> dict[str, int]:
    """Number of partitions by table, for tables of the database (names as stored) that have any. Raises
    DatabaseUnavailable."""
    names = {"catalog": catalog, "database": database_name}
    return run_read(database, lambda connection: dict(connection.execute(_counts(), names).tuples().all()))


def partition_id_spans(database: Database, table: TableName, size: int) -> list[tuple[int, int]]:
    """Ranges of ids (inclusive), ascending, with at most `size` partitions each, which cover all current partitions.

    Raises NoSuchObjectException, DatabaseUnavailable.
    """

    def read(connection: Connection) -> list[int]:
        header = find_partitioned_table(connection, table)
        statement = select(PARTITIONS.c.PART_ID).where(PARTITIONS.c.TBL_ID == header.table_id)
        return sorted(connection.execute(statement).scalars())

    ids = run_read(database, read)
    return [(some[0], some[-1]) for some in batches(ids, size)]


def read_partition_span(database: Database, table: TableName, lowest_id: int, highest_id: int) -> PartitionRows:
    """The partitions with ids in this range (inclusive), of one snapshot, by name.

    Raises NoSuchObjectException, DatabaseUnavailable.
    """

    def read(connection: Connection) -> PartitionRows:
        header = find_partitioned_table(connection, table)
        return read_partition_page(connection, header, lowest_id, highest_id, lambda: empty_values(connection, header))

    return run_read(database, read)


def read_partition_names_span(database: Database, table: TableName, lowest_id: int, highest_id: int) -> list[str]:
    """Names of the partitions with ids in this range (inclusive), ascending.

    Raises NoSuchObjectException, DatabaseUnavailable.
    """

    def read(connection: Connection) -> list[str]:
        header = find_partitioned_table(connection, table)
        statement = select(PARTITIONS.c.PART_NAME).where(
            PARTITIONS.c.TBL_ID == header.table_id, PARTITIONS.c.PART_ID.between(lowest_id, highest_id)
        )
        return sorted(connection.execute(statement).scalars())

    return run_read(database, read)


@lru_cache(maxsize=1)
def _elsewhere() -> Select[Any]:
    # Compares locations as text: another spelling of the default location is returned, too.
    usual = bindparam("prefix", type_=SDS.c.LOCATION.type).concat(PARTITIONS.c.PART_NAME)
    return (
        select(PARTITIONS.c.PART_NAME, SDS.c.LOCATION, PARTITIONS.c.CREATE_TIME)
        .select_from(PARTITIONS.outerjoin(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID))
        .where(
            PARTITIONS.c.TBL_ID == bindparam("table_id"),
            or_(
                SDS.c.LOCATION.is_(None),
                SDS.c.LOCATION != usual,
                PARTITIONS.c.CREATE_TIME < bindparam("created_before_s"),
            ),
        )
    )


def partitions_elsewhere(
    database: Database, table: TableName, location: str, created_before_s: int = 0
) -> list[tuple[str, str | None, int]]:
    """Name, location and creation time of partitions whose location is not the default one below the table's
    `location`, and of those created before `created_before_s` (seconds since 1970). The database scans the table's
    partitions, but only these are transferred.

    Raises NoSuchObjectException, DatabaseUnavailable.
    """

    def read(connection: Connection) -> list[tuple[str, str | None, int]]:
        header = find_partitioned_table(connection, table)
        values = {"prefix": f"{location.rstrip('/')}/", "table_id": header.table_id}
        rows = connection.execute(_elsewhere(), values | {"created_before_s": created_before_s})
        return [(row[0], row[1], row[2] or 0) for row in rows]

    return run_read(database, read)
