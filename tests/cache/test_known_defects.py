"""Defects of the metastore cache that ships with Hive 4.0 and 4.1, one by one: none of them is here.

Each test warms the cache, makes the change that Hive's cache answered wrongly, mostly on another server of the set,
and compares every answer with the database's. What other tests show already, or what cannot happen here, is not
repeated:

| defect of Hive's cache | shown by |
|---|---|
| a rename leaves the old name, and the new one is not found | `test_event_cells` (rename away, rename hither), \
`test_mutants` (`header_only_rename`) |
| an event that cannot be read is tried again for ever | `notifications/test_poller` (undecodable, refused, widened), \
`consistency/test_damaged_logs` |
| events that were cleaned away are not noticed | `notifications/test_poller` (trimmed, emptied, holes), \
`consistency/test_damaged_logs` |
| a dropped partition's values come in the order of a JSON map | `notifications/test_message_codec` (values follow the \
table's keys) |
| methods that are not overridden fail | `test_forwarding`: every method, with all its arguments |
| within a transaction of the store, reads come from the cache | no call spans transactions of the store, and it never \
reads through the cache: `test_a_write_begins_with_what_the_database_holds` |
| whether all is loaded is noted and never asked | the first tests here, `test_loads` |
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings, EventSettings
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.store.contract.environment import EnvironmentOptions, ExpectedParameter, Writer
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByExpression,
    ByFilter,
    ByNames,
    ByPartialValues,
    PartitionProjection,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table
from tests.databases import count_statements

INF = CacheOptions(max_staleness_s=float("inf"))
LIMIT_S = 60
T = (CATALOG, "d", "t")
KEYS = (("p", "string"), ("q", "int"))
VALUES = (("b", "10"), ("a", "9"), ("b", "1"), ("a", "10"))
"""Not in the order of their names."""

Ask = Callable[[MetadataStore], object]


@pytest.fixture
def pair(servers: MakeServer) -> Iterator[tuple[Server, Server]]:
    """Two servers; d.t is partitioned."""
    here, elsewhere = servers(), servers()
    create_database(elsewhere.store, "d")
    create_partitioned(elsewhere.store)
    yield here, elsewhere
    for server in (here, elsewhere):
        invariants.check(server.cache.shared)
        assert server.poller.statistics().failed == 0
        assert server.poller.statistics().resyncs == 1, "the first one"


def create_partitioned(store: MetadataStore, name: str = "t") -> None:
    made = table("d", name, KEYS)
    store.writes.tables.create_table(made)
    store.writes.partitions.add_partitions(
        TableName(CATALOG, "d", name), [partition(made, values) for values in VALUES]
    )


def same(server: Server, *questions: Ask) -> list[Reason]:
    """Each request is made twice, and the answers of the cache are those of the database. Returns how the second was
    answered."""
    reasons = []
    for ask in questions:
        expected = encoded(lambda ask=ask: ask(server.objects))
        for _ in range(2):
            server.reads.clear()
            assert encoded(lambda ask=ask: ask(server.store)) == expected
        reasons.extend(server.reasons()[-1:])
        invariants.check(server.cache.shared)
    return reasons


def all_hits(server: Server, *questions: Ask) -> None:
    """The same, and the second answer came from memory: otherwise the test would prove nothing."""
    assert same(server, *questions) == [Reason.HIT] * len(questions)


def names(selection: PartitionSelection, max_parts: int = -1) -> Ask:
    return lambda store: store.reads.partitions.get_partition_names(PartitionQuery(TableName(*T), selection, max_parts))


def structs(selection: PartitionSelection, max_parts: int = -1, projection: PartitionProjection | None = None) -> Ask:
    return lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), selection, max_parts), projection=projection
    )


def filter_expression(filter_text: str) -> ByExpression:
    return ByExpression(filter_text.encode(), plain_text=True)


LISTINGS = (
    names(AllPartitions()),
    structs(AllPartitions()),
    structs(ByNames(("p=a/q=9", "p=b/q=10"))),
    structs(ByPartialValues(("a",))),
    structs(ByFilter("q > 8")),
    structs(filter_expression("q > 8")),
    lambda store: store.reads.partitions.get_partition_count(PartitionQuery(TableName(*T))),
)


# Partitions that are not complete


def test_a_table_that_was_loaded_without_its_partitions_is_not_taken_for_an_empty_one(
    pair: tuple[Server, Server],
) -> None:
    """Hive's cache adds a missed table without partitions and lists none from then on."""
    here, _ = pair
    for listing in LISTINGS:
        here.cache.shared.forget_all()
        here.store.reads.tables.get_table(TableName(*T))
        all_hits(here, listing)


