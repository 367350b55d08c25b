"""What is loaded at the start, in which order, and when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming.prewarm import Prewarm, Progress, most_used, read_most_used, write_most_used
from hms_cache.cache.warming.snapshot_reads import LoadRequest, Reader, SnapshotRead, SnapshotReads
from hms_cache.clock import elapsed_s
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable, RetryableConflict
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, changed_table, partition, table
from tests.databases import count_statements


@pytest.fixture
def filled(sqlite_database: Database, tmp_path: Path) -> str:
    """A catalog of two databases with 60 tables, one of them partitioned."""
    url = sqlite_database.url.render_as_string(hide_password=False)
    writer = Server(url, tmp_path)
    for name in ("d1", "d2"):
        writer.objects.writes.databases.create_database(ttypes.Database(name=name, catalogName=CATALOG, parameters={}))
    for number in range(60):
        writer.objects.writes.tables.create_table(table("d1", f"t{number:02d}"))
    partitioned = table("d2", "p", keys=(("dt", "string"),))
    writer.objects.writes.tables.create_table(partitioned)
    writer.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d2", "p"), [partition(partitioned, (str(n),)) for n in range(10)]
    )
    writer.close()
    return url


def warm(server: Server, **options: object) -> Prewarm:
    cache = server.cache
    prewarm = Prewarm(cache.shared, cache.loader, server.objects.reads, cache.reading.policy, **options)  # type: ignore[arg-type]
    while prewarm.step():
        pass
    return prewarm


def test_names_only(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    prewarm = warm(server, tables=False)
    assert prewarm.progress().finished and prewarm.progress().total == 61
    assert not server.cache.shared.tables
    assert len(server.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d1"))) == 60
    with pytest.raises(ttypes.NoSuchObjectException):
        server.store.reads.tables.get_table(TableName(CATALOG, "d2", "nope"))
    assert server.reasons() == [Reason.HIT, Reason.HIT]
    server.close()


def test_whole_tables_with_their_partitions(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    prewarm = warm(server, tables=True)
    assert (prewarm.progress().done, prewarm.progress().total) == (61, 61)
    assert server.store.reads.tables.get_table(TableName(CATALOG, "d1", "t42")).tableName == "t42"
    assert (
        len(server.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d2", "p"))).partitions)
        == 10
    )
    assert server.reasons() == [Reason.HIT, Reason.HIT]
    server.close()


def test_it_ends_where_the_names_cannot_be_read(filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names cannot be read for another reason than an outage. Before, the other tasks waited for them as long as the
    server ran."""
    server = Server(filled, tmp_path)
    cache, reads = server.cache, server.objects.reads

    def fail(catalog: str) -> list[str]:
        raise RetryableConflict(f"the names of {catalog} are locked")

    prewarm = Prewarm(cache.shared, cache.loader, reads, cache.reading.policy, tables=True, reads=(None, None))
    first, second = prewarm.tasks
    assert second.step() and second.is_waiting
    assert first.step(), "the names of databases"
    monkeypatch.setattr(reads.databases, "get_database_names", fail)
    with pytest.raises(RetryableConflict):
        first.step()
    assert not first.step() and not second.step()
    assert prewarm.progress().finished and "are locked" in prewarm.ended_early and prewarm.outage_at_s is None
    server.close()


def test_it_stops_before_it_would_evict(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path, CacheOptions(budget_bytes=400_000))
    warm(server, tables=True, most_used=[TableName(CATALOG, "d2", "p"), TableName(CATALOG, "d1", "t59")])
    assert server.cache.shared.evictions == 0
    assert server.cache.shared.weight <= 400_000
    held = [key for key, entry in server.cache.shared.tables.items() if Facet.TABLE in entry.facets]
    assert TableName(CATALOG, "d2", "p") in held and TableName(CATALOG, "d1", "t59") in held, "the most used come first"
    server.close()


def test_the_list_of_the_most_used_outlives_a_restart(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    for name, reads in (("t07", 5), ("t33", 9)):
        for _ in range(reads):
            server.store.reads.tables.get_table(TableName(CATALOG, "d1", name))
    path = tmp_path / "usage.json"
    write_most_used(path, most_used(server.cache.shared))
    assert read_most_used(path) == [TableName(CATALOG, "d1", "t33"), TableName(CATALOG, "d1", "t07")]
    for damaged in ("{damaged", "null", "[[1, 2, 3]]", '[["a", "b", ["c"]]]', '["abc", 1]', "[" * 100_000, "\udcff"):
        path.write_bytes(damaged.encode("utf-8", "surrogateescape"))
        assert read_most_used(path) == [], damaged[:20]
    server.close()


def test_the_list_of_the_most_used_is_put_nowhere_else(tmp_path: Path) -> None:
    """Another user with write access to the directory has put a link where the new list is written first."""
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "usage.json.new").symlink_to(tmp_path / "precious")
    write_most_used(tmp_path / "usage.json", [TableName(CATALOG, "d", "t")])
    assert (tmp_path / "precious").read_text() == "precious"
    assert read_most_used(tmp_path / "usage.json") == [TableName(CATALOG, "d", "t")]
    assert (tmp_path / "usage.json").stat().st_mode & 0o777 == 0o600


