"""Records the writes of a replayed transaction as if it had run here, for replicas of this metastore.

The commit request lists the files at their locations in the source. Here they have the same names and subdirectories
below the location of the table or partition. Facts: `HMSHandler.commit_txn`, `ReplChangeManager.decodeFileUri` (Hive
4.0.1).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.reads import partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import SelectedPartitions, partitions_by_name
from hms_cache.store.rows.table_rows import TableRow, read_table
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.store.transactions.write_notifications import FILE_SEPARATOR, PART_SEPARATOR, TableWrite
from hms_cache.thrift_gen.hive_metastore.ttypes import InsertEventRequestData, Partition, WriteEventInfo


def replicated_writes(connection: Connection, txn_id: int, infos: Sequence[WriteEventInfo]) -> list[TableWrite]:
    """The writes of the transaction, whose id here is `txn_id`. Writes to objects that no longer exist are left out.

    The number of statements per table does not depend on the number of partitions.
    """
    by_table: dict[tuple[str, str], list[WriteEventInfo]] = {}
    for info in infos:
        by_table.setdefault((plain_database(info.database), plain_table(info.table)), []).append(info)
    found = []
    for name, of_table in by_table.items():
        row = read_table(connection, DEFAULT_CATALOG, *name)
        if row is None:
            continue
        partitions = _partitions(connection, row, {info.partition for info in of_table if info.partition})
        for info in of_table:
            partition = partitions.get(info.partition) if info.partition else None
            if info.partition and partition is None:
                continue
            place = (row.table if partition is None else partition).sd
            files = _files_at((place.location if place is not None else None) or "", info.files or "")
            found.append(TableWrite(txn_id, info.writeId, row.table, partition, info.partition or "", files))
    return found


def _partitions(connection: Connection, row: TableRow, names: Collection[str]) -> dict[str, Partition]:
    """The partitions with these names that exist, by name."""
    if not names:
        return {}
    header = partitioned(row)
    parts = partitions_by_name(connection, header, names)
    selected = SelectedPartitions([part_id for part_id, _ in parts], [part_name for _, part_name in parts])
    rows = read_partition_rows(connection, header, selected)
    return dict(zip(rows.names, partitions_of_rows(rows), strict=True))


def _files_at(place: str, files: str) -> InsertEventRequestData:
    """Translates a file list of the source to files at this location."""
    names, directories = [], []
    for file in filter(None, files.split(FILE_SEPARATOR)):
        uri, *parts = file.split(PART_SEPARATOR)
        directory = parts[2] if len(parts) > 2 else ""
        pieces = (place.rstrip("/"), directory.strip("/"), uri.rstrip("/").rpartition("/")[2])
        names.append("/".join(piece for piece in pieces if piece))
        directories.append(directory)
    return InsertEventRequestData(replace=True, filesAdded=names, subDirectoryList=directories)
