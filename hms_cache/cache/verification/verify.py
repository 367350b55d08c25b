"""Compares the cache with the database: every facet, what belongs to it, and the replies that are kept.

Each subject is read in a snapshot as by a load, with a slot, so that events which arrive meanwhile are not reported as
differences. It is compared with the store, never with the cache.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hms_cache.cache.answers import Reply
from hms_cache.cache.entries import (
    CATALOG_FACETS,
    DATABASE_FACETS,
    TABLE_FACETS,
    CatalogKey,
    Entry,
    Facet,
    Key,
)
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.verification import invariants
from hms_cache.cache.verification.verify_tables import EntryCopy, read_table, table_differences
from hms_cache.cache.warming.loader import Loader
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.snapshots import StoreReads
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException

T = TypeVar("T")

KeptReplies = Callable[[bytes], Callable[[Reply], str | None]]
"""Asks the store for the answer to a request whose reply is kept, by its bytes. The result tells how a reply differs
from the store's, None if it does not. Called within a snapshot."""

_SEQUENCE = bytes(4)


COMPARED = ("tables", "partitions", "statistics", "databases", "catalogs", "replies")
"""What a report counts. Statistics: columns that have them, and aggregates; replies: encoded ones that are kept."""


@dataclass(slots=True)
class Report:
    """What was compared, and the differences."""

    compared: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COMPARED, 0))
    undecided: int = 0
    """Subjects that changed while they were compared, or that were evicted."""
    differences: list[str] = field(default_factory=list)


def verify(
    cache: SharedCache,
    store: StoreReads,
    loader: Loader,
    *,
    sample: int | None = None,
    seed: int | None = None,
    keys: Sequence[TableName] | None = None,
    databases: Sequence[DatabaseName] | None = None,
    catalogs: Sequence[CatalogKey] | None = None,
    replies: KeptReplies | None = None,
    progress: Callable[[int, int], bool] | None = None,
) -> Report:
    """Compares all entries, or these tables (`keys`), `databases` and `catalogs`, after their invariants.

    A table with its constraints, tag, partitions and statistics; a database with the names of its tables and functions;
    a catalog with the names of its databases; each as far as it is held. `sample`: number of tables and of databases,
    chosen by `seed`. `replies`: also compares the replies that are kept. `progress` gets the number of compared
    subjects and of all, and returns whether to go on. Raises DatabaseUnavailable.
    """
    with cache.view():
        keys = list(cache.tables) if keys is None else keys
        databases = list(cache.databases) if databases is None else databases
        catalogs = list(cache.catalogs) if catalogs is None else catalogs
    if sample is not None:
        chosen = random.Random(seed)
        keys = chosen.sample(keys, min(sample, len(keys)))
        databases = chosen.sample(databases, min(sample, len(databases)))
    comparison = _Comparison(cache, store, loader, replies)
    chosen_keys: list[Key] = [*catalogs, *databases, *keys]
    invariants.check(cache, chosen_keys, lambda: progress is None or progress(0, len(chosen_keys)))
    subjects: list[tuple[Callable[[Any], None], Key]] = [
        *((comparison.compare_table, key) for key in keys),
        *((comparison.compare_database, database) for database in databases),
        *((comparison.compare_catalog, catalog) for catalog in catalogs),
    ]
    for done, (compare, subject) in enumerate(subjects, start=1):
        compare(subject)
        if progress is not None and not progress(done, len(subjects)):
            break
    return comparison.report


