"""Files that events name to the replica of a database: what a new table or partition has already.

A writer of files adds the partition after them, and tells of them nowhere else: a replica that is not told gets the
partition without its rows. Transactions name their files themselves. Facts: `DbNotificationListener.onCreateTable`,
`onAddPartition`, `AddPartitionHandler`, `ReplChangeManager.encodeFileUri` (Hive 4.0.1).
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
"""Behind a file: its checksum, its copy with a change manager, and its subdirectory."""


def files_of_new_table(
    context: StoreContext, database: Database, table: Table, place: AllowedLocation | None
) -> list[str]:
    """Those that lie in the table's directory. Raises MetaException where they cannot be listed."""
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
    """By values, those of each of the partitions, which are given by name; nothing where replication asks for none.

    `places`: directories that may hold files. With one of them all partitions are told, as the replica expects.
    Raises MetaException where they cannot be listed.
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
