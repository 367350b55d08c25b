"""After any changes through any server, each read through any cache equals the same read on the database."""

from __future__ import annotations

import contextlib
import copy
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hms_cache.cache.memory_files import MemoryFiles, is_available
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.cache.warming import name_list_cooldowns
from hms_cache.cache.warming.block_sharing import BlockSharing
from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.store.contract.environment import EnvironmentOptions, Writer
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, ByPartialValues, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.evictions import evict_at_random
from tests.cache.world import CATALOG, Server, encoded, partition, table

DATABASES = ("d1", "d2")
TABLES = ("t", "u")
VALUES = tuple((dt, hr) for dt in ("2024-01-01", "2024-01-02") for hr in ("1", "2", "10"))
PARTITION_NAMES = tuple(f"dt={dt}/hr={hr}" for dt, hr in VALUES)
PARTITION_NAME = PARTITION_NAMES[0]
KEYS = (("dt", "string"), ("hr", "int"))

Change = tuple[Any, ...]

columns = st.sampled_from(("a", "b"))
names = st.tuples(st.sampled_from(DATABASES), st.sampled_from(TABLES))
changes: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.just("create_database"), st.sampled_from(DATABASES)),
    st.tuples(st.just("alter_database"), st.sampled_from(DATABASES), st.sampled_from(["", "true", "false"])),
    st.tuples(st.just("drop_database"), st.sampled_from(DATABASES)),
    st.tuples(st.just("create_table"), names),
    st.tuples(st.just("alter_table"), names, st.integers(0, 9)),
    st.tuples(st.just("alter_structure"), names, st.sampled_from(["location", "columns", "serde"]), st.booleans()),
    st.tuples(st.just("set_sync"), names, st.sampled_from(["true", "false"])),
    st.tuples(st.just("rename_table"), names, names),
    st.tuples(st.just("drop_table"), names),
    st.tuples(st.just("add_partitions"), names, st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True)),
    st.tuples(st.just("alter_partition"), names, st.sampled_from(VALUES), st.integers(0, 9)),
    st.tuples(st.just("rename_partition"), names, st.sampled_from(VALUES), st.sampled_from(VALUES)),
    st.tuples(st.just("drop_partition"), names, st.sampled_from(VALUES)),
    st.tuples(st.just("create_function"), st.sampled_from(DATABASES), st.sampled_from(["f", "g"])),
    st.tuples(st.just("alter_function"), st.sampled_from(DATABASES), st.sampled_from(["f", "g"]), st.integers(0, 9)),
    st.tuples(st.just("drop_function"), st.sampled_from(DATABASES), st.sampled_from(["f", "g"])),
    st.tuples(st.just("add_primary_key"), names),
    st.tuples(st.just("drop_constraint"), names),
    st.tuples(st.just("set_statistics"), names, st.integers(0, 9)),
    st.tuples(st.just("set_partition_statistics"), names, st.integers(0, 9), st.sampled_from(PARTITION_NAMES), columns),
    st.tuples(st.just("delete_partition_statistics"), names, st.sampled_from(PARTITION_NAMES), columns),
)
steps = st.lists(st.tuples(st.integers(0, 1), changes, st.integers(0, 1)), min_size=1, max_size=25)


def apply(store: MetadataStore, change: Change) -> None:
    """Makes one change. An impossible one (no such table, …) is refused with Hive's exceptions."""
    kind, *arguments = change
    with contextlib.suppress(
        ttypes.MetaException,
        ttypes.NoSuchObjectException,
        ttypes.AlreadyExistsException,
        ttypes.InvalidObjectException,
        ttypes.InvalidOperationException,
        ttypes.InvalidInputException,
    ):
        CHANGES[kind](store, *arguments)


def _alter_table(store: MetadataStore, name: tuple[str, str], **parameters: str) -> None:
    old = store.reads.tables.get_table(TableName(CATALOG, *name))
    changed = ttypes.Table(**{slot: getattr(old, slot) for slot in old.__slots__})
    changed.parameters = {**(old.parameters or {}), **parameters}
    store.writes.tables.alter_table(TableName(CATALOG, *name), changed)


def _alter_structure(store: MetadataStore, name: tuple[str, str], what: str, cascade: bool) -> None:
    changed = copy.deepcopy(store.reads.tables.get_table(TableName(CATALOG, *name)))
    match what:
        case "location":
            changed.sd.location = f"{changed.sd.location}_moved"
        case "columns":
            changed.sd.cols.append(ttypes.FieldSchema(f"c{len(changed.sd.cols)}", "int", None))
        case _:
            changed.sd.serdeInfo.parameters = {"x": "y"}
    store.writes.tables.alter_table(
        TableName(CATALOG, *name), changed, writer=Writer(options=EnvironmentOptions(cascades=cascade))
    )


