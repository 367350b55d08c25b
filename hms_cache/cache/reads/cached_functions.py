"""Functions through the cache: all of a database at once, so that absence can be answered, too (P6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.cache.reads.database_facets import database_names, of_database, of_each_database
from hms_cache.cache.reads.reading import Bypass, Need
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.metadata.names import matching_names, normalize_identifier
from hms_cache.metadata.object_names import DatabaseName, FunctionName
from hms_cache.store.contract.functions import FunctionReads
from hms_cache.thrift_gen.hive_metastore.ttypes import Function


class CachedFunctions(CachedEntity[FunctionReads], FunctionReads):
    """`FunctionReads` from memory if possible, else from the store."""

    def get_function(self, function: FunctionName) -> Function:
        database = DatabaseName(function.catalog, function.database)

        def from_memory(cache: SharedCache) -> Function | Need | Bypass:
            cached: list[Function] | Need = of_database(cache, database, Facet.FUNCTIONS)
            if isinstance(cached, Need):
                return cached
            for one in cached:
                if one.functionName == function.function:
                    return one
            # The store raises the error for a missing function, with the text that clients match on.
            return Bypass(Reason.INCOMPLETE)

        return self._reading.answer(
            "function", from_memory, lambda: self._store.get_function(function), facet=Facet.FUNCTIONS, subject=database
        )

    def get_function_names(self, database: DatabaseName, pattern: str | None = None) -> list[str]:

        def from_memory(cache: SharedCache) -> Callable[[], list[str]] | Need:
            cached: list[Function] | Need = of_database(cache, database, Facet.FUNCTIONS)
            return cached if isinstance(cached, Need) else partial(_matching, cached, pattern)

        return self._reading.answer_made(
            "function_names",
            from_memory,
            lambda: self._store.get_function_names(database, pattern),
            facet=Facet.FUNCTIONS,
            subject=database,
        )

    def get_functions(self, catalog: str, database: str | None = None, pattern: str | None = None) -> list[Function]:
        key = normalize_identifier(catalog)

        def from_memory(cache: SharedCache) -> Callable[[], list[Function]] | Need | Bypass:
            names = database_names(cache, key) if database is None else [normalize_identifier(database)]
            if isinstance(names, Need):
                return names
            found = of_each_database(cache, key, sorted(names), Facet.FUNCTIONS)
            return partial(_of_each, found, pattern) if isinstance(found, list) else found

        def from_store() -> list[Function]:
            return self._store.get_functions(catalog, database, pattern)

        return self._reading.answer_made("functions", from_memory, from_store, facet=Facet.FUNCTIONS)


def _matching(functions: Sequence[Function], pattern: str | None) -> list[str]:
    """Runs without the cache's lock: a pattern takes 2 µs for each name. Lists are replaced, never changed."""
    return matching_names([one.functionName for one in functions], pattern)


def _of_each(found: Sequence[Sequence[Function]], pattern: str | None) -> list[Function]:
    every = [function for functions in found for function in functions]
    matching = set(_matching(every, pattern))
    return [one for one in every if one.functionName in matching]
