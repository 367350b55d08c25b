"""Loads what will be needed, while calls are already answered (`cache.warm`).

First the names of everything, so that memory can answer that an object does not exist, and evicted tables keep their
name and type. Then, with `full`, whole tables: those used most before the restart first, then by name, in batches with
one snapshot each. It evicts nothing: it stops when the memory budget is nearly full.
"""

from __future__ import annotations

import heapq
import json
import logging
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from hms_cache.batches import batches
from hms_cache.cache.entries import Facet
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.process_memory import give_back_freed_memory
from hms_cache.cache.warming.snapshot_reads import LoadRequest, Reader
from hms_cache.clock import elapsed_s
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.snapshots import StoreReads
from hms_cache.values import frozen

_log = logging.getLogger(__name__)


DATABASES_A_BATCH = 20
TABLES_A_BATCH = 50
"""Subjects in one snapshot: some tens of milliseconds of database time, so that no call waits for a long load."""

_OF_TABLES = (Facet.TABLE, Facet.PARTITIONS)

REMEMBERED_TABLES = 10_000
"""Tables in the list that is kept over restarts: a megabyte, and more than the frequently used part of any catalog."""


@frozen
class Progress:
    """The progress. `total` is known once the names are loaded; `done` counts tables that were loaded or found not to
    be cacheable."""

    done: int
    total: int | None
    finished: bool


class Prewarm:
    """`step` of each task is called by a background thread of its own until it returns False.

    The first task loads names. Whole tables are divided among the tasks, so that one task computes while the database
    runs the query of another. Each task has its share from the beginning, and takes from the share of another when its
    own is empty. So the tasks of all workers of a server ask for the same tables in the same order, and one process
    reads them for all workers. `_lock` guards what tasks share.
    """

    def __init__(
        self,
        cache: SharedCache,
        loader: Loader,
        store: StoreReads,
        policy: CachePolicy,
        *,
        tables: bool,
        most_used: Sequence[TableName] = (),
        reads: Sequence[Reader | None] = (None,),
    ) -> None:
        """`tables`: load whole tables after the names. `most_used`: tables to begin with, the most used first. `reads`:
        how each task reads tables; None: by this process."""
        self._cache = cache
        self._loader = loader
        self._store = store
        self._policy = policy
        self._whole_tables = tables
        self._most_used = list(most_used)
        self._lock = threading.Lock()
        self._shares: list[deque[list[TableName]]] | None = None
        """Batches that no task has taken, by the task that they are for; None: the names are not loaded yet."""
        self._done = 0
        self._total: int | None = None
        self._finished = False
        self.ended_early = ""
        """Why it ended before everything was loaded; empty: it did not."""
        self.outage_at_s: float | None = None
        """When it was ended by an outage of the database, by the poller's clock; None: it was not."""
        self.tasks = tuple(
            PrewarmTask(self, number, read, None if number else self._plan()) for number, read in enumerate(reads)
        )
        self._at_work = len(self.tasks)

    def progress(self) -> Progress:
        """The present progress."""
        return Progress(self._done, self._total, self._finished)

    def step(self) -> bool:
        """Like `PrewarmTask.step`, of all tasks in turn."""
        going_on = [task.step() for task in self.tasks]
        return any(going_on)

    def load(self, batch: Sequence[LoadRequest], read: Reader | None) -> None:
        """For a task: loads what it has taken. Raises DatabaseUnavailable."""
        self._loader.load_ahead(batch, read)
        with self._lock:
            self._done += sum(one.facet is Facet.TABLE for one in batch)

    def next_tables(self, number: int, *, has_some: bool) -> list[TableName] | None:
        """For the task of this number: the next tables; none yet while names are loaded; None: there are no more, or no
        more fit.

        `has_some`: the task has something left that did not fit.
        """
        with self._lock:
            if self._finished or self.ended_early:
                return None
            if self._shares is None:
                return []
            if (any(self._shares) or has_some) and self._cache.is_filled_ahead:
                self.ended_early = "the memory budget is nearly full"
                return None
            own = self._shares[number]
            if own:
                return own.popleft()
            longest = max(self._shares, key=len)
            return longest.pop() if longest else None

    def task_ended(self, outage: str = "") -> None:
        """For a task: it has ended. Prewarming ends with the last task, or with an outage of the database."""
        with self._lock:
            self._at_work -= 1
            if self._finished or (self._at_work and not outage):
                return
            self._finished = True
            self.ended_early = self.ended_early or outage
            if outage:
                # In one step with the end: another task may check at once whether the database has been reached since.
                self.outage_at_s = elapsed_s()
        if outage:
            _log.warning("the prewarm ends early: %s", outage)
            return
        give_back_freed_memory()  # of the rows that were read
        _log.info("warmed up: %d of %s tables", self._done, self._total)

    def abandon(self, reason: str) -> None:
        """Ends it, because another prewarm takes its place."""
        with self._lock:
            self._finished = True
            self.ended_early = self.ended_early or reason

    def is_full(self) -> bool:
        """Whether it has filled its part of the budget."""
        return self._cache.is_filled_ahead

    def is_partitioned(self, table: TableName) -> bool:
        """Whether it is held, and has partition keys."""
        with self._cache.view():
            entry = self._cache.tables.get(table)
            cached = entry.facets.get(Facet.TABLE) if entry is not None else None
            return bool(cached is not None and cached.partitionKeys)

    def _plan(self) -> Iterator[list[LoadRequest]]:
        """Yields batches of names. At the end, the tables are known."""
        catalogs = self._store.catalogs.get_catalog_names()
        yield self._missing([LoadRequest(catalog, Facet.DATABASE_NAMES) for catalog in catalogs])
        databases = [
            DatabaseName(catalog, name)
            for catalog in catalogs
            for name in self._store.databases.get_database_names(catalog)
        ]
        for some in batches(databases, DATABASES_A_BATCH):
            facets = [facet for facet in (Facet.DATABASE, Facet.TABLE_NAMES) if self._policy.may_cache(facet)]
            yield self._missing([LoadRequest(database, facet) for database in some for facet in facets])
        tables = [table for table in self._tables_to_load(databases) if not self._holds(table)]
        with self._lock:
            self._total = len(tables)
            dealt = list(batches(tables if self._whole_tables else [], TABLES_A_BATCH))
            self._shares = [deque(dealt[number :: len(self.tasks)]) for number in range(len(self.tasks))]

    def _missing(self, requested: Sequence[LoadRequest]) -> list[LoadRequest]:
        """Those that are not held: a cache dump may have brought some."""
        with self._cache.view():
            entries = [self._cache.entry(one.key) for one in requested]
            return [
                one
                for one, entry in zip(requested, entries, strict=True)
                if entry is None or one.facet not in entry.facets
            ]

    def _holds(self, table: TableName) -> bool:
        """Whether the table, and every partition that it has, is held."""
        with self._cache.view():
            entry = self._cache.tables.get(table)
            cached = entry.facets.get(Facet.TABLE) if entry is not None else None
            if entry is None or cached is None:
                return False
            partitions = entry.facets.get(Facet.PARTITIONS)
            return not cached.partitionKeys or (partitions is not None and partitions.complete)

    def _tables_to_load(self, databases: Sequence[DatabaseName]) -> list[TableName]:
        """All tables whose names are held, the most used first."""
        found: dict[TableName, None] = {}
        with self._cache.view():
            for database in databases:
                entry = self._cache.databases.get(database)
                for name in (entry.facets.get(Facet.TABLE_NAMES) if entry is not None else None) or ():
                    found[TableName(database.catalog, database.database, name)] = None
        first = [table for table in self._most_used if table in found]
        ordered = dict.fromkeys([*first, *found])
        return [table for table in ordered if self._policy.names_table(table)]


