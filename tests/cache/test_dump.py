"""The cache is written to a file and read by the next server: it is correct, or not used."""

from __future__ import annotations

import contextlib
import json
import os
import random
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from hms_cache.cache.dump import capture as capturing
from hms_cache.cache.dump import file as dump_file
from hms_cache.cache.dump import restore as restoring
from hms_cache.cache.dump import writing
from hms_cache.cache.dump.file import HEAD, DumpReader, DumpWriter
from hms_cache.cache.dump.values import BadDump, NotDumpable, decode_value, encode_value
from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE, TABLE_PARAMS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.evictions import evict_at_random
from tests.cache.test_equality import READS, Change, apply, changes, compare, fill_all, inner_changes
from tests.cache.world import CATALOG, IDENTITY, Server, changed_table, create_database, partition, table

DAYS = tuple((f"2024-01-{day:02}",) for day in range(1, 29))


@pytest.fixture
def sets_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each set of partitions has a section of its own, as large ones have."""
    monkeypatch.setattr(writing, "SECTION_BYTES", 0)


def next_server(of: Server, dump: Path) -> Server:
    """As after a restart."""
    return replace(of, dump=dump, reads=[])


def fill(server: Server) -> None:
    """A database with two tables, one of which has partitions; all of it has been read, and so is cached."""
    create_database(server.objects, "d")
    server.objects.writes.tables.create_table(table("d", "t", version="first"))
    server.objects.writes.tables.create_table(table("d", "p", keys=(("day", "string"),)))
    server.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "p"), [partition(table("d", "p"), day) for day in DAYS]
    )
    for ask in READS_OF_D:
        ask(server)


READS_OF_D: tuple[Callable[[Server], Any], ...] = (
    lambda server: server.store.reads.databases.get_database(DatabaseName(CATALOG, "d")),
    lambda server: server.store.reads.databases.get_database_names(CATALOG),
    lambda server: server.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")),
    lambda server: server.store.reads.tables.get_table(TableName(CATALOG, "d", "t")),
    lambda server: server.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "p"))),
    lambda server: server.store.reads.functions.get_function_names(DatabaseName(CATALOG, "d")),
    lambda server: server.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t")),
)


@pytest.mark.parametrize("apart", [False, True])
def test_after_a_restart_everything_is_answered_from_memory(
    apart: bool, servers: MakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if apart:
        monkeypatch.setattr(writing, "SECTION_BYTES", 0)
    before = servers()
    fill(before)
    assert before.write_dump(tmp_path / "dump")
    after = next_server(before, tmp_path / "dump")
    try:
        assert after.restore is not None and after.restore.outcome == "read"
        assert after.restore.is_done is not apart
        while after.restore.step():
            pass
        assert after.cache.shared.resets == 0
        for ask in READS_OF_D:
            ask(after)
        assert set(after.reasons()) == {Reason.HIT}
        assert after.cache.loader.loads == 0
        expected = before.cache.shared.tables[TableName(CATALOG, "d", "t")]
        found = after.cache.shared.tables[TableName(CATALOG, "d", "t")]
        assert found.facets[Facet.TABLE] == expected.facets[Facet.TABLE]
        assert found.weights == expected.weights and found.table_id == expected.table_id
        assert after.cache.shared.weight == before.cache.shared.weight
    finally:
        after.close()


def test_events_since_take_out_what_they_name_before_and_after_a_set_is_read(
    sets_apart: None, servers: MakeServer, tmp_path: Path
) -> None:
    events_since_take_out_what_they_name(servers, tmp_path)


def events_since_take_out_what_they_name(servers: MakeServer, tmp_path: Path) -> None:
    """One event before the restart, one between the start and the reading of the set."""
    before = servers()
    fill(before)
    before.write_dump(tmp_path / "dump")
    of = TableName(CATALOG, "d", "p")
    before.objects.writes.partitions.drop_partitions(of, ByNames((f"day={DAYS[0][0]}",)), delete_data=False)
    after = next_server(before, tmp_path / "dump")
    try:
        assert after.restore is not None
        after.poller.step()
        before.objects.writes.partitions.drop_partitions(of, ByNames((f"day={DAYS[1][0]}",)), delete_data=False)
        after.poller.step()
        while after.restore.step():
            pass
        held = after.cache.shared.tables[of].facets[Facet.PARTITIONS]
        assert isinstance(held, PartitionSet)
        assert held.missing == set(DAYS[:2])
        assert len(READS_OF_D[4](after).partitions) == len(DAYS) - 2
    finally:
        after.close()


def test_tags_of_transactional_tables_follow_commits_since(servers: MakeServer, tmp_path: Path) -> None:
    before = servers()
    create_database(before.objects, "d")
    made = table("d", "a", transactional="true", transactional_properties="insert_only")
    before.objects.writes.tables.create_table(made)
    name = TableName(CATALOG, "d", "a")
    before.store.reads.tables.get_table(name)
    before.write_dump(tmp_path / "dump")
    transaction = before.transactions.open()
    before.transactions.allocate([transaction], "a")
    before.transactions.commit(transaction)
    after = next_server(before, tmp_path / "dump")
    try:
        after.poller.step()
        after.store.reads.tables.get_table(name)
        assert after.cache.shared.tables[name].tag == before_tag(before, name)
    finally:
        after.close()


def before_tag(server: Server, name: TableName) -> Any:
    """As in the database."""
    from hms_cache.txn.valid_write_ids import ValidWriteIdList

    with server.objects.reads.snapshot():
        return ValidWriteIdList.parse(server.objects.reads.get_write_id_tag(name))


def _lose_last_event(server: Server, becomes: str) -> None:
    """As after a failover that lost the last event and its change."""
    last = server.log.current_event_id()
    with server.database.writing() as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID == last))
        connection.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=last))
        version = TABLE_PARAMS.c.PARAM_KEY == "version"
        connection.execute(update(TABLE_PARAMS).where(version).values(PARAM_VALUE=becomes))
        connection.commit()


def another_history_is_not_answered(servers: MakeServer, tmp_path: Path, writes_since: int) -> None:
    """A dump of a lost history; after one more write, the same id belongs to another event."""
    before = servers()
    fill(before)
    before.store.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(before.store, "d", "t", version="lost")
    )
    assert READS_OF_D[3](before).parameters["version"] == "lost"
    before.write_dump(tmp_path / "dump")
    _lose_last_event(before, "kept")
    for number in range(writes_since):
        before.objects.writes.tables.create_table(table("d", f"new{number}"))
    after = next_server(before, tmp_path / "dump")
    try:
        assert READS_OF_D[3](after).parameters["version"] == "kept"
        assert after.cache.shared.resets == 1
        compare_tables(after)
    finally:
        after.close()


def compare_tables(server: Server) -> None:
    """The names in memory are those of the database."""
    of = DatabaseName(CATALOG, "d")
    assert server.store.reads.tables.get_table_names(of) == server.objects.reads.tables.get_table_names(of)


@pytest.mark.parametrize("writes_since", [0, 1, 2])
def test_a_dump_of_another_history_is_discarded(writes_since: int, servers: MakeServer, tmp_path: Path) -> None:
    another_history_is_not_answered(servers, tmp_path, writes_since)


def test_a_dump_whose_event_was_cleaned_away_is_discarded(servers: MakeServer, tmp_path: Path) -> None:
    before = servers()
    fill(before)
    before.write_dump(tmp_path / "dump")
    before.objects.writes.tables.create_table(table("d", "later"))
    with before.database.writing() as connection:
        connection.execute(
            delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID <= before.poller.position().event_id)
        )
        connection.commit()
    after = next_server(before, tmp_path / "dump")
    try:
        assert after.cache.shared.resets == 1
        assert not after.cache.shared.tables
        compare_tables(after)
    finally:
        after.close()


def test_a_server_that_saw_no_event_writes_none(servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    with server.database.writing() as connection:
        connection.execute(delete(NOTIFICATION_LOG))
        connection.commit()
    server.poller.resync()
    server.poller.step()
    assert not server.write_dump(tmp_path / "dump")
    assert not (tmp_path / "dump").exists()


def test_reads_of_what_is_not_proven_are_answered_by_the_database(servers: MakeServer, tmp_path: Path) -> None:
    """Nothing is cached before the poller's first step."""
    before = servers()
    fill(before)
    before.write_dump(tmp_path / "dump")
    after = next_server(before, tmp_path / "dump")
    try:
        after.poller.stop()
        after.restore = None
        restored = restoring.Restore(after.cache.shared, tmp_path / "dump", IDENTITY)
        after.poller.start(restored.begin())
        after.reasons()
        READS_OF_D[3](after)
        assert after.reasons() == [Reason.BEHIND_EVENTS]
        after.poller.step()
        READS_OF_D[3](after)
        assert after.reasons() == [Reason.HIT]
        restored.close()
    finally:
        after.close()


