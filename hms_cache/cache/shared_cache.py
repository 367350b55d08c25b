"""What the server remembers. Pure state: no SQL, no socket, no clock, no thread.

One lock guards every attribute and every entry. The cache as a whole is true at one position `position` (A): each
facet equals what the database held when exactly the events up to A had happened. `apply` moves A forward and drops
what the events concern; `install` adds what a snapshot of the database showed at its fence F, if A has reached F and
no event in (F, A] concerns it (P1). Invalidation and installation are all that changes it.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hms_cache.cache.answers import Answers
from hms_cache.cache.creation_watch import CreationWatch
from hms_cache.cache.entries import (
    CATALOG_FACETS,
    DATABASE_FACETS,
    TABLE_FACETS,
    CatalogKey,
    Entry,
    Facet,
    Key,
    has_commit_parameters,
)
from hms_cache.cache.event_rules import (
    CHANGES_DATABASE_NAMES,
    CHANGES_TABLE_NAMES,
    NOTHING_STAYS,
    ONLY_OF_ITS_TABLE,
    PARAMETERS_ALTERED,
    WHOLE_TABLE,
    Action,
    Stays,
    changed_columns,
    changes_rights,
    keeps_content,
    table_rule,
    what_stays,
)
from hms_cache.cache.loads import Load, RunningLoads
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.segmented_tables import SegmentedTables
from hms_cache.cache.statistics_by_column import StatisticsHeld
from hms_cache.cache.weights import weight_of
from hms_cache.cache.write_id_tags import Raise, TransactionTracker
from hms_cache.metadata.object_names import DatabaseName, TableName, table_name
from hms_cache.notifications import events as ev
from hms_cache.notifications.scope import Scope
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.txn.valid_write_ids import WriteIdGapTooLargeError

_log = logging.getLogger(__name__)

CommitResolver = Callable[[Sequence[int]], Mapping[int, Sequence[tuple[TableName, int]]]]
"""Transaction ids to the (table, write id) pairs each allocated; a missing id means "unknown"."""


class SharedCache:
    """Entries of catalogs, databases and tables, and the position at which they are true."""

    def __init__(self, budget_bytes: int, resolve_commits: CommitResolver | None = None) -> None:
        self.lock = threading.Lock()
        self.position = -1
        """A: the last applied event; -1 before the first position is known."""
        self._skipped_to = -1
        """The last event that was skipped because nothing of its table was held; may be above the position."""
        self.generation = 0
        """Counts resets."""
        self.budget_bytes = budget_bytes
        self.weight = 0
        self.catalogs: dict[CatalogKey, Entry] = {}
        self.databases: OrderedDict[DatabaseName, Entry] = OrderedDict()
        self.tables: OrderedDict[TableName, Entry] = OrderedDict()
        self.names_by_id: dict[int, TableName] = {}
        self.segmented = SegmentedTables()
        self.with_constraints: set[TableName] = set()
        self.with_commit_parameters: set[TableName] = set()
        """Indexes of the tables that events concern without naming them."""
        self.too_large: OrderedDict[tuple[Key, Facet], None] = OrderedDict()
        """Whole facets that a load found larger than the budget: not loaded again before they change; bounded."""
        self.loads = RunningLoads()
        self.invalidated: OrderedDict[TableName, tuple[frozenset[Facet], float]] = OrderedDict()
        """Facets that events, or a reset, dropped from tables that had been read, and when that was; for the refill;
        bounded."""
        self.reads_before: OrderedDict[TableName, int] = OrderedDict()
        """How often tables of which nothing is held now were read from memory, so that one that changes often does not
        look cold; bounded."""
        self.tags_forgotten: OrderedDict[TableName, float] = OrderedDict()
        """When tags were dropped last because lists stayed uncovered (monotonic); bounded."""
        self.answers = Answers(budget_bytes // ANSWERS_SHARE, ALWAYS_KEPT_ANSWER_BYTES)
        self.creations = CreationWatch()
        self.position_listener: Callable[[int, bool], None] | None = None
        """Told of each position before memory is brought to it, without the lock, and whether by a reset."""
        self.forgetting_listener: Callable[[], None] | None = None
        """Told after something was dropped on command or by a reset, without the lock and before the command answers:
        no event tells why, so nothing that was kept from before may come back (P7)."""
        self.rights_listener: Callable[[], None] | None = None
        """Told of each event that may change what users may do, with the lock, before memory is brought to it, and of
        each loss of everything: what was decided before counts no more. It must not wait."""
        self.evictions = 0
        self.resets = 0
        self._transactions = TransactionTracker()
        self._resolve_commits = resolve_commits

    # Events (the poller's side)

    def apply(self, events: Sequence[ev.Event], new_position: int) -> None:
        """Takes events in id order; afterwards the cache is true at `new_position`. Events that were taken do nothing.

        Raises what one of them raises, with the events before it taken: `notifications.event_applier` counts it and
        hands over what it may concern instead (P8).
        """
        resolved = self._resolve(events)
        shown = self._read_alters(events)
        of_rights = set()
        if self.rights_listener is not None:
            of_rights = {event.event_id for event in events if changes_rights(event)}
        if self.position_listener is not None:
            self.position_listener(new_position, False)
        with self.lock:
            for event in events:
                if event.event_id <= self.position:
                    continue
                self._apply_one(event, resolved, shown.get(event.event_id, NOTHING_STAYS))
                if event.event_id in of_rights:
                    self._forget_rights()
                self.position = event.event_id
            self.position = max(self.position, new_position)

    def reason_to_skip(self, header: ev.EventHeader) -> str | None:
        """Why an event need not even be decoded: it can change nothing but a table of which nothing is held or on its
        way. None: it has to be applied.

        A load that begins after the answer must show the event (`Load.began_at`), since nobody notes it.
        """
        if header.event_type not in ONLY_OF_ITS_TABLE or not header.database or not header.table:
            return None
        table = table_name(header.catalog, header.database, header.table)
        with self.lock:
            entry = self.tables.get(table)
            if entry is not None and entry.facets.keys() - {Facet.EXCLUDED}:
                return None
            if self.loads.of(table) or any((table, one) in self.too_large for one in Facet):
                return None
            self._skipped_to = max(self._skipped_to, header.event_id)
            return SKIPPED_NOT_HELD if entry is None else SKIPPED_EXCLUDED

    def _resolve(self, events: Sequence[ev.Event]) -> Mapping[int, Sequence[tuple[TableName, int]]]:
        with self.lock:
            unresolved = self._transactions.unresolved_commits(events)
        if not unresolved or self._resolve_commits is None:
            return {}
        try:
            return self._resolve_commits(unresolved)
        except Exception as error:
            # Unknown is always right (P5), and the events behind these must not wait (P8).
            _log.warning("the tables of committed transactions could not be read: %s", error)
            return {}

    def _read_alters(self, events: Sequence[ev.Event]) -> dict[int, Stays]:
        """What alters show to be as it was, by event id, where anything is held that could stay.

        Images are decoded without the lock. What a load reads from now on is not asked for: it goes, which is right.
        """
        with self.lock:
            alters = [
                event
                for event in events
                if isinstance(event, ev.TableAltered) and event.event_id > self.position and self._may_stay(event)
            ]
        return {event.event_id: what_stays(event) for event in alters}

    def _may_stay(self, event: ev.TableAltered) -> bool:
        of_partitions = {Facet.PARTITIONS, Facet.PARTITION_STATISTICS}
        try:
            concerned = event.scope.tables
        except Exception:
            return False  # its application fails in its turn
        for table in concerned:
            database = self.databases.get(table.in_database)
            if database is not None and Facet.TABLE_NAMES in database.facets:
                return True
            entry = self.tables.get(table)
            if entry is not None and not of_partitions.isdisjoint(entry.facets):
                return True
            if any(not of_partitions.isdisjoint(load.facets) for load in self.loads.of(table)):
                return True
        return False

    def reset(self, reason: str, position: int) -> None:
        """Drops everything and starts anew at `position`: a hole, another history (P7).

        The tables that were read are handed to the refill, the last read first.
        """
        if self.position_listener is not None:
            self.position_listener(position, True)
        with self.lock:
            _log.info("the cache starts anew at event %d: %s", position, reason)
            lost = self._tables_read()
            self._forget_all()
            self.invalidated.update(lost)
            self.creations.begin(position)
            self.position = self._skipped_to = position
            self.generation += 1
            self.resets += 1
        self._tell_of_forgetting()

    def start_at(self, position: int) -> None:
        """Before the log is followed: what is installed from now on is true at `position`, which still has to be proven
        (`Poller.start`); a proof that fails ends in `reset`."""
        with self.lock:
            self._forget_all()
            self.creations.begin(position)
            self.position = self._skipped_to = position
            # The floor starts anew, and the next read has to ask: clients may have seen more before the restart (P3).
            self.generation += 1

    def forget_all(self) -> None:
        """Drops everything on command, at the same position; what loads read meanwhile is not kept either."""
        with self.lock:
            self._forget_all()
        self._tell_of_forgetting()

    def _tell_of_forgetting(self) -> None:
        """Afterwards: what was copied before is older than the telling, and what is copied later lacks it."""
        if self.forgetting_listener is not None:
            self.forgetting_listener()

    def _forget_all(self) -> None:
        self._clear()
        for load in self.loads:
            load.abandoned = True

    def _tables_read(self) -> list[tuple[TableName, tuple[frozenset[Facet], float]]]:
        """What the refill needs to load the tables again that were read: those that are held, and those that events
        took out before. The last read is the last, so that it is the first to be loaded; bounded by `REFILL_KEYS`."""
        found: dict[TableName, tuple[frozenset[Facet], float]] = dict(self.invalidated)
        for key, entry in self.tables.items():
            # No time is noted for requests answered from their bytes: they are the most frequent ones.
            last_read = math.inf if self.answers.take_used(entry) else entry.last_read
            if last_read:
                found[key] = (frozenset((Facet.TABLE, *entry.facets)) - {Facet.PARTITIONS}, last_read)
        return sorted(found.items(), key=lambda one: one[1][1])[-REFILL_KEYS:]

    def _apply_one(
        self, event: ev.Event, resolved: Mapping[int, Sequence[tuple[TableName, int]]], stays: Stays
    ) -> None:
        scope = event.scope
        if scope.everything:
            self._drop_everything(event.event_id)
            return
        if isinstance(event, ev.UndecodedEvent):
            self._transactions.forget()  # it may have been any of theirs
            self.creations.begin(event.event_id)
        if isinstance(
            event, ev.TransactionsOpened | ev.TransactionCommitted | ev.TransactionAborted | ev.WriteIdsAllocated
        ):
            self._apply_transaction(event, resolved)
        for catalog in scope.whole_catalogs:
            self._drop_catalog(event.event_id, catalog)
        for database in scope.whole_databases:
            self._drop_database(event.event_id, database)
        for database in scope.databases:
            self._alter_database(event, database)
        self._apply_to_tables(event, scope, stays)
        for function in scope.functions:
            self._drop(event.event_id, DatabaseName(function.catalog, function.database), Facet.FUNCTIONS)
        if scope.foreign_keys:
            self._drop_all_constraints(event.event_id)

    def _apply_to_tables(self, event: ev.Event, scope: Scope, stays: Stays) -> None:
        rule = PARAMETERS_ALTERED if stays.partitions else table_rule(event)
        changes_names = type(event) in CHANGES_TABLE_NAMES
        if changes_names and not (isinstance(event, ev.TableAltered) and not event.is_rename):
            self._transactions.forget_tables(scope.tables.__contains__)
        if changes_names:
            self.creations.named(scope.tables, event.event_id)
        columns = changed_columns(event) if self._has_statistics((*scope.tables, *scope.partitions)) else None
        for table in scope.tables:
            self._apply_rule(event.event_id, table, rule, None, columns)
            if changes_names and not stays.names:
                self._drop(event.event_id, table.in_database, Facet.TABLE_NAMES)
        for table, values in scope.partitions.items():
            self._apply_rule(event.event_id, table, rule, tuple(values), columns)

    def _has_statistics(self, tables: Iterable[TableName]) -> bool:
        """Whether any are held: only then the columns of a message are worth decoding."""
        entries = (self.tables.get(table) for table in tables)
        of_columns = (Facet.TABLE_STATISTICS, Facet.PARTITION_STATISTICS)
        return any(entry is not None and any(facet in entry.facets for facet in of_columns) for entry in entries)

    def _apply_rule(
        self,
        event_id: int,
        table: TableName,
        rule: Mapping[Facet, Action],
        named: tuple[Values, ...] | None,
        columns: frozenset[str] | None = None,
    ) -> None:
        entry = self.tables.get(table)
        for facet, action in rule.items():
            if action is Action.KEEP:
                continue
            if action is Action.DROP_NAMED and named is None:
                action = Action.DROP
            self._note(event_id, table, facet, action, named or ())
            self.too_large.pop((table, facet), None)
            if entry is not None:
                self._act(entry, facet, action, named or (), columns)

    def _act(
        self,
        entry: Entry,
        facet: Facet,
        action: Action,
        named: tuple[Values, ...],
        columns: frozenset[str] | None = None,
    ) -> None:
        if facet not in entry.facets:
            return
        held = entry.facets[facet]
        if isinstance(held, StatisticsHeld) and (action is Action.DROP_NAMED or columns is not None):
            self._drop_statistics(entry, facet, held, named if action is Action.DROP_NAMED else None, columns)
            return
        if action is Action.DROP_IF_TRANSACTIONAL:
            if not entry.is_transactional:
                return
            action = Action.DROP
        if action is Action.DROP:
            self._remove_facet(entry, facet)
            return
        if not isinstance(held, PartitionSet):
            self._remove_facet(entry, facet)
            return
        held.mark_missing(named)
        if held.drop_mostly_missing():
            self._remove_facet(entry, facet)
            return
        self._changed(entry)
        self._remember_invalidated(entry, facet)
        self.recharge(entry, facet, weight_of(held))

    def _drop_statistics(
        self,
        entry: Entry,
        facet: Facet,
        held: StatisticsHeld,
        named: tuple[Values, ...] | None,
        columns: frozenset[str] | None,
    ) -> None:
        """Takes out what was asked with these partitions and columns; None: all of them."""
        if not held.drop_changed(named, columns):
            return
        if not held:
            self._remove_facet(entry, facet)
            return
        self._changed(entry)
        self._remember_invalidated(entry, facet)
        self.recharge(entry, facet, held.weight)

    def _apply_transaction(self, event: ev.Event, resolved: Mapping[int, Sequence[tuple[TableName, int]]]) -> None:
        change = self._transactions.apply(event, resolved)
        if change.void_all:
            for entry in [e for e in self.tables.values() if e.is_transactional]:
                self._remove_facet(entry, Facet.TABLE)  # the next read takes its tag from the database
            for load in self.loads.with_facet(Facet.TABLE):
                load.note(event.event_id, Facet.TABLE, Action.DROP_IF_TRANSACTIONAL)
        for table in change.unknown:
            self._drop(event.event_id, table, Facet.TABLE)
        for table, raised in change.raised.items():
            self._note(event.event_id, table, Facet.TABLE, Action.DROP, ())
            written = self.tables.get(table)
            if written is not None and written.tag is not None:
                self._raise_tag(written, raised)
        if change.is_commit:
            # A commit may carry a key and value into TABLE_PARAMS of a table that it does not name.
            for table in tuple(self.with_commit_parameters):
                self._remove_facet(self.tables[table], Facet.TABLE)
            for load in self.loads.with_facet(Facet.TABLE):
                load.note(event.event_id, Facet.TABLE, Action.DROP_IF_COMMIT_PARAMETERS)

    def _raise_tag(self, entry: Entry, raised: Raise) -> None:
        self._changed(entry)
        try:
            entry.tag = raised(entry.tag)
        except WriteIdGapTooLargeError:
            self._remove_facet(entry, Facet.TABLE)  # a load lists fewer ids: those that exist

    # Scopes wider than a table

    def _alter_database(self, event: ev.Event, database: DatabaseName) -> None:
        event_id = event.event_id
        self._drop(event_id, database, Facet.DATABASE)
        if isinstance(event, ev.DatabaseAltered) and keeps_content(event):
            return
        # Its properties decide whether its tables may be cached, and a new database starts without any.
        if type(event) in CHANGES_DATABASE_NAMES:
            self._drop(event_id, database.catalog, Facet.DATABASE_NAMES)
        self._drop(event_id, database, Facet.TABLE_NAMES)
        self._drop(event_id, database, Facet.FUNCTIONS)
        self._drop_tables(event_id, lambda table: table.in_database == database)

    def _drop_database(self, event_id: int, database: DatabaseName) -> None:
        for facet in DATABASE_FACETS:
            self._drop(event_id, database, facet)
        self._drop(event_id, database.catalog, Facet.DATABASE_NAMES)
        self._drop_tables(event_id, lambda table: table.in_database == database)

    def _drop_catalog(self, event_id: int, catalog: str) -> None:
        self._drop(event_id, catalog, Facet.DATABASE_NAMES)
        named = {key for key in self.databases if key.catalog == catalog}
        named.update(key for key in self.loads.subjects() if isinstance(key, DatabaseName))
        for database in named:
            if database.catalog == catalog:
                self._drop_database(event_id, database)
        self._drop_tables(event_id, lambda table: table.catalog == catalog)

    def _drop_tables(self, event_id: int, concerned: Callable[[TableName], bool]) -> None:
        self._transactions.forget_tables(concerned)
        named = {key for key in self.tables if concerned(key)}
        named.update(key for key in self.loads.subjects() if isinstance(key, TableName) and concerned(key))
        for table in named:
            self._apply_rule(event_id, table, WHOLE_TABLE, None)

    def _drop_all_constraints(self, event_id: int) -> None:
        for load in self.loads.with_facet(Facet.CONSTRAINTS):
            load.note(event_id, Facet.CONSTRAINTS, Action.DROP)
        for table in tuple(self.with_constraints):
            self._remove_facet(self.tables[table], Facet.CONSTRAINTS)

    def _drop_everything(self, event_id: int) -> None:
        self.creations.begin(event_id)
        for load in self.loads:
            for facet in load.facets:
                load.note(event_id, facet, Action.DROP)
        self._clear()

    def _forget_rights(self) -> None:
        """Answers that wait to be sent were made for the rights of before."""
        if self.rights_listener is not None:
            self.answers.clear()
            self.rights_listener()

    def _clear(self) -> None:
        self._forget_rights()
        self.answers.clear()
        for entries in (self.catalogs, self.databases, self.tables):
            for entry in entries.values():
                entry.version += 1
                self._remember_reads(entry)
        self.catalogs.clear()
        self.databases.clear()
        self.tables.clear()
        self.names_by_id.clear()
        self.segmented.clear()
        self.with_constraints.clear()
        self.with_commit_parameters.clear()
        self.too_large.clear()
        self.invalidated.clear()
        self._transactions.forget()
        self.weight = 0

    def _drop(self, event_id: int, key: Key, facet: Facet) -> None:
        self._note(event_id, key, facet, Action.DROP, ())
        self.too_large.pop((key, facet), None)
        entry = self._entries(key).get(key)
        if entry is not None:
            self._remove_facet(entry, facet)

    def _note(self, event_id: int, key: Key, facet: Facet, action: Action, named: tuple[Values, ...]) -> None:
        for load in self.loads.of(key):
            if facet in load.facets:
                load.note(event_id, facet, action, named)

    # Loads (the readers' side)

    def begin_load(self, key: Key, facets: Iterable[Facet]) -> Load:
        """Takes the slot. Must come before the snapshot is opened, or an event in between would be missed."""
        with self.lock:
            load = Load(key, frozenset(facets), max(self.position, self._skipped_to))
            self.loads.add(load)
        return load

    def end_load(self, load: Load) -> None:
        """Gives the slot back, in `finally`, whatever happened."""
        with self.lock:
            self.loads.discard(load)

    def install(
        self,
        load: Load,
        fence: int,
        facet: Facet,
        value: Any,
        weight: int,
        prepare: Callable[[Entry], None] | None = None,
    ) -> bool:
        """Adds what a load of `fence` F read; False when it may not be kept.

        A must be at F or above. Effects of events in (F, A] discard the value, or, where they name partitions only,
        take these out of it. `prepare` sets what stands beside the facet (table id, tag), under the lock.
        """
        with self.lock:
            if load.abandoned or self.position < fence or load not in self.loads or facet not in load.facets:
                return False
            named: list[Values] = []
            for (effect_facet, action), event_id in load.effects.items():
                if event_id <= fence or effect_facet is not facet:
                    continue
                if action is Action.DROP_NAMED and isinstance(value, PartitionSet):
                    named.extend(values for values, last in load.named.get(facet, {}).items() if last > fence)
                elif _concerns(action, value):
                    return False
            if named:
                value.mark_missing(named)
                if value.is_mostly_missing:
                    return False
                weight = weight_of(value)
            if weight > self.budget_bytes:
                self._remember_too_large(load.key, facet)
                return False
            entries = self._entries(load.key)
            entry = entries.get(load.key)
            if entry is None:
                entry = entries[load.key] = Entry(load.key)
                if isinstance(load.key, TableName):
                    entry.reads = self.reads_before.pop(load.key, 0)
            if prepare is not None:
                prepare(entry)
            self._charge(entry, facet, weight)
            entry.facets[facet] = value
            if isinstance(value, PartitionSet):
                value.touch(entry.last_read)
            self._changed(entry)
            if isinstance(load.key, TableName):
                self._index(load.key, entry)
            self._evict(keep=entry)
            if self.weight > self.budget_bytes:
                self._remove_facet(entry, facet)
                self._remember_too_large(load.key, facet)
                return False
            return True

    def _index(self, table: TableName, entry: Entry) -> None:
        self.segmented.note(entry)
        if entry.table_id is not None:
            self.names_by_id[entry.table_id] = table
        if entry.has_commit_parameters and Facet.TABLE in entry.facets:
            self.with_commit_parameters.add(table)
        if Facet.CONSTRAINTS in entry.facets:
            self.with_constraints.add(table)

    def _remember_too_large(self, key: Key, facet: Facet) -> None:
        self.too_large[key, facet] = None
        while len(self.too_large) > REFILL_KEYS:
            self.too_large.popitem(last=False)

    # Bookkeeping, under the lock

    def _entries(self, key: Key) -> dict[Any, Entry]:
        if isinstance(key, TableName):
            return self.tables
        return self.databases if isinstance(key, DatabaseName) else self.catalogs

    def entry(self, key: Key) -> Entry | None:
        """The entry of a subject, if anything of it is held."""
        found: Entry | None = self._entries(key).get(key)
        return found

    def touch(self, entry: Entry, now_s: float) -> None:
        """Notes that a read needs it: for the order of eviction and the refill."""
        entry.last_read = now_s
        if isinstance(entry.key, TableName):
            self.tables.move_to_end(entry.key)

    def reads_of(self, entry: Entry) -> int:
        """How often it answered a read since the start, from its request's bytes or decoded; exact under the lock."""
        return entry.reads + self.answers.uses(entry)

    def _changed(self, entry: Entry) -> None:
        entry.version += 1
        if entry.answers:
            self.answers.drop(entry)

    def _charge(self, entry: Entry, facet: Facet, weight: int) -> None:
        self.weight += weight - entry.weights.get(facet, 0)
        entry.weights[facet] = weight

    def recharge(self, entry: Entry, facet: Facet, weight: int) -> None:
        """A facet that grew in place is charged anew; one that outgrew all others is dropped."""
        self._charge(entry, facet, weight)
        self.segmented.note(entry)
        self._evict(keep=entry)
        if self.weight > self.budget_bytes:
            self._remove_facet(entry, facet)

    def _remove_facet(self, entry: Entry, facet: Facet) -> None:
        if facet not in entry.facets:
            return
        self._changed(entry)
        del entry.facets[facet]
        self.weight -= entry.weights.pop(facet, 0)
        if isinstance(entry.key, TableName):
            if facet is Facet.TABLE:
                entry.tag = entry.encoded_table = None
                self.with_commit_parameters.discard(entry.key)
                if entry.table_id is not None:
                    self.names_by_id.pop(entry.table_id, None)
                    entry.table_id = None
            elif facet is Facet.CONSTRAINTS:
                self.with_constraints.discard(entry.key)
            elif facet is Facet.PARTITIONS:
                self.segmented.note(entry)
            self._remember_invalidated(entry, facet)
        if not entry.facets:
            self._entries(entry.key).pop(entry.key, None)
            self._remember_reads(entry)

    def _remember_reads(self, entry: Entry) -> None:
        """The entry, which has no answers any more, is gone."""
        if entry.reads and isinstance(entry.key, TableName):
            self.reads_before[entry.key] = entry.reads
            if len(self.reads_before) > REFILL_KEYS:
                self.reads_before.popitem(last=False)

    def _remember_invalidated(self, entry: Entry, facet: Facet) -> None:
        key = entry.key
        if not isinstance(key, TableName) or not entry.last_read:
            return
        before, _ = self.invalidated.pop(key, (frozenset(), 0.0))
        self.invalidated[key] = (before | {facet}, entry.last_read)
        while len(self.invalidated) > REFILL_KEYS:
            self.invalidated.popitem(last=False)

    def _evict(self, keep: Entry) -> None:
        """Makes room: tables first, least recently used, so that an evicted table falls back to its name and type."""
        self._evict_tables(keep)
        # Names alone pass the budget: those of the databases that were loaded first, and of catalogs, go.
        for entries in (self.databases, self.catalogs):
            for entry in list(entries.values()) if self.weight > self.budget_bytes else ():
                if entry is keep or self.weight <= self.budget_bytes:
                    continue
                for facet in list(entry.facets):
                    self._remove_facet(entry, facet)
                self.evictions += 1

    def _evict_tables(self, keep: Entry) -> None:
        while self.weight > self.budget_bytes and self.tables:
            key = next(iter(self.tables))
            entry = self.tables[key]
            if self._evict_segment(entry.last_read):
                continue
            if entry is keep:
                if len(self.tables) == 1:
                    return
                self.tables.move_to_end(key)
                continue
            if self.answers.take_used(entry):
                # Asked since it was last looked at, by requests that never came here: a second chance.
                self.tables.move_to_end(key)
                continue
            for facet in list(entry.facets):
                self._remove_facet(entry, facet)
            self.invalidated.pop(key, None)
            self.tables.pop(key, None)
            self.evictions += 1

    def _evict_segment(self, before_s: float) -> bool:
        """Evicts the segment that was read the longest ago, if that was no later than at this time."""
        found = self.segmented.oldest()
        if found is None or found.segment.last_read > before_s:
            return False
        found.held.evict(found.segment)
        self.evictions += 1
        if found.held.is_bare:
            self._remove_facet(found.entry, Facet.PARTITIONS)
        else:
            # What was answered from it is still true: the entry has not changed.
            self._charge(found.entry, Facet.PARTITIONS, weight_of(found.held))
            self.segmented.note(found.entry)
        return True

    def forget(self, key: Key, facets: frozenset[Facet] | None = None) -> None:
        """Drops one subject, or these facets of it, on command (flush, refresh); what loads of it read meanwhile is not
        kept either."""
        with self.lock:
            if facets is None:
                facets = (
                    TABLE_FACETS
                    if isinstance(key, TableName)
                    else (DATABASE_FACETS if isinstance(key, DatabaseName) else CATALOG_FACETS)
                )
            for load in self.loads.of(key):
                if load.facets & facets:
                    load.abandoned = True
            entry = self._entries(key).get(key)
            if entry is not None:
                for facet in facets:
                    self._remove_facet(entry, facet)
        self._tell_of_forgetting()

    def forget_tag(self, table: TableName, now_s: float, interval_s: float) -> None:
        """Under the lock. Drops what a table's tag stands beside, to have it read again, once in `interval_s`."""
        entry = self.tables.get(table)
        if entry is None or now_s - self.tags_forgotten.get(table, float("-inf")) < interval_s:
            return
        self._remove_facet(entry, Facet.TABLE)
        self.tags_forgotten.pop(table, None)
        self.tags_forgotten[table] = now_s
        if len(self.tags_forgotten) > REFILL_KEYS:
            self.tags_forgotten.popitem(last=False)

    def forget_partitions(self, table: TableName, partitions: tuple[Values, ...]) -> None:
        """Drops these partitions of a table on command, and the statistics of any, as `forget` does a subject."""
        with self.lock:
            for load in self.loads.of(table):
                if load.facets & {Facet.PARTITIONS, Facet.PARTITION_STATISTICS}:
                    load.abandoned = True
            entry = self.tables.get(table)
            if entry is not None:
                self._act(entry, Facet.PARTITIONS, Action.DROP_NAMED, partitions)
                self._remove_facet(entry, Facet.PARTITION_STATISTICS)
        self._tell_of_forgetting()


def _concerns(action: Action, value: Any) -> bool:
    """Whether an effect that came after the fence is one on the value that was read."""
    if action is Action.DROP_IF_TRANSACTIONAL and isinstance(value, Table):
        return is_transactional(value)
    if action is Action.DROP_IF_COMMIT_PARAMETERS and isinstance(value, Table):
        return has_commit_parameters(value)
    return action is not Action.KEEP


SKIPPED_NOT_HELD = "not_held"
SKIPPED_EXCLUDED = "excluded"
"""Why an event was skipped: nothing of its table is held, or only that its properties, or its database's, keep it out
of the cache. Labels in metrics."""

ANSWERS_SHARE = 4
"""Encoded answers may take a quarter of the budget on top of what they are made from: a hot table is asked with a few
different requests, and its answer is about as large as its entry."""

ALWAYS_KEPT_ANSWER_BYTES = 1024 * 1024
"""Larger answers are kept when they are asked for again: most of them are asked for once."""

REFILL_KEYS = 10_000
"""Tables remembered for the refill: more would not be refilled before they are asked for anyway."""
