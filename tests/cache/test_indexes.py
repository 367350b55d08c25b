"""The indexes that find the entries of an event, compared with a scan of the whole cache.

Two caches go through the same history: loads that end at once or overlap with events, events of each kind, evictions,
commands and resets. One finds the entries of an event by its indexes; the other has none and scans all possible tables.
Afterwards, both caches must contain the same, and must have recorded the same for loads in progress.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pytest

from hms_cache.cache.entries import CATALOG_FACETS, DATABASE_FACETS, Entry, Facet, Key
from hms_cache.cache.event_rules import CLAIMS_WITHDRAWN, WHOLE_TABLE
from hms_cache.cache.loads import Load
from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.requested_names import RequestedNames
from hms_cache.cache.segmented_tables import CachedSegment, SegmentedTables
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.statistics_by_column import CachedStatistics, LoadedColumns
from hms_cache.cache.table_indexes import TableIndexes
from hms_cache.cache.verification import invariants
from hms_cache.cache.weights import weight_of
from hms_cache.cache.write_id_tags import TagChange, TransactionTracker
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.events import EventHeader, TransactionWriteId
from hms_cache.notifications.scope import Scope, scope_of_tables
from hms_cache.notifications.tjson import write_struct
from hms_cache.store.snapshots import StatisticsOfColumn
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.wire.codec import encode_struct
from tests.cache.evictions import evict_at_random
from tests.cache.world import partition, table

CATALOGS = ("hive", "other")
DATABASES = [DatabaseName(catalog, name) for catalog in CATALOGS for name in ("d", "e")]
NAMES = [TableName(*database, name) for database in DATABASES for name in ("t", "u", "v")]
VALUES = tuple((text,) for text in "abcdef")
KEYS = (("p", "string"),)
COLUMNS = ("x", "y")
OF_TABLES = (
    Facet.TABLE,
    Facet.CONSTRAINTS,
    Facet.PARTITIONS,
    Facet.TABLE_STATISTICS,
    Facet.PARTITION_STATISTICS,
    Facet.EXCLUDED,
)
ONE_OF = frozenset({Facet.TABLE, Facet.EXCLUDED})
"""At one moment a table may be held, or must not be."""

TRANSACTIONS = range(1, 9)


class ScannedIndexes(TableIndexes):
    """Derived from the cached data at each call."""

    def __init__(self, cache: SharedCache) -> None:
        self._cache = cache

    def _where(self, belongs: Callable[[Entry], bool]) -> set[TableName]:
        return {name for name, entry in self._cache.tables.items() if belongs(entry)}

    @property
    def by_database(self) -> dict[DatabaseName, set[TableName]]:  # type: ignore[override]
        found: dict[DatabaseName, set[TableName]] = {}
        for name in self._cache.tables:
            found.setdefault(name.in_database, set()).add(name)
        return found

    @property
    def with_constraints(self) -> set[TableName]:  # type: ignore[override]
        return self._where(lambda entry: Facet.CONSTRAINTS in entry.facets)

    @property
    def with_commit_parameters(self) -> set[TableName]:  # type: ignore[override]
        return self._where(lambda entry: Facet.TABLE in entry.facets and entry.has_commit_parameters)

    @property
    def maybe_transactional(self) -> set[TableName]:  # type: ignore[override]
        return self._where(lambda entry: entry.is_transactional or Facet.TABLE not in entry.facets)

    def note(self, table: TableName, entry: Entry) -> None:
        pass

    def clear(self) -> None:
        pass


class ScannedSegments(SegmentedTables):
    """Examines all segments each time."""

    def oldest(self, before_s: float) -> CachedSegment | None:
        found: CachedSegment | None = None
        for entry in self._entries.values():
            held = entry.facets[Facet.PARTITIONS]
            for one in held.segments if held.is_segmented else ():
                if not one.is_bare and (found is None or one.last_read < found.segment.last_read):
                    found = CachedSegment(entry, held, one)
        return found if found is not None and found.segment.last_read <= before_s else None


class ScannedTransactions(TransactionTracker):
    """Examines the writes of all open transactions."""

    @property
    def databases(self) -> Collection[DatabaseName]:
        return {name.in_database for written in self._open.values() for name, _ in written}

    def _take(self, transaction: int) -> list[tuple[TableName, int]] | None:
        return self._open.pop(transaction, None)

    def forget_tables(self, tables: Iterable[TableName]) -> None:
        self._forget({*tables}.__contains__)

    def forget_databases(self, databases: Iterable[DatabaseName]) -> None:
        some = {*databases}
        self._forget(lambda name: name.in_database in some)

    def _forget(self, concerned: Callable[[TableName], bool]) -> None:
        for transaction, written in [*self._open.items()]:
            if any(concerned(name) for name, _ in written):
                del self._open[transaction]


class ScanningCache(SharedCache):
    """Applies an event to each table of this world that it may concern, whether cached, being loaded, or neither."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.indexes = ScannedIndexes(self)
        self.segmented = ScannedSegments()
        self._transactions = ScannedTransactions(has_peers=self._has_peers)

    def _drop_catalog(self, event_id: int, catalog: str) -> None:
        self._drop(event_id, catalog, Facet.DATABASE_NAMES)
        self._drop_databases(event_id, [one for one in DATABASES if one.catalog == catalog])

    def _drop_tables(self, event_id: int, databases: Collection[DatabaseName]) -> None:
        self._transactions.forget_tables(name for name in NAMES if name.in_database in databases)
        for name in NAMES:
            if name.in_database in databases:
                self._apply_rule(event_id, name, WHOLE_TABLE, None)

    def _withdraw_claims(self, event_id: int, change: TagChange) -> None:
        for name in NAMES:
            entry = self.tables.get(name)
            may_be = entry is None or entry.is_transactional or Facet.TABLE not in entry.facets or self.loads.of(name)
            is_of_any = (change.void_all or change.unknown) and may_be
            if name in change.raised or name in change.unknown or is_of_any:
                self._apply_rule(event_id, name, CLAIMS_WITHDRAWN, None)