def test_with_any_staleness_the_first_read_asks(servers: MakeServer, tmp_path: Path) -> None:
    """Before the restart, clients had seen changes made after the dump (P3)."""
    before = servers(CacheOptions(max_staleness_s=float("inf")))
    fill(before)
    before.write_dump(tmp_path / "dump")
    before.store.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(before.store, "d", "t", version="second")
    )
    assert READS_OF_D[3](before).parameters["version"] == "second"
    after = next_server(before, tmp_path / "dump")
    try:
        assert READS_OF_D[3](after).parameters["version"] == "second"
    finally:
        after.close()


@pytest.mark.parametrize("of", ["build", "settings"])
def test_a_dump_of_another_program_or_other_settings_is_discarded(of: str, servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    fill(server)
    server.write_dump(tmp_path / "dump")
    other = restoring.Restore(server.cache.shared, tmp_path / "dump", replace(IDENTITY, **{of: "another"}))
    assert other.begin() is None
    assert other.outcome == "discarded"


def test_no_dump_is_no_fault(servers: MakeServer, tmp_path: Path) -> None:
    restore = restoring.Restore(servers().cache.shared, tmp_path / "dump", IDENTITY)
    assert restore.begin() is None
    assert restore.outcome == "none"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_dump_that_others_may_write_to_is_discarded(mode: int, servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    fill(server)
    server.write_dump(tmp_path / "dump")
    assert (tmp_path / "dump").stat().st_mode & 0o777 == 0o600
    (tmp_path / "dump").chmod(mode)
    restore = restoring.Restore(server.cache.shared, tmp_path / "dump", IDENTITY)
    assert restore.begin() is None
    assert restore.outcome == "discarded"


def test_a_link_and_a_pipe_are_not_followed(servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    fill(server)
    server.write_dump(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        restore = restoring.Restore(server.cache.shared, tmp_path / name, IDENTITY)
        assert restore.begin() is None
        assert restore.outcome == "foreign"


@pytest.mark.parametrize("examples", [60, pytest.param(3000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_a_damaged_dump_is_discarded_or_read_as_it_was(
    examples: int, sets_apart: None, servers: MakeServer, tmp_path: Path
) -> None:
    """Bits flipped, bytes truncated, omitted or added anywhere: never a wrong answer, never an error at the start."""
    before = servers()
    fill(before)
    before.write_dump(tmp_path / "dump")
    whole = (tmp_path / "dump").read_bytes()
    chance = random.Random(5)
    for _ in range(examples):
        damaged = bytearray(whole)
        at = chance.randrange(len(whole))
        match chance.randrange(4):
            case 0:
                damaged[at] ^= 1 << chance.randrange(8)
            case 1:
                del damaged[at:]
            case 2:
                del damaged[at : at + chance.randrange(1, 9)]
            case _:
                damaged[at:at] = chance.randbytes(chance.randrange(1, 9))
        (tmp_path / "damaged").write_bytes(damaged)
        (tmp_path / "damaged").chmod(0o600)
        cache = next_server(before, tmp_path / "none").cache.shared
        restore = restoring.Restore(cache, tmp_path / "damaged", IDENTITY)
        if restore.begin() is not None:
            while restore.step():
                pass
        restore.close()
        invariants.check(cache)
        for key, entry in cache.tables.items():
            expected = before.cache.shared.tables[key]
            for facet, value in entry.facets.items():
                if isinstance(value, PartitionSet):
                    assert value.all().structs() == expected.facets[facet].all().structs()
                else:
                    assert value == expected.facets[facet]


def _rewritten(path: Path, change: Callable[[bytes, Any, list[bytes]], Any]) -> None:
    """The same dump with modified trees and valid checksums, as an attacker with write access could make it."""
    reader = DumpReader(path, 1 << 30)
    sections = [(section.kind, *reader.read(section)) for section in reader.sections[:-1]]
    reader.close()
    with DumpWriter(path) as writer:
        for kind, tree, blobs in sections:
            writer.write(kind, change(kind, tree, blobs), blobs)
        writer.finish()
        writer.replace_previous()


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, inner in items:
        found += _places(inner, (*path, name))
    return found


@pytest.mark.parametrize("examples", [120, pytest.param(5000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_a_dump_with_any_other_values_in_its_trees_raises_nothing(
    examples: int, sets_apart: None, servers: MakeServer, tmp_path: Path
) -> None:
    before = servers()
    fill(before)
    chance = random.Random(7)
    values: list[Any] = [None, -1, 0, 1 << 70, "x", [], {}, [[1]], True, 1.5, {"struct": "Table", "bytes": 0}]

    def change(kind: bytes, tree: Any, blobs: list[bytes]) -> Any:
        if kind == HEAD and chance.random() < 0.8:
            return tree
        *way, last = chance.choice(_places(tree) or [("nothing",)])
        if last == "nothing":
            return tree
        inner = tree
        for one in way:
            inner = inner[one]
        inner[last] = chance.choice(values)
        return tree

    for _ in range(examples):
        before.write_dump(tmp_path / "dump")
        _rewritten(tmp_path / "dump", change)
        cache = next_server(before, tmp_path / "none").cache.shared
        restore = restoring.Restore(cache, tmp_path / "dump", IDENTITY)
        if restore.begin() is not None:
            while restore.step():
                pass
        restore.close()
        assert not len(cache.loads)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=40,
)


@given(JSON)
def test_a_tree_is_the_same_text_in_pieces(tree: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dump_file, "_ELEMENTS_AT_ONCE", 2)
        assert "".join(dump_file._json(tree)) == json.dumps(tree, separators=(",", ":"))


def test_a_long_tree_is_made_in_short_pieces(tmp_path: Path) -> None:
    """The interpreter does nothing else while it builds one."""
    long = {
        "statistics": [{"list": [{"column": [f"p={number}", {"struct": "x", "bytes": 1}]} for number in range(9_999)]}]
    }
    assert max(map(len, dump_file._json([{"facets": {"a": [7, long]}}]))) < 10_000
    with DumpWriter(tmp_path / "dump") as writer:
        writer.write(HEAD, [long])
        writer.finish()
        writer.replace_previous()
    reader = DumpReader(tmp_path / "dump", 10**7)
    assert reader.read(reader.sections[0])[0] == [long]
    reader.close()


def test_lengths_that_no_file_has_take_no_memory(tmp_path: Path) -> None:
    frame = struct.pack("<4sIQI", HEAD, 0xFFFFFFFF, 1 << 60, 0)
    (tmp_path / "dump").write_bytes(frame + b"{}")
    (tmp_path / "dump").chmod(0o600)
    with pytest.raises(BadDump):
        DumpReader(tmp_path / "dump", 1 << 30)
    text = json.dumps({"tree": None, "lengths": [1 << 60, -(1 << 60)]}).encode()
    (tmp_path / "dump").write_bytes(struct.pack("<4sIQI", HEAD, len(text), 0, zlib.crc32(text)) + text)
    with pytest.raises(BadDump):
        DumpReader(tmp_path / "dump", 1 << 30)


def test_a_write_that_fails_leaves_the_dump_before(servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    fill(server)
    server.write_dump(tmp_path / "dump")
    first = (tmp_path / "dump").read_bytes()
    captured = capturing.capture(server.cache.shared, server.poller.position, threading.Event())
    assert captured is not None

    def fail(written: int) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        writing.write_dump(tmp_path / "dump", captured, IDENTITY, fail)
    assert (tmp_path / "dump").read_bytes() == first
    assert sorted(path.name for path in tmp_path.glob("dump*")) == ["dump"]


@pytest.mark.parametrize("fails", [False, True])
def test_two_who_write_one_dump_leave_a_whole_one(fails: bool, tmp_path: Path) -> None:
    """By mistake, or while one server stops and the next has started: the later one is kept."""
    path = tmp_path / "dump"
    first = DumpWriter(path)
    with pytest.raises(OSError, match="another server"), first:
        first.write(HEAD, "first")
        second = DumpWriter(path)
        second.write(HEAD, "second")
        if fails:
            raise OSError("another server is in the way")
        first.finish()
        first.replace_previous()
    assert not path.exists()
    with second:
        second.finish()
        second.replace_previous()
    reader = DumpReader(path, 1 << 30)
    assert reader.read(reader.sections[0]) == ("second", [])
    reader.close()
    assert [one.name for one in tmp_path.iterdir()] == ["dump"]


def test_what_changes_while_it_is_taken_is_left_out(servers: MakeServer, tmp_path: Path) -> None:
    what_changes_meanwhile_is_left_out(servers, tmp_path)


def what_changes_meanwhile_is_left_out(servers: MakeServer, tmp_path: Path) -> None:
    """Entries are copied in small groups; an event in between may concern one that has been copied."""
    before = servers()
    fill(before)
    copies = capturing._copies

    def copy_and_change(cache: Any, keys: Any) -> Any:
        found = list(copies(cache, keys))
        if keys[-1] == TableName(CATALOG, "d", "t"):
            changed = changed_table(before.objects, "d", "t", version="second")
            cache.view().release()
            try:
                before.objects.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed)
                before.poller.step()
            finally:
                cache.view().acquire()
        return found

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(capturing, "AT_ONCE", 1)
        patching.setattr(capturing, "_copies", copy_and_change)
        before.write_dump(tmp_path / "dump")
    after = next_server(before, tmp_path / "dump")
    try:
        assert TableName(CATALOG, "d", "p") in after.cache.shared.tables
        assert TableName(CATALOG, "d", "t") not in after.cache.shared.tables
        assert READS_OF_D[3](after).parameters["version"] == "second"
    finally:
        after.close()


def test_no_more_is_read_than_the_budget_holds(servers: MakeServer, tmp_path: Path) -> None:
    before = servers()
    create_database(before.objects, "d")
    for number in range(60):
        before.objects.writes.tables.create_table(table("d", f"t{number:02}", text="x" * 1000))
        before.store.reads.tables.get_table(TableName(CATALOG, "d", f"t{number:02}"))
    before.write_dump(tmp_path / "dump")
    small = replace(before.options, budget_bytes=before.cache.shared.weight // 2)
    after = replace(before, dump=tmp_path / "dump", options=small, reads=[])
    try:
        assert after.restore is not None and after.restore.outcome == "read"
        assert 0 < after.cache.shared.weight <= small.budget_bytes
        # The most recently used ones.
        assert TableName(CATALOG, "d", "t59") in after.cache.shared.tables
        assert TableName(CATALOG, "d", "t00") not in after.cache.shared.tables
        assert next(reversed(after.cache.shared.tables)).table == "t59"
    finally:
        after.close()


@pytest.mark.parametrize("examples", [4, pytest.param(60, marks=[pytest.mark.soak, pytest.mark.long])])
def test_restarts_at_any_moment_are_not_noticed(examples: int, sqlite_database: Database, tmp_path: Path) -> None:
    """Changes here and elsewhere, reads, dumps and restarts in any order; sets are read immediately or between later
    events. Each read returns what the database contains."""
    step = st.one_of(
        st.tuples(st.just("change"), changes),
        st.tuples(st.just("dump"), st.booleans()),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.just("read"), st.just(True)),
        st.tuples(st.just("read set"), st.just(True)),
    )

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(steps=st.lists(step, min_size=15, max_size=30))
    def check(steps: list[tuple[str, Any]]) -> None:
        url = sqlite_database.url.render_as_string(hide_password=False)
        path = tmp_path / "dump"
        path.unlink(missing_ok=True)
        elsewhere = Server(url, tmp_path / "warehouse")
        here = Server(url, tmp_path / "warehouse")
        for database in ("d1", "d2"):
            apply(elsewhere.store, ("drop_database", database))
            apply(elsewhere.store, ("create_database", database))
            for name in ("t", "u"):
                apply(elsewhere.store, ("create_table", (database, name)))
        for _, ask in READS:
            _ignoring_faults(ask, here)
        try:
            for what, detail in steps:
                match what:
                    case "change":
                        _change(elsewhere, detail)
                    case "dump":
                        writing.SECTION_BYTES = 0 if detail else 1 << 20
                        here.write_dump(path)
                    case "restart":
                        here.close()
                        here = Server(url, tmp_path / "warehouse", dump=path)
                        if detail and here.restore is not None:
                            here.restore.step()
                    case "read set":
                        if here.restore is not None:
                            here.restore.step()
                    case _:
                        compare(here)
            compare(here)
        finally:
            writing.SECTION_BYTES = 1 << 20
            for server in (here, elsewhere):
                server.close()

    check()


@pytest.mark.parametrize("examples", [4, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.long])])
def test_a_dump_that_is_taken_while_everything_goes_on_is_true(
    examples: int, sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two copied entries, there may be changes, events, loads and evictions."""
    url = sqlite_database.url.render_as_string(hide_password=False)
    path = tmp_path / "dump"
    monkeypatch.setattr(capturing, "AT_ONCE", 1)
    copies = capturing._copies
    restored = 0

    @settings(max_examples=examples, deadline=None, phases=[Phase.generate])
    @given(overlapping=st.lists(inner_changes | changes, min_size=30, max_size=30), seed=st.integers(0, 2**16))
    def check(overlapping: list[Change], seed: int) -> None:
        nonlocal restored
        chance = random.Random(seed)
        elsewhere, before = (Server(url, tmp_path / "warehouse") for _ in range(2))
        after = None

        def go_on() -> None:
            match chance.randrange(8):
                case 0 | 1:
                    apply(elsewhere.objects, overlapping.pop()) if overlapping else None
                case 2:
                    before.poller.step()
                case 3:
                    _ignoring_faults(chance.choice(READS)[1], before)
                case 4:
                    evict_at_random(before.cache.shared, chance)

        def copy_and_go_on(cache: Any, keys: Any) -> Any:
            found = list(copies(cache, keys))
            cache.view().release()
            try:
                go_on()
            finally:
                cache.view().acquire()
            return found

        try:
            fill_all(elsewhere.objects)
            compare(before)
            with monkeypatch.context() as patching:
                patching.setattr(capturing, "_copies", copy_and_go_on)
                assert before.write_dump(path)
            apply(elsewhere.objects, overlapping.pop()) if overlapping else None
            after = next_server(before, path)
            assert after.restore is not None
            restored += after.restore.tables
            if chance.random() < 0.5:
                after.restore.step()
            compare(after)
        finally:
            for server in (elsewhere, before, after):
                if server is not None:
                    server.close()

    check()
    assert restored > examples / 2


def _change(server: Server, change: Change) -> None:
    apply(server.objects, change)  # type: ignore[arg-type]


def _ignoring_faults(ask: Callable[[Any], object], server: Server) -> None:
    with contextlib.suppress(ttypes.NoSuchObjectException, ttypes.MetaException, ttypes.UnknownDBException):
        ask(server.store)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(values)
def test_values_come_back_as_they_were(value: Any) -> None:
    blobs: list[bytes] = []
    tree = json.loads(json.dumps(encode_value(value, blobs)))
    assert decode_value(tree, blobs) == value


def test_structs_come_back_with_what_was_not_set() -> None:
    for struct_ in (
        ttypes.Table(tableName="t", writeId=None),
        ttypes.Table(tableName="t"),
        ttypes.Database(name="d", parameters={}),
        ttypes.TableMeta("d", "t", "VIEW"),
    ):
        blobs: list[bytes] = []
        assert decode_value(encode_value(struct_, blobs), blobs) == struct_


def test_other_objects_are_refused() -> None:
    for value in (object(), Path("x"), {1, 2}, Server):
        with pytest.raises(NotDumpable):
            encode_value(value, [])
    for tree in ({"struct": "TType", "bytes": 0}, {"struct": "sys", "bytes": 0}, {"call": "x"}, [1]):
        with pytest.raises(BadDump):
            decode_value(tree, [b""])