def test_partitions_that_were_not_loaded_are_not_left_out(pair: tuple[Server, Server]) -> None:
    """One partition is cached; reads by name request it and others."""
    here, _ = pair
    here.store.reads.partitions.get_partition(TableName(*T), ["a", "9"])
    all_hits(here, structs(ByNames(("p=a/q=9", "p=b/q=1", "p=nowhere/q=1"))), *LISTINGS)


def test_a_table_that_was_evicted_and_came_back_lists_its_partitions(servers: MakeServer) -> None:
    elsewhere = servers()
    create_database(elsewhere.store, "d")
    for number in range(6):
        create_partitioned(elsewhere.store, "t" if not number else f"t{number}")
    all_hits(elsewhere, *LISTINGS)
    one_table = elsewhere.cache.shared.tables[TableName(*T)].weight()
    here = servers(CacheOptions(budget_bytes=4 * one_table))
    all_hits(here, *LISTINGS)
    for number in range(1, 6):
        here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", f"t{number}")))
    assert TableName(*T) not in here.cache.shared.tables
    here.store.reads.tables.get_table(TableName(*T))
    same(here, *LISTINGS)


@pytest.mark.parametrize("single_event", [False, True], ids=["ALTER_PARTITION", "ALTER_PARTITIONS"])
def test_altered_partitions_stay_in_the_listings(single_event: bool, servers: MakeServer) -> None:
    """Hive 4.1 removes them at an ALTER_PARTITIONS event and does not add the new ones."""
    here, elsewhere = (
        servers(),
        servers(settings=Settings(events=EventSettings(single_alter_partitions_event=single_event))),
    )
    create_database(elsewhere.store, "d")
    create_partitioned(elsewhere.store)
    all_hits(here, *LISTINGS)
    changed = elsewhere.objects.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), ByPartialValues(("a",)))
    ).partitions
    for one in changed:
        one.parameters = {**one.parameters, "changed": "yes"}
    elsewhere.objects.writes.partitions.alter_partitions(TableName(*T), changed)
    all_hits(here, *LISTINGS)
    found = here.store.reads.partitions.get_partitions(PartitionQuery(TableName(*T))).partitions
    assert [one.parameters.get("changed") for one in found] == ["yes", "yes", None, None]


# Selections


def test_the_limit_counts_after_the_selection(pair: tuple[Server, Server]) -> None:
    """Hive's cache truncates first, and then selects from the rest."""
    here, _ = pair
    for selection in (
        ByPartialValues(("b",)),
        ByPartialValues(("", "10")),
        ByFilter("q = 10"),
        filter_expression("q = 10"),
    ):
        for max_parts in (0, 1, 2, 100):
            all_hits(here, names(selection, max_parts), structs(selection, max_parts))
            found = here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(*T), selection, max_parts))
            assert len(found) == min(2, max_parts)


def test_names_come_in_the_order_of_the_database(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    all_hits(here, names(AllPartitions()))
    elsewhere.objects.writes.partitions.add_partitions(TableName(*T), [partition(table("d", "t"), ("a", "1"))])
    all_hits(here, names(AllPartitions()))
    assert here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(*T))) == [
        "p=a/q=1",
        "p=a/q=10",
        "p=a/q=9",
        "p=b/q=1",
        "p=b/q=10",
    ]