class PrewarmTask:
    """One of the tasks that load side by side. Not thread-safe."""

    def __init__(
        self, prewarm: Prewarm, number: int, read: Reader | None, names: Iterator[list[LoadRequest]] | None
    ) -> None:
        self._prewarm = prewarm
        self._number = number
        self.read = read
        """How it reads tables; None: by this process."""
        self._names = names
        self._partitions: deque[TableName] = deque()
        """Tables of the last batch whose partitions are next."""
        self._has_left = False
        self.is_waiting = False
        """Whether the last step had nothing to do yet."""

    def step(self) -> bool:
        """Loads one batch; False if there is nothing more to do. An outage of the database ends the prewarm.

        Raises the errors of a load, which skips its batch; and the errors of reading the names, which end the prewarm,
        since the other tasks would wait for the names for ever.
        """
        if self._has_left:
            return False
        try:
            batch = self._next_batch()
            if batch:
                self._prewarm.load(batch, self.read if batch[0].facet in _OF_TABLES else None)
        except DatabaseUnavailable as error:
            self._has_left = True
            self._prewarm.task_ended(str(error))
            return False
        self.is_waiting = not batch
        if batch is None:
            self._has_left = True
            self._prewarm.task_ended()
        return batch is not None

    def _next_batch(self) -> list[LoadRequest] | None:
        """What to load next; empty: not known yet; None: nothing more."""
        if self._names is not None:
            try:
                batch = next(self._names, None)
            except DatabaseUnavailable:
                raise
            except Exception as error:
                self._has_left = True
                self._prewarm.abandon(f"the names of all tables could not be read: {error}")
                raise
            if batch is not None:
                return batch
            self._names = None
        while self._partitions and not self._prewarm.is_full():
            table = self._partitions.popleft()
            if self._prewarm.is_partitioned(table):
                return [LoadRequest(table, Facet.PARTITIONS)]
        tables = self._prewarm.next_tables(self._number, has_some=bool(self._partitions))
        self._partitions = deque(tables or ())
        return None if tables is None else [LoadRequest(table, Facet.TABLE) for table in tables]


# The list of the most used tables, kept over restarts


def most_used(cache: SharedCache) -> list[TableName]:
    """Tables that were read from memory, the most read first, including those that a reset or an event has dropped."""
    with cache.view():
        counts = dict(cache.reads_before)
        cached = list(cache.tables.items())
    # Without the lock, since counting the reads of 50,000 tables takes time.
    counts.update((key, reads) for key, entry in cached if (reads := cache.reads_of(entry)))
    return [key for key, _ in heapq.nsmallest(REMEMBERED_TABLES, counts.items(), key=lambda one: (-one[1], one[0]))]


def write_most_used(path: Path, tables: Sequence[TableName]) -> None:
    """Replaces the file; a half-written one is never seen, and no link is followed. Raises OSError."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        json.dump([list(table) for table in tables], file)
    os.replace(temporary, path)


def read_most_used(path: Path) -> list[TableName]:
    """The list of an earlier run; empty when there is none or it cannot be read."""
    try:
        found = [TableName(*names) for names in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, RecursionError):
        return []
    return found if all(isinstance(name, str) for table in found for name in table) else []
