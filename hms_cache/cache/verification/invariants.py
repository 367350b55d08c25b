"""Every numbered promise that can be checked on a live cache, in one function.

Runs after each cache test and as part of `verify`. Returns a text for each violation; it should return none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from hms_cache.batches import batches
from hms_cache.cache.entries import CATALOG_FACETS, DATABASE_FACETS, STATISTICS, TABLE_FACETS, Entry, Facet, Key
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Segment
from hms_cache.cache.partitions.segment_rows import SegmentRows
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.statistics_by_column import CachedStatistics
from hms_cache.cache.table_indexes import TableIndexes
from hms_cache.metadata.name_ranges import NameRange
from hms_cache.metadata.names import is_among
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.wire.codec import encode_struct

MAX_DECODED = 1_000
"""Number of tables, and of partitions in a table, that are decoded, evenly spread."""

SUBJECTS_AT_ONCE = 50
PARTITIONS_AT_ONCE = 50
MEMBERS_AT_ONCE = 2_000
"""Number of subjects that are checked before the lock is released for others: some milliseconds."""


class InvariantViolation(AssertionError):
    """The cache contradicts itself; the text lists how."""


def check(cache: SharedCache, subjects: Sequence[Key] | None = None, go_on: Callable[[], bool] = lambda: True) -> None:
    """Raises InvariantViolation with every contradiction found, until `go_on` returns False.

    `subjects`: checks these, not all entries, and the sums over all. Takes the cache's lock for some subjects at a
    time: reads wait for it.
    """
    with cache.view():
        found = [*_account(cache)]
        if subjects is None:
            subjects = [*cache.catalogs, *cache.databases, *cache.tables]
        by_id = list(cache.names_by_id.items())
        indexed = {name: _members(index) for name, index in vars(cache.indexes).items()}
    encoded_every = len(subjects) // MAX_DECODED + 1
    for first in range(0, len(subjects), SUBJECTS_AT_ONCE):
        if not go_on():
            break
        snapshots = []
        with cache.view():
            for number, key in enumerate(subjects[first : first + SUBJECTS_AT_ONCE], first):
                entry = cache.entry(key)
                if entry is None:
                    continue
                found += _subject(cache, key, entry, is_decoded=number % encoded_every == 0)
                cached = entry.facets.get(Facet.PARTITIONS)
                if isinstance(cached, PartitionSet) and isinstance(key, TableName):
                    snapshots.append(
                        _PartitionsSnapshot(key, entry, entry.version, cached, cached.segments, [*_segments(cached)])
                    )
        for snapshot in snapshots:
            found += _partitions(cache, snapshot)
    for some in batches(by_id, MEMBERS_AT_ONCE):
        with cache.view():
            found += _ids(cache, some)
    for name, members in indexed.items():
        for tables in batches(members, MEMBERS_AT_ONCE):
            with cache.view():
                found += _indexed(cache, name, tables)
    if found:
        raise InvariantViolation("\n".join(found))


def _account(cache: SharedCache) -> Iterator[str]:
    """Checks the sums over all entries. The caller holds the lock, as for all functions below that do not say
    otherwise."""
    if cache.position < -1:
        yield f"the position is {cache.position}"
    yield from _weights(cache)
    if not all(cache.indexes.by_database.values()):
        yield "P1: by_database has a database of which no table is cached"
    cached_answers = sum(
        len(one.answers) for of in (cache.catalogs, cache.databases, cache.tables) for one in of.values()
    )
    if cached_answers != len(cache.answers):
        yield f"P1: {len(cache.answers)} answers are cached, {cached_answers} of them by entries"
    for load in cache.loads:
        for event_id in load.effects.values():
            if event_id > cache.position and not load.abandoned:
                yield f"P1: a load of {load.key} saw event {event_id}, above the position {cache.position}"


def _subject(cache: SharedCache, key: Key, entry: Entry, *, is_decoded: bool) -> Iterator[str]:
    if isinstance(key, TableName):
        yield from _facets(cache, key, entry, TABLE_FACETS)
        yield from _table(cache, key, entry)
        table = entry.facets.get(Facet.TABLE) if is_decoded else None
        if table is not None and entry.encoded_table != encode_struct(table):
            yield f"P1: the encoding of {key} is not that of its table"
        expected = TableIndexes()
        expected.note(key, entry)
        for name, index in vars(expected).items():
            if (key in _members(index)) != _is_indexed(getattr(cache.indexes, name), key):
                yield f"P1: {name} and {key} do not fit"
    elif isinstance(key, DatabaseName):
        yield from _facets(cache, key, entry, DATABASE_FACETS)
        yield from _database(cache, key, entry)
    else:
        yield from _facets(cache, key, entry, CATALOG_FACETS)
    for request in entry.answers:
        answer = cache.answers.find(request)
        if answer is None or not answer.current:
            yield f"P1: an answer of {key} is cached and is not current"


def _members(index: set[TableName] | dict[DatabaseName, set[TableName]]) -> list[TableName]:
    return [*chain.from_iterable(index.values())] if isinstance(index, dict) else [*index]


def _is_indexed(index: set[TableName] | dict[DatabaseName, set[TableName]], table: TableName) -> bool:
    return table in (index.get(table.in_database, ()) if isinstance(index, dict) else index)


def _indexed(cache: SharedCache, name: str, tables: Iterable[TableName]) -> Iterator[str]:
    index = getattr(cache.indexes, name)
    for table in tables:
        if table not in cache.tables and _is_indexed(index, table):
            yield f"P1: {name} has {table}, of which nothing is cached"


def _ids(cache: SharedCache, some: Iterable[tuple[int, TableName]]) -> Iterator[str]:
    for table_id, table in some:
        named = cache.tables.get(table)
        if cache.names_by_id.get(table_id) == table and (named is None or named.table_id != table_id):
            yield f"P6: table id {table_id} points to {table}, which has another id"


def _weights(cache: SharedCache) -> Iterator[str]:
    entries: list[Entry] = [*cache.catalogs.values(), *cache.databases.values(), *cache.tables.values()]
    total = sum(entry.weight() for entry in entries)
    if total != cache.weight:
        yield f"P11: entries weigh {total} bytes, the account says {cache.weight}"
    if sum(cache.statistics.values()) != cache.statistics_weight or any(
        key not in cache.tables for key, _ in cache.statistics
    ):
        yield f"P11: statistics weigh {dict(cache.statistics)}, the account says {cache.statistics_weight}"
    if cache.weight > cache.budget_bytes and len(entries) > 1:
        yield f"P11: {cache.weight} bytes are cached with a budget of {cache.budget_bytes}"


def _facets(cache: SharedCache, key: Any, entry: Entry, allowed: frozenset[Facet]) -> Iterator[str]:
    if entry.key != key:
        yield f"the entry of {key} says it is that of {entry.key}"
    if not entry.facets:
        yield f"the entry of {key} is empty"
    for facet in entry.facets.keys() - allowed:
        yield f"{key} has a facet of another kind: {facet}"
    if entry.facets.keys() != entry.weights.keys():
        yield f"P11: {key} has facets {set(entry.facets)} and is charged for {set(entry.weights)}"
    for facet in STATISTICS & allowed:
        if cache.statistics.get((key, facet)) != entry.weights.get(facet):
            yield f"P11: {facet.value} of {key} do not weigh what the account says"
    for facet, value in entry.facets.items():
        if isinstance(value, CachedStatistics) and value.weight != entry.weights.get(facet):
            yield f"P11: {facet.value} of {key} weigh {value.weight} and are charged with {entry.weights.get(facet)}"


def _database(cache: SharedCache, database: DatabaseName, entry: Entry) -> Iterator[str]:
    cached = entry.facets.get(Facet.DATABASE)
    catalog = cache.catalogs.get(database.catalog)
    names = catalog.facets.get(Facet.DATABASE_NAMES) if catalog is not None else None
    if cached is not None and cached.name != database.database:
        yield f"P1: {database} holds the database {cached.name}"
    if cached is not None and names is not None and not is_among(names, database.database):
        yield f"P6: {database} is cached but is not in the complete list of names"
    for name, meta in (entry.facets.get(Facet.TABLE_NAMES) or {}).items():
        if meta.tableName != name or meta.dbName != database.database:
            yield f"P6: {database} lists {meta.dbName}.{meta.tableName} under {name}"


def _table(cache: SharedCache, key: TableName, entry: Entry) -> Iterator[str]:
    table = entry.facets.get(Facet.TABLE)
    database = cache.databases.get(key.in_database)
    names = database.facets.get(Facet.TABLE_NAMES) if database is not None else None
    if table is not None:
        if (table.dbName, table.tableName) != (key.database, key.table):
            yield f"P1: {key} holds the table {table.dbName}.{table.tableName}"
        if entry.table_id != table.id:
            yield f"P2: {key} is known as table {entry.table_id} and holds table {table.id}"
        if table.id is not None and cache.names_by_id.get(table.id) != key:
            yield f"P2: table {table.id} is not indexed as {key}"
        if names is not None and key.table not in names:
            yield f"P6: {key} is cached but is not in the complete list of names"
        if Facet.EXCLUDED in entry.facets:
            yield f"{key} is both cached and excluded"
    elif entry.table_id is not None or entry.tag is not None or entry.encoded_table is not None:
        yield f"P2: {key} has an id, a tag or an encoding without its table"
    if entry.tag is not None:
        if not entry.is_transactional:
            yield f"P2: {key} has a tag and is not transactional"
        elif not entry.tag.is_for_table(f"{key.database}.{key.table}") or entry.tag.is_no_list:
            yield f"P2: the tag of {key} is {entry.tag}"
    partitions = entry.facets.get(Facet.PARTITIONS)
    if table is not None and isinstance(partitions, PartitionSet):
        keys = [field.name for field in table.partitionKeys or ()]
        if keys != [name for name, _ in partitions.keys]:
            yield f"P1: the partitions of {key} have other keys than the table"


class _SegmentSnapshot(NamedTuple):
    """A segment as it was under the lock."""

    covered: NameRange
    rows: SegmentRows
    misses_some: bool
    """Whether there are missing values in it. In a segment that is not complete, there must be none."""
    complete: bool


class _PartitionsSnapshot(NamedTuple):
    """The partitions of a table as they were under the lock."""

    key: TableName
    entry: Entry
    version: int
    cached: PartitionSet
    of: tuple[Segment, ...]
    """What `segments` tells of."""
    segments: Sequence[_SegmentSnapshot]

    def is_as_it_was(self, cache: SharedCache) -> bool:
        """Whether no event has changed it, and nothing of it was evicted. Under the lock."""
        is_same = cache.entry(self.key) is self.entry and self.entry.version == self.version
        return is_same and self.cached.segments is self.of


def _segments(partitions: PartitionSet) -> Iterator[_SegmentSnapshot]:
    for one in partitions.segments:
        yield _SegmentSnapshot(partitions.range_of(one), one.all(), bool(one.missing), one.complete)


def _partitions(cache: SharedCache, snapshot: _PartitionsSnapshot) -> Iterator[str]:
    """Runs without the lock, except for some names at a time, as long as the partitions are unchanged."""
    key, segments = snapshot.key, snapshot.segments
    firsts = [one.covered.first for one in segments]
    if firsts[0] or firsts != sorted(set(firsts)):
        yield f"P6: the segments of {key} do not lie side by side"
    every = sum(len(one.rows) for one in segments) // MAX_DECODED + 1
    last, chosen = "", []
    for one in segments:
        if one.misses_some and not one.complete:
            yield f"P6: {key} misses partitions of a segment that is not complete"
        names = one.rows.names()
        ascending = [last, *names] if last else names
        if any(before >= after for before, after in pairwise(ascending)):
            yield f"P1: the partition names of {key} are not ascending"
        if not all(one.covered.holds(name) for name in (*names[:1], *names[-1:])):
            yield f"P6: a segment of {key} holds partitions of another's range"
        last = names[-1] if names else last
        chosen += names[::every]
    for some in batches(chosen, PARTITIONS_AT_ONCE):
        with cache.view():
            if not snapshot.is_as_it_was(cache):
                return
            yield from [*_named(key, snapshot.cached, some)]


def _named(key: TableName, partitions: PartitionSet, names: Iterable[str]) -> Iterator[str]:
    missing = partitions.missing
    for name in names:
        partition = partitions.find_name(name)
        if partition is None or partitions.name_of(partition.values) != name:
            yield f"P1: {key} holds another partition under {name}"
        elif tuple(partition.values) in missing:
            yield f"P1: {key} holds the partition {name}, which an event took out"
