"""Databases through the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.cache.reads.database_facets import MatchingDatabases, database_names, of_each_database
from hms_cache.cache.reads.reading import Bypass, Need
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.names import is_among, matching_names, normalize_identifier
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.contract.databases import DatabaseReads
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, NoSuchObjectException


class CachedDatabases(CachedEntity[DatabaseReads], DatabaseReads):
    """`DatabaseReads` from memory if possible, else from the store."""

    def get_database(self, database: DatabaseName) -> Database:

        def from_memory(cache: SharedCache) -> Database | Need:
            names = cache.catalogs.get(database.catalog)
            entry = cache.databases.get(database)
            if entry is None or Facet.DATABASE not in entry.facets:
                cached = names.facets.get(Facet.DATABASE_NAMES) if names is not None else None
                if cached is not None and not is_among(cached, database.database):
                    # The complete list of names proves that the database does not exist (P6).
                    raise NoSuchObjectException(f"database {database.as_sent}")
                requested = [LoadRequest(database, Facet.DATABASE)]
                if cached is None:
                    requested.append(LoadRequest(database.catalog, Facet.DATABASE_NAMES))
                return Need(tuple(requested))
            found: Database = entry.facets[Facet.DATABASE]
            return found

        return self._reading.answer(
            "database", from_memory, lambda: self._store.get_database(database), facet=Facet.DATABASE, subject=database
        )

    def get_database_names(self, catalog: str, pattern: str | None = None) -> list[str]:
        key = normalize_identifier(catalog)

        def from_memory(cache: SharedCache) -> Callable[[], list[str]] | Need:
            names = database_names(cache, key)
            return names if isinstance(names, Need) else partial(matching_names, names, pattern)

        return self._reading.answer_made(
            "database_names",
            from_memory,
            lambda: self._store.get_database_names(catalog, pattern),
            facet=Facet.DATABASE_NAMES,
            subject=key,
        )

    def get_databases(self, catalog: str, pattern: str | None = None) -> list[Database]:
        key = normalize_identifier(catalog)
        matching = MatchingDatabases(self._reading, key, pattern)

        def from_memory(cache: SharedCache) -> list[Database] | Need | Bypass:
            names = database_names(cache, key)
            if isinstance(names, Need):
                return names
            return of_each_database(cache, key, matching.among(names), Facet.DATABASE)

        return self._reading.answer(
            "databases", from_memory, lambda: self._store.get_databases(catalog, pattern), facet=Facet.DATABASE
        )
