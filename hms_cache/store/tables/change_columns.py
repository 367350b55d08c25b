"""Consequences of changed columns or a new name: column descriptors, partitions, statistics, constraints.

All statements apply to the table as a whole; their number does not depend on the number of partitions. Facts:
`HiveAlterHandler.alterTable`, `deleteTableColumnStats`, `updateOrGetPartitionColumnStats` (Hive 4.0).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, String, case, cast, delete, exists, func, literal, or_, select, update

from hms_cache.config.sections import CatalogSettings
from hms_cache.metadata.column_types import are_columns_included, are_same_columns, is_column_prefix
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.engine.text_conditions import ExactText, begins_with, same_text
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.rows.constraint_rows import move_constraints_to_columns
from hms_cache.store.rows.parameters import (
    COLUMN_STATS_ACCURATE,
    remove_columns_from_accuracy,
    without_claims_about_columns,
)
from hms_cache.store.rows.storage_descriptor_writes import delete_unused_column_descriptors, insert_columns
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import PART_COL_STATS, PARTITION_PARAMS, PARTITIONS, SDS, TAB_COL_STATS
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Table


def replace_columns(transaction: WriteTransaction, row: TableRow, new: Table) -> int | None:
    """The CD_ID of the new columns: the old one if they are equal, otherwise a new one, to which constraints are moved.

    The old one is kept for partitions that share it; `drop_unused_columns` deletes it if there are none.
    """
    old_columns = (row.table.sd.cols if row.table.sd is not None else None) or []
    if row.cd_id is not None and are_same_columns(old_columns, new.sd.cols):
        return row.cd_id
    cd_id = insert_columns(transaction, new.sd.cols)
    if row.cd_id is not None:
        places = {column.name.lower(): place for place, column in enumerate(new.sd.cols)}
        moved = {
            place: places[column.name.lower()]
            for place, column in enumerate(old_columns)
            if column.name.lower() in places
        }
        move_constraints_to_columns(transaction.connection, row.table_id, row.cd_id, cd_id, moved)
    return cd_id


def drop_unused_columns(connection: Connection, row: TableRow, cd_id: int | None) -> None:
    """Deletes the table's former column descriptor unless partitions use it."""
    if row.cd_id is not None and row.cd_id != cd_id:
        delete_unused_column_descriptors(connection, [row.cd_id])


def update_partition_columns(
    connection: Connection, row: TableRow, new: Table, cd_id: int | None, *, cascade: bool, settings: CatalogSettings
) -> None:
    """Applies a change of columns to the partitions (with `cascade`) and their statistics, as Hive does."""
    old_columns, new_columns = row.table.sd.cols or [], new.sd.cols
    if cascade and not are_same_columns(old_columns, new_columns):
        former = (
            connection.execute(
                select(SDS.c.CD_ID).where(_is_descriptor_of_partition(row), SDS.c.CD_ID != cd_id).distinct()
            )
            .scalars()
            .all()
        )
        connection.execute(update(SDS).where(_is_descriptor_of_partition(row)).values(CD_ID=cd_id))
        delete_unused_column_descriptors(connection, [each for each in former if each != row.cd_id])
        _drop_partition_statistics(connection, row, new_columns)
    elif not cascade and not is_column_prefix(old_columns, new_columns):
        if settings.retain_column_statistics_on_column_removal:
            _drop_partition_statistics(connection, row, new_columns)
        elif connection.execute(delete(PART_COL_STATS).where(_is_of_partition(PART_COL_STATS, row))).rowcount:
            _withdraw_claims(connection, row)


def update_table_statistics(connection: Connection, row: TableRow, new: Table, features: SchemaFeatures) -> None:
    """Deletes column statistics of columns that were removed or have another type; the others get the new name."""
    old = row.table
    if is_transactional(old) != is_transactional(new):
        # The table is converted; its statistics are checked by their write id.
        return
    is_renamed = (old.dbName, old.tableName) != (new.dbName, new.tableName)
    statistics = TAB_COL_STATS.c
    mine = statistics.TBL_ID == row.table_id
    if not are_columns_included((old.sd.cols if old.sd is not None else None) or [], new.sd.cols):
        found = connection.execute(select(statistics.COLUMN_NAME, statistics.COLUMN_TYPE).where(mine).distinct()).all()
        gone = _gone(found, new.sd.cols)
        for name, kind in gone:
            connection.execute(
                delete(TAB_COL_STATS).where(mine, statistics.COLUMN_NAME == name, statistics.COLUMN_TYPE == kind)
            )
        remove_columns_from_accuracy(new.parameters, [name for name, _ in gone])
    if is_renamed and features.has(statistics.TABLE_NAME):
        connection.execute(update(TAB_COL_STATS).where(mine).values(DB_NAME=new.dbName, TABLE_NAME=new.tableName))


