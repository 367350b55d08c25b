"""`WarehouseLayout`: default locations, and which locations may be changed according to their names.

Facts: `Warehouse` of Hive 3.1 and 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.names import DEFAULT_CATALOG, DEFAULT_DATABASE, database_directory_name, table_directory_name
from hms_cache.store.warehouse.allowed import AllowedLocation, allow_by_names
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import Catalog, Database, MetaException


class WarehouseLayout:
    """The locations that settings and rows define. Does not access any file system."""

    def __init__(self, settings: WarehouseSettings | None = None) -> None:
        self.settings = settings or WarehouseSettings()
        self._default = Location.parse(self.settings.default_file_system)
        self._managed_root = self.location(self.settings.directory)
        self._external_root = (
            self.location(self.settings.external_directory) if self.settings.external_directory else None
        )
        self._roots = tuple(
            dict.fromkeys(
                [
                    self._managed_root,
                    self._external_root or self._managed_root,
                    *map(self.location, self.settings.allowed_locations),
                ]
            )
        )
        self._own_schemes = frozenset(root.scheme for root in self._roots)

    @property
    def manages_files(self) -> bool:
        """Whether this server creates, moves and deletes directories at all."""
        return self.settings.files == "manage"

    @property
    def managed_root(self) -> Location:
        """The directory of managed tables."""
        return self._managed_root

    @property
    def external_root(self) -> Location | None:
        """The directory of external tables; None if it is not configured separately."""
        return self._external_root

    def location(self, text: str) -> Location:
        """Parses a location as a client wrote it, completed by the default file system. Raises MetaException."""
        return Location.parse(text, self._default)

    # What may be changed, and what may be stored

    def allow_by_names(
        self, locations: Sequence[Location], declared: Iterable[Location] = ()
    ) -> list[AllowedLocation | None]:
        """Like `allow_all`, but decided by names only: no file system is asked. Each operation checks symbolic links
        itself."""
        if not self.manages_files:
            return [None] * len(locations)
        more = (
            root
            for root in declared
            # Below the directories of the configuration, links are checked against those; a declaration does not extend
            # them.
            if self.may_be_declared(root) and not self._is_in_own_roots(root)
        )
        return allow_by_names(locations, (*self._roots, *more))

    def _is_in_own_roots(self, location: Location) -> bool:
        return any(location == own or location.is_inside(own) for own in self._roots)

    def may_be_declared(self, location: Location) -> bool:
        """Whether files there may be changed if a database of the metastore declares the location as its own."""
        return self.manages_files and location.scheme in self._own_schemes and not location.is_root

    def is_own_root(self, location: Location) -> bool:
        """Whether it is the managed or the external root."""
        return location in (self._managed_root, self._external_root)

    def require_known_scheme(self, location: Location) -> None:
        """Raises MetaException unless objects may be registered on such a file system (`warehouse.allowed_schemes`).

        Opens nothing. With `files = leave` all schemes are allowed, since this server never opens them.
        """
        if not self.manages_files:
            return
        if location.scheme == "file" and location.authority:
            raise MetaException(f"Wrong FS: {location}, expected: file:///")
        if location.scheme not in self._own_schemes and location.scheme not in self.settings.allowed_schemes:
            raise MetaException(
                f'No FileSystem for scheme "{location.scheme}": warehouse.allowed_schemes does not name it'
            )

    # Default locations

    def database_location(self, database: Database, catalog: Catalog | None = None) -> Location:
        """The location of a database: its own, otherwise the default of its catalog."""
        if database.locationUri:
            return self.location(database.locationUri)
        name = database.name
        if catalog is None or catalog.name.lower() == DEFAULT_CATALOG:
            root = self._external_root or self._managed_root
            return root if name.lower() == DEFAULT_DATABASE else root.child(database_directory_name(name))
        return self.location(catalog.locationUri).child(database_directory_name(name))

    def default_table_location(self, database: Database, table: str, *, external: bool) -> Location:
        """The location of a table whose creator names none.

        Managed tables: in the database's managed location, otherwise below the managed root. External ones: below the
        database's location, unless that lies in the managed root while an external root is configured.
        """
        root = self.external_database_location(database) if external else self.managed_database_location(database)
        return root.child(table_directory_name(table))

    def default_locations(self, database: str, table: str) -> tuple[Location, ...]:
        """The possible default locations of a table of the default catalog, if its database has its default
        location."""
        name = table_directory_name(table)
        roots = dict.fromkeys((self._managed_root, self._external_root or self._managed_root))
        return tuple(self._default_child(root, database).child(name) for root in roots)

    def managed_database_location(self, database: Database) -> Location:
        """The directory of the database's managed tables."""
        if database.managedLocationUri:
            return self.location(database.managedLocationUri)
        own = self._own_location(database)
        if self._external_root is None or not self._is_default_catalog(database):
            return own
        if own == self._managed_root or own.is_inside(self._managed_root):
            return own
        return self._default_child(self._managed_root, database.name)

    def external_database_location(self, database: Database) -> Location:
        """The directory of the database's external tables."""
        own = self._own_location(database)
        if (
            self._external_root is not None
            and self._is_default_catalog(database)
            and (own == self._managed_root or own.is_inside(self._managed_root))
        ):
            return self._default_child(self._external_root, database.name)
        return own

    def _own_location(self, database: Database) -> Location:
        if database.locationUri:
            return self.location(database.locationUri)
        return self._default_child(self._external_root or self._managed_root, database.name)

    @staticmethod
    def _is_default_catalog(database: Database) -> bool:
        return (database.catalogName or DEFAULT_CATALOG).lower() == DEFAULT_CATALOG

    @staticmethod
    def _default_child(root: Location, database: str) -> Location:
        return root if database.lower() == DEFAULT_DATABASE else root.child(database_directory_name(database))