def value_of(key: Key, facet: Facet, chance: random.Random) -> Any:
    match facet:
        case Facet.DATABASE_NAMES:
            return ["d", "e"]
        case Facet.DATABASE:
            return ttypes.Database(name=key.database, catalogName=key.catalog)  # type: ignore[union-attr]
        case Facet.TABLE_NAMES:
            assert isinstance(key, DatabaseName)
            return {name: ttypes.TableMeta(key.database, name, "MANAGED_TABLE") for name in "tuv"}
        case Facet.FUNCTIONS:
            return [ttypes.Function("f", "d")] if chance.random() < 0.5 else []
        case Facet.TABLE:
            assert isinstance(key, TableName)
            kind = chance.choice([{}, {"transactional": "true"}, {"_meta.offset": "1"}])
            found = table(key.database, key.table, KEYS, **kind)
            found.catName, found.id = key.catalog, 100 + NAMES.index(key)
            return found
        case Facet.CONSTRAINTS:
            return ttypes.SQLAllTableConstraints()
        case Facet.PARTITIONS:
            assert isinstance(key, TableName)
            held = [partition(table(key.database, key.table, KEYS), one) for one in VALUES if chance.random() < 0.7]
            return PartitionSet(KEYS, held, complete=True)
        case Facet.TABLE_STATISTICS | Facet.PARTITION_STATISTICS:
            return _statistics(facet, chance)
        case _:
            return True


def _statistics(facet: Facet, chance: random.Random) -> CachedStatistics:
    made = CachedStatistics()
    for engine in ("hive", "impala"):
        some = tuple(f"p={one}" for (one,) in VALUES if chance.random() < 0.4)
        names = some if facet is Facet.PARTITION_STATISTICS else ()
        requested = tuple(column for column in COLUMNS if chance.random() < 0.5)
        found = [
            StatisticsOfColumn(name, ttypes.ColumnStatisticsObj(column, "bigint", ttypes.ColumnStatisticsData()), 1)
            for name in names or ("",)
            for column in requested
        ]
        partitions = frozenset((name[2:],) for name in names) if chance.random() < 0.9 else None
        made.add((engine, names), LoadedColumns.of(requested, found), 10, partitions)
        if names:
            merged = ttypes.AggrStats([], len(names))
            made.add_aggregate((engine, names, COLUMNS, "aggregate"), merged, 20, 10, partitions)
    return made


