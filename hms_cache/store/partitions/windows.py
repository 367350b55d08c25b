"""Reads partitions of a table that are adjacent by name, to load a part of a very large table.

Databases sort names differently if one continues another with blanks or control characters (`metadata.name_ranges`). So
the statements select slightly more than the range, and the exact selection is made here. If the column's collation
sorts in an entirely different order, it is overridden (`text_orders`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from hms_cache.batches import batches
from hms_cache.metadata.name_ranges import NameRange, bound_below, may_begin_range, range_beginning
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.partitions.pages import LARGEST_PAGE
from hms_cache.store.partitions.partitioned_tables import PartitionedTable, find_partitioned_table
from hms_cache.store.partitions.reads import PartitionRows, read_partition_rows
from hms_cache.store.partitions.selection import SelectedPartitions
from hms_cache.store.partitions.text_orders import NameOrder, name_orders
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.schema import PARTITIONS


def read_partition_window(
    context: StoreContext, table: TableName, within: NameRange, around: str, most: int
) -> tuple[NameRange, Iterator[PartitionRows]] | None:
    """See `StoreReads.read_partition_window`. Returns the range, and its partitions page by page."""

    def find(connection: Connection) -> tuple[PartitionedTable, NameRange, list[tuple[str, int]]] | None:
        header = find_partitioned_table(connection, table)
        begins = range_beginning(around)
        for order in name_orders(connection):
            if not order.holds_for(*within, begins):
                continue
            first = _first(connection, header, order, within, begins, most // 2)
            rows = _rows_from(connection, header, order, NameRange(first, within.end), most)
            if order.holds_for(first, *(name for name, _ in rows)):
                break
        found = _covered(NameRange(first, within.end), rows, most)
        return (header, *found) if found is not None else None

    found = run_read(context.database, find)
    if found is None:
        return None
    header, covered, names = found
    return covered, _pages(context, header, names)


def _first(
    connection: Connection, table: PartitionedTable, order: NameOrder, within: NameRange, around: str, before: int
) -> str:
    """The first name of the window: `before` names before `around`, or the beginning of `within`."""
    if within.end is not None:
        around = min(around, within.end)
    if around <= within.first:
        return within.first
    statement = _above(order, select(PARTITIONS.c.PART_NAME), within.first)
    statement = (
        statement.where(order.column < bindparam("around")).order_by(order.column.desc()).limit(1).offset(before)
    )
    # A requested name may contain characters that the column cannot.
    rows = comparable_rows(connection, statement, {"table_id": table.table_id, "around": around})
    return max(within.first, range_beginning(rows[0][0])) if rows else within.first


def _rows_from(
    connection: Connection, table: PartitionedTable, order: NameOrder, within: NameRange, most: int
) -> Sequence[tuple[str, int]]:
    """Names with ids from there on, preceded by a few smaller ones: `most` + 1, or up to the end of the range."""
    statement = _above(order, select(PARTITIONS.c.PART_NAME, PARTITIONS.c.PART_ID), within.first)
    parameters: dict[str, Any] = {"table_id": table.table_id}
    if within.end is not None:
        statement = statement.where(order.column <= bindparam("end"))
        parameters["end"] = within.end
    return connection.execute(statement.order_by(order.column).limit(most + 1), parameters).tuples().all()


def _covered(
    within: NameRange, rows: Sequence[tuple[str, int]], most: int
) -> tuple[NameRange, list[tuple[str, int]]] | None:
    """The range of the first `most` names, and these names with their ids."""
    names = sorted((name, part_id) for name, part_id in rows if within.holds(name))
    if len(rows) <= most:
        return within, names
    cut = next((one for one, _ in reversed(names) if one > within.first and may_begin_range(one)), None)
    if cut is None:
        return None
    return NameRange(within.first, cut), [one for one in names if one[0] < cut]


def _above(order: NameOrder, statement: Select[Any], first: str) -> Select[Any]:
    statement = statement.where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
    below = bound_below(first)
    return statement.where(order.column >= below) if below else statement


def _pages(context: StoreContext, table: PartitionedTable, names: Sequence[tuple[str, int]]) -> Iterator[PartitionRows]:
    for some in batches(names, LARGEST_PAGE):
        selected = SelectedPartitions([part_id for _, part_id in some], [name for name, _ in some])
        yield run_read(context.database, partial(read_partition_rows, table=table, selected=selected))
