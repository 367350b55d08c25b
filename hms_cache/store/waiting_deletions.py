"""Directories that wait for a cleaner, and tables and partitions that are put there meanwhile.

An entry of the compaction queue that names a directory has a cleaner delete all of it, whatever lies there by then;
only of a partition it looks first whether one of that name is there again. What is put there would be lost. So the
entry goes with the write that puts it there. A cleaner marks an entry before it deletes, and leaves alone what it
cannot mark; where it has marked one already, the write is refused. Facts: `CompactionCleaner.clean`,
`CompactionTxnHandler.markCleanerStart` (Hive 4.0.1).
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
from hms_cache.store.engine.read_plans import Plan, Question, ask, carry_out
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
    """An entry of the queue that names a directory, as it is stored."""

    entry_id: int
    database: str
    table: str
    partition: str | None
    properties: str


_FEW_NAMES = 50
"""Directories, with those around them, up to which entries are looked at before they are read: reading one takes tens
of microseconds, and where nobody cleans there may be thousands."""


def waiting_deletions_plan(connection: Connection) -> Plan[list[WaitingDeletion]]:
    """All of them, which `release_places` takes: one question. To be asked after the names of what is put somewhere
    have been looked up."""
    if not has_table_drops(features_of(connection)):
        return []
    rows = yield from ask(Question(_QUEUED, {}))
    return [WaitingDeletion(*row) for row in rows]


def release_place(
    context: StoreContext, connection: Connection, table: Table, place: Location, partition: str | None = None
) -> None:
    """As `release_places`, of the directory of a table or of one partition, with a question of its own."""
    waiting = carry_out(connection, waiting_deletions_plan(connection))
    release_places(context, connection, table, [(partition, place)], waiting)


def release_places(
    context: StoreContext,
    connection: Connection,
    table: Table,
    places: Iterable[tuple[str | None, Location]],
    waiting: Sequence[WaitingDeletion],
) -> None:
    """Sees to it that no cleaner deletes these directories, each with the name of its partition, of a table that is put
    there.

    Raises MetaException where one has begun to.
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
                if around == first and _is_made_anew(table, name, entry):
                    stays.add(entry.entry_id)
    if not concerned:
        return
    # Locked: a cleaner marks them now, or after the commit, when it finds no entry, or the partition.
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
    """Those that may name one of the directories, or one around them: its last name stands at the end of what an entry
    names, before the length of what follows."""
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
    return "/." in text or "@" in text  # in no normal form, or with the keys of an account


def _is_made_anew(table: Table, partition: str | None, entry: WaitingDeletion) -> bool:
    """Whether it is the very partition that was dropped: while it is there, a cleaner deletes nothing of it but what
    its write ids tell is of no use any more."""
    return (
        partition is not None
        and table.catName == DEFAULT_CATALOG
        and (entry.database, entry.table, entry.partition)
        == (plain_database(table.dbName), plain_table(table.tableName), plain_partition(partition))
    )