class _Comparison:
    """One run; `report` grows."""

    def __init__(self, cache: SharedCache, store: StoreReads, loader: Loader, replies: KeptReplies | None) -> None:
        self.report = Report()
        self._cache = cache
        self._store = store
        self._loader = loader
        self._replies = replies

    def compare_table(self, key: TableName) -> None:
        """Compares a table with everything held of it."""
        found = self._compare(key, TABLE_FACETS, lambda cached: read_table(self._store, key, cached))
        if found is None:
            return
        cached, stored = found
        self.report.compared["tables"] += 1
        self.report.compared["partitions"] += len(cached.partitions) if cached.partitions is not None else 0
        self.report.compared["statistics"] += cached.count_of_statistics()
        self.report.differences.extend(table_differences(key, cached, stored))

    def compare_database(self, key: DatabaseName) -> None:
        """Compares the database itself, and the complete sets of names of its tables and functions (P6)."""

        def read(cached: EntryCopy) -> dict[Facet, Any]:
            try:
                stored: dict[Facet, Any] = {Facet.DATABASE: self._store.databases.get_database(DatabaseName(*key))}
            except NoSuchObjectException:
                return {}
            if Facet.TABLE_NAMES in cached.facets:
                found = self._store.read_meta_of_database(key)
                stored[Facet.TABLE_NAMES] = {meta.tableName: meta for meta in found if meta.dbName == key.database}
            if Facet.FUNCTIONS in cached.facets:
                stored[Facet.FUNCTIONS] = self._store.functions.get_functions(key.catalog, key.database)
            return stored

        found = self._compare(key, DATABASE_FACETS, read)
        if found is not None:
            self.report.compared["databases"] += 1
            self.report.differences.extend(_plain_differences(".".join(key), *found))

    def compare_catalog(self, key: CatalogKey) -> None:
        """Compares the complete list of its databases' names (P6)."""

        def read(_copy: EntryCopy) -> dict[Facet, Any]:
            try:
                return {Facet.DATABASE_NAMES: self._store.databases.get_database_names(key)}
            except NoSuchObjectException:
                return {}

        found = self._compare(key, CATALOG_FACETS, read)
        if found is not None:
            self.report.compared["catalogs"] += 1
            self.report.differences.extend(_plain_differences(key, *found))

    def _compare(
        self, key: Key, facets: frozenset[Facet], read: Callable[[EntryCopy], T]
    ) -> tuple[EntryCopy, T] | None:
        """The entry and what the database has, at one position; None if something happened meanwhile.

        Kept replies are compared here, since they, too, are of that position.
        """
        cache = self._cache
        slot = cache.begin_load(key, facets)
        try:
            with cache.view():
                entry = cache.entry(key)
                before = _copy(entry) if entry is not None else None
                requests = list(entry.answers) if entry is not None and self._replies is not None else []
            if before is None:
                self.report.undecided += 1
                return None
            with self._store.snapshot() as snapshot:
                stored = read(before)
                fence = snapshot().event_id
                repliers = {request: self._replies(request) for request in requests if self._replies is not None}
            if not self._loader.apply_up_to(fence):
                self.report.undecided += 1
                return None
            with cache.view():
                entry = cache.entry(key)
                late = any(event_id > fence for event_id in slot.effects.values())
                if entry is None or slot.abandoned or late or entry.facets.keys() - before.facets.keys():
                    self.report.undecided += 1
                    return None
                cached = _copy(entry)
                kept = {request: cache.answers.find(request) for request in repliers if request in entry.answers}
        finally:
            cache.end_load(slot)
        label = key if isinstance(key, str) else ".".join(key)
        for request, answer in kept.items():
            difference = repliers[request](answer.render(_SEQUENCE)) if answer is not None else None
            self.report.compared["replies"] += 1
            if difference is not None:
                self.report.differences.append(f"{label}: a cached reply differs: {difference}")
        return cached, stored


def _copy(entry: Entry) -> EntryCopy:
    """Under the lock. Structs do not change, what grows in place is copied, and partitions are decoded without the
    lock."""
    facets: dict[Facet, Any] = {**entry.facets}
    for facet in (Facet.TABLE_STATISTICS, Facet.PARTITION_STATISTICS):
        if facet in facets:
            facets[facet] = {
                key: dict(answer) if isinstance(answer, dict) else answer for key, answer in facets[facet].items()
            }
    partitions = facets.get(Facet.PARTITIONS)
    cached = partitions if isinstance(partitions, PartitionSet) else None
    return EntryCopy(
        facets=facets,
        tag=entry.tag,
        is_transactional=entry.is_transactional,
        has_commit_parameters=entry.has_commit_parameters,
        partitions=cached.all() if cached is not None else None,
        whole=cached is not None and cached.whole,
    )


def _plain_differences(label: str, cached: EntryCopy, stored: dict[Facet, Any]) -> Iterable[str]:
    for facet, value in cached.facets.items():
        if value != stored.get(facet):
            yield f"{label}: {facet.value} differ: cached {value}, database {stored.get(facet)}"
