"""``/cache``: the largest, hottest and slowest tables, and totals of the cache."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from hms_cache.admin.pages.context import PageContext
from hms_cache.admin.status import CacheStatus, cache_status
from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName
from hms_cache.values import frozen

MAX_TABLES = 25


@frozen
class CachedTable:
    """A table in the cache. ``partitions_complete`` is None if its partitions are not cached."""

    name: str
    bytes: int
    facets: tuple[str, ...]
    reads: int
    load_s: float
    fence: int
    partitions: int
    partitions_missing: int
    partitions_complete: bool | None
    segments: int
    """Number of segments of its partitions, including empty ones."""
    segments_complete: int
    write_id_tag: str | None


@frozen
class CachePage:
    """The page."""

    status: CacheStatus
    position: int
    generation: int
    oversized_facets: int
    """Facets that were larger than the budget."""
    pending_refills: int
    encoded_replies: int
    """Encoded replies in memory."""
    excluded: int
    largest: tuple[CachedTable, ...]
    hottest: tuple[CachedTable, ...]
    slowest: tuple[CachedTable, ...]


def cache_page(context: PageContext) -> CachePage:
    """The page with the current state. Holds the cache's lock only while it copies the list of entries."""
    cache = context.sources.cache
    status = cache_status(context.sources)
    if cache is None:
        return CachePage(status, 0, 0, 0, 0, 0, 0, (), (), ())
    shared = cache.shared
    with shared.view():
        entries = list(shared.tables.items())
    excluded = sum(Facet.EXCLUDED in entry.facets for _, entry in entries)

    def first(rank: Callable[[Entry], float]) -> tuple[CachedTable, ...]:
        ranked = heapq.nlargest(MAX_TABLES, entries, key=lambda one: rank(one[1]))
        return tuple(table for key, entry in ranked if (table := cached_table(shared, key, entry)) is not None)

    return CachePage(
        status=status,
        position=shared.position,
        generation=shared.generation,
        oversized_facets=len(shared.too_large),
        pending_refills=len(shared.invalidated),
        encoded_replies=len(shared.answers),
        excluded=excluded,
        largest=first(weight_of_entry),
        hottest=first(shared.reads_of),
        slowest=first(lambda entry: entry.load_s),
    )


def weight_of_entry(entry: Entry) -> int:
    """The entry's weight in bytes. Called without the lock, so it copies the weights in one step."""
    return sum(tuple(entry.weights.values()))


def cached_table(shared: SharedCache, key: TableName, entry: Entry) -> CachedTable | None:
    """The cached table; None if it is not cached any more."""
    with shared.view():
        if not entry.facets:
            return None
        held = entry.facets.get(Facet.PARTITIONS)
        return CachedTable(
            name=shown_name(key),
            bytes=entry.weight(),
            facets=tuple(sorted(facet.value for facet in entry.facets)),
            reads=shared.reads_of(entry),
            load_s=entry.load_s,
            fence=entry.fence,
            partitions=len(held) if held is not None else 0,
            partitions_missing=len(held.missing) if held is not None else 0,
            partitions_complete=held.complete if held is not None else None,
            segments=len(held.segments) if held is not None else 0,
            segments_complete=sum(one.complete for one in held.segments) if held is not None else 0,
            write_id_tag=str(entry.tag) if entry.tag is not None else None,
        )


def shown_name(table: TableName) -> str:
    """`database.table`, preceded by the catalog unless it is the default one."""
    short = f"{table.database}.{table.table}"
    return short if table.catalog == DEFAULT_CATALOG else f"{table.catalog}.{short}"
