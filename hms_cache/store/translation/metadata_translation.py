"""`MetadataTranslation`: translates databases, tables and partitions in requests and replies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection

from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import DatabaseName, database_name
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.translation.access import translate_partitions, translate_table
from hms_cache.store.translation.capabilities import (
    FULL_ACID_WRITE,
    FULL_ACID_WRITES,
    INSERT_ONLY_WRITE,
    INSERT_ONLY_WRITES,
    RAW_METADATA,
    missing,
    wants_raw_metadata,
)
from hms_cache.store.translation.locations import TranslatedLocations
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, MetaException, NoSuchObjectException, Partition, Table

GetDatabase = Callable[[DatabaseName], Database]
"""Takes (catalog, name); raises NoSuchObjectException."""

TRANSLATED = "TRANSLATED_TO_EXTERNAL"
"""Parameter of tables that were requested as managed and became external."""


class MetadataTranslation:
    """Hive 4's translation, the part of it that only concerns replies, or none. Never changes its arguments;
    thread-safe."""

    def __init__(self, context: StoreContext) -> None:
        mode = context.settings.catalog.metadata_translation
        self.reports_access = mode != "off"
        """Whether clients that send their capabilities are told what they can do with a table."""
        self._changes_objects = mode == "hive4"
        self._locations = TranslatedLocations(context)
        self._warehouse = context.warehouse

    def table(self, table: Table, capabilities: Collection[str] | None) -> Table:
        """The table as this client sees it."""
        if not self.reports_access or wants_raw_metadata(capabilities):
            return table
        return translate_table(table, capabilities or ())

    def partitions(
        self, partitions: list[Partition], table: Callable[[], Table], capabilities: Collection[str] | None
    ) -> list[Partition]:
        """The partitions as this client sees them. `table` is called only if necessary."""
        if not self.reports_access or wants_raw_metadata(capabilities):
            return partitions
        return translate_partitions(partitions, table(), capabilities or ())

    def database(self, database: Database, capabilities: Collection[str] | None) -> Database:
        """The database as this client sees it: a database in the managed warehouse shows its external directory.

        Clients that write transactional tables also get the managed location.
        """
        has = capabilities or ()
        is_other = (database.catalogName or DEFAULT_CATALOG).lower() != DEFAULT_CATALOG
        if not self._changes_objects or is_other or RAW_METADATA[1] in has or not database.locationUri:
            return database
        location = self._warehouse.location(database.locationUri)
        if not self._locations.is_managed(location):
            return database
        changed = copy.copy(database)
        if INSERT_ONLY_WRITE in has or FULL_ACID_WRITE in has:
            changed.managedLocationUri = str(location)
        changed.locationUri = str(self._locations.external_database(database.name))
        return changed

    def table_to_create(self, table: Table, capabilities: Collection[str] | None, get_database: GetDatabase) -> Table:
        """The table to create when a client asks for `table`, whose catalog and database are set.

        A managed table that is not transactional becomes external. A transactional one requires a client that can write
        it.

        :raises MetaException: there is no such database, the client lacks capabilities, or the location is not allowed.
        """
        if not self._changes_objects or (table.catName or DEFAULT_CATALOG).lower() != DEFAULT_CATALOG:
            return table
        database = self._database_of(table, get_database)
        changed = copied(table)
        if table.tableType == "MANAGED_TABLE":
            parameters = changed.parameters or {}
            is_insert_only = parameters.get("transactional_properties", "").lower() == "insert_only"
            is_plain = parameters.get("transactional", "false").lower() == "false"
            if is_plain and (not is_insert_only or parameters.get("create_table_as_external", "").lower() == "true"):
                return self._to_external(changed, database)
            self._require_writer(database, is_insert_only, capabilities)
        elif table.tableType != "EXTERNAL_TABLE":
            return table
        location = self._locations.check_or_choose(database, changed)
        if changed.sd is not None:
            changed.sd.location = location  # type: ignore[assignment]  # left out of the message
        return changed

    def check_alteration(self, old: Callable[[], Table], table: Table, get_database: GetDatabase) -> None:
        """Checks that a new location is allowed for tables of this kind.

        A table that was made external moves along with its name; the store does that, with or without translation.

        :raises MetaException: the location is not allowed.
        """
        if not self._changes_objects or (table.catName or DEFAULT_CATALOG).lower() != DEFAULT_CATALOG:
            return
        if table.tableType not in ("MANAGED_TABLE", "EXTERNAL_TABLE") or table.sd is None or not table.sd.location:
            return
        before = old()
        if before.sd is None or before.sd.location in (None, table.sd.location):
            return
        self._locations.check_or_choose(self._database_of(table, get_database), table)

    def _to_external(self, table: Table, database: Database) -> Table:
        table.tableType = "EXTERNAL_TABLE"
        table.parameters = {
            name: value
            for name, value in (table.parameters or {}).items()
            if name not in ("transactional", "transactional_properties")
        } | {"EXTERNAL": "TRUE", "external.table.purge": "TRUE", TRANSLATED: "TRUE"}
        if table.sd is not None and not (table.sd.location or "").strip():
            table.sd.location = str(self._locations.translated_table(database, table.tableName))
        return table

    @staticmethod
    def _require_writer(database: Database, is_insert_only: bool, capabilities: Collection[str] | None) -> None:
        if (database.parameters or {}).get("EXTERNAL_TABLES_ONLY", "").lower() == "true":
            raise MetaException(
                "Creation of ACID table is not allowed when the property 'EXTERNAL_TABLES_ONLY'='TRUE' is set on the"
                " database."
            )
        if not capabilities:
            raise MetaException("Processor has no capabilities, cannot create an ACID table.")
        kind, needed, required = (
            ("INSERT ACID", INSERT_ONLY_WRITE, INSERT_ONLY_WRITES)
            if is_insert_only
            else ("FULL ACID", FULL_ACID_WRITE, FULL_ACID_WRITES)
        )
        if needed not in capabilities:
            lacking = ", ".join(missing(required, capabilities))
            raise MetaException(f"Processor does not have capabilities to create a {kind} table:[{lacking}]")

    @staticmethod
    def _database_of(table: Table, get_database: GetDatabase) -> Database:
        try:
            return get_database(database_name(table.catName, table.dbName))
        except NoSuchObjectException as error:
            raise MetaException(f"Database {table.dbName} for table {table.tableName} could not be found") from error