def _rename_table(store: MetadataStore, name: tuple[str, str], new: tuple[str, str]) -> None:
    old = store.reads.tables.get_table(TableName(CATALOG, *name))
    changed = ttypes.Table(**{slot: getattr(old, slot) for slot in old.__slots__})
    changed.dbName, changed.tableName = new
    store.writes.tables.alter_table(TableName(CATALOG, *name), changed)


def _alter_database(store: MetadataStore, name: str, sync: str) -> None:
    parameters = {"hms_cache.sync": sync} if sync else {}
    old = store.reads.databases.get_database(DatabaseName(CATALOG, name))
    store.writes.databases.alter_database(
        DatabaseName(CATALOG, name),
        ttypes.Database(
            name=name,
            catalogName=CATALOG,
            description=f"sync {sync}",
            locationUri=old.locationUri,
            parameters=parameters,
        ),
    )


def _changed_partition(
    store: MetadataStore, name: tuple[str, str], values: tuple[str, ...], number: int
) -> ttypes.Partition:
    old = store.reads.partitions.get_partition(TableName(CATALOG, *name), list(values))
    changed = ttypes.Partition(**{slot: getattr(old, slot) for slot in old.__slots__})
    changed.parameters = {**(old.parameters or {}), "k": str(number)}
    return changed


def _rename_partition(store: MetadataStore, name: tuple[str, str], old: tuple[str, ...], new: tuple[str, ...]) -> None:
    changed = _changed_partition(store, name, old, 1)
    changed.values = list(new)
    store.writes.partitions.rename_partition(TableName(CATALOG, *name), list(old), changed)


def _function(database: str, name: str, number: int = 0) -> ttypes.Function:
    return ttypes.Function(
        functionName=name,
        dbName=database,
        catName=CATALOG,
        className=f"example.F{number}",
        ownerName="tester",
        ownerType=1,
        createTime=1,
        functionType=1,
        resourceUris=[],
    )


def _add_primary_key(store: MetadataStore, name: tuple[str, str]) -> None:
    key = ttypes.SQLPrimaryKey(
        table_db=name[0],
        table_name=name[1],
        column_name="a",
        key_seq=1,
        pk_name="pk",
        enable_cstr=False,
        validate_cstr=False,
        rely_cstr=False,
        catName=CATALOG,
    )
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=[key]))


def _set_statistics(store: MetadataStore, name: tuple[str, str], number: int) -> None:
    data = ttypes.ColumnStatisticsData(
        stringStats=ttypes.StringColumnStatsData(maxColLen=number, avgColLen=1.5, numNulls=0, numDVs=number)
    )
    store.writes.statistics.update_table_column_statistics(
        ttypes.ColumnStatistics(
            statsDesc=ttypes.ColumnStatisticsDesc(isTblLevel=True, dbName=name[0], tableName=name[1], catName=CATALOG),
            statsObj=[ttypes.ColumnStatisticsObj(colName="a", colType="string", statsData=data)],
            engine="hive",
        )
    )


def _set_partition_statistics(
    store: MetadataStore, name: tuple[str, str], number: int, partition_name: str, column: str
) -> None:
    data = ttypes.ColumnStatisticsData(
        stringStats=ttypes.StringColumnStatsData(maxColLen=number, avgColLen=1.5, numNulls=0, numDVs=number)
    )
    described = ttypes.ColumnStatisticsDesc(
        isTblLevel=False, dbName=name[0], tableName=name[1], catName=CATALOG, partName=partition_name
    )
    element = ttypes.ColumnStatisticsObj(colName=column, colType="string", statsData=data)
    store.writes.statistics.update_partition_column_statistics(
        [ttypes.ColumnStatistics(statsDesc=described, statsObj=[element], engine="hive")]
    )