def test_counts_go_beyond_two_bytes(servers: MakeServer) -> None:
    """Hive's cache counts with a limit of 32,767."""
    here = servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", (("p", "int"),)))
    numbers = "WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 32999) "
    with here.database.writing() as connection:
        for insert in (
            'INSERT INTO "PARTITIONS" ("PART_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "PART_NAME", "TBL_ID") '
            f'{numbers} SELECT n, 1, 0, \'p=\' || n, "TBL_ID" FROM number, "TBLS"',
            'INSERT INTO "PARTITION_KEY_VALS" ("PART_ID", "PART_KEY_VAL", "INTEGER_IDX") '
            f"{numbers} SELECT n, n, 0 FROM number",
        ):
            connection.execute(text(insert))
        connection.commit()
    for selection, expected in ((ByFilter("p >= 0"), 33_000), (filter_expression("p < 32900"), 32_900)):
        for _ in range(3):
            here.reads.clear()
            assert here.store.reads.partitions.get_partition_count(PartitionQuery(TableName(*T), selection)) == expected
            here.cache.background.drain()
        assert here.reasons() == [Reason.HIT]


def test_projections_are_heeded(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    changed = elsewhere.objects.reads.partitions.get_partitions(PartitionQuery(TableName(*T))).partitions
    for one in changed:
        one.parameters = {"kept": "1", "left out": "2"}
    elsewhere.objects.writes.partitions.alter_partitions(TableName(*T), changed)
    projections = (
        PartitionProjection(("values",)),
        PartitionProjection(("sd.location", "parameters"), include_parameters="ke%"),
        PartitionProjection((), exclude_parameters="left%"),
    )
    all_hits(here, *(structs(AllPartitions(), projection=one) for one in projections))
    found = here.store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T)), projection=projections[0]
    ).partitions
    assert {(tuple(one.values), one.sd, one.parameters) for one in found} == {(values, None, None) for values in VALUES}


def test_a_limit_of_partitions_of_a_request_is_kept(servers: MakeServer) -> None:
    """With `metastore.limit.partition.request` set, Hive's cache fails where the database answers."""
    for limit in (1, 100):
        settings = Settings(catalog=CatalogSettings(partition_request_limit=limit))
        here = servers(CacheOptions(limits_partitions=True), settings=settings)
        if limit == 1:
            create_database(here.store, "d")
            create_partitioned(here.store)
        same(here, names(ByFilter("q > 0")), *LISTINGS)
    assert len(
        here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(*T), ByFilter("q > 0")))
    ) == len(VALUES)


# Drops, renames and what remains of them


def test_dropped_views_stop_nothing(pair: tuple[Server, Server]) -> None:
    """A view has no directory; Hive's poller fails on it, and retries for ever."""
    here, elsewhere = pair
    for name in ("v", "w"):
        view = table("d", name)
        view.tableType, view.viewOriginalText, view.viewExpandedText = "VIRTUAL_VIEW", "select 1", "select 1"
        view.sd.location = None
        elsewhere.objects.writes.tables.create_table(view)
    listing: Ask = lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))  # noqa: E731
    all_hits(here, listing, lambda store: store.reads.tables.get_table(TableName(CATALOG, "d", "v")))
    for name in ("v", "w"):
        elsewhere.objects.writes.tables.drop_table(TableName(CATALOG, "d", name), delete_data=True)
    elsewhere.objects.writes.tables.create_table(table("d", "u"))
    assert here.poller.step().outcome is StepOutcome.CAUGHT_UP
    assert here.cache.shared.position == here.objects.reads.current_event_id()
    all_hits(here, listing)
    same(here, lambda store: store.reads.tables.get_table(TableName(CATALOG, "d", "v")))
    assert here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")) == ["t", "u"]


