"""Reads all partitions of a table in pages of bounded size, for loads of large tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, bindparam, func, select

from hms_cache.batches import batches
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import PlannedQuery, fetch_together
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.partitions.partitioned_tables import (
    PartitionedTable,
    find_partitioned_table,
    partitioned_table,
    partitioned_table_query,
)
from hms_cache.store.partitions.reads import PartitionRows, read_partition_page
from hms_cache.store.partitions.selection import empty_values
from hms_cache.store.partitions.table_guesses import TableGuesses
from hms_cache.store.schema import DBS, PARTITIONS, TBLS

SMALLEST_PAGE: Final = 1_000
"""Minimum number of partitions in a page: some 2 MB of rows and texts, five statements."""

LARGEST_PAGE: Final = 5_000
"""Maximum number of partitions in a page: some 10 MB."""

PAGES: Final = 10
"""Between these limits, a page is a tenth of the table, so that the memory for a page does not enlarge the process
permanently."""


@lru_cache(maxsize=1)
def _ids() -> Select[Any]:
    return select(PARTITIONS.c.PART_ID).where(PARTITIONS.c.TBL_ID == bindparam("table_id"))


@lru_cache(maxsize=1)
def _span() -> Select[Any]:
    part_id = PARTITIONS.c.PART_ID
    return select(func.count(), func.min(part_id), func.max(part_id)).where(
        PARTITIONS.c.TBL_ID == bindparam("table_id")
    )


@lru_cache(maxsize=1)
def _bounded_count() -> DirectQuery:
    some = (
        select(PARTITIONS.c.PART_ID)
        .join(TBLS, TBLS.c.TBL_ID == PARTITIONS.c.TBL_ID)
        .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
        .where(
            DBS.c.CTLG_NAME == bindparam("catalog"),
            DBS.c.NAME == bindparam("database"),
            TBLS.c.TBL_NAME == bindparam("table"),
        )
        .limit(bindparam("most", type_=Integer))
        .subquery()
    )
    return DirectQuery(select(func.count()).select_from(some))


def count_partitions(context: StoreContext, table_guesses: TableGuesses, table: TableName, most: int) -> int:
    """See `StoreReads.count_partitions`. Also reads the table's keys: callers read partitions next."""
    queries = [
        PlannedQuery(_bounded_count(), {**table._asdict(), "most": most}, compares_texts=True),
        partitioned_table_query(table),
    ]
    database = context.database

    def read(connection: Connection) -> int:
        counted, found = fetch_together(connection, queries, ends=not database.in_snapshot)
        table_guesses.remember(table, partitioned_table(table, found))
        return int(counted[0][0]) if counted else 0

    return run_read(database, read)


def read_partition_pages(
    context: StoreContext, table: TableName, page_partitions: int | None = None
) -> Iterator[PartitionRows]:
    """All partitions as rows: in pages by id (None: of a size that suits the table), within a page by name.

    Within `Database.snapshot` all pages show one moment, otherwise each shows its own. Raises NoSuchObjectException,
    DatabaseUnavailable.
    """
    header = run_read(context.database, lambda connection: find_partitioned_table(connection, table))
    spans = run_read(context.database, lambda connection: _spans(connection, header, page_partitions))
    empty = _EmptyValues(header)
    for span in spans:
        yield run_read(context.database, partial(_read_page, header=header, span=span, empty=empty))


class _EmptyValues:
    """Values that are stored as empty texts, read once for all pages."""

    def __init__(self, table: PartitionedTable) -> None:
        self._table = table
        self._values: dict[int, dict[int, str]] | None = None

    def read(self, connection: Connection) -> dict[int, dict[int, str]]:
        """The empty values, by partition id and position."""
        if self._values is None:
            self._values = empty_values(connection, self._table)
        return self._values


def _read_page(
    connection: Connection, *, header: PartitionedTable, span: tuple[int, int], empty: _EmptyValues
) -> PartitionRows:
    return read_partition_page(connection, header, *span, lambda: empty.read(connection))


def _spans(connection: Connection, table: PartitionedTable, page_partitions: int | None) -> list[tuple[int, int]]:
    """Lowest and highest id of each page. The ids are read only if there are several pages."""
    parameters = {"table_id": table.table_id}
    count, lowest, highest = connection.execute(_span(), parameters).one()
    size = page_partitions or max(SMALLEST_PAGE, min(LARGEST_PAGE, count // PAGES))
    if count <= size:
        return [(lowest, highest)] if count else []
    ids = sorted(connection.execute(_ids(), parameters).scalars())
    return [(some[0], some[-1]) for some in batches(ids, size)]
