"""Functions through the cache: all of a database at once, so that absence can be answered, too (P6)."""

from __future__ import annotations

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.reading import Bypass, Need, Reading, database_entry
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.metadata.names import matching_names
from hms_cache.notifications.scope import DatabaseName
from hms_cache.store.contract.functions import FunctionStore
from hms_cache.store.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import Function


class CachedFunctions(FunctionStore):
    """The part of `CachedStore` for functions."""

    _reading: Reading
    _store: SnapshotStore

    def get_function(self, catalog: str, database: str, function: str) -> Function:
        key = DatabaseName(catalog.strip().lower(), database.strip().lower())
        name = function.strip().lower()

        def look(cache: SharedCache) -> Function | Need | Bypass:
            held: list[Function] | Need = database_entry(cache, key, Facet.FUNCTIONS)
            if isinstance(held, Need):
                return held
            for one in held:
                if one.functionName == name:
                    return one
            # The store says that there is none, in the text that clients match on.
            return Bypass(Reason.INCOMPLETE)

        return self._reading.answer(
            "function",
            look,
            lambda: self._store.get_function(catalog, database, function),
            facet=Facet.FUNCTIONS,
            subject=key,
        )

    def get_function_names(self, catalog: str, database: str, pattern: str | None = None) -> list[str]:
        key = DatabaseName(catalog.strip().lower(), database.strip().lower())

        def look(cache: SharedCache) -> list[str] | Need:
            held: list[Function] | Need = database_entry(cache, key, Facet.FUNCTIONS)
            return held if isinstance(held, Need) else matching_names([one.functionName for one in held], pattern)

        return self._reading.answer(
            "function_names",
            look,
            lambda: self._store.get_function_names(catalog, database, pattern),
            facet=Facet.FUNCTIONS,
            subject=key,
        )

    def get_functions(self, catalog: str, database: str | None = None, pattern: str | None = None) -> list[Function]:
        return self._reading.pass_through("functions", lambda: self._store.get_functions(catalog, database, pattern))

    def create_function(self, function: Function) -> None:
        self._store.create_function(function)

    def alter_function(self, catalog: str, database: str, name: str, function: Function) -> None:
        self._store.alter_function(catalog, database, name, function)

    def drop_function(self, catalog: str, database: str, name: str, *, if_exists: bool = False) -> None:
        self._store.drop_function(catalog, database, name, if_exists=if_exists)
