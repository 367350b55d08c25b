"""Applies events to entries: each (event, facet) by `event_rules`. Events do nothing but invalidate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from hms_cache.cache.budget import BudgetedEntries
from hms_cache.cache.creation_watch import CreationWatch
from hms_cache.cache.entries import DATABASE_FACETS, Entry, Facet, Key
from hms_cache.cache.event_rules import (
    CHANGES_DATABASE_NAMES,
    CHANGES_TABLE_NAMES,
    CLAIMS_WITHDRAWN,
    NOTHING_STAYS,
    PARAMETERS_ALTERED,
    WHOLE_TABLE,
    Action,
    UnchangedParts,
    changed_columns,
    changes_rights,
    keeps_content,
    table_rule,
    unchanged_parts,
)
from hms_cache.cache.loads import RunningLoads
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.statistics_by_column import CachedStatistics
from hms_cache.cache.weights import weight_of
from hms_cache.cache.write_id_tags import Raise, TagChange, TransactionTracker
from hms_cache.metadata.object_names import DatabaseName, TableName, table_name
from hms_cache.notifications import events as ev
from hms_cache.notifications.event_types import ONLY_OF_ITS_TABLE, ONLY_OF_TRANSACTIONS
from hms_cache.notifications.scope import Scope
from hms_cache.txn.valid_write_ids import ValidWriteIdList, WriteIdGapTooLargeError

_log = logging.getLogger(__name__)

CommitResolver = Callable[[Sequence[int]], Mapping[int, Sequence[tuple[TableName, int]]]]
"""For each transaction id, the (table, write id) pairs that it allocated. A missing id means "unknown"."""

SKIPPED_NOT_CACHED = "not_cached"
SKIPPED_EXCLUDED = "excluded"
"""Why an event was skipped: its table has no entry, or only a note that its properties, or those of its database,
exclude it from the cache. Labels in metrics."""


class FollowingEntries(BudgetedEntries):
    """Entries that follow the log: `apply` advances the position and drops what the events concern. Loads that are
    running meanwhile are informed."""

    def __init__(
        self, budget_bytes: int, resolve_commits: CommitResolver | None = None, *, has_peers: bool = False
    ) -> None:
        """`has_peers`: other kinds of metastores write, too. Their commits may remove claims without an event, and
        their alters may undo changes that the images do not show."""
        super().__init__(budget_bytes)
        self._has_peers = has_peers
        self.loads = RunningLoads()
        self.creations = CreationWatch()
        self.position_listener: Callable[[int, bool], None] | None = None
        """Called with each position before memory is brought to it, without the lock, and with whether it is a
        reset."""
        self.transactions_listener: Callable[[Sequence[int]], None] | None = None
        """Called with the ids of events that concern transactions only, without the lock, before memory is brought to
        them."""
        self.rights_listener: Callable[[], None] | None = None
        """Called with the lock before memory is brought to an event that may change rights of users, and whenever
        everything is dropped: earlier decisions are no longer valid. Must not wait."""
        self._skipped_to = -1
        """The last event that was skipped because its table has no entry; may be above the position."""
        self._transactions = TransactionTracker(has_peers=has_peers)
        self._resolve_commits = resolve_commits

    def apply(self, events: Sequence[ev.Event], new_position: int) -> None:
        """Applies events in the order of their ids; afterwards the cache is true at `new_position`. Events that were
        applied before have no effect.

        Events with the same id come together: logs of Hive releases without the unique index may contain two.

        Raises the error of an event, after events with lower ids are applied: `notifications.event_applier` counts it,
        and then hands over what the event may concern (P8).
        """
        resolved = self._resolve(events)
        shown = self._read_alters(events)
        of_rights = set()
        if self.rights_listener is not None:
            of_rights = {event.event_id for event in events if changes_rights(event)}
        if self.transactions_listener is not None:
            of_transactions = [one.event_id for one in events if one.header.event_type in ONLY_OF_TRANSACTIONS]
            if of_transactions:
                self.transactions_listener(of_transactions)
        if self.position_listener is not None:
            self.position_listener(new_position, False)
        with self._lock:
            taken = self.position
            for at, event in enumerate(events, start=1):
                if event.event_id <= taken:
                    continue
                self._apply_one(event, resolved, shown.get(at, NOTHING_STAYS))
                if event.event_id in of_rights:
                    self._forget_rights()
                if at == len(events) or events[at].event_id != event.event_id:
                    self.position = event.event_id
            self.position = max(self.position, new_position)

    def reason_to_skip(self, header: ev.EventHeader) -> str | None:
        """Why an event need not even be decoded: it can change nothing but a table that has no entry and no running
        load. None: it has to be applied.

        A load that begins after this must show the event (`Load.began_at`), since nobody notes the event on it.
        """
        if header.event_type not in ONLY_OF_ITS_TABLE or not header.database or not header.table:
            return None
        table = table_name(header.catalog, header.database, header.table)
        with self._lock:
            entry = self.tables.get(table)
            if entry is not None and entry.facets.keys() - {Facet.EXCLUDED}:
                return None
            if self.loads.of(table) or any((table, one) in self.too_large for one in Facet):
                return None
            self._skipped_to = max(self._skipped_to, header.event_id)
            return SKIPPED_NOT_CACHED if entry is None else SKIPPED_EXCLUDED

    def _resolve(self, events: Sequence[ev.Event]) -> Mapping[int, Sequence[tuple[TableName, int]]]:
        with self._lock:
            unresolved = self._transactions.unresolved_commits(events)
        if not unresolved or self._resolve_commits is None:
            return {}
        try:
            return self._resolve_commits(unresolved)
        except Exception as error:
            # "Unknown" is always safe (P5), and the following events must not wait (P8).
            _log.warning("the tables of committed transactions could not be read: %s", error)
            return {}

    def _read_alters(self, events: Sequence[ev.Event]) -> dict[int, UnchangedParts]:
        """What alters leave unchanged, by their numbers (from 1), for entries from which something could be kept.

        Images are decoded without the lock. What a load installs from now on is not considered: it is dropped, which is
        safe.
        """
        with self._lock:
            alters = [
                (at, event)
                for at, event in enumerate(events, start=1)
                if isinstance(event, ev.TableAltered) and event.event_id > self.position and self._may_stay(event)
            ]
        return {at: unchanged_parts(event) for at, event in alters}

    def _may_stay(self, event: ev.TableAltered) -> bool:
        of_partitions = {Facet.PARTITIONS, Facet.PARTITION_STATISTICS}
        try:
            concerned = event.scope.tables
        except Exception:
            return False  # applying it fails in its turn
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

    def _apply_one(
        self, event: ev.Event, resolved: Mapping[int, Sequence[tuple[TableName, int]]], stays: UnchangedParts
    ) -> None:
        scope = event.scope
        if scope.everything:
            self._drop_everything(event.event_id)
            return
        if isinstance(event, ev.UndecodedEvent):
            self._transactions.forget()  # it may have belonged to any of them
            self.creations.begin(event.event_id)
        if isinstance(
            event, ev.TransactionsOpened | ev.TransactionCommitted | ev.TransactionAborted | ev.WriteIdsAllocated
        ):
            self._apply_transaction(event, resolved)
        for catalog in scope.whole_catalogs:
            self._drop_catalog(event.event_id, catalog)
        if scope.whole_databases:
            self._drop_databases(event.event_id, scope.whole_databases)
        for database in scope.databases:
            self._alter_database(event, database)
        self._apply_to_tables(event, scope, stays)
        for function in scope.functions:
            self._drop(event.event_id, DatabaseName(function.catalog, function.database), Facet.FUNCTIONS)
        if scope.foreign_keys:
            self._drop_all_constraints(event.event_id)

    def _as_cached(self, event_id: int, table: TableName, stays: UnchangedParts) -> UnchangedParts:
        """What is kept after the alter of a table if the writer may have read the table's previous state without a lock
        (P1).

        For each part, the alter either leaves it as it was, which is what is held, or makes it what the second image
        shows. If the two are equal, the part is kept. What is being loaded cannot be compared, and is dropped.
        """
        if stays.names:
            database = self.databases.get(table.in_database)
            names = database.facets.get(Facet.TABLE_NAMES) if database is not None else None
            meta = names.get(table.table) if names is not None else None
            self._note(event_id, table.in_database, Facet.TABLE_NAMES, Action.DROP, ())
            stays = stays._replace(names=meta is not None and stays.is_listed_as(meta))
        if stays.partitions:
            entry = self.tables.get(table)
            cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
            self._note(event_id, table, Facet.PARTITIONS, Action.DROP, ())
            stays = stays._replace(partitions=cached is None or stays.has_keys(cached.keys))
        return stays

    def _apply_to_tables(self, event: ev.Event, scope: Scope, stays: UnchangedParts) -> None:
        if self._has_peers:
            for table in scope.tables:
                stays = self._as_cached(event.event_id, table, stays)
        rule = PARAMETERS_ALTERED if stays.partitions else table_rule(event)
        changes_names = type(event) in CHANGES_TABLE_NAMES
        if changes_names and not (isinstance(event, ev.TableAltered) and not event.is_rename):
            self._transactions.forget_tables(scope.tables)
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
        """Whether any statistics are held: only then the columns of a message are worth decoding."""
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
            self.large_keys.pop((table, facet), None)
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
        cached = entry.facets[facet]
        if isinstance(cached, CachedStatistics) and (action is Action.DROP_NAMED or columns is not None):
            self._drop_statistics(entry, facet, cached, named if action is Action.DROP_NAMED else None, columns)
            return
        if action is Action.DROP_IF_TRANSACTIONAL:
            if not entry.is_transactional:
                return
            action = Action.DROP
        if action is Action.DROP:
            self._remove_facet(entry, facet)
            return
        if not isinstance(cached, PartitionSet):
            self._remove_facet(entry, facet)
            return
        cached.mark_missing(named)
        if cached.drop_mostly_missing():
            self._remove_facet(entry, facet)
            return
        self._changed(entry)
        self._remember_invalidated(entry, facet)
        self.recharge(entry, facet, weight_of(cached))

    def _drop_statistics(
        self,
        entry: Entry,
        facet: Facet,
        cached: CachedStatistics,
        named: tuple[Values, ...] | None,
        columns: frozenset[str] | None,
    ) -> None:
        """Drops the answers to questions about these partitions and columns; None: all."""
        if not cached.drop_changed(named, columns):
            return
        if not cached:
            self._remove_facet(entry, facet)
            return
        self._changed(entry)
        self._remember_invalidated(entry, facet)
        self.recharge(entry, facet, cached.weight)

    def _apply_transaction(self, event: ev.Event, resolved: Mapping[int, Sequence[tuple[TableName, int]]]) -> None:
        change = self._transactions.apply(event, resolved)
        if change.void_all:
            for table in tuple(self.indexes.maybe_transactional):
                entry = self.tables[table]
                if entry.is_transactional:
                    self._remove_facet(entry, Facet.TABLE)  # the next read takes its tag from the database
            for load in self.loads.with_facet(Facet.TABLE):
                load.note(event.event_id, Facet.TABLE, Action.DROP_IF_TRANSACTIONAL)
        for table in change.unknown:
            self._drop(event.event_id, table, Facet.TABLE)
        for table, raised in change.raised.items():
            self._note(event.event_id, table, Facet.TABLE, Action.DROP, ())
            written = self.tables.get(table)
            if written is not None and written.tag is not None:
                self._raise_tag(written, written.tag, raised)
        if change.is_commit and self._has_peers:
            self._withdraw_claims(event.event_id, change)
        if change.is_commit:
            # A commit may set a parameter in TABLE_PARAMS of a table that it does not name.
            for table in tuple(self.indexes.with_commit_parameters):
                self._remove_facet(self.tables[table], Facet.TABLE)
            for load in self.loads.with_facet(Facet.TABLE):
                load.note(event.event_id, Facet.TABLE, Action.DROP_IF_COMMIT_PARAMETERS)

    def _withdraw_claims(self, event_id: int, change: TagChange) -> None:
        tables = {*change.raised, *change.unknown}
        if change.void_all or change.unknown:
            # The database may report only a part of a finished transaction: it forgets write ids table by table.
            tables.update(self.indexes.maybe_transactional, self._tables_being_loaded())
        for table in tables:
            self._apply_rule(event_id, table, CLAIMS_WITHDRAWN, None)

    def _raise_tag(self, entry: Entry, tag: ValidWriteIdList, raised: Raise) -> None:
        self._changed(entry)
        try:
            entry.tag = raised(tag)
        except WriteIdGapTooLargeError:
            self._remove_facet(entry, Facet.TABLE)  # a load lists fewer ids: those that exist

    # Scopes wider than a table

    def _alter_database(self, event: ev.Event, database: DatabaseName) -> None:
        event_id = event.event_id
        self._drop(event_id, database, Facet.DATABASE)
        if isinstance(event, ev.DatabaseAltered) and keeps_content(event):
            return
        # Its properties decide whether its tables may be cached. A new database has none.
        if type(event) in CHANGES_DATABASE_NAMES:
            self._drop(event_id, database.catalog, Facet.DATABASE_NAMES)
        self._drop(event_id, database, Facet.TABLE_NAMES)
        self._drop(event_id, database, Facet.FUNCTIONS)
        self._drop_tables(event_id, {database})

    def _drop_databases(self, event_id: int, databases: Collection[DatabaseName]) -> None:
        for database in databases:
            for facet in DATABASE_FACETS:
                self._drop(event_id, database, facet)
            self._drop(event_id, database.catalog, Facet.DATABASE_NAMES)
        self._drop_tables(event_id, databases)

    def _drop_catalog(self, event_id: int, catalog: str) -> None:
        self._drop(event_id, catalog, Facet.DATABASE_NAMES)
        databases = {*self.databases, *self.indexes.by_database, *self._transactions.databases}
        databases.update(key for key in self.loads.subjects() if isinstance(key, DatabaseName))
        databases.update(table.in_database for table in self._tables_being_loaded())
        self._drop_databases(event_id, {database for database in databases if database.catalog == catalog})

    def _drop_tables(self, event_id: int, databases: Collection[DatabaseName]) -> None:
        """All entries of these, however many, without looking at others."""
        self._transactions.forget_databases(databases)
        named = {table for database in databases for table in self.indexes.by_database.get(database, ())}
        named.update(table for table in self._tables_being_loaded() if table.in_database in databases)
        for table in named:
            self._apply_rule(event_id, table, WHOLE_TABLE, None)

    def _tables_being_loaded(self) -> Iterator[TableName]:
        return (key for key in self.loads.subjects() if isinstance(key, TableName))

    def _drop_all_constraints(self, event_id: int) -> None:
        """Tables without foreign keys, too: foreign keys of others may end at a table. Those without a key are not
        answered until they have one."""
        for load in self.loads.with_facet(Facet.CONSTRAINTS):
            load.note(event_id, Facet.CONSTRAINTS, Action.DROP)
        for table in tuple(self.indexes.with_constraints):
            self._remove_facet(self.tables[table], Facet.CONSTRAINTS)

    def _drop_everything(self, event_id: int) -> None:
        self.creations.begin(event_id)
        for load in self.loads:
            for facet in load.facets:
                load.note(event_id, facet, Action.DROP)
        self._clear()

    def _forget_rights(self) -> None:
        """Answers that wait to be sent were authorized by the earlier rights."""
        if self.rights_listener is not None:
            self.answers.clear()
            self.rights_listener()

    def _clear(self) -> None:
        self._forget_rights()
        self._drop_all()
        self.too_large.clear()
        self._transactions.forget()

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
