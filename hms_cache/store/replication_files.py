"""Files that events list for a replica: those that exist already when a table or partition is created.

A client that writes files first and then adds the partition logs nothing else about the files. Without the list, the
replica would get the partition without its rows. Transactions list their files themselves. Facts:
`DbNotificationListener.onCreateTable`, `onAddPartition`, `AddPartitionHandler`, `ReplChangeManager.encodeFileUri` (Hive
4.0.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from hms_cache.metadata.object_names import name_of_table
from hms_cache.notifications.events import PartitionFiles
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.replication_sources import is_source_of_replication
from hms_cache.store.rows.database_rows import require_database
from hms_cache.store.rows.table_kinds import is_external, is_transactional
from hms_cache.store.warehouse import AllowedLocation
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, Partition, Table

_NOTHING_ELSE = "###"
"""Empty fields after a file name: its checksum, its copy in a change manager, its subdirectory."""


def files_of_new_table(
    context: StoreContext, database: Database, table: Table, place: AllowedLocation | None
) -> list[str]:
    """The files in the table's directory. Raises MetaException if they cannot be listed."""
    if place is None or is_external(table) or not is_source_of_replication(database):
        return []
    return _listed(context, [place])[0]


def files_of_new_partitions(
    context: StoreContext,
    connection: Connection,
    table: Table,
    partitions: Mapping[str, Partition],
    places: Mapping[str, AllowedLocation],
) -> dict[tuple[str, ...], PartitionFiles]:
    """The files of each new partition, by partition values. Empty if the database is not replicated.

    `partitions` are given by name. `places`: directories that may contain files. If there is at least one, the result
    contains all partitions, as the replica expects. Raises MetaException if files cannot be listed.
    """
    if not places or is_external(table) or is_transactional(table):
        return {}
    database = require_database(connection, name_of_table(table).in_database).database
    if not is_source_of_replication(database):
        return {}
    listed = dict(zip(places, _listed(context, list(places.values())), strict=True))
    return {
        tuple(partition.values): PartitionFiles(name, tuple(listed.get(name, ())))
        for name, partition in partitions.items()
    }


def _listed(context: StoreContext, places: Sequence[AllowedLocation]) -> list[list[str]]:
    found = context.warehouse.files_in(places)
    return [[f"{place}/{name}{_NOTHING_ELSE}" for name in names] for place, names in zip(places, found, strict=True)]
