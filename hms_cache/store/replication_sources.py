"""Restrictions on databases that are a source of replication: changes that their events cannot carry to the replica.

Facts: `ReplChangeManager.isSourceOfReplication`, `HiveMetaStore.isRenameAllowed`, `HiveAlterHandler` (Hive 4.0.1).
"""

from __future__ import annotations

from hms_cache.metadata.names import qualified
from hms_cache.store.contract.environment import EnvironmentOptions
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_rows import MANAGED_TABLE
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, InvalidOperationException, Table

SOURCE_KEY = "repl.source.for"
"""Database parameter: the policies that replicate the database."""


def is_source_of_replication(database: Database) -> bool:
    """Whether any policy replicates the database. Such a database cannot be dropped before the parameter is emptied."""
    return bool((database.parameters or {}).get(SOURCE_KEY))


def is_move_allowed(source: Database, destination: Database) -> bool:
    """Whether tables and partitions may move from one database to the other: neither may be a source of replication."""
    if (source.catalogName, source.name) == (destination.catalogName, destination.name):
        return True
    return not is_source_of_replication(source) and not is_source_of_replication(destination)


def check_location_stays(database: Database, table: Table, options: EnvironmentOptions) -> None:
    """Raises InvalidOperationException for ALTER TABLE … SET LOCATION of a managed table or one of its partitions."""
    if options.sets_location and table.tableType == MANAGED_TABLE and is_source_of_replication(database):
        raise InvalidOperationException(
            f"Cannot change location of a managed table {_name(table)} as it is enabled for replication."
        )


def check_kind_stays(database: Database, old: Table, new: Table) -> None:
    """Raises InvalidOperationException if the alter changes the table's type or makes it transactional."""
    if not is_source_of_replication(database):
        return
    if str(old.tableType).upper() != str(new.tableType).upper():
        raise InvalidOperationException(
            f"Table type cannot be changed from {old.tableType} to {new.tableType} for the table {_name(old)}"
            " as it is enabled for replication."
        )
    if is_transactional(new) and not is_transactional(old):
        raise InvalidOperationException(
            f"A non-Acid table cannot be converted to an Acid table for the table {_name(old)}"
            " as it is enabled for replication."
        )


def _name(table: Table) -> str:
    return qualified(table.catName, table.dbName, table.tableName)
