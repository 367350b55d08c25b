"""Every numbered promise that can be checked on a live cache, as one function.

Runs after each cache test and inside `verify`. A text per violation; none is the only good answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hms_cache.cache.entries import CATALOG_FACETS, DATABASE_FACETS, TABLE_FACETS, Entry, Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.table_indexes import TableIndexes
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.wire.codec import encode_struct

MOST_DECODED = 1_000
"""Partitions of a table, and tables, that are looked at, evenly spread: each costs some 20 µs under the lock."""


class InvariantViolation(AssertionError):
    """What is remembered contradicts itself; the text lists how."""


def check(cache: SharedCache) -> None:
    """Raises InvariantViolation with every contradiction found. Takes the cache's lock."""
    with cache.view():
        found = list(violations(cache))
    if found:
        raise InvariantViolation("\n".join(found))


def violations(cache: SharedCache) -> Iterator[str]:
    """The contradictions, as texts. The caller holds the lock."""
    if cache.position < -1:
        yield f"the position is {cache.position}"
    yield from _weights(cache)
    for catalog, entry in cache.catalogs.items():
        yield from _facets(catalog, entry, CATALOG_FACETS)
    for database, entry in cache.databases.items():
        yield from _facets(database, entry, DATABASE_FACETS)
        yield from _database(cache, database, entry)
    for table, entry in cache.tables.items():
        yield from _facets(table, entry, TABLE_FACETS)
        yield from _table(cache, table, entry)
    for table in [*cache.tables][:: len(cache.tables) // MOST_DECODED + 1]:
        entry = cache.tables[table]
        if Facet.TABLE in entry.facets and entry.encoded_table != encode_struct(entry.facets[Facet.TABLE]):
            yield f"P1: the encoding of {table} is not that of its table"
    for table_id, table in cache.names_by_id.items():
        named = cache.tables.get(table)
        if named is None or named.table_id != table_id:
            yield f"P6: table id {table_id} points to {table}, which has another id"
    held_answers = 0
    for entry in (*cache.catalogs.values(), *cache.databases.values(), *cache.tables.values()):
        held_answers += len(entry.answers)
        for request in entry.answers:
            answer = cache.answers.find(request)
            if answer is None or not answer.current:
                yield f"P1: an answer of {entry.key} is held and is not current"
    if held_answers != len(cache.answers):
        yield f"P1: {len(cache.answers)} answers are held, {held_answers} of them by entries"
    yield from _indexes(cache)
    for load in cache.loads:
        for event_id in load.effects.values():
            if event_id > cache.position and not load.abandoned:
                yield f"P1: a load of {load.key} saw event {event_id}, above the position {cache.position}"


def _indexes(cache: SharedCache) -> Iterator[str]:
    expected = TableIndexes()
    for table, entry in cache.tables.items():
        expected.note(table, entry)
    for name, right in vars(expected).items():
        found = getattr(cache.indexes, name)
        if found != right:
            yield f"P1: {name} has {found}, and what is held makes it {right}"


def _weights(cache: SharedCache) -> Iterator[str]:
    entries: list[Entry] = [*cache.catalogs.values(), *cache.databases.values(), *cache.tables.values()]
    total = sum(entry.weight() for entry in entries)
    if total != cache.weight:
        yield f"P11: entries weigh {total} bytes, the account says {cache.weight}"
    if cache.weight > cache.budget_bytes and len(entries) > 1:
        yield f"P11: {cache.weight} bytes are held with a budget of {cache.budget_bytes}"


def _facets(key: Any, entry: Entry, allowed: frozenset[Facet]) -> Iterator[str]:
    if entry.key != key:
        yield f"the entry of {key} says it is that of {entry.key}"
    if not entry.facets:
        yield f"the entry of {key} is empty"
    for facet in entry.facets.keys() - allowed:
        yield f"{key} has a facet of another kind: {facet}"
    if entry.facets.keys() != entry.weights.keys():
        yield f"P11: {key} has facets {set(entry.facets)} and is charged for {set(entry.weights)}"


def _database(cache: SharedCache, database: DatabaseName, entry: Entry) -> Iterator[str]:
    held = entry.facets.get(Facet.DATABASE)
    catalog = cache.catalogs.get(database.catalog)
    names = catalog.facets.get(Facet.DATABASE_NAMES) if catalog is not None else None
    if held is not None and held.name != database.database:
        yield f"P1: {database} holds the database {held.name}"
    if held is not None and names is not None and database.database not in names:
        yield f"P6: {database} is held but is not in the complete list of names"
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
            yield f"P6: {key} is held but is not in the complete list of names"
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
    if isinstance(partitions, PartitionSet):
        yield from _partitions(key, partitions, table)


def _partitions(key: TableName, partitions: PartitionSet, table: Any) -> Iterator[str]:
    names = partitions.names()
    if names != sorted(set(names)):
        yield f"P1: the partition names of {key} are not ascending"
    firsts = [segment.first for segment in partitions.segments]
    if firsts[0] or firsts != sorted(set(firsts)):
        yield f"P6: the segments of {key} do not lie side by side"
    for segment in partitions.segments:
        if segment.missing and not segment.complete:
            yield f"P6: {key} misses partitions of a segment that is not complete"
        covered, own = partitions.range_of(segment), segment.all()
        ends = own.subset(np.array([0, len(own) - 1])).names() if len(own) else []
        if not all(covered.holds(name) for name in ends):
            yield f"P6: a segment of {key} holds partitions of another's range"
    if table is not None and [field.name for field in table.partitionKeys or ()] != [k for k, _ in partitions.keys]:
        yield f"P1: the partitions of {key} have other keys than the table"
    for name in names[:: len(names) // MOST_DECODED + 1]:
        partition = partitions.find_name(name)
        if partition is None or partitions.name_of(partition.values) != name:
            yield f"P1: {key} holds another partition under {name}"
        elif tuple(partition.values) in partitions.missing:
            yield f"P1: {key} holds the partition {name}, which an event took out"