CHANGES: dict[str, Callable[..., object]] = {
    "create_database": lambda store, name: store.writes.databases.create_database(
        ttypes.Database(name=name, catalogName=CATALOG, description="d", parameters={}, ownerName="o", createTime=1)
    ),
    "alter_database": _alter_database,
    "drop_database": lambda store, name: store.writes.databases.drop_database(
        DatabaseName(CATALOG, name), delete_data=True, cascade=True
    ),
    "create_table": lambda store, name: store.writes.tables.create_table(table(*name, keys=KEYS)),
    "alter_table": lambda store, name, number: _alter_table(store, name, k=str(number)),
    "alter_structure": _alter_structure,
    "set_sync": lambda store, name, sync: _alter_table(store, name, **{"hms_cache.sync": sync}),
    "rename_table": _rename_table,
    "drop_table": lambda store, name: store.writes.tables.drop_table(TableName(CATALOG, *name), delete_data=True),
    "add_partitions": lambda store, name, values: store.writes.partitions.add_partitions(
        TableName(CATALOG, *name), [partition(table(*name), one) for one in values]
    ),
    "alter_partition": lambda store, name, values, number: store.writes.partitions.alter_partitions(
        TableName(CATALOG, *name), [_changed_partition(store, name, values, number)]
    ),
    "rename_partition": _rename_partition,
    "drop_partition": lambda store, name, values: store.writes.partitions.drop_partitions(
        TableName(CATALOG, *name), ByNames((f"dt={values[0]}/hr={values[1]}",)), delete_data=True
    ),
    "create_function": lambda store, database, name: store.writes.functions.create_function(_function(database, name)),
    "alter_function": lambda store, database, name, number: store.writes.functions.alter_function(
        FunctionName(CATALOG, database, name), _function(database, name, number)
    ),
    "drop_function": lambda store, database, name: store.writes.functions.drop_function(
        FunctionName(CATALOG, database, name)
    ),
    "add_primary_key": _add_primary_key,
    "drop_constraint": lambda store, name: store.writes.constraints.drop_constraint(TableName(CATALOG, *name), "pk"),
    "set_statistics": _set_statistics,
    "set_partition_statistics": _set_partition_statistics,
    "delete_partition_statistics": lambda store, name, partition_name, column: (
        store.writes.statistics.delete_partition_column_statistics(
            TableName(CATALOG, *name), [partition_name], [column]
        )
    ),
}


def reads() -> Iterator[tuple[str, Callable[[MetadataStore], object]]]:
    """Each kind of read that may be answered from memory, for each name."""
    yield "database names", lambda store: store.reads.databases.get_database_names(CATALOG)
    yield "database pattern", lambda store: store.reads.databases.get_database_names(CATALOG, "d*")
    yield "databases", lambda store: store.reads.databases.get_databases(CATALOG)
    yield "databases by pattern", lambda store: store.reads.databases.get_databases(CATALOG, "d*")
    yield "all functions", lambda store: store.reads.functions.get_functions(CATALOG)
    yield "meta of all", lambda store: store.reads.tables.get_table_meta(CATALOG, None, "*")
    for database in DATABASES:
        yield (
            f"database {database}",
            lambda store, d=database: store.reads.databases.get_database(DatabaseName(CATALOG, d)),
        )
        yield (
            f"tables {database}",
            lambda store, d=database: store.reads.tables.get_table_names(DatabaseName(CATALOG, d)),
        )
        yield (
            f"tables by type {database}",
            lambda store, d=database: store.reads.tables.get_table_names(
                DatabaseName(CATALOG, d), "t*", "MANAGED_TABLE"
            ),
        )
        yield f"meta {database}", lambda store, d=database: store.reads.tables.get_table_meta(CATALOG, d, "*")
        yield (
            f"objects {database}",
            lambda store, d=database: store.reads.tables.get_tables(DatabaseName(CATALOG, d), TABLES),
        )
        yield (
            f"functions {database}",
            lambda store, d=database: store.reads.functions.get_function_names(DatabaseName(CATALOG, d)),
        )
        yield (
            f"function {database}",
            lambda store, d=database: store.reads.functions.get_function(FunctionName(CATALOG, d, "f")),
        )
    for name in itertools.product(DATABASES, TABLES):
        yield f"table {name}", lambda store, n=name: store.reads.tables.get_table(TableName(CATALOG, *n))
        yield (
            f"constraints {name}",
            lambda store, n=name: store.reads.constraints.get_table_constraints(TableName(CATALOG, *n)),
        )
        yield (
            f"statistics {name}",
            lambda store, n=name: store.reads.statistics.get_table_column_statistics(
                StatisticsQuery(TableName(CATALOG, *n), ["a", "b"])
            ),
        )
        yield (
            f"partition statistics {name}",
            lambda store, n=name: store.reads.statistics.get_partition_column_statistics(
                StatisticsQuery(TableName(CATALOG, *n), ["a", "b"]), [PARTITION_NAME]
            ),
        )
        yield (
            f"statistics of some {name}",
            lambda store, n=name: store.reads.statistics.get_partition_column_statistics(
                StatisticsQuery(TableName(CATALOG, *n), ["a", "b"]), PARTITION_NAMES[1:4]
            ),
        )
        yield (
            f"aggregate of all {name}",
            lambda store, n=name: store.reads.statistics.get_aggregate_statistics(
                StatisticsQuery(TableName(CATALOG, *n), ["a", "b"]), PARTITION_NAMES
            ),
        )
        yield (
            f"aggregate {name}",
            lambda store, n=name: store.reads.statistics.get_aggregate_statistics(
                StatisticsQuery(TableName(CATALOG, *n), ["a"]), [PARTITION_NAME, "dt=x/hr=1"]
            ),
        )
        yield (
            f"partition {name}",
            lambda store, n=name: store.reads.partitions.get_partition(TableName(CATALOG, *n), list(VALUES[0])),
        )
        yield (
            f"partitions {name}",
            lambda store, n=name: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, *n))),
        )
        yield (
            f"partitions of no names {name}",
            lambda store, n=name: store.reads.partitions.get_partitions(
                PartitionQuery(TableName(CATALOG, *n), ByNames(()))
            ),
        )
        yield (
            f"limit {name}",
            lambda store, n=name: store.reads.partitions.get_partition_names(
                PartitionQuery(TableName(CATALOG, *n), AllPartitions(), 2)
            ),
        )
        yield (
            f"filter {name}",
            lambda store, n=name: store.reads.partitions.get_partitions(
                PartitionQuery(TableName(CATALOG, *n), ByFilter("hr > 1"))
            ),
        )
        yield (
            f"bad filter {name}",
            lambda store, n=name: store.reads.partitions.get_partitions(
                PartitionQuery(TableName(CATALOG, *n), ByFilter("nope = 1"))
            ),
        )
        yield (
            f"ps {name}",
            lambda store, n=name: store.reads.partitions.get_partition_names(
                PartitionQuery(TableName(CATALOG, *n), ByPartialValues(("", "10")))
            ),
        )
        yield (
            f"count {name}",
            lambda store, n=name: store.reads.partitions.get_partition_count(
                PartitionQuery(TableName(CATALOG, *n), ByFilter('dt = "2024-01-01"'))
            ),
        )