def prepared(entry: Entry, struct: ttypes.Table) -> None:
    """The data beside a table."""
    parameters = struct.parameters or {}
    entry.table_id, entry.encoded_table = struct.id, encode_struct(struct)
    entry.is_transactional = "transactional" in parameters
    text = f"{struct.dbName}.{struct.tableName}:5:2:2,4:"
    entry.tag = ValidWriteIdList.parse(text) if entry.is_transactional else None
    entry.has_commit_parameters = "_meta.offset" in parameters


class Run:
    """One cache, in a history generated from a seed."""

    def __init__(self, seed: int, *, has_peers: bool, scans: bool) -> None:
        self._chance = random.Random(seed)
        self.cache = (ScanningCache if scans else SharedCache)(10**7, self._resolve, has_peers=has_peers)
        self.cache.reset("start", 1)
        self._event_id = 1
        self._now_s = 1.0
        self.running: list[tuple[Load, int, int]] = []
        """With the fence, and the seed of what was read there."""

    @staticmethod
    def _resolve(transactions: Sequence[int]) -> dict[int, list[tuple[TableName, int]]]:
        return {one: [(NAMES[one % 3], one)] for one in transactions if one % 2}

    def step(self) -> None:
        """One of all possible steps."""
        self._now_s += 1.0
        chance = self._chance
        match chance.choices(range(7), (14, 7, 3, 2, 1, 0.7, 0.05))[0]:
            case 0:
                self._begin()
                if chance.random() < 0.7:
                    self._end(-1)
            case 1:
                self._apply()
            case 2:
                if self.running:
                    self._end(chance.randrange(len(self.running)))
            case 3:
                self._read()
            case 4:
                evict_at_random(self.cache, random.Random(chance.random()))
            case 5:
                self._forget()
            case _:
                self.cache.reset("another history", self._event_id)

    def _subject(self) -> Key:
        return self._chance.choice([*CATALOGS, *DATABASES, *NAMES, *NAMES, *NAMES])

    def _begin(self) -> None:
        key, chance = self._subject(), self._chance
        every = OF_TABLES if isinstance(key, TableName) else _sorted(_facets_of(key))
        facets = [one for one in every if chance.random() < (0.05 if one is Facet.EXCLUDED else 0.6)] or [every[0]]
        load = self.cache.begin_load(key, facets)
        self.running.append((load, self._event_id, chance.randrange(2**32)))

    def _end(self, at: int) -> None:
        load, fence, seed = self.running.pop(at)
        chance = random.Random(seed)
        for facet in _sorted(load.facets):
            value = value_of(load.key, facet, chance)
            entry = self.cache.entry(load.key)
            held = entry.facets.keys() if entry is not None else set()
            if facet in held or (facet in ONE_OF and not ONE_OF.isdisjoint(held)):
                continue  # another call has loaded the same
            weight = value.weight if isinstance(value, CachedStatistics) else weight_of(value)
            ready = (lambda made, struct=value: prepared(made, struct)) if facet is Facet.TABLE else None
            self.cache.install(load, fence, facet, value, weight, ready)
        self.cache.end_load(load)

    def _read(self) -> None:
        entry = self.cache.entry(self._subject())
        if entry is None:
            return
        with self.cache.view():
            self.cache.touch(entry, self._now_s)
            entry.reads += 1
            held = entry.facets.get(Facet.PARTITIONS)
            if held is not None:
                held.narrowed_to_names(RequestedNames([f"p={self._chance.choice('abcdef')}"])).touch(self._now_s)

    def _forget(self) -> None:
        key, chance = self._subject(), self._chance
        match chance.randrange(3):
            case 0:
                self.cache.forget(key)
            case 1:
                self.cache.forget(key, frozenset({chance.choice(list(Facet))}))
            case _ if isinstance(key, TableName):
                self.cache.forget_partitions(key, (chance.choice(VALUES),))

    def _apply(self) -> None:
        events = []
        for _ in range(self._chance.choice((1, 1, 3))):
            self._event_id += 1
            events.append(event_at(self._event_id, self._chance))
        self.cache.apply(events, self._event_id)

    # The comparison

    def held(self) -> dict[Key, Any]:
        cache = self.cache
        entries = itertools.chain(cache.catalogs.items(), cache.databases.items(), cache.tables.items())
        return {
            key: (
                {facet: _plain(value) for facet, value in entry.facets.items()},
                dict(entry.weights),
                (entry.tag, entry.table_id, entry.is_transactional, entry.has_commit_parameters),
                (entry.reads, entry.last_read, entry.version),
            )
            for key, entry in entries
        }

    def beside(self) -> dict[str, Any]:
        cache = self.cache
        return {
            "position": (cache.position, cache.generation),
            "weight": (cache.weight, cache.evictions),
            "ids": cache.names_by_id,
            "order of eviction": [*cache.tables],
            "too large": {*cache.too_large},
            "for the refill": dict(cache.invalidated),
            "reads before": dict(cache.reads_before),
            "transactions": {one: sorted(written) for one, written in cache._transactions._open.items()},
            "loads": [(load.key, load.facets, load.effects, load.named, load.abandoned) for load, _, _ in self.running],
        }