def test_a_table_that_was_made_again_under_its_name_is_another_one(pair: tuple[Server, Server]) -> None:
    """Hive's poller searches the dropped table's partitions in the table that now has the name, and may never end."""
    here, elsewhere = pair
    all_hits(here, *LISTINGS)
    old_id = here.store.reads.tables.get_table(TableName(*T)).id
    elsewhere.objects.writes.tables.drop_table(TableName(*T), delete_data=True)
    made = table("d", "t", KEYS)
    elsewhere.objects.writes.tables.create_table(made)
    outside = partition(made, ("a", "9"))
    outside.sd.location = f"file:{elsewhere.directory}/elsewhere/p"
    elsewhere.objects.writes.partitions.add_partitions(TableName(*T), [outside])
    with count_statements(here.database) as seen:
        assert here.poller.step().outcome is StepOutcome.CAUGHT_UP
    assert all("NOTIFICATION" in statement for statement in seen.statements), "events are applied from the log alone"
    all_hits(here, *LISTINGS, lambda store: store.reads.tables.get_table(TableName(*T)))
    assert here.store.reads.tables.get_table(TableName(*T)).id != old_id
    assert here.store.reads.partitions.get_partition(TableName(*T), ["a", "9"]).sd.location == outside.sd.location


WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER")


@pytest.mark.parametrize("meanwhile", ["nothing", "renamed", "dropped"])
def test_applying_events_writes_nothing_to_the_database(meanwhile: str, pair: tuple[Server, Server]) -> None:
    """Hive's poller recomputes statistics at an ALTER_TABLE and stores them: it loses updates, and stops if the table
    is gone."""
    here, elsewhere = pair
    store = elsewhere.objects
    store.writes.statistics.update_table_column_statistics(statistics("t", "a", 1))
    questions: tuple[Ask, ...] = (
        *LISTINGS,
        lambda of: of.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a", "b"])),
    )
    all_hits(here, *questions)
    changed = changed_table(store, "d", "t", changed="yes")
    changed.sd.cols = [*changed.sd.cols, ttypes.FieldSchema("c", "int", None)]
    store.writes.tables.alter_table(TableName(*T), changed, writer=Writer(options=EnvironmentOptions(cascades=True)))
    if meanwhile == "renamed":
        renamed = changed_table(store, "d", "t")
        renamed.tableName = "renamed"
        store.writes.tables.alter_table(TableName(*T), renamed)
    elif meanwhile == "dropped":
        store.writes.tables.drop_table(TableName(*T), delete_data=True)
    with count_statements(here.database) as seen:
        assert here.poller.step().outcome is StepOutcome.CAUGHT_UP
        while here.cache.refill.step():
            pass
    assert seen.statements
    assert not [one for one in seen.statements if one.lstrip().upper().startswith(WRITES)]
    same(here, *questions, lambda of: of.reads.tables.get_table_names(DatabaseName(CATALOG, "d")))


# Tables by name


def test_each_table_comes_once_and_missing_ones_not_at_all(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    elsewhere.objects.writes.tables.create_table(table("d", "u"))
    requested = ["u", "t", "missing", "T", "u"]
    all_hits(here, lambda store: store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), requested))
    found = here.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), requested)
    assert sorted(one.tableName for one in found) == ["t", "u"]
    assert TableName(CATALOG, "d", "missing") not in here.cache.shared.tables
    same(here, lambda store: store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), ["missing"]))