READS = tuple(reads())


def compare(server: Server) -> None:
    """Each read is done twice, so that the second one is answered from memory if possible."""
    for label, ask in READS:
        expected = encoded(lambda ask=ask: ask(server.objects))
        for _ in range(2):
            assert encoded(lambda ask=ask: ask(server.store)) == expected, label
    assert Reason.CORRUPT not in server.reasons(), "what is held was dropped, since it could not be read"
    invariants.check(server.cache.shared)


def test_each_kind_of_read_comes_from_memory_where_nothing_changes(servers: MakeServer) -> None:
    """A cache that always reads the database would be correct, but slow; no comparison of answers would detect it."""
    server = servers()
    fill_all(server.store)
    compare(server)
    server.reasons()
    missed = []
    for label, ask in READS:
        fails = isinstance(encoded(lambda ask=ask: ask(server.store)), tuple)
        # Requests for missing objects are answered by the database.
        missed += [f"{label}: {reason}" for reason in server.reasons() if reason is not Reason.HIT and not fails]
    assert not missed, "\n".join(missed)


OPTIONS = {
    "plenty": CacheOptions(),
    "tiny budget": CacheOptions(budget_bytes=30_000),
    "hive4 peers": CacheOptions(peers="hive4"),
}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=() if name == "plenty" else pytest.mark.soak)
        for name, options in OPTIONS.items()
    ],
)
@settings(max_examples=7, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_reads_through_caches_equal_reads_of_the_database(
    steps: list[tuple[int, Change, int]], options: CacheOptions, sqlite_database: Database, tmp_path: Path
) -> None:
    url = sqlite_database.url.render_as_string(hide_password=False)
    servers = [Server(url, tmp_path / "warehouse", options) for _ in range(2)]
    try:
        for database in DATABASES:
            apply(servers[0].store, ("drop_database", database))
        for who, change, reader in steps:
            apply(servers[who].store, change)
            compare(servers[reader])
        for server in servers:
            compare(server)
    finally:
        for server in servers:
            server.close()


inner_changes = st.one_of(
    st.tuples(st.just("alter_table"), names, st.integers(0, 9)),
    st.tuples(st.just("alter_structure"), names, st.sampled_from(["location", "columns", "serde"]), st.booleans()),
    st.tuples(st.just("rename_table"), names, names),
    st.tuples(st.just("add_partitions"), names, st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True)),
    st.tuples(st.just("alter_partition"), names, st.sampled_from(VALUES), st.integers(0, 9)),
    st.tuples(st.just("rename_partition"), names, st.sampled_from(VALUES), st.sampled_from(VALUES)),
    st.tuples(st.just("drop_partition"), names, st.sampled_from(VALUES)),
    st.tuples(st.just("set_partition_statistics"), names, st.integers(0, 9), st.sampled_from(PARTITION_NAMES), columns),
    st.tuples(st.just("delete_partition_statistics"), names, st.sampled_from(PARTITION_NAMES), columns),
)
"""What leaves most of the tables as they are, so that there is something to be wrong about."""


