"""Loads what will be asked, while calls are already answered (`cache.warm`).

First the names of everything, so that absence can be answered and evicted tables keep their name and type; then, with
`full`, whole tables: those used most before the restart first, then by name, in batches of one snapshot each. It never
evicts anything for its own sake: it stops when the memory budget is nearly full.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from hms_cache.cache.entries import Facet
from hms_cache.cache.loader import Loader
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.process_memory import give_back_freed_memory
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.snapshot_reads import Reader, Wanted
from hms_cache.notifications.scope import DatabaseName, TableName
from hms_cache.store.contract.snapshots import SnapshotStore
from hms_cache.store.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

T = TypeVar("T")

DATABASES_A_BATCH = 20
TABLES_A_BATCH = 50
"""Subjects in one snapshot: some tens of milliseconds of database time, so that calls wait for no long load."""

FULL_SHARE = 0.9
"""Part of the budget that is filled ahead: the rest is for what is asked meanwhile."""

REMEMBERED_TABLES = 10_000
"""Tables in the list that is kept over restarts: a megabyte, and more than the hot part of any catalog."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is. `total` is known once the names are; `done` counts tables loaded or found not cacheable."""

    done: int
    total: int | None
    finished: bool


class Prewarm:
    """`step` is called by a background task until `progress().finished`."""

    def __init__(
        self,
        cache: SharedCache,
        loader: Loader,
        store: SnapshotStore,
        policy: CachePolicy,
        *,
        tables: bool,
        most_used: Sequence[TableName] = (),
        read: Reader | None = None,
    ) -> None:
        """`tables`: load whole tables after the names. `most_used`: what to begin with, the most used first.
        `read`: how tables are read; None: by this process."""
        self._cache = cache
        self._loader = loader
        self._store = store
        self._policy = policy
        self._tables = tables
        self._most_used = list(most_used)
        self._read = read
        self._batches: Iterator[list[Wanted]] | None = None
        self._done = 0
        self._total: int | None = None
        self._finished = False
        self.ended_early = ""
        """Why it ended before everything was loaded; empty: it did not."""

    def progress(self) -> Progress:
        """How far it is."""
        return Progress(self._done, self._total, self._finished)

    def step(self) -> bool:
        """Loads one batch; False when there is nothing more to do. An outage of the database ends the warming up."""
        if self._finished:
            return False
        try:
            if self._batches is None:
                self._batches = self._plan()
            batch = next(self._batches, None)
            if batch is not None and self._is_full():
                self.ended_early = "the memory budget is nearly full"
            if batch is None or self.ended_early:
                self._finish()
                return False
            self._loader.load_ahead(batch, self._read)
        except DatabaseUnavailable as error:
            _log.warning("warming up ends early: %s", error)
            self._finished = True
            self.ended_early = str(error)
            return False
        self._done += sum(one.facet is Facet.TABLE for one in batch)
        return True

    def _finish(self) -> None:
        self._finished = True
        give_back_freed_memory()  # of the rows that were read
        _log.info("warmed up: %d of %s tables", self._done, self._total)

    def _is_full(self) -> bool:
        return self._cache.weight > FULL_SHARE * self._cache.budget_bytes

    def _plan(self) -> Iterator[list[Wanted]]:
        catalogs = self._store.get_catalog_names()
        self._loader.load([Wanted(catalog, Facet.DATABASE_NAMES) for catalog in catalogs])
        databases = [
            DatabaseName(catalog, name) for catalog in catalogs for name in self._store.get_database_names(catalog)
        ]
        return self._all_batches(databases)

    def _all_batches(self, databases: Sequence[DatabaseName]) -> Iterator[list[Wanted]]:
        for some in _batched(databases, DATABASES_A_BATCH):
            facets = [facet for facet in (Facet.DATABASE, Facet.TABLE_NAMES) if self._policy.may_cache(facet)]
            yield [Wanted(database, facet) for database in some for facet in facets]
        tables = self._known_tables(databases)
        self._total = len(tables)
        if not self._tables:
            return
        for names in _batched(tables, TABLES_A_BATCH):
            yield [Wanted(table, Facet.TABLE) for table in names]
            for table in names:
                if self._is_partitioned(table):
                    yield [Wanted(table, Facet.PARTITIONS)]

    def _known_tables(self, databases: Sequence[DatabaseName]) -> list[TableName]:
        """All tables whose names are held, the most used first."""
        found: dict[TableName, None] = {}
        with self._cache.lock:
            for database in databases:
                entry = self._cache.databases.get(database)
                for name in (entry.facets.get(Facet.TABLE_NAMES) if entry is not None else None) or ():
                    found[TableName(database.catalog, database.database, name)] = None
        first = [table for table in self._most_used if table in found]
        ordered = dict.fromkeys([*first, *found])
        return [table for table in ordered if self._policy.names_table(table)]

    def _is_partitioned(self, table: TableName) -> bool:
        with self._cache.lock:
            entry = self._cache.tables.get(table)
            held = entry.facets.get(Facet.TABLE) if entry is not None else None
            return bool(held is not None and held.partitionKeys)


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


# The list of the most used tables, kept over restarts


def most_used(cache: SharedCache) -> list[TableName]:
    """Cached tables that were read, the most read first."""
    with cache.lock:
        read = [(reads, key) for key, entry in cache.tables.items() if (reads := cache.reads_of(entry))]
    read.sort(key=lambda one: (-one[0], one[1]))
    return [key for _, key in read[:REMEMBERED_TABLES]]


def write_most_used(path: Path, tables: Sequence[TableName]) -> None:
    """Replaces the file; a half-written one is never seen. Raises OSError."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps([list(table) for table in tables]))
    os.replace(temporary, path)


def read_most_used(path: Path) -> list[TableName]:
    """The list of an earlier run; empty when there is none or it cannot be read."""
    try:
        return [TableName(*names) for names in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return []
