"""What is excluded from the cache, by whom, and how this changes (Impala's flags and their precedence)."""

from __future__ import annotations

import copy
import itertools
from functools import partial
from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.cache.verification.verify import verify
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.call_context import call_context
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.schema import DBS, TABLE_PARAMS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, encoded, table

FLAGS: dict[str, dict[str, str]] = {
    "unset": {},
    "on": {"hms_cache.sync": "true"},
    "off": {"hms_cache.sync": "false"},
    "Impala on": {"impala.disableHmsSync": "false"},
    "Impala off": {"impala.disableHmsSync": "TRUE"},
    "ours wins": {"hms_cache.sync": "true", "impala.disableHmsSync": "true"},
    "ours wins, off": {"hms_cache.sync": "False", "impala.disableHmsSync": "false"},
}
SAYS = {"unset": None, "on": True, "off": False, "Impala on": True, "Impala off": False} | {
    "ours wins": True,
    "ours wins, off": False,
}


def is_cached(server: Server, name: str = "t") -> bool:
    """Whether the second of two reads comes from memory; both must be correct."""
    expected = server.objects.reads.tables.get_table(TableName(CATALOG, "d", name))
    server.reads.clear()
    for _ in range(2):
        assert server.store.reads.tables.get_table(TableName(CATALOG, "d", name)) == expected
    reason = server.reasons()[-1]
    assert reason in (Reason.HIT, Reason.EXCLUDED)
    return reason is Reason.HIT


def set_table(store: MetadataStore, parameters: dict[str, str]) -> None:
    changed = copy.deepcopy(store.reads.tables.get_table(TableName(CATALOG, "d", "t")))
    kept = {k: v for k, v in (changed.parameters or {}).items() if k not in ("hms_cache.sync", "impala.disableHmsSync")}
    changed.parameters = {**kept, **parameters}
    store.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed)


def set_database(store: MetadataStore, parameters: dict[str, str]) -> None:
    changed = copy.deepcopy(store.reads.databases.get_database(DatabaseName(CATALOG, "d")))
    changed.parameters = parameters
    store.writes.databases.alter_database(DatabaseName(CATALOG, "d"), changed)


def test_the_tables_flag_wins_over_the_databases_and_every_transition_is_followed(servers: MakeServer) -> None:
    """All pairs of flags, one after the other, in an order with many transitions, changed by another server."""
    here, elsewhere = servers(), servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t"))
    pairs = list(itertools.product(FLAGS, FLAGS))
    for index in range(len(pairs)):
        of_table, of_database = pairs[index * 19 % len(pairs)]
        set_database(elsewhere.objects, FLAGS[of_database])
        set_table(elsewhere.objects, FLAGS[of_table])
        expected = SAYS[of_table]
        if expected is None:
            expected = SAYS[of_database]
        assert is_cached(here) is (expected is not False), f"table {of_table}, database {of_database}"


@pytest.mark.parametrize("by_database", [False, True], ids=["table", "database"])
def test_what_was_switched_off_is_loaded_anew_when_it_is_switched_on(by_database: bool, servers: MakeServer) -> None:
    """Impala needs an INVALIDATE METADATA after this, since it skips the events meanwhile; here, nothing is skipped."""
    here, elsewhere = servers(), servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t"))
    change = set_database if by_database else set_table
    assert is_cached(here)
    change(elsewhere.objects, FLAGS["off"])
    assert not is_cached(here)
    set_table(elsewhere.objects, {"changed": "meanwhile", **({} if by_database else FLAGS["off"])})
    assert not is_cached(here)
    change(elsewhere.objects, FLAGS["on"] | ({} if by_database else {"changed": "meanwhile"}))
    assert is_cached(here)
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).parameters["changed"] == "meanwhile"


def test_a_database_that_is_made_again_starts_without_its_old_flags(servers: MakeServer) -> None:
    here, elsewhere = servers(), servers()
    create_database(here.store, "d", **FLAGS["off"])
    here.store.writes.tables.create_table(table("d", "t"))
    assert not is_cached(here)
    elsewhere.objects.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    create_database(elsewhere.objects, "d")
    elsewhere.objects.writes.tables.create_table(table("d", "t"))
    assert is_cached(here)