def test_catalogs_are_answered_and_their_events_are_no_errors(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    listing: Ask = lambda store: store.reads.catalogs.get_catalog_names()  # noqa: E731
    one: Ask = lambda store: store.reads.catalogs.get_catalog("other")  # noqa: E731
    same(here, listing, one)
    made = ttypes.Catalog(name="other", description="d", locationUri=f"file:{elsewhere.directory}/other")
    elsewhere.objects.writes.catalogs.create_catalog(made)
    same(here, listing, one)
    assert "other" in here.store.reads.catalogs.get_catalog_names()
    made.description = "changed"
    elsewhere.objects.writes.catalogs.alter_catalog("other", made)
    same(here, listing, one)
    elsewhere.objects.writes.catalogs.drop_catalog("other")
    same(here, listing, one)
    here.poller.step()
    assert here.poller.status is PollerStatus.ACTIVE
    assert here.cache.shared.position == here.objects.reads.current_event_id()


# Statistics


def statistics(
    name: str, column: str, number: int, partition_name: str | None = None, engine: str = "hive"
) -> ttypes.ColumnStatistics:
    data = ttypes.ColumnStatisticsData(
        stringStats=ttypes.StringColumnStatsData(maxColLen=number, avgColLen=1.5, numNulls=0, numDVs=number)
    )
    described = ttypes.ColumnStatisticsDesc(
        isTblLevel=partition_name is None, dbName="d", tableName=name, catName=CATALOG, partName=partition_name
    )
    return ttypes.ColumnStatistics(
        statsDesc=described,
        statsObj=[ttypes.ColumnStatisticsObj(colName=column, colType="string", statsData=data)],
        engine=engine,
    )


def of_table(engine: str = "hive") -> Ask:
    return lambda store: store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(TableName(*T), ["a", "b"], engine)
    )


def of_partitions(partition_names: Sequence[str], engine: str = "hive") -> Ask:
    return lambda store: store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a"], engine), partition_names
    )


def aggregate(partition_names: Sequence[str], engine: str = "hive") -> Ask:
    return lambda store: store.reads.statistics.get_aggregate_statistics(
        StatisticsQuery(TableName(*T), ["a"], engine), partition_names
    )


def test_engines_have_statistics_of_their_own(pair: tuple[Server, Server]) -> None:
    """Hive's cache fails for each engine except its own."""
    here, elsewhere = pair
    requested = ["p=a/q=9", "p=b/q=1"]
    for number, engine in enumerate(("hive", "impala"), 1):
        elsewhere.objects.writes.statistics.update_table_column_statistics(statistics("t", "a", number, engine=engine))
        elsewhere.objects.writes.statistics.update_partition_column_statistics(
            [statistics("t", "a", number, requested[0], engine)]
        )
    for engine in ("hive", "impala", "spark"):
        all_hits(here, of_table(engine), of_partitions(requested, engine), aggregate(requested, engine))
    found = here.store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a"], "impala"))
    assert (found.engine, found.statsObj[0].statsData.stringStats.numDVs) == ("impala", 2)
    elsewhere.objects.writes.statistics.update_table_column_statistics(statistics("t", "a", 7, engine="impala"))
    all_hits(here, of_table("hive"), of_table("impala"))


def test_an_empty_set_of_statistics_is_known_to_be_empty_until_there_are_some(pair: tuple[Server, Server]) -> None:
    """Hive's cache does not load those of unpartitioned tables, and treats what it has not loaded as missing."""
    here, elsewhere = pair
    here.store.reads.tables.get_table(TableName(*T))
    all_hits(here, of_table())
    assert here.store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a"])).statsObj == []
    elsewhere.objects.writes.statistics.update_table_column_statistics(statistics("t", "a", 3))
    all_hits(here, of_table())
    assert (
        len(here.store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a"])).statsObj)
        == 1
    )


@pytest.mark.parametrize("what", ["statistics", "partition"])
def test_deleting_the_statistics_of_1_leaves_those_of_10(what: str, pair: tuple[Server, Server]) -> None:
    """Hive's cache removes entries by a prefix of the key."""
    here, elsewhere = pair
    requested = ["p=b/q=1", "p=b/q=10"]
    elsewhere.objects.writes.statistics.update_partition_column_statistics(
        [statistics("t", "a", 5, name) for name in requested]
    )
    all_hits(here, of_partitions(requested), aggregate(requested))
    if what == "statistics":
        elsewhere.objects.writes.statistics.delete_partition_column_statistics(TableName(*T), requested[:1])
    else:
        elsewhere.objects.writes.partitions.drop_partitions(TableName(*T), ByNames((requested[0],)), delete_data=True)
    all_hits(
        here, of_partitions(requested), of_partitions(requested[1:]), aggregate(requested), aggregate(requested[1:])
    )
    found = here.store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a"]), requested
    )
    assert [one.statsDesc.partName for one in found] == requested[1:]


