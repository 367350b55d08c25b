"""What is held of databases, of one or of several in a catalog. Under the cache's lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.reading import Bypass, Need, Reading
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.names import matching_names
from hms_cache.metadata.object_names import DatabaseName

MAX_LOADED_TOGETHER = 20
"""Databases for which one read loads missing facets, one statement each. If more are missing, the store answers in one
statement, and later reads of single databases load them."""


def database_names(cache: SharedCache, catalog: str) -> list[str] | Need:
    """The names of all databases of the catalog."""
    entry = cache.catalogs.get(catalog)
    if entry is None or Facet.DATABASE_NAMES not in entry.facets:
        return Need((LoadRequest(catalog, Facet.DATABASE_NAMES),))
    names: list[str] = entry.facets[Facet.DATABASE_NAMES]
    return names


class MatchingDatabases:
    """Names of a catalog's databases that match a pattern.

    The names held now are matched here, without the cache's lock: a pattern takes 2 µs for each name. Under the lock,
    other names are rarely found. Lists of names are replaced, never changed.
    """

    def __init__(self, reading: Reading, catalog: str, pattern: str | None) -> None:
        self._pattern = pattern
        self._of: list[str] | None = None
        self._matching: list[str] = []
        try:
            with reading.cache.view():
                names = database_names(reading.cache, catalog)
            if not isinstance(names, Need):
                self.among(names)
        except Exception:
            # Any error in the pattern or in memory occurs again under the lock, where it is handled.
            self._of = None

    def among(self, names: list[str]) -> list[str]:
        """The matching ones of these names. Raises MetaException as `matching_names`."""
        if names is not self._of:
            self._matching = matching_names(names, self._pattern)
            self._of = names
        return self._matching


def of_database(cache: SharedCache, database: DatabaseName, facet: Facet) -> Any | Need:
    """A facet of a database."""
    entry = cache.databases.get(database)
    if entry is None or facet not in entry.facets:
        return Need((LoadRequest(database, facet),))
    return entry.facets[facet]


def of_each_database(cache: SharedCache, catalog: str, names: Sequence[str], facet: Facet) -> list[Any] | Need | Bypass:
    """A facet of each of these databases."""
    found = [of_database(cache, DatabaseName(catalog, name), facet) for name in names]
    missing = [requested for one in found if isinstance(one, Need) for requested in one.requested]
    if len(missing) > MAX_LOADED_TOGETHER:
        return Bypass(Reason.INCOMPLETE)
    return Need(tuple(missing)) if missing else found