def rename_partition_statistics(connection: Connection, row: TableRow, new: Table, features: SchemaFeatures) -> None:
    """Stores the table's new name in the partitions' column statistics."""
    if features.has(PART_COL_STATS.c.TABLE_NAME):
        connection.execute(
            update(PART_COL_STATS)
            .where(_is_of_partition(PART_COL_STATS, row))
            .values(DB_NAME=new.dbName, TABLE_NAME=new.tableName)
        )


def move_partition_locations(connection: Connection, row: TableRow, old: Location, new: Location) -> None:
    """Changes the locations of partitions at or inside the table's old directory to the same place in the new one.

    Any spelling is recognized; a location in an object store keeps its scheme, as in Hive.
    """
    column = SDS.c.LOCATION
    text = cast(column, String(4000))
    moved: list[tuple[ColumnElement[bool], ColumnElement[str]]] = []
    for same in dict.fromkeys((old, *old.spellings)):
        goal = new if same == old or not new.is_same_file_system(old) else new.spelled_as(same)
        for prefix in dict.fromkeys((str(same), same.url)):
            lies_there = or_(same_text(column, prefix), begins_with(column, f"{prefix}/"))
            moved.append((lies_there, literal(str(goal), String).concat(func.substr(text, len(prefix) + 1))))
    connection.execute(
        update(SDS)
        .where(_is_descriptor_of_partition(row), or_(*(lies_there for lies_there, _ in moved)))
        .values(LOCATION=case(*moved, else_=text))
    )


def _is_descriptor_of_partition(row: TableRow) -> Any:
    return SDS.c.SD_ID.in_(select(PARTITIONS.c.SD_ID).where(PARTITIONS.c.TBL_ID == row.table_id))


def _is_of_partition(table: Any, row: TableRow) -> Any:
    return table.c.PART_ID.in_(select(PARTITIONS.c.PART_ID).where(PARTITIONS.c.TBL_ID == row.table_id))


def _gone(found: Any, columns: list[FieldSchema]) -> list[tuple[str, str]]:
    """Statistics (name, type) that do not match any column."""
    kept = {(column.name.lower(), column.type.lower()) for column in columns}
    return sorted((name, kind) for name, kind in found if (name.lower(), kind.lower()) not in kept)


def _drop_partition_statistics(connection: Connection, row: TableRow, columns: list[FieldSchema]) -> None:
    """Deletes statistics of removed columns, and the claims about them in the partitions' parameters."""
    statistics = PART_COL_STATS.c
    mine = _is_of_partition(PART_COL_STATS, row)
    if not connection.execute(select(exists().where(mine))).scalar():
        return
    found = connection.execute(select(statistics.COLUMN_NAME, statistics.COLUMN_TYPE).where(mine).distinct()).all()
    gone = _gone(found, columns)
    for name, kind in gone:
        connection.execute(
            delete(PART_COL_STATS).where(mine, statistics.COLUMN_NAME == name, statistics.COLUMN_TYPE == kind)
        )
    if not gone:
        return
    _withdraw_claims(connection, row, {name.lower() for name, _ in gone})


def _withdraw_claims(connection: Connection, row: TableRow, columns: Collection[str] = ()) -> None:
    """Removes the claims about these columns (none named: about all) from the partitions' parameters."""
    claims = (_is_of_partition(PARTITION_PARAMS, row), PARTITION_PARAMS.c.PARAM_KEY == COLUMN_STATS_ACCURATE)
    claim = PARTITION_PARAMS.c.PARAM_VALUE
    texts = connection.execute(select(claim).where(*claims).group_by(claim, ExactText(claim))).scalars().all()
    for text in texts:
        parameters = without_claims_about_columns({COLUMN_STATS_ACCURATE: text}, columns)
        if parameters[COLUMN_STATS_ACCURATE] != text:
            connection.execute(
                update(PARTITION_PARAMS)
                .where(*claims, same_text(claim, text))
                .values(PARAM_VALUE=parameters[COLUMN_STATS_ACCURATE])
            )
