"""The reads with write-id lists and their answers, and the owner of each write id after each event of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from hms_cache.notifications import events as ev
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.message_reader import read_event
from hms_cache.txn import ValidWriteIdList
from tests.consistency.history import Change, Place, Read, State, state_after

NEVER = 1 << 62
"""The end of a transaction that has none yet."""


@dataclass(slots=True)
class ListRead(Read):
    """A read with a list; `table_id` None: without a table id."""

    valid: str = ""
    table_id: int | None = None

    @property
    def place(self) -> Place:
        """The table."""
        return Place(*self.arguments[:2])


@dataclass(slots=True)
class WriteIds:
    """Table ids by name after each event, owners of write ids, ends of transactions."""

    ids: list[Mapping[Place, int]] = field(default_factory=list)
    """Index 0 stands for event 1."""
    owners: dict[tuple[int, int], int] = field(default_factory=dict)
    """(table id, write id) to transaction."""
    ends: dict[int, int] = field(default_factory=dict)
    """Transaction to the event of its commit or abort."""
    committed: set[int] = field(default_factory=set)

    def table_id(self, position: int, place: Place) -> int | None:
        """The id of the table of that name after an event."""
        return self.ids[position - 1].get(place) if position else None

    def ended(self, valid: str, table_id: int | None) -> int:
        """Returns the event by which every transaction whose write id is valid in the list has ended (P2, P5). NEVER:
        one of them has not ended, such as the reader's own. 0 without a table id: the list's table is unknown."""
        if table_id is None:
            return 0
        owners = (self.owners.get((table_id, write_id), -1) for write_id in _valid_ids(valid))
        return max((self.ends.get(owner, NEVER) for owner in owners), default=0)


@lru_cache(maxsize=10_000)
def _valid_ids(valid: str) -> tuple[int, ...]:
    parsed = ValidWriteIdList.parse(valid)
    return tuple(write_id for write_id in range(1, parsed.high_watermark + 1) if parsed.is_valid(write_id))


def replay(rows: Iterable[NotificationRow]) -> tuple[list[Change], WriteIds]:
    """Returns the catalog after each event, and the write ids. Raises ValueError if the log has a gap."""
    state: State = {}
    ids: Mapping[Place, int] = {}
    changes: list[Change] = []
    found = WriteIds()
    for number, row in enumerate(rows, start=1):
        if row.event_id != number:
            raise ValueError(f"event {number} is missing, there is {row.event_id}")
        event = read_event(row)
        key = _transaction_key(event, ids, found)
        labels: Sequence[str] = ()
        if key is None:
            state, labels, key = state_after(state, event)
            ids = _ids_after(ids, event)
        found.ids.append(ids)
        changes.append(Change(row.event_id, state, tuple(labels), key))
    return changes, found


def _transaction_key(event: ev.Event, ids: Mapping[Place, int], found: WriteIds) -> tuple[str, ...] | None:
    """Applies an event of a transaction. Returns the key of its write; None if it belongs to none."""
    match event:
        case ev.TransactionsOpened():
            return ("open", *(str(txn_id) for txn_id in event.transaction_ids or ()))
        case ev.WriteIdsAllocated():
            own = event.own_table
            assert own is not None
            for txn_id, write_id in event.write_ids:
                found.owners[ids[Place(own.database, own.table)], write_id] = txn_id
            return ("allocate", *(str(txn_id) for txn_id, _ in event.write_ids), own.table)
        case ev.TransactionCommitted():
            found.ends[event.transaction_id] = event.event_id
            found.committed.add(event.transaction_id)
            return ("commit", str(event.transaction_id))
        case ev.TransactionAborted():
            found.ends[event.transaction_id] = event.event_id
            return ("abort", str(event.transaction_id))
    return None


def _ids_after(ids: Mapping[Place, int], event: ev.Event) -> Mapping[Place, int]:
    own = event.own_table
    place = Place(own.database, own.table) if own is not None else None
    match event:
        case ev.TableCreated():
            assert place is not None
            return {**ids, place: int(event.table().id)}
        case ev.TableDropped():
            return {name: table_id for name, table_id in ids.items() if name != place}
        case ev.TableAltered() if event.is_rename:
            assert event.old_name is not None and event.new_name is not None
            old = Place(event.old_name.database, event.old_name.table)
            kept = {name: table_id for name, table_id in ids.items() if name != old}
            return {**kept, Place(event.new_name.database, event.new_name.table): ids[old]}
    return ids
