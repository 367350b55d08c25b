"""What a write may change: nothing, some tables, each by itself, or anything. Members hear it with the announcement,
and answer by lease only what it does not change (P1). A write that changes nothing is not announced.

*Nothing*, of what memory answers: transactions that begin or end, and write ids. Which write ids are valid, which
transactions are open and which locks are held is always answered by the database. An answer about a transactional table
comes from its rows, which change with events of their own, and, if the request carries a list of write ids, from that
list. Memory compares it to the entry's tag: all that is valid in the list has to be valid in the tag. Without the
events the tag has fewer valid write ids than there are, so the database answers what it need not, and nothing is
answered that is not so: a write id that was valid never becomes invalid but with its table.

A name is sent as a number, its hash: two names with one number cost a read its lease, and never make it wrong.
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
"""The tables, by `table_number`, of which a write changes answers about that table alone, or, None, any answer.

Answers about one table alone are those from its struct, its partitions and its statistics. Constraints are not: an
alter of a column changes the foreign keys of other tables that end at it. None of them: `NOTHING`.
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
"""Event types that change such answers about the table that their row names, and lists and constraints beside. Servers
of this project log the constraints of each table by themselves.

That a table is not there is an answer about it, too: the list of its database is asked for nothing else then.
"""

MAX_TABLES: Final = 8
"""Tables of one write that are told one by one: so many fit into a message. Few writes have more than two."""

_NUMBER_BYTES: Final = 8
_NAMES_KEPT: Final = 65_536
"""Numbers that are remembered: a hot read asks for that of its table."""

_LONGEST_KEPT: Final = 640
"""Characters of the names that are: as many as the columns for a catalog, a database and a table take. A request may
have more."""


def table_number(name: TableName) -> int:
    """The same for a name on every server."""
    return _kept_number(name) if sum(map(len, name)) <= _LONGEST_KEPT else _number_of(name)


def _number_of(name: TableName) -> int:
    text = "\0".join(name).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_NUMBER_BYTES).digest())


_kept_number = lru_cache(_NAMES_KEPT)(_number_of)


def scope_of(events: Iterable[EventRow]) -> Scope:
    """What a write with these events may change; without any, everything."""
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
