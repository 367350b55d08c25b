"""What a load reads in one snapshot of the database, together with what is stored next to it in the cache.

Nothing here uses a cache: another process than the cache's may read (`SnapshotRead` can be pickled), and the result is
true at its fence wherever it was read.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from hms_cache.cache.entries import Facet, Key, has_commit_parameters
from hms_cache.cache.partitions.block_builder import ForeignNameError
from hms_cache.cache.partitions.partition_set import PartitionSet, SetTooLargeError, builder_of_pages, segments_of
from hms_cache.cache.partitions.segment import Segment, Values
from hms_cache.cache.policy import properties_allow
from hms_cache.cache.statistics_by_column import LoadedColumns, partitions_of, weight_of_key
from hms_cache.cache.warming.name_list_cooldowns import NameListCooldowns
from hms_cache.cache.weights import OVERHEAD_BYTES, weight_of, weight_of_table
from hms_cache.computing import scheduler
from hms_cache.metadata.name_ranges import NameRange
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.snapshots import StoreReads
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    MetaException,
    NoSuchObjectException,
    Table,
    UnknownDBException,
)
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.values import frozen
from hms_cache.wire.codec import encode_struct

Page = TypeVar("Page")

PAUSE_SHARE = 0.25
"""A load that no call waits for takes a quarter longer, and leaves that time to calls."""

LONGEST_PAUSE_S = 0.1
"""A snapshot keeps old rows in the database: pauses must not keep it open for long."""

MATERIALIZED_VIEW = "MATERIALIZED_VIEW"


@frozen
class LoadRequest:
    """A facet that a read needs. `detail` restricts it: partition values, a `Window`, or (engine, names, columns) of
    statistics."""

    key: Key
    facet: Facet
    detail: tuple[Any, ...] = ()

    def as_stored(self) -> LoadRequest:
        """With the name as it is stored, not as a request spells it."""
        key = self.key if isinstance(self.key, str) else self.key.as_stored
        return self if key is self.key else LoadRequest(key, self.facet, self.detail)


@frozen
class TableFacts:
    """What is stored next to a table in its entry."""

    table_id: int
    tag: ValidWriteIdList | None
    encoded: bytes
    is_transactional: bool
    has_commit_parameters: bool


@frozen
class SomePartitions:
    """The partitions that were found of those requested, of a table with these keys."""

    keys: tuple[tuple[str, str], ...]
    requested: tuple[Values, ...]
    found: Sequence[Any]


@frozen
class Window:
    """For `LoadRequest.detail`: about `most` partitions around a name, of those whose names lie in a gap."""

    gap: NameRange
    around: str
    most: int


@frozen
class SomeSegments:
    """All partitions in a range of names, of a table with these keys."""

    keys: tuple[tuple[str, str], ...]
    covered: NameRange
    segments: Sequence[Segment]


@frozen
class Loaded:
    """A value for one facet, read for `requested`. `weight` is used if it is the whole facet, or an aggregate of
    statistics."""

    requested: LoadRequest
    facet: Facet
    value: Any
    weight: int = 0
    facts: TableFacts | None = None
    partitions: frozenset[Values] | None = None
    """For statistics: the partitions that the key names; None: unknown."""
    key_weight: int = 0
    """For statistics: the weight of the key itself."""

    @property
    def is_part(self) -> bool:
        """Whether it is added to the facet, rather than replacing it."""
        return bool(self.requested.detail) and self.facet is self.requested.facet

    @property
    def is_aggregate(self) -> bool:
        """For statistics: whether they are merged over partitions."""
        return len(self.requested.detail) > 3

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """For statistics: the key under which they are held."""
        return self.requested.detail if self.is_aggregate else self.requested.detail[:2]

    @property
    def added_weight(self) -> int:
        """For statistics: upper bound for the bytes charged for them."""
        weight = self.weight if self.is_aggregate else sum(self.value.weights.values())
        return self.key_weight + int(weight)


@frozen
class SnapshotRead:
    """Everything that one snapshot showed. `highest_id`: the highest id of a table; None: it was not read."""

    fence: int
    loaded: list[Loaded]
    highest_id: int | None
    server_identity: str = ""
    lacks_name_lists: bool = False
    """Whether lists of names that an answer needs were not read, because they have a cooldown (`NameListCooldowns`)."""


Reader = Callable[[Sequence[LoadRequest]], SnapshotRead]
"""Reads what is wanted in one snapshot. Raises what the store raises, except NoSuchObjectException."""

CachedDatabase = Callable[[DatabaseName, int], Database | None]
"""A database as a cache has it at a fence or later. A newer one does no harm: its event discards the load."""


class SnapshotReads:
    """Reads from one store, for caches with a budget of `budget_bytes`. Thread-safe: each call has its own snapshot."""

    def __init__(
        self,
        store: StoreReads,
        budget_bytes: int,
        cached_database: CachedDatabase = lambda key, fence: None,
        wants_highest_id: Callable[[int], bool] = lambda fence: True,
        name_list_cooldowns: NameListCooldowns | None = None,
    ) -> None:
        """`name_list_cooldowns`: of a server that answers reads; None: everything wanted is read."""
        self._name_list_cooldowns = name_list_cooldowns
        self._store = store
        self._budget_bytes = budget_bytes
        self._cached_database = cached_database
        self._wants_highest_id = wants_highest_id

    def read(self, requested: Sequence[LoadRequest]) -> SnapshotRead:
        """A `Reader`."""
        return self._read(requested)

    def read_throttled(self, requested: Sequence[LoadRequest]) -> SnapshotRead:
        """A `Reader` that pauses after each page of partitions: calls get the processor and the database meanwhile."""
        return self._read(requested, throttled=True)

    def read_few(self, requested: Sequence[LoadRequest]) -> SnapshotRead:
        """A `Reader` for tables that are known to have few partitions, which are read together with their table."""
        return self._read(requested, is_few=True)

    def _read(self, requested: Sequence[LoadRequest], *, throttled: bool = False, is_few: bool = False) -> SnapshotRead:
        with self._store.snapshot() as snapshot:
            opened = OpenSnapshot(
                self._store,
                self._budget_bytes,
                lambda key: self._cached_database(key, snapshot().event_id),
                throttled=throttled,
                is_few=is_few,
                name_list_cooldowns=self._name_list_cooldowns,
            )
            loaded = opened.read(requested)
            fence, server_identity = snapshot()
            highest_id = self._store.get_highest_table_id() if self._wants_highest_id(fence) else None
            return SnapshotRead(fence, loaded, highest_id, server_identity, opened.lacks_name_lists)


def _with_pauses(pages: Iterator[Page]) -> Iterator[Page]:
    """The pages, each followed by a pause, which is a part of the time that it took to read and use the page."""
    began_s = time.monotonic()
    for page in pages:
        yield page
        with scheduler.waiting():
            time.sleep(min(LONGEST_PAUSE_S, PAUSE_SHARE * (time.monotonic() - began_s)))
        began_s = time.monotonic()


def _names_values(one: LoadRequest) -> bool:
    """Whether single partitions are wanted, by their values."""
    return bool(one.detail) and not isinstance(one.detail[0], Window)


class OpenSnapshot:
    """One snapshot, in which nothing is read twice."""

    def __init__(
        self,
        store: StoreReads,
        budget_bytes: int,
        cached_database: Callable[[DatabaseName], Database | None],
        *,
        throttled: bool = False,
        is_few: bool = False,
        name_list_cooldowns: NameListCooldowns | None = None,
    ) -> None:
        self.lacks_name_lists = False
        """See `SnapshotRead`."""
        self._name_list_cooldowns = name_list_cooldowns
        self._store = store
        self._throttled = throttled
        self._is_few = is_few
        self._partitions: dict[LoadRequest, PartitionRows] = {}
        self._budget_bytes = budget_bytes
        self._cached_database = cached_database
        self._tables: dict[TableName, Table | None] = {}
        self._excluded: set[TableName] = set()
        """Tables of which nothing may be held."""
        self._databases: dict[DatabaseName, Database | None] = {}

    def read(self, requested: Sequence[LoadRequest]) -> list[Loaded]:
        """Reads everything wanted; tables of one database together."""
        together: dict[DatabaseName, list[TableName]] = defaultdict(list)
        for one in requested:
            if one.facet is Facet.TABLE and isinstance(one.key, TableName):
                together[one.key.in_database].append(one.key)
        for database, keys in together.items():
            if len(keys) > 1:
                by_name = {table.tableName: table for table in self._read_tables(database, keys)}
                self._tables.update({key: by_name.get(key.table) for key in keys})
        for one in requested:
            if one.facet is Facet.PARTITIONS and (self._is_few if not one.detail else _names_values(one)):
                self._read_with_table(one)
        return [item for one in requested for item in self._read(one)]

    def _read_with_table(self, one: LoadRequest) -> None:
        """Reads partitions together with their table, in one round trip."""
        key = one.key
        assert isinstance(key, TableName)
        try:
            self._tables[key], self._partitions[one] = self._store.read_table_with_partitions(key, one.detail or None)
        except NoSuchObjectException:
            self._tables[key] = None
        except MetaException:
            pass  # the values are not those of its keys

    def _read_tables(self, database: DatabaseName, keys: Sequence[TableName]) -> list[Table]:
        try:
            return self._store.tables.get_tables(DatabaseName(*database), [key.table for key in keys])
        except UnknownDBException:
            return []

    def _read(self, one: LoadRequest) -> list[Loaded]:
        match one.facet:
            case Facet.TABLE:
                return self._read_table(one)
            case Facet.PARTITIONS:
                return self._read_partitions(one)
            case Facet.TABLE_STATISTICS | Facet.PARTITION_STATISTICS:
                try:
                    return self._read_statistics(one)
                except NoSuchObjectException:
                    return []  # the table was dropped a moment ago
            case Facet.TABLE_NAMES if self._name_list_cooldowns is not None and isinstance(one.key, DatabaseName):
                began_s = self._name_list_cooldowns.now_s()
                loaded = self._read_whole(one)
                self._name_list_cooldowns.loaded(one.key, began_s, sum(len(item.value) for item in loaded))
                return loaded
            case _:
                return self._read_whole(one)

    def _read_whole(self, one: LoadRequest) -> list[Loaded]:
        value = self._read_plain(one)
        # The name counts, too: it is remembered that a database has no tables even if its name has megabytes.
        weight = OVERHEAD_BYTES + len(str(one.key)) + weight_of(value)
        return [] if value is None else [Loaded(one, one.facet, value, weight)]

    def _read_plain(self, one: LoadRequest) -> Any:
        key = one.key
        try:
            if isinstance(key, TableName):
                return self._store.constraints.get_table_constraints(TableName(*key))
            if isinstance(key, DatabaseName):
                if one.facet is Facet.DATABASE:
                    return self._store.databases.get_database(DatabaseName(*key))
                if one.facet is Facet.TABLE_NAMES:
                    found = self._store.read_meta_of_database(key)
                    return {meta.tableName: meta for meta in found if meta.dbName == key.database}
                return self._store.functions.get_functions(key.catalog, key.database)
            return self._store.databases.get_database_names(key)
        except NoSuchObjectException:
            return None

    def _names_for_absence(self, key: DatabaseName) -> list[Loaded]:
        """Only complete lists of names show that a table does not exist (P6). During a cooldown, the database
        decides."""
        if self._name_list_cooldowns is not None and not self._name_list_cooldowns.is_over(key):
            self.lacks_name_lists = True
            return []
        return self._read(LoadRequest(key, Facet.TABLE_NAMES))

    def _table(self, one: LoadRequest) -> tuple[TableName, Table | None]:
        """The table of which a facet is wanted: its name, and its struct if it exists."""
        key = one.key
        assert isinstance(key, TableName)
        if key not in self._tables:
            try:
                self._tables[key] = self._store.tables.get_table(TableName(*key))
            except NoSuchObjectException:
                self._tables[key] = None
        return key, self._tables[key]

    def _read_table(self, one: LoadRequest) -> list[Loaded]:
        key, table = self._table(one)
        if table is None:
            return self._names_for_absence(key.in_database)
        loaded, database = self._read_database(key.in_database)
        allowed = properties_allow(table.parameters, database.parameters if database is not None else None)
        # Tables that a materialized view reads may be renamed, and no event names the view.
        if not allowed or table.tableType == MATERIALIZED_VIEW:
            self._excluded.add(key)
            return [*loaded, Loaded(one, Facet.EXCLUDED, True, OVERHEAD_BYTES)]
        encoded = encode_struct(table)
        transactional = is_transactional(table)
        tag = self.read_tag(key) if transactional else None
        facts = TableFacts(table.id, tag, encoded, transactional, has_commit_parameters(table))
        return [*loaded, Loaded(one, Facet.TABLE, table, weight_of_table(encoded), facts)]

    def _read_database(self, key: DatabaseName) -> tuple[list[Loaded], Database | None]:
        """(what to install for it, the database)."""
        if key in self._databases:
            return [], self._databases[key]
        cached = self._cached_database(key)
        loaded = self._read(LoadRequest(key, Facet.DATABASE)) if cached is None else []
        self._databases[key] = loaded[0].value if loaded else cached
        return loaded, self._databases[key]

    def read_tag(self, key: TableName) -> ValidWriteIdList | None:
        """The present write ids of a transactional table (P2); None: they are unknown."""
        text = self._store.get_write_id_tag(TableName(*key))
        return ValidWriteIdList.parse(text) if text is not None else None

    def _read_partitions(self, one: LoadRequest) -> list[Loaded]:
        key, table = self._table(one)
        if table is None:
            return self._names_for_absence(key.in_database)
        if key in self._excluded:
            return []
        keys = tuple((field.name, field.type) for field in table.partitionKeys or ())
        rows = self._partitions.pop(one, None)
        if not one.detail:
            pages = iter([rows]) if rows is not None else self._store.read_partition_pages(TableName(*key))
            if self._throttled:
                pages = _with_pauses(pages)
            try:
                whole = PartitionSet.from_pages(keys, pages, complete=True, max_bytes=self._budget_bytes)
            except (SetTooLargeError, ForeignNameError):
                # It is neither held, nor tried again before an event concerns the table.
                nothing = PartitionSet.bare(keys)
                return [Loaded(one, Facet.PARTITIONS, nothing, self._budget_bytes + 1)]
            return [Loaded(one, Facet.PARTITIONS, whole, weight_of(whole))]
        if isinstance(one.detail[0], Window):
            return self._read_window(one, key, keys, one.detail[0])
        if rows is None:
            return []
        requested: tuple[Values, ...] = one.detail
        return [Loaded(one, Facet.PARTITIONS, SomePartitions(keys, requested, partitions_of_rows(rows)))]

    def _read_window(
        self, one: LoadRequest, key: TableName, keys: tuple[tuple[str, str], ...], window: Window
    ) -> list[Loaded]:
        found = self._store.read_partition_window(key, window.gap, window.around, window.most)
        if found is None:
            return []
        try:
            builder = builder_of_pages(keys, _with_pauses(found.pages) if self._throttled else found.pages)
        except ForeignNameError:
            return []
        segments = segments_of(keys, builder, complete=True, covered=found.covered)
        return [Loaded(one, Facet.PARTITIONS, SomeSegments(keys, found.covered, segments))]

    def _read_statistics(self, one: LoadRequest) -> list[Loaded]:
        engine, names, columns, *kind = one.detail
        key = one.key
        assert isinstance(key, TableName)
        # All of this is done here, since the cache's lock is not held.
        partitions = partitions_of(names)
        if kind:
            query = StatisticsQuery(TableName(*key), columns, engine)
            merged = self._store.statistics.get_aggregate_statistics(query, names)
            weight = weight_of_key(one.detail, partitions)
            return [Loaded(one, one.facet, merged, weight_of(merged), partitions=partitions, key_weight=weight)]
        requested = names if one.facet is Facet.PARTITION_STATISTICS else None
        found = self._store.read_column_statistics(TableName(*key), requested, columns, engine=engine)
        weight = weight_of_key((engine, names), partitions)
        loaded = LoadedColumns.of(columns, found)
        return [Loaded(one, one.facet, loaded, partitions=partitions, key_weight=weight)]
