"""INSERT events: told by writers of data files. Facts: `HMSHandler.fire_listener_event` (Hive 4.0)."""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.store.context import StoreContext
from hms_cache.store.contract.partitions import ByValues
from hms_cache.store.names import normalize_identifier
from hms_cache.store.partition_additions import partitioned
from hms_cache.store.partition_reads import partitions_of_rows, read_partition_rows
from hms_cache.store.partition_selection import select_partitions
from hms_cache.store.table_locks import share_table
from hms_cache.store.transactions import WriteTransaction, run_write
from hms_cache.thrift_gen.hive_metastore.ttypes import InsertEventRequestData, NoSuchObjectException


class InsertEvents:
    """`fire_insert_event`."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context

    def fire_insert_event(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_values: Sequence[str] | None,
        data: InsertEventRequestData,
    ) -> list[int]:
        """See `TableStore.fire_insert_event`."""
        names = normalize_identifier(catalog), normalize_identifier(database), normalize_identifier(table)
        written: list[WriteTransaction] = []

        def fire(transaction: WriteTransaction) -> None:
            written[:] = [transaction]
            row = share_table(transaction.connection, *names)
            if row is None:
                raise NoSuchObjectException(f"{'.'.join(names)} table not found")
            partition = None
            if partition_values:
                header = partitioned(row)
                selected = select_partitions(
                    transaction.connection, header, ByValues(tuple(partition_values)), settings=self._context.settings
                )
                found = partitions_of_rows(read_partition_rows(transaction.connection, header, selected))
                if not found:
                    raise NoSuchObjectException(f"partition values=[{', '.join(partition_values)}]")
                partition = found[0]
            transaction.append_event(
                self._context.messages.build_insert(
                    row.table, partition, is_replace=bool(data.replace), files=_files(data)
                )
            )

        run_write(self._context.database, fire)
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