def test_aggregates_come_from_memory_and_belong_to_the_partitions_they_are_of(pair: tuple[Server, Server]) -> None:
    """Hive's cache reads the number of names from the database each time, and treats any equal number of names as all
    of them."""
    here, elsewhere = pair
    every = here.objects.reads.partitions.get_partition_names(PartitionQuery(TableName(*T)))
    elsewhere.objects.writes.statistics.update_partition_column_statistics(
        [statistics("t", "a", number + 1, name) for number, name in enumerate(every)]
    )
    all_hits(here, aggregate(every))
    with count_statements(here.database) as seen:
        here.store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["a"]), every)
    assert seen.count == 1, "the position check"
    others = [*every[:-1], "p=nowhere/q=1"]
    all_hits(here, aggregate(others), aggregate(every))
    assert (
        here.store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["a"]), others).partsFound
        == len(every) - 1
    )


# Constraints


def test_a_foreign_key_belongs_to_its_tables(pair: tuple[Server, Server]) -> None:
    """Hive's cache stores a foreign key that was added later under the name of the database."""
    here, elsewhere = pair
    store = elsewhere.objects
    store.writes.tables.create_table(table("d", "parent"))
    create_database(store, "e")
    store.writes.tables.create_table(table("e", "child"))
    primary = ttypes.SQLPrimaryKey("d", "parent", "a", 1, "pk", False, False, False, catName=CATALOG)
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=[primary]))
    questions: tuple[Ask, ...] = (
        lambda of: of.reads.constraints.get_table_constraints(TableName(CATALOG, "e", "child")),
        lambda of: of.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "parent")),
        lambda of: of.reads.constraints.get_foreign_keys(CATALOG, (None, None), ("e", "child")),
    )
    all_hits(here, *questions)
    foreign = ttypes.SQLForeignKey(
        pktable_db="d",
        pktable_name="parent",
        pkcolumn_name="a",
        fktable_db="e",
        fktable_name="child",
        fkcolumn_name="b",
        key_seq=1,
        fk_name="fk",
        pk_name="pk",
        enable_cstr=False,
        validate_cstr=False,
        rely_cstr=False,
        catName=CATALOG,
    )
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(foreignKeys=[foreign]))
    all_hits(here, *questions)
    same(here, lambda of: of.reads.constraints.get_foreign_keys(CATALOG, ("d", "parent"), (None, None)))
    assert [
        one.fk_name for one in here.store.reads.constraints.get_foreign_keys(CATALOG, (None, None), ("e", "child"))
    ] == ["fk"]
    store.writes.constraints.drop_constraint(TableName(CATALOG, "e", "child"), "fk")
    all_hits(here, *questions)


def test_keys_of_the_parent_change_its_childrens_foreign_keys(pair: tuple[Server, Server]) -> None:
    """They name the parent's primary key, and are returned while it has a key; events of keys name the parent only."""
    here, elsewhere = pair
    store = elsewhere.objects
    store.writes.tables.create_table(table("d", "parent"))
    store.writes.tables.create_table(table("d", "child"))
    flags = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": False, "catName": CATALOG}
    primary = [ttypes.SQLPrimaryKey("d", "parent", "a", 1, "pk", **flags)]
    unique = [ttypes.SQLUniqueConstraint(CATALOG, "d", "parent", "a", 1, "uk", False, False, False)]
    foreign = [ttypes.SQLForeignKey("d", "parent", "a", "d", "child", "b", 1, fk_name="fk", **flags)]
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(uniqueConstraints=unique))
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(foreignKeys=foreign))

    def keys() -> list[tuple[str, str | None]]:
        all_hits(here, lambda of: of.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "child")))
        found = here.store.reads.constraints.get_foreign_keys(CATALOG, (None, None), ("d", "child"))
        return [(key.fk_name, key.pk_name) for key in found]

    assert keys() == [("fk", None)]
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=primary))
    assert keys() == [("fk", "pk")]
    store.writes.constraints.drop_constraint(TableName(CATALOG, "d", "parent"), "uk")
    assert keys() == [("fk", "pk")]
    store.writes.constraints.drop_constraint(TableName(CATALOG, "d", "parent"), "pk")
    assert keys() == []
    store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(uniqueConstraints=unique))
    assert keys() == [("fk", None)]