def test_a_flag_that_a_snapshot_shows_counts_although_the_held_database_is_older(servers: MakeServer) -> None:
    """The database's properties must be those of the table's snapshot, not the cached ones."""
    here, elsewhere = servers(CacheOptions(max_staleness_s=float("inf"))), servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t"))
    here.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    set_database(elsewhere.objects, FLAGS["off"])
    assert not is_cached(here)


@pytest.mark.parametrize(
    ("include", "exclude", "name", "cached"),
    [
        (("*",), (), ("hive", "d", "t"), True),
        (("d.*",), (), ("hive", "d", "t"), True),
        (("d.*",), (), ("hive", "dd", "t"), False),
        (("D.T",), (), ("hive", "d", "t"), True),
        (("hive.d.*",), (), ("hive", "d", "t"), True),
        (("hive.d.*",), (), ("other", "d", "t"), False),
        (("*",), ("tmp_*.*",), ("hive", "tmp_1", "t"), False),
        (("*",), ("*.tmp_?",), ("hive", "d", "tmp_1"), False),
        (("*",), ("*.tmp_?",), ("hive", "d", "tmp_10"), True),
        (("d.*",), ("d.t",), ("hive", "d", "t"), False),
        ((), (), ("hive", "d", "t"), False),
    ],
)
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], name: tuple[str, str, str], cached: bool) -> None:
    assert CachePolicy(include, exclude).names_table(TableName(*name)) is cached


def test_excluded_tables_are_read_from_the_database(servers: MakeServer) -> None:
    here = servers(CacheOptions(exclude=("d.t",)))
    create_database(here.store, "d")
    for name in ("t", "u"):
        here.store.writes.tables.create_table(table("d", name))
    assert not is_cached(here)
    assert is_cached(here, "u")
    here.reads.clear()
    assert [one.tableName for one in here.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), ["t", "u"])] == [
        "t",
        "u",
    ]
    assert here.reasons() == [Reason.EXCLUDED]


@pytest.mark.parametrize(
    ("peers", "databases", "functions", "statistics", "constraints"),
    [
        ("none", True, True, True, True),
        ("hive4", False, False, True, True),
        ("hive3", False, False, False, False),
    ],
)
def test_what_other_writers_do_not_log_is_not_cached(
    peers: str, databases: bool, functions: bool, statistics: bool, constraints: bool, servers: MakeServer
) -> None:
    here = servers(CacheOptions(peers=peers))
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t"))
    for ask, cached in (
        (lambda: here.store.reads.functions.get_function_names(DatabaseName(CATALOG, "d")), functions),
        (
            lambda: here.store.reads.statistics.get_table_column_statistics(
                StatisticsQuery(TableName(CATALOG, "d", "t"), ["a"])
            ),
            statistics,
        ),
        (lambda: here.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t")), constraints),
        (lambda: here.store.reads.tables.get_table(TableName(CATALOG, "d", "t")), True),
        (lambda: here.store.reads.databases.get_database(DatabaseName(CATALOG, "d")), databases),
        (lambda: here.store.reads.databases.get_databases(CATALOG), databases),
        (lambda: here.store.reads.databases.get_database_names(CATALOG), True),
    ):
        ask()
        here.reads.clear()
        ask()
        assert here.reasons() == [Reason.HIT if cached else Reason.EXCLUDED]


@pytest.mark.parametrize("peers", ["hive4", "hive3"])
def test_what_hive_alters_of_a_database_without_an_event_is_seen(peers: str, servers: MakeServer) -> None:
    """Its location and description (Hive 4, `AlterDatabaseEvent.shouldSkipCapturing`). A table is loaded together with
    its database, which must not be older."""
    here = servers(CacheOptions(peers=peers))
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t"))

    def compare() -> None:
        for ask in (
            lambda store: store.reads.tables.get_table(TableName(CATALOG, "d", "t")),
            lambda store: store.reads.databases.get_database(DatabaseName(CATALOG, "d")),
            lambda store: store.reads.databases.get_databases(CATALOG),
        ):
            for _ in range(2):
                assert encoded(partial(ask, here.store)) == encoded(partial(ask, here.objects))

    compare()
    with here.database.writing() as connection:
        connection.execute(DBS.update().where(DBS.c.NAME == "d").values(DESC="new", DB_LOCATION_URI="file:/moved"))
        connection.commit()
    compare()
    assert here.objects.reads.databases.get_database(DatabaseName(CATALOG, "d")).locationUri == "file:/moved"
    report = verify(here.cache.shared, here.objects.reads, here.cache.loader)
    assert report.compared["tables"] == 1 and report.differences == []


def test_materialized_views_are_not_cached(servers: MakeServer) -> None:
    """A rename of a table that a view reads changes the view's struct, and no event names the view."""
    here, elsewhere = servers(), servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "base"))
    view = table("d", "t")
    view.tableType, view.viewOriginalText, view.viewExpandedText = "MATERIALIZED_VIEW", "SELECT 1", "SELECT 1"
    view.creationMetadata = ttypes.CreationMetadata(
        catName=CATALOG, dbName="d", tblName="t", tablesUsed=["d.base"], validTxnList=None
    )
    here.store.writes.tables.create_table(view)
    assert not is_cached(here)
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).creationMetadata.tablesUsed == {"d.base"}
    renamed = copy.deepcopy(here.objects.reads.tables.get_table(TableName(CATALOG, "d", "base")))
    renamed.tableName = "renamed"
    elsewhere.objects.writes.tables.alter_table(TableName(CATALOG, "d", "base"), renamed)
    assert not is_cached(here)
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).creationMetadata.tablesUsed == {"d.renamed"}


