"""Locations of databases and tables under Hive 4's translation.

With translation, managed tables must be in the managed warehouse (or the database's managed location), and external
ones outside it. Facts: `Warehouse`, `MetastoreDefaultTransformer.validateTablePaths` (Hive 4.0.1).
"""

from __future__ import annotations

from hms_cache.metadata.names import (
    DEFAULT_DATABASE,
    database_directory_name,
    normalize_identifier,
    table_directory_name,
)
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, MetaException, Table


def database_in(root: Location, name: str) -> Location:
    """The default directory of a database of the default catalog; for ``default`` it is the root itself."""
    name = normalize_identifier(name)
    return root if name == DEFAULT_DATABASE else root.child(database_directory_name(name))


class TranslatedLocations:
    """Locations by Hive 4's rules."""

    def __init__(self, context: StoreContext) -> None:
        self._warehouse = context.warehouse
        self._mode = context.settings.catalog.translated_location_mode

    def external_database(self, name: str) -> Location:
        """The default directory of a database's external tables."""
        return database_in(self._warehouse.external_root or self._warehouse.managed_root, name)

    def is_managed(self, location: Location) -> bool:
        """Whether it is the managed warehouse or inside it. File systems are not compared, as in Hive."""
        root = self._warehouse.managed_root.path
        return location.path == root or location.path.startswith(root.rstrip("/") + "/")

    def external_table(self, database: Database, name: str) -> Location:
        """The default location of an external table: never in the managed warehouse, if there is an external one."""
        own = self._warehouse.location(database.locationUri)
        root = self.external_database(database.name) if self.is_managed(own) else own
        return root.child(table_directory_name(name))

    def managed_table(self, database: Database, name: str) -> Location:
        """The default location of a managed table."""
        if database.managedLocationUri:
            root = self._warehouse.location(database.managedLocationUri)
        else:
            root = database_in(self._warehouse.managed_root, database.name)
        return root.child(table_directory_name(name))

    def translated_table(self, database: Database, name: str) -> Location:
        """The location of a table that was requested as managed and becomes external.

        If something exists there already, `metastore.metadata.transformer.location.mode` decides: ``force`` uses the
        location nevertheless, ``seqsuffix`` and ``seqprefix`` add a number, ``prohibit`` raises MetaException.
        """
        preferred = self.external_table(database, name)
        if self._mode == "force":
            return preferred
        location, attempt = preferred, 0
        while (place := self._warehouse.allow(location)) is not None and self._warehouse.is_directory(place):
            attempt += 1
            if self._mode == "prohibit":
                raise MetaException(f"Default location is not available for table: {preferred}")
            numbered = f"{name}_{attempt}" if self._mode == "seqsuffix" else f"{attempt}_{name}"
            location = self.external_table(database, numbered)
        return location

    def check_or_choose(self, database: Database, table: Table) -> str | None:
        """The table's location, checked, or the default of its kind if it has none; None for tables without files.

        :raises MetaException: a managed table outside the managed directories, or an external one inside.
        """
        if table.sd is None:
            return None
        text = table.sd.location
        if table.tableType == "MANAGED_TABLE":
            if not (text or "").strip():
                return str(self.managed_table(database, table.tableName))
            self._check_managed(database, table.tableName, text)
        elif not (text or "").strip():
            return str(self.external_table(database, table.tableName))
        elif self._warehouse.external_root is not None:
            location = self._warehouse.location(text)
            root = self._warehouse.managed_root
            if location.path.startswith(root.path.rstrip("/") + "/"):
                raise MetaException(
                    "An external table's location should not be located within managed warehouse root directory, table:"
                    f"{table.tableName},location:{location.path},managed warehouse:{root.path}"
                )
        return str(text)

    def _check_managed(self, database: Database, name: str, text: str) -> None:
        location = self._warehouse.location(text)
        if database.managedLocationUri:
            if not location.is_inside(self._warehouse.location(database.managedLocationUri)):
                raise MetaException(
                    "Illegal location for managed table, it has to be within database's managed location"
                )
        elif not location.is_inside(self._warehouse.managed_root):
            raise MetaException(
                "A managed table's location should be located within managed warehouse root directory or within its"
                f" database's managedLocationUri. Table {name}'s location is not valid:{text},"
                f" managed warehouse:{self._warehouse.managed_root}"
            )
