"""Catalogs and databases through the cache. Catalogs themselves are never cached: Hive logs no event for them."""

from __future__ import annotations

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.reading import Bypass, Need, Reading
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import Wanted
from hms_cache.metadata.names import matching_names, qualified
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.contract.catalogs import CatalogStore
from hms_cache.store.contract.databases import DatabaseStore
from hms_cache.store.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import Catalog, Database, NoSuchObjectException

MOST_LOADED_TOGETHER = 20
"""Missing databases that one `get_databases` loads into the cache, a statement each: above it the store answers in one
statement, and the next question of one of them loads it."""


class CachedDatabases(CatalogStore, DatabaseStore):
    """The part of `CachedStore` for catalogs and databases."""

    _reading: Reading
    _store: SnapshotStore

    def get_catalog(self, catalog: str) -> Catalog:
        return self._store.get_catalog(catalog)

    def get_catalog_names(self) -> list[str]:
        return self._store.get_catalog_names()

    def create_catalog(self, catalog: Catalog) -> None:
        self._store.create_catalog(catalog)

    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        self._store.alter_catalog(name, catalog)

    def drop_catalog(self, name: str, *, if_exists: bool = False) -> None:
        self._store.drop_catalog(name, if_exists=if_exists)

    def get_database(self, catalog: str, database: str) -> Database:
        key = DatabaseName(catalog.strip().lower(), database.strip().lower())

        def look(cache: SharedCache) -> Database | Need:
            names = cache.catalogs.get(key.catalog)
            entry = cache.databases.get(key)
            if entry is None or Facet.DATABASE not in entry.facets:
                held = names.facets.get(Facet.DATABASE_NAMES) if names is not None else None
                if held is not None and key.database not in held:
                    # Complete names prove that there is none (P6).
                    raise NoSuchObjectException(f"database {qualified(*key)}")
                wanted = [Wanted(key, Facet.DATABASE)]
                if held is None:
                    wanted.append(Wanted(key.catalog, Facet.DATABASE_NAMES))
                return Need(tuple(wanted))
            found: Database = entry.facets[Facet.DATABASE]
            return found

        return self._reading.answer(
            "database", look, lambda: self._store.get_database(catalog, database), facet=Facet.DATABASE, subject=key
        )

    def get_database_names(self, catalog: str, pattern: str | None = None) -> list[str]:
        key = catalog.strip().lower()

        def look(cache: SharedCache) -> list[str] | Need:
            entry = cache.catalogs.get(key)
            if entry is None or Facet.DATABASE_NAMES not in entry.facets:
                return Need((Wanted(key, Facet.DATABASE_NAMES),))
            names: list[str] = entry.facets[Facet.DATABASE_NAMES]
            return matching_names(names, pattern)

        return self._reading.answer(
            "database_names",
            look,
            lambda: self._store.get_database_names(catalog, pattern),
            facet=Facet.DATABASE_NAMES,
            subject=key,
        )

    def get_databases(self, catalog: str, pattern: str | None = None) -> list[Database]:
        key = catalog.strip().lower()

        def look(cache: SharedCache) -> list[Database] | Need | Bypass:
            names = cache.catalogs.get(key)
            if names is None or Facet.DATABASE_NAMES not in names.facets:
                return Need((Wanted(key, Facet.DATABASE_NAMES),))
            matching = [DatabaseName(key, name) for name in matching_names(names.facets[Facet.DATABASE_NAMES], pattern)]
            found = [cache.databases.get(database) for database in matching]
            missing = tuple(
                Wanted(database, Facet.DATABASE)
                for database, entry in zip(matching, found, strict=True)
                if entry is None or Facet.DATABASE not in entry.facets
            )
            if len(missing) > MOST_LOADED_TOGETHER:
                return Bypass(Reason.INCOMPLETE)
            if missing:
                return Need(missing)
            return [entry.facets[Facet.DATABASE] for entry in found if entry is not None]

        return self._reading.answer(
            "databases", look, lambda: self._store.get_databases(catalog, pattern), facet=Facet.DATABASE
        )

    def create_database(self, database: Database) -> None:
        self._store.create_database(database)

    def alter_database(self, catalog: str, name: str, database: Database) -> None:
        self._store.alter_database(catalog, name, database)

    def drop_database(
        self,
        catalog: str,
        name: str,
        *,
        delete_data: bool,
        cascade: bool,
        if_exists: bool = False,
        soft_txn_id: int = 0,
    ) -> None:
        self._store.drop_database(
            catalog, name, delete_data=delete_data, cascade=cascade, if_exists=if_exists, soft_txn_id=soft_txn_id
        )