@pytest.mark.parametrize("examples", [3, pytest.param(25, marks=[pytest.mark.soak, pytest.mark.long])])
def test_what_passes_through_or_is_evicted_at_random_is_answered_the_same(
    examples: int, sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads go to the database, and are loaded in the background, completely or partly. Evictions happen in between,
    and evictions and changes elsewhere also happen between the read and the installation of a load. Cached data is
    moved to shared memory."""
    monkeypatch.setattr(shared_blocks, "SMALLEST_BYTES", 0)
    files = MemoryFiles(tmp_path, 1_000)

    @settings(max_examples=examples, deadline=None, phases=[Phase.generate])
    @given(
        changes=st.lists(inner_changes, min_size=8, max_size=8),
        overlapping=st.lists(inner_changes, min_size=30, max_size=30),
        seed=st.integers(0, 2**16),
        at_once=st.sampled_from((0, 3)),
        large=st.sampled_from((0, name_list_cooldowns.LARGE_DATABASE)),
    )
    def check(changes: list[Change], overlapping: list[Change], seed: int, at_once: int, large: int) -> None:
        url = sqlite_database.url.render_as_string(hide_password=False)
        options = CacheOptions(load_at_once_partitions=at_once)
        monkeypatch.setattr(name_list_cooldowns, "LARGE_DATABASE", large)
        here, elsewhere = (Server(url, tmp_path / "warehouse", options) for _ in range(2))
        try:
            fill_all(elsewhere.objects)
            _Disturbed(here, elsewhere, random.Random(seed), overlapping, files).run(changes)
        finally:
            for server in (here, elsewhere):
                server.close()

    check()
    assert files.created or not is_available()


def fill_all(store: MetadataStore) -> None:
    """All objects of changes and reads."""
    for database in DATABASES:
        apply(store, ("drop_database", database))
        apply(store, ("create_database", database))
    for name in itertools.product(DATABASES, TABLES):
        apply(store, ("create_table", name))
        apply(store, ("add_partitions", name, VALUES[1:]))
        for number, partition_name in enumerate(PARTITION_NAMES[1:]):
            apply(store, ("set_partition_statistics", name, number, partition_name, "a"))


class _Disturbed:
    """Reads of one cache, with changes through another server between and, sometimes, during them."""

    def __init__(
        self, here: Server, elsewhere: Server, chance: random.Random, overlapping: list[Change], files: MemoryFiles
    ) -> None:
        self._here, self._elsewhere, self._chance = here, elsewhere, chance
        self._overlapping = overlapping
        self._may_overlap = False
        self._sharing = BlockSharing(here.cache.shared, files)
        here.during_loads(self._during_load)

    def run(self, changes: Sequence[Change]) -> None:
        self._read_all()
        for change in changes:
            apply(self._elsewhere.objects, change)
            self._read_all()
        self._may_overlap = False
        compare(self._here)

    def _during_load(self) -> None:
        if self._chance.random() < 0.1:
            evict_at_random(self._here.cache.shared, self._chance)
        if self._may_overlap and self._overlapping and self._chance.random() < 0.3:
            self._may_overlap = False
            apply(self._elsewhere.objects, self._overlapping.pop())
            self._here.poller.step()

    def _read_all(self) -> None:
        for label, ask in self._chance.sample(READS, len(READS) // 2):
            self._read(label, ask)
            if self._chance.random() < 0.05:
                evict_at_random(self._here.cache.shared, self._chance)
                invariants.check(self._here.cache.shared)
            if self._chance.random() < 0.1:
                self._here.cache.background.drain()
            if self._chance.random() < 0.3:
                self._sharing.step()

    def _read(self, label: str, ask: Callable[[MetadataStore], object]) -> None:
        """A read returns the state before or after the change that it overlaps with."""
        before = encoded(lambda: ask(self._here.objects))
        self._may_overlap = True
        found = encoded(lambda: ask(self._here.store))
        self._may_overlap = False
        if found != before:
            assert found == encoded(lambda: ask(self._here.objects)), label
