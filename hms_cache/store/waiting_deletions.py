"""Directories that are queued for deletion, when a table or partition is put there again.

An entry of the compaction queue that names a directory makes a cleaner delete the whole directory, whatever it contains
by then; only for a partition does it first check whether one of that name exists again. New files in the directory
would be lost. So the write that puts an object there also removes the entry. A cleaner marks an entry before it
deletes, and skips an entry that it cannot mark. If it has already marked the entry, the write is refused. Facts:
`CompactionCleaner.clean`, `CompactionTxnHandler.markCleanerStart` (Hive 4.0.1).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG, qualified
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import Plan, PlannedQuery, execute_plan, fetch
from hms_cache.store.schema import COMPACTION_QUEUE
from hms_cache.store.transactions.codes import READY_FOR_CLEANING
from hms_cache.store.transactions.names import plain_database, plain_partition, plain_table
from hms_cache.store.transactions.queued_drops import (
    LOCATION,
    forget_entries,
    from_counted_map,
    has_table_drops,
    names_a_directory,
)
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table

_LOG = logging.getLogger(__name__)

Q = COMPACTION_QUEUE.c

_QUEUED = DirectQuery(
    select(Q.CQ_ID, Q.CQ_DATABASE, Q.CQ_TABLE, Q.CQ_PARTITION, Q.CQ_TBLPROPERTIES).where(
        Q.CQ_STATE == READY_FOR_CLEANING, names_a_directory()
    )
)

_ENTRIES_IN_A_STATEMENT = 1000


class WaitingDeletion(NamedTuple):
    """An entry of the queue that names a directory, as stored."""

    entry_id: int
    database: str
    table: str
    partition: str | None
    properties: str


_FEW_NAMES = 50
"""Up to this many directory names (with those of parent directories), entries are searched as text before they are
parsed: parsing one takes tens of microseconds, and without a cleaner there may be thousands."""


def waiting_deletions_plan(connection: Connection) -> Plan[list[WaitingDeletion]]:
    """All such entries, for `release_locations`: one query. It has to be sent after the names of the new objects have
    been looked up."""
    if not has_table_drops(features_of(connection)):
        return []
    rows = yield from fetch(PlannedQuery(_QUEUED, {}))
    return [WaitingDeletion(*row) for row in rows]


def release_location(
    context: StoreContext, connection: Connection, table: Table, place: Location, partition: str | None = None
) -> None:
    """Like `release_locations`, for the directory of a table or of one partition, with a query of its own."""
    waiting = execute_plan(connection, waiting_deletions_plan(connection))
    release_locations(context, connection, table, [(partition, place)], waiting)


def release_locations(
    context: StoreContext,
    connection: Connection,
    table: Table,
    places: Iterable[tuple[str | None, Location]],
    waiting: Sequence[WaitingDeletion],
) -> None:
    """Makes sure that no cleaner deletes these directories, in which a table or partitions of it are created.

    `places`: each directory with the name of its partition, or None. Raises MetaException if a cleaner has already
    begun to delete one.
    """
    if not waiting:
        return
    put = [(name, place, place.spellings[0]) for name, place in places]
    by_place: dict[Location, list[WaitingDeletion]] = {}
    for entry in _worth_reading(waiting, [first for _, _, first in put]):
        with suppress(ValueError, MetaException):
            text = from_counted_map(entry.properties).get(LOCATION, "")
            by_place.setdefault(context.warehouse.location(text).spellings[0], []).append(entry)
    concerned: dict[int, tuple[WaitingDeletion, Location, Location]] = {}
    stays: set[int] = set()
    for name, place, first in put:
        for around in (first, *first.ancestors):
            for entry in by_place.get(around, ()):
                concerned[entry.entry_id] = (entry, around, place)
                if around == first and _is_recreated(table, name, entry):
                    stays.add(entry.entry_id)
    if not concerned:
        return
    # Locked: a cleaner marks the entries either before this, or after the commit, when the entry is gone or the
    # partition exists.
    started = func.coalesce(features_of(connection).column(Q.CQ_CLEANER_START), 0).label("STARTED")
    there: set[int] = set()
    for some in batches(sorted(concerned), _ENTRIES_IN_A_STATEMENT):
        for row in connection.execute(select(Q.CQ_ID, started).where(Q.CQ_ID.in_(some)).with_for_update()):
            entry, around, place = concerned[row.CQ_ID]
            if row.STARTED > 0:
                raise MetaException(
                    f"A cleaner has begun to delete {around}, where {entry.database}.{entry.table} was dropped, and all"
                    f" that is put there ({place}); try again when it is done"
                )
            there.add(row.CQ_ID)
    going = sorted(there - stays)
    forget_entries(connection, going)
    name = qualified(table.catName, table.dbName, table.tableName)
    for entry, around, place in (concerned[entry_id] for entry_id in going):
        of = ".".join(filter(None, (entry.database, entry.table, entry.partition)))
        _LOG.warning(
            "%s, which was to be deleted since %s was dropped, stays: %s is put at %s", around, of, name, place
        )


def _worth_reading(waiting: Sequence[WaitingDeletion], places: Sequence[Location]) -> Iterable[WaitingDeletion]:
    """The entries that may name one of the directories or a parent of it: the last name in the path stands at the end
    of the entry's location, before the length of the next item."""
    names = {one.name or one.authority for place in places for one in (place, *place.ancestors)}
    if len(names) > _FEW_NAMES:
        return waiting
    ends = ["/", *(f"/{name.lower()}" for name in sorted(names) if name)]
    return (entry for entry in waiting if _has_end(entry.properties, ends))


def _has_end(properties: str, ends: Sequence[str]) -> bool:
    text = properties.lower()
    for end in ends:
        at = text.find(end)
        while at >= 0:
            following = text[at + len(end) :].lstrip("/")[:1]
            if not following or following.isdigit():
                return True
            at = text.find(end, at + 1)
    return "/." in text or "@" in text  # not in normal form, or with the keys of an account


def _is_recreated(table: Table, partition: str | None, entry: WaitingDeletion) -> bool:
    """Whether this is the partition that was dropped, created again. While it exists, a cleaner deletes only those
    files of it that its write ids show to be obsolete."""
    return (
        partition is not None
        and table.catName == DEFAULT_CATALOG
        and (entry.database, entry.table, entry.partition)
        == (plain_database(table.dbName), plain_table(table.tableName), plain_partition(partition))
    )
