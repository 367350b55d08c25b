"""Events that clients fire: INSERT, told by writers of data files, and RELOAD, told by caches of their refreshes.

Facts: `HMSHandler.fire_listener_event` (Hive 4.0).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.events import EventRow
from hms_cache.store.contract.partitions import ByValues
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.reads import partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import select_partitions
from hms_cache.store.rows.table_locks import share_table
from hms_cache.thrift_gen.hive_metastore.ttypes import InsertEventRequestData, NoSuchObjectException, Partition, Table


class FiredEvents(PartOfStore):
    """`fire_insert_event` and `fire_reload_event`."""

    def fire_insert_event(
        self, table: TableName, partition_values: Sequence[str] | None, data: InsertEventRequestData
    ) -> list[int]:
        """See `TableWrites.fire_insert_event`."""

        def event(owner: Table, partition: Partition | None) -> EventRow:
            return self._context.messages.build_insert(
                owner, partition, is_replace=bool(data.replace), files=_files(data)
            )

        return self._fire(table, partition_values, event)

    def fire_reload_event(
        self,
        table: TableName,
        partition_values: Sequence[str] | None,
        *,
        is_refresh: bool,
        parameters: Mapping[str, str] | None = None,
    ) -> list[int]:
        """See `TableWrites.fire_reload_event`."""

        def event(owner: Table, partition: Partition | None) -> EventRow:
            if parameters:
                owner = copy.copy(owner)
                owner.parameters = {**(owner.parameters or {}), **parameters}
            return self._context.messages.build_reload(owner, partition, is_refresh=is_refresh)

        return self._fire(table, partition_values, event)

    def _fire(
        self,
        table: TableName,
        partition_values: Sequence[str] | None,
        event: Callable[[Table, Partition | None], EventRow],
    ) -> list[int]:
        """Writes the event of a table or of one of its partitions, as they are by then."""
        written: list[WriteTransaction] = []

        def fire(transaction: WriteTransaction) -> None:
            written[:] = [transaction]
            row = share_table(transaction.connection, *table)
            if row is None:
                raise NoSuchObjectException(f"{table} table not found")
            partition = None
            if partition_values:
                header = partitioned(row)
                selected = select_partitions(
                    transaction.connection, header, ByValues(tuple(partition_values)), context=self._context
                )
                found = partitions_of_rows(read_partition_rows(transaction.connection, header, selected))
                if not found:
                    raise NoSuchObjectException(f"partition values=[{', '.join(partition_values)}]")
                partition = found[0]
            transaction.append_event(event(row.table, partition))

        run_write(self._database, fire)
        event_id = written[0].last_event_id
        return [] if event_id is None else [event_id]


def _files(data: InsertEventRequestData) -> list[str]:
    """File names as Hive's messages encode them without a change-management root (`ReplChangeManager.encodeFileUri`):
    `file###subdirectory`. Checksums are only written along with such a root.
    """
    directories = list(data.subDirectoryList or ())
    return [
        f"{name}###{directories[number] if number < len(directories) else ''}"
        for number, name in enumerate(data.filesAdded or ())
    ]