# Writes


def test_a_write_begins_with_what_the_database_holds(servers: MakeServer) -> None:
    """Memory may have any age; Hive's cache lets an alter start from a table that another server has changed since."""
    here, elsewhere = servers(INF), servers()
    create_database(elsewhere.store, "d")
    create_partitioned(elsewhere.store)
    here.store.reads.tables.get_table(TableName(*T))
    here.poller.pause()
    elsewhere.objects.writes.tables.alter_table(
        TableName(*T), changed_table(elsewhere.objects, "d", "t", metadata_location="2")
    )
    outdated = copy.deepcopy(here.store.reads.tables.get_table(TableName(*T)))
    assert "metadata_location" not in outdated.parameters, "memory is as old as it was allowed to be"
    outdated.parameters["metadata_location"] = "3"
    with pytest.raises(ttypes.MetaException, match="The parameter value for key 'metadata_location' is"):
        here.store.writes.tables.alter_table(
            TableName(*T), outdated, expected_parameter=ExpectedParameter("metadata_location", "1")
        )
    here.store.writes.tables.alter_table(
        TableName(*T), outdated, expected_parameter=ExpectedParameter("metadata_location", "2")
    )
    assert here.objects.reads.tables.get_table(TableName(*T)).parameters["metadata_location"] == "3"
    here.poller.resume()
    all_hits(here, lambda store: store.reads.tables.get_table(TableName(*T)))


def test_a_write_waits_for_nobody_who_applies_events(pair: tuple[Server, Server]) -> None:
    """Hive's commits process the log under one monitor, one after the other."""
    here, elsewhere = pair
    all_hits(here, *LISTINGS)
    elsewhere.objects.writes.tables.create_table(table("d", "u"))
    applying, may_go_on = threading.Event(), threading.Event()
    apply = here.cache.shared.apply

    def apply_slowly(*arguments: Any) -> None:
        applying.set()
        assert may_go_on.wait(LIMIT_S)
        apply(*arguments)

    here.cache.shared.apply = apply_slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as pool:
        stepping = pool.submit(here.poller.step)
        try:
            assert applying.wait(LIMIT_S)
            writes = [pool.submit(here.store.writes.tables.create_table, table("d", name)) for name in ("x", "y")]
            for write in writes:
                write.result(LIMIT_S)
            assert not stepping.done()
        finally:
            may_go_on.set()
        assert stepping.result(LIMIT_S).outcome is StepOutcome.CAUGHT_UP
    all_hits(here, lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")))


# Memory


def test_what_is_evicted_or_dropped_is_charged_no_more(servers: MakeServer) -> None:
    """Descriptors that partitions share belong to one table here; in Hive's cache, their counts survive an eviction."""
    elsewhere = servers()
    create_database(elsewhere.store, "d")
    for number in range(8):
        create_partitioned(elsewhere.store, f"t{number}")
        elsewhere.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", f"t{number}")))
    here = servers(CacheOptions(budget_bytes=elsewhere.cache.shared.weight // 3))
    shared = here.cache.shared
    for _ in range(3):
        for number in range(8):
            here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", f"t{number}")))
            assert shared.weight <= shared.budget_bytes
            invariants.check(shared)
    assert shared.evictions > 8
    for number in range(8):
        elsewhere.objects.writes.tables.drop_table(TableName(CATALOG, "d", f"t{number}"), delete_data=True)
    here.poller.step()
    assert not shared.tables
    held = [entry for entries in (shared.catalogs, shared.databases) for entry in entries.values()]
    assert shared.weight == sum(entry.weight() for entry in held)
    assert all(Facet.PARTITIONS not in entry.facets for entry in held)