def test_switched_off_nothing_is_held(servers: MakeServer) -> None:
    here = servers(CacheOptions(modes=ReadModes(enabled=False)))
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t"))
    here.reads.clear()
    here.store.reads.tables.get_table(TableName(CATALOG, "d", "t"))
    assert here.reasons() == [Reason.DISABLED]
    assert not here.cache.shared.tables and not here.cache.shared.databases


def test_regular_expressions_between_slashes_are_tried_on_the_whole_of_either_name() -> None:
    policy = CachePolicy(include=(r"/hive\.sales\..*/", r"/hr\.emp\d+/"), exclude=(r"/.*\.STAGING_\S+/",))
    cached = [("sales", "orders"), ("hr", "emp12")]
    not_cached = [("hr", "emp"), ("resales", "orders"), ("sales", "staging_1")]
    assert all(policy.names_table(TableName("hive", *name)) for name in cached)
    assert not any(policy.names_table(TableName("hive", *name)) for name in not_cached)


def test_a_table_that_is_excluded_while_it_is_loaded_is_not_answered_from_its_bytes(servers: MakeServer) -> None:
    """A table is excluded because a program writes to it without logging events. No event would invalidate the
    answer."""
    server = servers()
    create_database(server.store, "d")
    server.store.writes.tables.create_table(table("d", "t"))
    reading, loader = server.cache.reading, server.cache.loader
    load = loader.load

    def reload_first(*arguments: Any, **how: Any) -> bool:
        """As `Caching.reload` does, after the read has determined that it may be answered from memory."""
        reading.policy = CachePolicy(exclude=("d.t",))
        server.cache.shared.forget_all()
        return load(*arguments, **how)

    loader.load = reload_first  # type: ignore[method-assign]
    call_context.source.begin()
    server.store.reads.tables.get_table(TableName(CATALOG, "d", "t"))
    reading.keep_answer(b"request", "get_table", lambda sequence: sequence, 100)
    assert server.cache.shared.answers.find(b"request") is None
    loader.load = load  # type: ignore[method-assign]
    assert not is_cached(server)


@pytest.mark.parametrize("is_let_in", [True, False])
def test_a_table_is_either_held_or_kept_out_whatever_no_event_told(servers: MakeServer, is_let_in: bool) -> None:
    """The property is changed with SQL and the table loaded again: the accounted memory remains correct."""
    here = servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", (("p", "string"),), **{"hms_cache.sync": str(not is_let_in)}))
    assert is_cached(here) is not is_let_in
    here.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t"))
    shared, key = here.cache.shared, TableName(CATALOG, "d", "t")
    with here.database.writing() as connection:
        of_the_property = TABLE_PARAMS.c.PARAM_KEY == "hms_cache.sync"
        connection.execute(TABLE_PARAMS.update().where(of_the_property).values(PARAM_VALUE=str(is_let_in)))
        connection.commit()
    assert here.cache.loader.load([LoadRequest(key, Facet.TABLE)])
    entry = shared.entry(key)
    assert entry is not None
    assert (Facet.TABLE in entry.facets, Facet.EXCLUDED in entry.facets) == (is_let_in, not is_let_in)
    invariants.check(shared)
    shared.forget(key)
    invariants.check(shared)
    assert is_cached(here) is is_let_in