def _facets_of(key: Key) -> frozenset[Facet]:
    return DATABASE_FACETS if isinstance(key, DatabaseName) else CATALOG_FACETS


def _sorted(facets: Iterable[Facet]) -> list[Facet]:
    return sorted(facets, key=lambda one: one.value)


def _plain(value: Any) -> Any:
    if isinstance(value, PartitionSet):
        whole = [(one.first, one.complete, one.last_read, one.all().names()) for one in value.segments]
        return whole, sorted(value.missing)
    if isinstance(value, CachedStatistics):
        return value.parts(), value.weight
    return value


def event_at(event_id: int, chance: random.Random) -> ev.Event:
    """One of any kind, about anything."""
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    some = tuple(chance.sample(VALUES, chance.randint(1, 3)))
    column = chance.choice([None, *COLUMNS])
    transaction = chance.choice(TRANSACTIONS)

    def header(event_type: str, of: TableName | DatabaseName | None = name) -> EventHeader:
        return EventHeader(event_id, 0, event_type, *(*(of or ()), None, None, None)[:3])

    written = ttypes.ColumnStatistics(
        ttypes.ColumnStatisticsDesc(True, name.database, name.table),
        [ttypes.ColumnStatisticsObj(column or "x", "bigint", ttypes.ColumnStatisticsData())],
    )
    statistics = write_struct(written) if column else None
    image = write_struct(table(name.database, name.table, KEYS, k=str(event_id)))
    given = (TransactionWriteId(transaction, 6 + chance.randrange(4)),)
    database = name.in_database
    kinds: list[Callable[[], ev.Event]] = [
        lambda: ev.TableCreated(header("CREATE_TABLE")),
        lambda: ev.TableDropped(header("DROP_TABLE")),
        lambda: ev.TableAltered(header("ALTER_TABLE"), old_name=name, new_name=name),
        lambda: ev.TableAltered(
            header("ALTER_TABLE"), old_name=name, new_name=name, before_json=image, after_json=image
        ),
        lambda: ev.TableAltered(header("ALTER_TABLE", other), old_name=name, new_name=other),
        lambda: ev.TableReloaded(header("RELOAD")),
        lambda: ev.PartitionsAdded(header("ADD_PARTITION"), partitions=some),
        lambda: ev.PartitionsDropped(header("DROP_PARTITION"), partitions=chance.choice([some, None])),
        lambda: ev.PartitionAltered(header("ALTER_PARTITION"), partitions=some),
        lambda: ev.DataInserted(header("INSERT"), partitions=chance.choice([some, None])),
        lambda: ev.AcidDataWritten(header("ACID_WRITE_EVENT"), partition_values=chance.choice([some[0], None])),
        lambda: ev.CompactionCommitted(header("COMMIT_COMPACTION_EVENT"), partitions=some),
        lambda: ev.TableColumnStatisticsUpdated(header("UPDATE_TBL_COL_STAT_EVENT"), statistics_json=statistics),
        lambda: ev.TableColumnStatisticsDeleted(header("DELETE_TBL_COL_STAT_EVENT"), column=column),
        lambda: ev.PartitionColumnStatisticsUpdated(
            header("UPDATE_PART_COL_STAT_EVENT"), partitions=some, statistics_json=statistics
        ),
        lambda: ev.PartitionColumnStatisticsDeleted(
            header("DELETE_PART_COL_STAT_EVENT"), partitions=some, column=column
        ),
        lambda: ev.PrimaryKeyAdded(header("ADD_PRIMARYKEY")),
        lambda: ev.NotNullConstraintAdded(header("ADD_NOTNULLCONSTRAINT"), tables=frozenset({name, other})),
        lambda: ev.ForeignKeyAdded(header("ADD_FOREIGNKEY"), tables=frozenset({name, other})),
        lambda: ev.ConstraintDropped(header("DROP_CONSTRAINT"), "c"),
        lambda: ev.FunctionCreated(header("CREATE_FUNCTION", database), function_name="f"),
        lambda: ev.DatabaseCreated(header("CREATE_DATABASE", database)),
        lambda: ev.DatabaseAltered(header("ALTER_DATABASE", database)),
        lambda: ev.DatabaseDropped(header("DROP_DATABASE", database)),
        lambda: ev.CatalogDropped(header("DROP_CATALOG", None), catalog_name=name.catalog),
        lambda: ev.UndecodedEvent(header("NEW_KIND"), "unknown", scope_of_tables([name], foreign_keys=True)),
        lambda: ev.UndecodedEvent(header("NEW_KIND"), "unknown", Scope(whole_databases=frozenset(DATABASES[:2]))),
    ]
    of_transactions: list[Callable[[], ev.Event]] = [
        *[lambda: ev.TransactionsOpened(header("OPEN_TXN", None), range(transaction, transaction + 4))] * 2,
        *[lambda: ev.WriteIdsAllocated(header("ALLOC_WRITE_ID_EVENT"), given)] * 8,
        lambda: ev.TransactionCommitted(header("COMMIT_TXN", None), transaction),
        lambda: ev.TransactionAborted(header("ABORT_TXN", None), transaction),
    ]
    # Narrow ones more often than those that leave little in memory.
    weights = [3] * 16 + [1] * 4 + [3, 2, 2, 2, 1, 0.5, 0.5]
    if chance.random() < 0.4:
        return chance.choice(of_transactions)()
    return chance.choices(kinds, weights)[0]()


@pytest.mark.parametrize("has_peers", [False, True])
@pytest.mark.parametrize(
    "seed",
    [
        *range(8),
        *(pytest.param(one, marks=pytest.mark.soak) for one in range(8, 32)),
        *(pytest.param(one, marks=[pytest.mark.soak, pytest.mark.long]) for one in range(32, 200)),
    ],
)
def test_what_an_event_concerns_is_found_as_by_a_look_at_everything(
    seed: int, has_peers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 2)
    indexed, scanned = (Run(seed, has_peers=has_peers, scans=scans) for scans in (False, True))
    most = 0
    for number in range(200):
        indexed.step()
        scanned.step()
        of = f"seed {seed}, step {number}"
        assert indexed.held() == scanned.held(), of
        assert indexed.beside() == scanned.beside(), of
        invariants.check(indexed.cache)
        most = max(most, len(indexed.cache.tables))
    assert most > 4
