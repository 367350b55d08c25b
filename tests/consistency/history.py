"""The calls of clients and their answers, with the clients' clocks, and the catalog after each event of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import select

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.message_reader import read_event
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import NOTIFICATION_LOG
from hms_cache.thrift_gen.hive_metastore import ttypes

VERSION = "version"
"""The parameter of tables and partitions that every write gives a label of its own."""

RAW = "raw"
"""The writer that changes Hive's rows without any server."""


class Place(NamedTuple):
    """A table's name."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class TableState:
    """A table: its label, and the label of each of its partitions by value."""

    version: str
    partitions: Mapping[str, str] = field(default_factory=dict)


State = Mapping[Place, TableState]


@dataclass(slots=True)
class Write:
    """One write as its client saw it. The event's message contains `label`, or `key` identifies the drop."""

    server: int | str
    kind: str
    started_s: float
    ended_s: float = 0.0
    done: bool = False
    label: str = ""
    key: tuple[str, ...] = ()


@dataclass(slots=True)
class Read:
    """One read as its client saw it."""

    server: int
    kind: str
    arguments: tuple[Any, ...]
    started_s: float
    ended_s: float
    answer: Any


@dataclass(slots=True)
class History:
    """The history of a run. Many threads append to its lists (appending is atomic)."""

    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)


# What a read returns in a state


def shown(state: State, kind: str, arguments: Sequence[Any]) -> Any:
    """Returns the correct answer of a read of this kind when the catalog is `state`."""
    match kind:
        case "names":
            return tuple(sorted(place.table for place in state if place.database == arguments[0]))
        case "objects":
            found = ((name, state.get(Place(arguments[0], name))) for name in arguments[1])
            return tuple((name, table.version) for name, table in found if table is not None)
    table = state.get(Place(*arguments[:2]))
    if table is None:
        # For a missing table, Hive returns no partitions in the calls without privileges.
        return () if kind in ("partitions", "partition_names") else None
    partitions = table.partitions
    match kind:
        case "table":
            return table.version
        case "partition":
            return partitions.get(arguments[2])
        case "partition_names":
            return tuple(sorted(partitions))
        case "partitions":
            return tuple(sorted(partitions.items()))
        case "by_names":
            return tuple(sorted((value, partitions[value]) for value in arguments[2] if value in partitions))
        case "filter":
            return tuple(sorted((value, label) for value, label in partitions.items() if value >= arguments[2]))
    raise ValueError(kind)


# The catalog after each event


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of an event: the state after it, and what identifies its write."""

    event_id: int
    state: State
    labels: tuple[str, ...]
    key: tuple[str, ...]


def read_log(database: Database) -> list[NotificationRow]:
    """The whole log, from the database itself."""
    log = NOTIFICATION_LOG.c
    columns = (
        log.EVENT_ID,
        log.EVENT_TIME,
        log.EVENT_TYPE,
        log.CAT_NAME,
        log.DB_NAME,
        log.TBL_NAME,
        log.MESSAGE,
        log.MESSAGE_FORMAT,
    )
    with database.checking() as connection:
        return [NotificationRow(*row) for row in connection.execute(select(*columns).order_by(log.EVENT_ID))]


def replay(rows: Iterable[NotificationRow]) -> list[Change]:
    """Returns the catalog after each event, in order. Raises ValueError if the log has a gap."""
    state: State = {}
    changes: list[Change] = []
    for number, row in enumerate(rows, start=1):
        if row.event_id != number:
            raise ValueError(f"event {number} is missing, there is {row.event_id}")
        state, labels, key = state_after(state, read_event(row))
        changes.append(Change(row.event_id, state, labels, key))
    return changes


def state_after(state: State, event: ev.Event) -> tuple[State, tuple[str, ...], tuple[str, ...]]:
    """Returns the catalog after an event, its labels, and the key if it is a drop."""
    own = event.own_table
    place = Place(own.database, own.table) if own is not None else None
    match event:
        case ev.TableCreated():
            assert place is not None
            label = _version(event.table())
            return {**state, place: TableState(label)}, (label,), ()
        case ev.TableDropped():
            assert place is not None
            return {name: one for name, one in state.items() if name != place}, (), ("drop_table", *place)
        case ev.TableAltered():
            label = _version(event.after())
            old, new = _place(event.old_name), _place(event.new_name)
            kept = {name: one for name, one in state.items() if name != old}
            return {**kept, new: TableState(label, state[old].partitions)}, (label,), ()
        case ev.PartitionsAdded():
            assert place is not None
            return _with_partitions(state, place, event.partition_objects())
        case ev.PartitionAltered():
            assert place is not None
            changed = event.after()
            assert changed is not None
            return _with_partitions(state, place, [changed])
        case ev.PartitionsDropped():
            assert place is not None and event.partitions is not None
            gone = {values[0] for values in event.partitions}
            left = {value: one for value, one in state[place].partitions.items() if value not in gone}
            after = {**state, place: TableState(state[place].version, left)}
            return after, (), ("drop_partition", *place, *sorted(gone))
    return state, (), ()


def _with_partitions(
    state: State, place: Place, partitions: Iterable[ttypes.Partition]
) -> tuple[State, tuple[str, ...], tuple[str, ...]]:
    labels = {partition.values[0]: _version(partition) for partition in partitions}
    table = state[place]
    after = {**state, place: TableState(table.version, {**table.partitions, **labels})}
    return after, tuple(dict.fromkeys(labels.values())), ()


def _place(name: TableName | None) -> Place:
    assert name is not None
    return Place(name.database, name.table)


def _version(struct: ttypes.Table | ttypes.Partition | None) -> str:
    assert struct is not None
    return str(struct.parameters[VERSION])
