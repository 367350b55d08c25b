"""Truncates tables and partitions. Facts: `HMSHandler.truncateTableInternal`, `updateStatsForTruncate` (Hive 4.0)."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from functools import partial

from sqlalchemy import func, select, update

from hms_cache.batches import batches
from hms_cache.metadata.names import qualified
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.environment import ANY_WRITER, Writer
from hms_cache.store.contract.partitions import AllPartitions, ByNames
from hms_cache.store.engine.bulk_writes import ParameterChange, change_parameters
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.file_access import OUTSIDE, FileAccess
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import select_for_write
from hms_cache.store.partitions.shared_directories import locations_of_other_partitions
from hms_cache.store.rows.parameters import (
    SUPPORTED_STATISTICS,
    clear_column_statistics_accurate,
    put_directory_statistics,
    set_basic_statistics_accurate,
)
from hms_cache.store.rows.statistics_validity import are_statistics_valid, check_statistics_change
from hms_cache.store.rows.storage_descriptor_writes import write_parameters
from hms_cache.store.rows.table_kinds import is_data_owned, is_transactional, is_trash_skipped
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import PARTITION_PARAMS, PARTITIONS, TABLE_PARAMS, TBLS
from hms_cache.store.shared_locations import partition_locations_in_use
from hms_cache.store.soft_drops import hide_older_files
from hms_cache.store.statistics.writes import aborted_writers
from hms_cache.store.warehouse import AllowedLocation, DirectoryStatistics, Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException, Partition, Table

_LOG = logging.getLogger(__name__)

_Left = dict[str, MetaException]
"""Locations that still have files after the commit, and the errors."""


class TableTruncation(PartOfStore):
    """`truncate_table`."""

    def truncate_table(
        self, name: TableName, partition_names: Sequence[str] | None = None, *, writer: Writer = ANY_WRITER
    ) -> None:
        """See `TableWrites.truncate_table`. Names of partitions that do not exist are ignored, as in Hive.

        If the table has no partition keys, all names are ignored. Files are deleted after the commit. If that fails,
        the call fails, as in Hive, which deletes them first: otherwise rows could still be read after a successful
        call.
        """
        left: _Left = {}

        def truncate(transaction: WriteTransaction) -> None:
            row = lock_table(transaction.connection, *name)
            if row is None:
                raise NoSuchObjectException(f"{name.as_sent} table not found")
            if not writer.options.keeps_truncated_files:
                if not is_data_owned(row.table):
                    raise MetaException(f"Cannot truncate non-managed table {name}.")
            elif is_transactional(row.table) and writer.given_write_id is None:
                raise MetaException(f"Cannot hide the files of transactional table {name}: no write id is given")
            if row.table.partitionKeys:
                self._truncate_partitions(transaction, row, partition_names, writer, left)
            elif partition_names is None:
                self._truncate_table(transaction, row, writer, left)

        run_write(self._database, truncate)
        if left:
            self._withdraw_claims(name, partition_names, left)
            place, error = next(iter(left.items()))
            others = f" (nor all at {len(left) - 1} other places)" if len(left) > 1 else ""
            raise MetaException(
                f"{name} counts as truncated, but not all files at {place} could be deleted{others}; "
                f"truncate it again: {error.message}"
            ) from error

    def _withdraw_claims(self, name: TableName, partition_names: Sequence[str] | None, left: Collection[str]) -> None:
        """Removes the claims about statistics of objects that were counted as empty but still have files."""

        def withdraw_claims(transaction: WriteTransaction) -> None:
            row = lock_table(transaction.connection, *name)
            if row is None:
                return
            if row.table.partitionKeys:
                self._withdraw_of_partitions(transaction, row, partition_names, left)
            elif row.table.sd is not None and row.table.sd.location in left:
                after = copied(row.table)
                set_basic_statistics_accurate(after.parameters, False)
                self._store_table(transaction, row, after)
                transaction.append_event(self._context.messages.build_alter_table(row.table, after))

        try:
            run_write(self._database, withdraw_claims)
        except Exception:
            _LOG.exception("%s is recorded as empty but is not: its exact statistics could not be withdrawn", name)

    def _withdraw_of_partitions(
        self,
        transaction: WriteTransaction,
        row: TableRow,
        partition_names: Sequence[str] | None,
        left: Collection[str],
    ) -> None:
        changes = []
        parameter_changes = []
        rows = self._rows(transaction, row, partition_names)
        for part_id, before in zip(rows.part_ids, partitions_of_rows(rows), strict=True):
            if before.sd is not None and before.sd.location in left:
                after = copy.copy(before)
                after.parameters = dict(before.parameters)
                set_basic_statistics_accurate(after.parameters, False)
                changes.append((before, after))
                parameter_changes.append(ParameterChange(part_id, before.parameters, after.parameters))
        change_parameters(transaction.connection, PARTITION_PARAMS, "PART_ID", parameter_changes)
        self._log_partitions(transaction, row, changes)

    def _truncate_table(self, transaction: WriteTransaction, row: TableRow, writer: Writer, left: _Left) -> None:
        before, after = row.table, copied(row.table)
        connection, write_id = transaction.connection, writer.given_write_id
        reset_statistics(after.parameters)
        aborted = aborted_writers(connection, before, [before.writeId])
        _correct_claims(before, before.writeId, before.parameters, after.parameters, writer, aborted)
        after.parameters = dict(sorted(after.parameters.items()))
        self._store_table(transaction, row, after)
        if write_id is not None and writer.valid_write_ids is not None and is_transactional(before):
            after.writeId = write_id
            if features_of(connection).has_write_ids_of_tables:
                connection.execute(update(TBLS).where(TBLS.c.TBL_ID == row.table_id).values(WRITE_ID=write_id))
        self._empty(transaction, row, [_place_of(before, "the table")], writer, left)
        transaction.append_event(
            self._context.messages.build_alter_table(before, after, is_truncate=True, write_id=writer.event_write_id)
        )

    @staticmethod
    def _store_table(transaction: WriteTransaction, row: TableRow, after: Table) -> None:
        before = row.table.parameters
        write_parameters(transaction.connection, TABLE_PARAMS, "TBL_ID", row.table_id, before, after.parameters)

    def _rows(self, transaction: WriteTransaction, row: TableRow, names: Sequence[str] | None) -> PartitionRows:
        """The partitions with these names; None: all partitions."""
        header = partitioned(row)
        selection = AllPartitions() if names is None else ByNames(tuple(names))
        selected = select_for_write(transaction.connection, header, selection, self._context)
        return read_partition_rows(transaction.connection, header, selected)

    def _truncate_partitions(
        self,
        transaction: WriteTransaction,
        row: TableRow,
        names: Sequence[str] | None,
        writer: Writer,
        left: _Left,
    ) -> None:
        connection, write_id = transaction.connection, writer.given_write_id
        rows = self._rows(transaction, row, names)
        befores = partitions_of_rows(rows)
        if not befores:
            return
        changes = []
        parameter_changes = []
        is_written = write_id is not None and writer.valid_write_ids is not None and is_transactional(row.table)
        aborted = aborted_writers(connection, row.table, rows.write_ids)
        for part_id, before in zip(rows.part_ids, befores, strict=True):
            after = copy.copy(before)
            after.parameters = dict(before.parameters)
            if not is_transactional(row.table):
                # Hive reads the emptied directory of a partition; the result is known here.
                put_directory_statistics(after.parameters, DirectoryStatistics(0, 0))
            reset_statistics(after.parameters)
            _correct_claims(row.table, before.writeId, before.parameters, after.parameters, writer, aborted)
            if is_written and write_id is not None:
                after.writeId = write_id
            changes.append((before, after))
            parameter_changes.append(ParameterChange(part_id, before.parameters, after.parameters))
        places = [_place_of(row.table, f"partition [{', '.join(each.values)}]", each) for each in befores]
        if names is not None and not writer.options.keeps_truncated_files:
            self._require_no_others(transaction, row, rows, places)
        self._empty(transaction, row, places, writer, left)
        change_parameters(connection, PARTITION_PARAMS, "PART_ID", parameter_changes)
        if is_written and features_of(connection).has_write_ids_of_tables:
            ids = rows.part_ids
            for some in batches(ids, 5000):
                connection.execute(update(PARTITIONS).where(PARTITIONS.c.PART_ID.in_(some)).values(WRITE_ID=write_id))
        self._log_partitions(transaction, row, changes, is_truncate=True, write_id=writer.event_write_id)

    def _log_partitions(
        self,
        transaction: WriteTransaction,
        row: TableRow,
        changes: Sequence[tuple[Partition, Partition]],
        *,
        is_truncate: bool = False,
        write_id: int = -1,
    ) -> None:
        messages = self._context.messages
        if self._context.settings.events.single_alter_partitions_event:
            afters = [after for _, after in changes]
            events = messages.build_alter_partitions(row.table, afters, is_truncate=is_truncate)
        else:
            events = messages.build_alter_partition_each(row.table, changes, is_truncate=is_truncate, write_id=write_id)
        for event in events:
            transaction.append_event(event)

    def _empty(
        self,
        transaction: WriteTransaction,
        row: TableRow,
        locations: Sequence[str],
        writer: Writer,
        left: _Left,
    ) -> None:
        """Plans to delete the files. If the client wants them kept, hides them from the readers of a transactional
        table; from others, it has removed the rows itself.

        Locations that could not be emptied are added to `left`.

        Raises MetaException if this server must not delete there, or if another object uses a directory: then it must
        not be emptied, and the truncation must not be reported as done.
        """
        warehouse, write_id = self._context.warehouse, writer.given_write_id
        if not warehouse.manages_files:
            return
        if writer.options.keeps_truncated_files and not is_transactional(row.table):
            return
        files = FileAccess(self._context, transaction.connection)
        files.check_texts(locations)
        directories = [self._allowed(files, row, text) for text in locations]
        self._require_unshared(transaction, row, [directory.location for directory in directories])
        changes = warehouse.changes(transaction)
        for text, directory in zip(locations, directories, strict=True):
            if writer.options.keeps_truncated_files and write_id is not None:
                hide_older_files(changes, directory, write_id, "truncated")
            else:
                changes.delete_contents_after_commit(
                    directory, skip_trash=is_trash_skipped(row.table), failed=partial(left.__setitem__, text)
                )

    def _require_no_others(
        self, transaction: WriteTransaction, row: TableRow, rows: PartitionRows, places: Sequence[str]
    ) -> None:
        """Raises MetaException for a partition at its table's directory, or whose directory contains another one: the
        directory has rows of partitions that stay."""
        table, warehouse = row.table, self._context.warehouse
        if not warehouse.manages_files or table.sd is None or not table.sd.location:
            return
        own = warehouse.location(table.sd.location)
        around = next((place for place in places if warehouse.location(place).holds(own)), None)
        if around is None:
            named = [(name, warehouse.location(place)) for name, place in zip(rows.names, places, strict=True)]
            in_use = locations_of_other_partitions(self._context, transaction.connection, row, own, named)
            if in_use:
                raise MetaException(
                    f"Cannot truncate partitions of {qualified(table.catName, table.dbName, table.tableName)}: another "
                    f"one lies in {min(map(str, in_use))}, too"
                )
            return
        of_table = select(func.count()).select_from(PARTITIONS).where(PARTITIONS.c.TBL_ID == row.table_id)
        if transaction.connection.execute(of_table).scalar_one() > len(rows):
            raise MetaException(
                f"Cannot truncate partitions of {qualified(table.catName, table.dbName, table.tableName)}: others lie "
                f"in {around}, too"
            )

    def _allowed(self, files: FileAccess, row: TableRow, text: str) -> AllowedLocation:
        found = files.allow_deletion(self._context.warehouse.location(text))
        if found is None:
            raise MetaException(
                f"Cannot truncate {qualified(row.table.catName, row.table.dbName, row.table.tableName)}: {text} is "
                f"{OUTSIDE}"
            )
        return found

    def _require_unshared(self, transaction: WriteTransaction, row: TableRow, places: Sequence[Location]) -> None:
        table = row.table
        shared = partition_locations_in_use(self._context, transaction.connection, row, places)
        if shared:
            raise MetaException(
                f"Cannot truncate {qualified(table.catName, table.dbName, table.tableName)}: other objects of the "
                f"metastore lie at {min(map(str, shared))}, too"
            )


def _place_of(table: Table, what: str, partition: Partition | None = None) -> str:
    """The location. Raises MetaException if it is missing, as another program may have left it: nothing could be
    emptied."""
    descriptor = (table if partition is None else partition).sd
    if descriptor is None or not descriptor.location:
        name = qualified(table.catName, table.dbName, table.tableName)
        raise MetaException(f"Cannot truncate {name}: {what} has no location")
    return str(descriptor.location)


def _correct_claims(
    table: Table,
    stored_write_id: int | None,
    before: Mapping[str, str],
    after: MutableMapping[str, str],
    writer: Writer,
    aborted: Collection[int],
) -> None:
    """Keeps the claims about a transactional table's statistics correct, as every change does (Hive's `alterTable`): no
    new claims outside a transaction, nor over writes that the truncating writer cannot see.

    A request without a write id keeps the stored one. Raises MetaException where Hive does.
    """
    if not is_transactional(table):
        return
    write_id, valid_write_ids = writer.given_write_id, writer.valid_write_ids
    if write_id is None and stored_write_id is not None and stored_write_id > 0:
        write_id = stored_write_id
    has_list = valid_write_ids is not None and write_id is not None
    check_statistics_change(
        f"{table.dbName}.{table.tableName}", before, after, write_id, valid_write_ids, is_column_change=False
    )
    if has_list and not are_statistics_valid(
        after, stored_write_id, valid_write_ids, is_complete_writer=True, aborted=aborted
    ):
        set_basic_statistics_accurate(after, False)


def reset_statistics(parameters: MutableMapping[str, str]) -> None:
    """Sets the existing basic statistics to 0, which is accurate, and removes claims about columns."""
    for key in SUPPORTED_STATISTICS:
        if key in parameters:
            parameters[key] = "0"
    set_basic_statistics_accurate(parameters, True)
    clear_column_statistics_accurate(parameters)
