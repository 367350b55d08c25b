"""Events that clients fire: INSERT by writers of data files, and RELOAD by caches that refresh.

Facts: `HMSHandler.fire_listener_event` (Hive 4.0).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.events import EventRow
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.reads import partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import name_of_values, select_for_write
from hms_cache.store.rows.table_locks import share_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.thrift_gen.hive_metastore.ttypes import InsertEventRequestData, NoSuchObjectException, Partition, Table


class FiredEvents(PartOfStore):
    """`fire_insert_events` and `fire_reload_events`."""

    def fire_insert_events(
        self, table: TableName, inserts: Sequence[tuple[Sequence[str] | None, InsertEventRequestData]]
    ) -> list[int]:
        """See `TableWrites.fire_insert_events`."""

        def event(owner: Table, partition: Partition | None, position: int) -> EventRow:
            data = inserts[position][1]
            # Without `replace` the files may have been replaced: clients of Hive 2.3 cannot say.
            is_replace = data.replace is None or bool(data.replace)
            return self._context.messages.build_insert(owner, partition, is_replace=is_replace, files=_files(data))

        return self._fire(table, [values for values, _ in inserts], event)

    def fire_reload_events(
        self,
        table: TableName,
        partitions: Sequence[Sequence[str] | None],
        *,
        is_refresh: bool,
        parameters: Mapping[str, str] | None = None,
    ) -> list[int]:
        """See `TableWrites.fire_reload_events`."""

        def event(owner: Table, partition: Partition | None, _: int) -> EventRow:
            if parameters:
                owner = copy.copy(owner)
                owner.parameters = {**(owner.parameters or {}), **parameters}
            return self._context.messages.build_reload(owner, partition, is_refresh=is_refresh)

        return self._fire(table, partitions, event)

    def _fire(
        self,
        table: TableName,
        partitions: Sequence[Sequence[str] | None],
        event: Callable[[Table, Partition | None, int], EventRow],
    ) -> list[int]:
        """Logs one event for each element, the table (None) or one of its partitions, with their current state: all or
        none."""
        if not partitions:
            return []
        written: list[WriteTransaction] = []

        def fire(transaction: WriteTransaction) -> None:
            written[:] = [transaction]
            row = share_table(transaction.connection, *table)
            if row is None:
                raise NoSuchObjectException(f"{table.as_sent} table not found")
            named = self._named(transaction.connection, row, partitions)
            for position, partition in enumerate(named):
                transaction.append_event(event(row.table, partition, position))

        run_write(self._database, fire)
        last = written[0].last_event_id
        return [] if last is None else list(range(last - len(partitions) + 1, last + 1))

    def _named(
        self, connection: Connection, row: TableRow, places: Sequence[Sequence[str] | None]
    ) -> list[Partition | None]:
        """The partitions with these values, in this order, and None for the table itself.

        Raises NoSuchObjectException if one does not exist.
        """
        if not any(places):
            return [None] * len(places)
        header = partitioned(row)
        names = [name_of_values(header, values) if values else None for values in places]
        requested = ByNames(tuple({name: None for name in names if name is not None}))
        selected = select_for_write(connection, header, requested, self._context)
        rows = read_partition_rows(connection, header, selected)
        found = dict(zip(rows.names, partitions_of_rows(rows), strict=True))
        for name, values in zip(names, places, strict=True):
            if name is not None and name not in found:
                raise NoSuchObjectException(f"partition values=[{', '.join(values or ())}]")
        return [None if name is None else found[name] for name in names]


def _files(data: InsertEventRequestData) -> list[str]:
    """File names as Hive encodes them in messages without a change-management root (`ReplChangeManager.encodeFileUri`):
    `file###subdirectory`. Checksums exist only with such a root."""
    directories = list(data.subDirectoryList or ())
    return [
        f"{name}###{directories[number] if number < len(directories) else ''}"
        for number, name in enumerate(data.filesAdded or ())
    ]