def test_a_reset_keeps_who_was_used_most(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    for name, reads in (("t07", 5), ("t33", 9)):
        for _ in range(reads):
            server.store.reads.tables.get_table(TableName(CATALOG, "d1", name))
    server.poller.resync()
    server.poller.step()
    assert most_used(server.cache.shared) == [TableName(CATALOG, "d1", "t33"), TableName(CATALOG, "d1", "t07")]
    server.close()


def test_tasks_share_the_tables_out(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    requested: list[list[LoadRequest]] = [[], []]
    reads = SnapshotReads(server.objects.reads, 10**9)

    def noting(number: int) -> Reader:
        return lambda wanted: (requested[number].extend(wanted), reads.read(wanted))[1]

    cache = server.cache
    prewarm = Prewarm(
        cache.shared,
        cache.loader,
        server.objects.reads,
        cache.reading.policy,
        tables=True,
        reads=[noting(0), noting(1)],
    )
    assert prewarm.tasks[1].step() and prewarm.tasks[1].is_waiting, "which tables there are is not known yet"
    while prewarm.step():
        assert not prewarm.progress().finished
    assert (prewarm.progress(), prewarm.ended_early) == (Progress(61, 61, True), "")
    assert all(requested) and len(requested[0]) + len(requested[1]) == len({*requested[0], *requested[1]}) == 62
    server.reasons()
    assert (
        len(server.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d2", "p"))).partitions)
        == 10
    )
    for number in range(60):
        server.store.reads.tables.get_table(TableName(CATALOG, "d1", f"t{number:02d}"))
    assert set(server.reasons()) == {Reason.HIT}
    server.close()


@pytest.mark.parametrize("suspended_s", [0.0, 3600.0])
def test_an_outage_in_one_task_ends_all(
    suspended_s: float, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the poller has reached the database since then, also on a machine that was suspended for an hour at some
    time."""
    server = Server(filled, tmp_path)
    server.poller.step()
    monkeypatch.setattr(time, "monotonic", lambda: elapsed_s() - suspended_s)

    def fails(wanted: Sequence[LoadRequest]) -> SnapshotRead:
        raise DatabaseUnavailable("gone")

    cache = server.cache
    prewarm = Prewarm(
        cache.shared, cache.loader, server.objects.reads, cache.reading.policy, tables=True, reads=[None, fails]
    )
    while prewarm.step():
        pass
    assert prewarm.progress().finished and prewarm.ended_early == "gone"
    assert prewarm.outage_at_s is not None and prewarm.outage_at_s >= server.poller.current_at_s
    assert not any(task.step() for task in prewarm.tasks)
    server.close()


def test_a_batch_of_tables_takes_as_many_statements_as_one(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    reads = SnapshotReads(server.objects.reads, 10**9)
    seen = []
    reads.read([LoadRequest(TableName(CATALOG, "d2", "p"), Facet.TABLE)])  # it examines what the tables have
    for count in (2, 50):
        wanted = [LoadRequest(TableName(CATALOG, "d1", f"t{number:02d}"), Facet.TABLE) for number in range(count)]
        with count_statements(server.database) as statements:
            found = reads.read(wanted)
        assert [item.value.tableName for item in found.loaded if item.facet is Facet.TABLE] == [
            one.key.table for one in wanted if isinstance(one.key, TableName)
        ]
        seen.append(statements.count)
    assert seen[0] == seen[1] <= 6
    server.close()


def test_nobody_waits_for_a_batch_that_is_on_its_way(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    key = TableName(CATALOG, "d1", "t07")
    has_read, go_on = threading.Event(), threading.Event()
    reads = SnapshotReads(server.objects.reads, 10**9)

    def slowly(wanted: Sequence[LoadRequest]) -> SnapshotRead:
        found = reads.read(wanted)
        has_read.set()
        assert go_on.wait(60)
        return found

    kept: list[bool] = []
    load = server.cache.loader.load_ahead
    warming = threading.Thread(target=lambda: kept.append(load([LoadRequest(key, Facet.TABLE)], slowly)))
    warming.start()
    assert has_read.wait(60)
    server.reasons()
    assert server.store.reads.tables.get_table(TableName(CATALOG, "d1", "t07")).tableName == "t07", (
        "loaded without the batch"
    )
    assert server.reasons() == [Reason.MISS]
    changed = changed_table(server.objects, "d1", "t07", version="new")
    server.store.writes.tables.alter_table(TableName(CATALOG, "d1", "t07"), changed)
    server.poller.step()
    go_on.set()
    warming.join(60)
    assert kept == [False], "what was read before the change is not kept"
    assert server.store.reads.tables.get_table(TableName(CATALOG, "d1", "t07")).parameters["version"] == "new"
    server.close()


def test_tables_of_a_database_that_is_gone_are_no_error(filled: str, tmp_path: Path) -> None:
    server = Server(filled, tmp_path)
    wanted = [LoadRequest(TableName(CATALOG, "gone", name), Facet.TABLE) for name in ("t1", "t2")]
    assert [item for item in SnapshotReads(server.objects.reads, 10**9).read(wanted).loaded if item.value] == []
    assert server.cache.loader.load(wanted)
    with pytest.raises(ttypes.NoSuchObjectException):
        server.store.reads.tables.get_table(TableName(CATALOG, "gone", "t1"))
    server.close()
