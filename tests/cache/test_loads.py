"""Loads: fences, which data is kept, which reads share them, and how absence is answered (P1, P3, P4, P6)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads import cached_tables
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.names import matching_names
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table
from tests.databases import count_statements

LIMIT_S = 20
T = TableName(CATALOG, "d", "t")
KEYS = (("p", "string"),)
INF = float("inf")


def version_of(store: MetadataStore, name: str = "t") -> str:
    return store.reads.tables.get_table(TableName(CATALOG, "d", name)).parameters["version"]


def write(store: MetadataStore, version: str, name: str = "t") -> None:
    store.writes.tables.alter_table(TableName(CATALOG, "d", name), changed_table(store, "d", name, version=version))


def names_of(store: MetadataStore) -> list[str]:
    return store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t")))


@pytest.fixture
def pair(servers: MakeServer) -> tuple[Server, Server]:
    """Two servers with `max_staleness` 0; tables d.t, with partitions 1 and 2, and d.u."""
    here, elsewhere = servers(), servers()
    create_database(here.store, "d")
    for name in ("t", "u"):
        here.store.writes.tables.create_table(table("d", name, KEYS, version="old"))
    here.store.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(table("d", "t"), (value,)) for value in "12"]
    )
    return here, elsewhere


def once(action: Callable[[], object]) -> Callable[[], object]:
    """Executes the action at its first call only."""
    left = [action]
    return lambda: left.pop()() if left else None


def test_an_event_between_fence_and_position_discards_the_load(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    here.during_loads(once(lambda: (write(elsewhere.objects, "new"), here.poller.step())))
    here.reasons()
    assert version_of(here.store) == "new"
    assert here.reasons() == [Reason.INCOMPLETE]
    assert here.cache.loader.discarded == 1
    assert Facet.TABLE not in getattr(here.cache.shared.entry(T), "facets", {})
    assert [version_of(here.store), here.reasons()] == ["new", [Reason.MISS]]


def test_an_event_about_something_else_does_not(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    here.during_loads(once(lambda: (write(elsewhere.objects, "new", "u"), here.poller.step())))
    here.reasons()
    assert version_of(here.store) == "old"
    assert here.reasons() == [Reason.MISS]
    assert here.cache.loader.discarded == 0
    assert [version_of(here.store), here.reasons()] == ["old", [Reason.HIT]]


def test_a_change_that_the_snapshot_does_not_show_and_nobody_applied_is_found_by_the_next_read(
    pair: tuple[Server, Server],
) -> None:
    """The load is exact at its fence; the position does not move, and the next check reads it."""
    here, elsewhere = pair
    here.during_loads(once(lambda: write(elsewhere.objects, "new")))
    assert version_of(here.store) == "old", "true when the snapshot was opened, after the request arrived"
    assert version_of(here.store) == "new"


def test_a_load_brings_the_position_up_to_its_fence(servers: MakeServer) -> None:
    here, elsewhere = servers(CacheOptions(max_staleness_s=INF)), servers()
    create_database(elsewhere.objects, "d")
    for name in ("t", "u"):
        elsewhere.objects.writes.tables.create_table(table("d", name, version="old"))
    assert version_of(here.store, "u") == "old"
    write(elsewhere.objects, "new", "u")
    write(elsewhere.objects, "newer", "t")
    position = here.cache.shared.position
    assert version_of(here.store, "t") == "newer"
    assert here.cache.shared.position == position + 2
    assert version_of(here.store, "u") == "new", "P3: t was shown as it is after u was changed"


def test_a_load_whose_fence_cannot_be_reached_is_not_kept_and_later_reads_see_no_less(servers: MakeServer) -> None:
    here, elsewhere = servers(CacheOptions(max_staleness_s=INF)), servers()
    create_database(here.store, "d")
    for name in ("t", "u"):
        here.store.writes.tables.create_table(table("d", name, version="old"))
    assert version_of(here.store, "u") == "old"
    here.poller.pause()
    write(elsewhere.objects, "new", "u")
    write(elsewhere.objects, "newer", "t")
    assert version_of(here.store, "t") == "newer"
    assert here.cache.shared.entry(T) is None
    assert version_of(here.store, "u") == "new", "P3"
    here.poller.resume()
    assert [version_of(here.store, name) for name in ("t", "u")] == ["newer", "new"]


@pytest.mark.parametrize("how", ["reset", "flush", "refresh"])
def test_a_load_that_is_overtaken_by_a_command_is_not_kept(how: str, pair: tuple[Server, Server]) -> None:
    here, _ = pair
    shared = here.cache.shared
    commands = {
        "reset": lambda: shared.reset("for the test", shared.position),
        "flush": shared.forget_all,
        "refresh": lambda: shared.forget(T),
    }
    here.during_loads(once(commands[how]))
    assert version_of(here.store) == "old"
    assert shared.entry(T) is None
    assert version_of(here.store) == "old"
    assert shared.entry(T) is not None


def test_a_partition_that_changed_during_a_load_is_missing_from_it(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    version_of(here.store)
    requested = here.loaded()

    def change() -> None:
        elsewhere.objects.writes.partitions.drop_partitions(
            TableName(CATALOG, "d", "t"), ByNames(("p=2",)), delete_data=True
        )
        elsewhere.objects.writes.partitions.add_partitions(
            TableName(CATALOG, "d", "t"), [partition(table("d", "t"), ("3",))]
        )
        here.poller.step()

    here.during_loads(once(change))
    assert names_of(here.store) == ["p=1", "p=3"]
    assert requested == [LoadRequest(T, Facet.PARTITIONS), LoadRequest(T, Facet.PARTITIONS, (("2",), ("3",)))]


@pytest.mark.parametrize(("complete", "loads"), [(False, 1), (True, 0)])
def test_a_partition_that_is_not_there_is_not_loaded_again_and_again(
    complete: bool, loads: int, pair: tuple[Server, Server]
) -> None:
    """Writers request each partition that they are about to create."""
    here, elsewhere = pair
    version_of(here.store)
    if complete:
        names_of(here.store)
    requested = here.loaded()
    here.reasons()
    with pytest.raises(NoSuchObjectException, match=r"partition values=\[3\]"):
        here.store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["3"])
    assert len(requested) == loads
    assert here.reasons() == [Reason.INCOMPLETE]
    elsewhere.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(table("d", "t"), ("3",))]
    )
    for _ in range(2):
        assert here.store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["3"]).values == ["3"]
    assert here.reasons() == [Reason.MISS, Reason.HIT]


def test_a_change_touches_only_its_partitions(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    names_of(here.store)
    requested = here.loaded()
    changed = elsewhere.objects.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["1"])
    changed.parameters = {"k": "v"}
    elsewhere.objects.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [changed])
    here.reasons()
    found = here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t"))).partitions
    assert [one.parameters.get("k") for one in found] == ["v", None]
    assert requested == [LoadRequest(T, Facet.PARTITIONS, (("1",),))]
    assert here.reasons() == [Reason.MISS]
    with count_statements(here.database) as seen:
        here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t")))
    assert seen.count == 1, "the position check"


@pytest.mark.parametrize(("max_staleness_s", "statements"), [(0.0, 1), (INF, 0)], ids=["0", "inf"])
def test_a_read_from_memory_sends_the_position_check_or_nothing(
    max_staleness_s: float, statements: int, servers: MakeServer
) -> None:
    here = servers(CacheOptions(max_staleness_s=max_staleness_s))
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", version="old"))
    for _ in range(2):
        version_of(here.store)
    with count_statements(here.database) as seen:
        version_of(here.store)
    assert seen.count == statements


# One load for all concurrent requests


def in_threads(count: int, ask: Callable[[], object], answers: list[object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=lambda: answers.append(ask()), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


class Latch:
    """Stops the first load between its snapshot and its installation until it is opened."""

    def __init__(self, server: Server) -> None:
        self.reached, self._opened = threading.Event(), threading.Event()
        server.during_loads(once(self._hold))

    def _hold(self) -> None:
        self.reached.set()
        assert self._opened.wait(LIMIT_S)

    def wait(self) -> None:
        assert self.reached.wait(LIMIT_S)

    def open(self) -> None:
        self._opened.set()


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def wait_for_asked(server: Server, requested: list[LoadRequest], count: int) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if len(requested) >= count:
            return
        pause.wait(0.005)
    pytest.fail(f"{len(requested)} of {count} came to the loader")


def test_what_many_ask_at_once_is_read_once(pair: tuple[Server, Server]) -> None:
    here, _ = pair
    requested, latch, answers = here.loaded(), Latch(here), []
    loads = here.cache.loader.loads
    threads = in_threads(8, lambda: version_of(here.store), answers)
    latch.wait()
    wait_for_asked(here, requested, 8)
    latch.open()
    join(threads)
    assert answers == ["old"] * 8
    assert here.cache.loader.loads == loads + 1


def test_nobody_waits_for_more_than_he_asks_for(pair: tuple[Server, Server]) -> None:
    """P12: another call loads the table together with others, for example a refill or a list of hundreds of tables."""
    here, _ = pair
    loader, answers, kept = here.cache.loader, [], []
    latch = Latch(here)
    both = [LoadRequest(TableName(CATALOG, "d", name), Facet.TABLE) for name in "tu"]
    together = in_threads(1, lambda: loader.load(both), kept)
    latch.wait()
    join(in_threads(1, lambda: version_of(here.store), answers))
    assert (answers, kept) == (["old"], [])
    latch.open()
    join(together)
    assert kept == [True]
    assert loader._running == {} and not len(here.cache.shared.loads)


def test_who_asks_for_more_reads_the_rest(pair: tuple[Server, Server]) -> None:
    here, _ = pair
    loader, requested, kept = here.cache.loader, here.loaded(), []
    latch, loads = Latch(here), loader.loads
    both = [LoadRequest(TableName(CATALOG, "d", name), Facet.TABLE) for name in "tu"]
    first = in_threads(1, lambda: loader.load(both[:1]), kept)
    latch.wait()
    second = in_threads(1, lambda: loader.load(both), kept)
    wait_for_asked(here, requested, 3)
    latch.open()
    join(first + second)
    assert (kept, loader.loads) == ([True, True], loads + 2)
    assert all(Facet.TABLE in here.cache.shared.tables[one.key].facets for one in both if not isinstance(one.key, str))


def test_one_who_comes_after_a_write_is_not_answered_from_a_load_before_it(pair: tuple[Server, Server]) -> None:
    here, _ = pair
    requested, latch, answers = here.loaded(), Latch(here), []
    first = in_threads(1, lambda: version_of(here.store), answers)
    latch.wait()
    write(here.objects, "new")
    late: list[object] = []
    second = in_threads(1, lambda: version_of(here.store), late)
    wait_for_asked(here, requested, 2)
    latch.open()
    join(first + second)
    assert late == ["new"], "P4"
    assert version_of(here.store) == "new"


@pytest.mark.parametrize("max_staleness_s", [0.0, 0.5, INF], ids=["0", "500ms", "inf"])
def test_an_own_write_is_seen_whatever_a_load_installs_after_it(max_staleness_s: float, servers: MakeServer) -> None:
    here = servers(CacheOptions(max_staleness_s=max_staleness_s))
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", version="old"))
    here.during_loads(once(lambda: write(here.objects, "new")))
    version_of(here.store)
    assert version_of(here.store) == "new"


def test_a_load_that_fails_fails_for_nobody_but_those_who_shared_the_read(pair: tuple[Server, Server]) -> None:
    here, _ = pair

    def fail() -> None:
        raise ValueError("a defect of the cache")

    here.during_loads(once(fail))
    here.reasons()
    assert version_of(here.store) == "old", "P9: the store answers"
    assert here.reasons() == [Reason.INCOMPLETE]
    assert version_of(here.store) == "old"
    assert here.reasons() == [Reason.MISS]
    assert here.cache.loader._running == {} and not len(here.cache.shared.loads)


# Absence (P6)


def test_absence_is_answered_from_complete_names_and_ends_with_a_creation_elsewhere(
    pair: tuple[Server, Server],
) -> None:
    here, elsewhere = pair
    for reason in (Reason.MISS, Reason.HIT):
        here.reasons()
        with pytest.raises(NoSuchObjectException, match=r"d\.nowhere table not found"):
            here.store.reads.tables.get_table(TableName(CATALOG, "d", "nowhere"))
        assert here.reasons() == [reason]
    elsewhere.objects.writes.tables.create_table(table("d", "nowhere", version="first"))
    assert version_of(here.store, "nowhere") == "first"
    elsewhere.objects.writes.tables.drop_table(TableName(CATALOG, "d", "nowhere"), delete_data=True)
    with pytest.raises(NoSuchObjectException):
        version_of(here.store, "nowhere")


def test_a_name_that_could_not_be_looked_up_is_not_absent(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))
    elsewhere.objects.writes.tables.create_table(table("d", "fresh", version="first"))
    here.poller.step()  # the names are no longer cached
    here.during_loads(once(lambda: (_ for _ in ()).throw(ValueError("a defect of the cache"))))
    assert version_of(here.store, "fresh") == "first"


def test_an_outage_is_no_absence(pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = pair

    def away() -> object:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(here.objects.reads, "snapshot", away)
    with pytest.raises(DatabaseUnavailable):
        version_of(here.store)


def test_databases_that_are_absent_are_told_from_complete_names(servers: MakeServer) -> None:
    here, elsewhere = servers(), servers()
    for reason in (Reason.MISS, Reason.HIT):
        here.reasons()
        with pytest.raises(NoSuchObjectException):
            here.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
        assert here.reasons() == [reason]
    create_database(elsewhere.objects, "d")
    assert here.store.reads.databases.get_database(DatabaseName(CATALOG, "d")).name == "d"
    elsewhere.objects.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    with pytest.raises(NoSuchObjectException):
        here.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))


def test_a_table_in_a_database_that_was_not_there_is_found_when_both_are(servers: MakeServer) -> None:
    here, elsewhere = servers(), servers()
    with pytest.raises(NoSuchObjectException):
        version_of(here.store)
    assert here.cache.shared.entry(DatabaseName(CATALOG, "d")) is not None
    create_database(elsewhere.objects, "d")
    with pytest.raises(NoSuchObjectException):
        version_of(here.store)
    elsewhere.objects.writes.tables.create_table(table("d", "t", version="first"))
    assert version_of(here.store) == "first"


@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
@pytest.mark.parametrize("max_staleness_s", [0.0, INF], ids=["checked", "unchecked"])
def test_connections_that_went_stale_are_not_noticed(
    initialized_database: Database, tmp_path: Path, max_staleness_s: float
) -> None:
    """As after a restart of the database: the cache must not fail where the store would answer (P9)."""
    url = initialized_database.url.render_as_string(hide_password=False)
    here = Server(url, tmp_path, CacheOptions(max_staleness_s=max_staleness_s))
    create_database(here.store, "d")
    for name in ("t", "u"):
        here.store.writes.tables.create_table(table("d", name, KEYS, version="old"))
    assert version_of(here.store) == "old"
    with initialized_database.checking() as connection:
        mine = connection.execute(text("SELECT CONNECTION_ID()")).scalar_one()
        others = text("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> :mine")
        for number in connection.execute(others, {"mine": mine}).scalars().all():
            connection.execute(text(f"KILL {number}"))
    here.reads.clear()
    assert version_of(here.store, "u") == "old"
    assert here.reasons()[-1] is Reason.MISS
    here.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"), "*t*"),
        lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"), "*t*", "MANAGED_TABLE"),
        lambda store: store.reads.tables.get_table_meta(CATALOG, "d*", "*t*"),
    ],
    ids=["names", "names of a type", "meta"],
)
def test_names_are_matched_without_the_lock(
    ask: Callable[[MetadataStore], Any], pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern on 50,000 names takes 0.1 s: other reads must not wait for it."""
    here, _ = pair
    matched: list[str] = []

    def match(names: Iterable[str], pattern: str | None) -> list[str]:
        if pattern == "*t*":
            assert not here.cache.shared.view().locked()
            matched.append(pattern)
        return matching_names(names, pattern)

    expected = encoded(lambda: ask(here.objects))
    monkeypatch.setattr(cached_tables, "matching_names", match)
    for _ in range(2):
        assert encoded(lambda: ask(here.store)) == expected
    assert here.reasons()[-1] is Reason.HIT
    assert len(matched) == 2
