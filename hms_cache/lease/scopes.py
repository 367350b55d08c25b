"""The scope of a write: it may change nothing, only certain tables, or anything. Members learn it with the
announcement, and answer by lease only what the write does not change (P1). A write that changes nothing is not
announced.

Writes that only begin or end transactions, or allocate write ids, change *nothing* that memory answers. Which write ids
are valid, which transactions are open and which locks are held is always answered by the database. An answer about a
transactional table depends on its rows, whose changes have events of their own, and on the write-id list, if the
request carries one. Memory compares the list with the entry's tag: all that is valid in the list has to be valid in the
tag. If memory lacks the events, the tag has fewer valid write ids than there are. Then the database answers more often
than necessary, but no answer is wrong: a valid write id never becomes invalid unless its table is dropped.

A name is sent as a number, its hash. Two names with the same number may cost a read its lease, but never make it wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.notifications.event_types import ONLY_OF_ITS_TABLE, ONLY_OF_TRANSACTIONS, EventType
from hms_cache.notifications.events import EventRow

Scope = frozenset[int] | None
"""The tables, by `table_number`, for which a write changes answers that depend on that table alone; None: it may change
any answer.

Answers that depend on one table alone are those from its struct, its partitions and its statistics. Constraints are not
among them: altering a column changes the foreign keys of other tables that refer to it. No tables: `NOTHING`.
"""

EVERYTHING: Final = None
NOTHING: Final[frozenset[int]] = frozenset()

_OF_ONE_TABLE: Final = ONLY_OF_ITS_TABLE | {
    EventType.CREATE_TABLE,
    EventType.DROP_TABLE,
    EventType.RELOAD,
    EventType.ADD_PRIMARYKEY,
    EventType.ADD_UNIQUECONSTRAINT,
    EventType.ADD_NOTNULLCONSTRAINT,
    EventType.ADD_DEFAULTCONSTRAINT,
    EventType.ADD_CHECKCONSTRAINT,
    EventType.DROP_CONSTRAINT,
}
"""Event types that change such answers for the table in their row, and apart from them lists and constraints. Servers
of this project log the constraints of each table separately.

The absence of a table is an answer about it, too: such an answer uses nothing else of the list of its database's
tables.
"""

MAX_TABLES: Final = 8
"""Tables of one write that are named in its announcement, as many as fit into a message. Few writes have more than
two."""

_NUMBER_BYTES: Final = 8
_NAMES_KEPT: Final = 65_536
"""Numbers that are remembered: each hot read needs that of its table."""

_LONGEST_KEPT: Final = 640
"""Characters of names that are remembered: as many as the columns for a catalog, a database and a table hold. Names in
requests may be longer."""


def table_number(name: TableName) -> int:
    """The number of a table; equal on all servers."""
    return _kept_number(name) if sum(map(len, name)) <= _LONGEST_KEPT else _number_of(name)


def _number_of(name: TableName) -> int:
    text = "\0".join(name).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_NUMBER_BYTES).digest())


_kept_number = lru_cache(_NAMES_KEPT)(_number_of)


def scope_of(events: Iterable[EventRow]) -> Scope:
    """The scope of a write with these events; without events, everything."""
    tables, is_known = set(), False
    for event in events:
        is_known = True
        if _changes_nothing(event):
            continue
        is_of_table = event.event_type in _OF_ONE_TABLE or (
            event.event_type == EventType.ALTER_TABLE and event.keeps_name
        )
        if not is_of_table or not event.catalog or not event.database or not event.table:
            return EVERYTHING
        tables.add(table_number(table_name(event.catalog, event.database, event.table)))
    return frozenset(tables) if is_known and len(tables) <= MAX_TABLES else EVERYTHING


def _changes_nothing(event: EventRow) -> bool:
    if event.event_type == EventType.COMMIT_TXN:
        return event.keeps_tables
    return event.event_type in ONLY_OF_TRANSACTIONS
