"""Which reads are still answered by lease during a write: those of other tables, but none that it may change."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.lease.scopes import EVERYTHING, MAX_TABLES, NOTHING, scope_of, table_number
from hms_cache.lease.writes import Write
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.notifications import events as ev
from hms_cache.notifications.events import EventRow
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache import world
from tests.cache.test_event_cells import CASES, OF_TWO_TABLES, TABLES, Fact
from tests.lease.member import Member, wait_until

T, U, V = (TableName("hive", "d", name) for name in ("t", "u", "v"))
WIDE = {"ACID_WRITE_EVENT", "ADD_FOREIGNKEY", "ALTER_TABLE", "BATCH_ACID_WRITE_EVENT", "NEW_KIND"}
OF_TRANSACTIONS = {"OPEN_TXN", "ALLOC_WRITE_ID_EVENT", "ABORT_TXN", "COMMIT_TXN"}
OF_ITSELF = ("table", "partition 1", "partition 2", "table_statistics")


TYPES = {
    ev.PrimaryKeyAdded: "ADD_PRIMARYKEY",
    ev.UniqueConstraintAdded: "ADD_UNIQUECONSTRAINT",
    ev.NotNullConstraintAdded: "ADD_NOTNULLCONSTRAINT",
    ev.DefaultConstraintAdded: "ADD_DEFAULTCONSTRAINT",
    ev.CheckConstraintAdded: "ADD_CHECKCONSTRAINT",
    ev.TableColumnStatisticsUpdated: "UPDATE_TBL_COL_STAT_EVENT",
    ev.TableColumnStatisticsDeleted: "DELETE_TBL_COL_STAT_EVENT",
}
"""Of events whose facts are told of rows without their type."""


def row(event_type: str, table: TableName, *, keeps_name: bool = False) -> EventRow:
    return EventRow(event_type, *table, "{}", "json-0.2", keeps_name)


def test_names_that_a_client_makes_up_are_not_kept() -> None:
    """They may be as long as a message."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        numbers = {table_number(TableName("hive", "d", f"{one}".ljust(100_000, "x"))) for one in range(100)}
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()
    assert len(numbers) == 100


@pytest.mark.parametrize("fact", CASES)
def test_a_scope_covers_what_the_event_may_change(fact: Fact) -> None:
    """According to what Hive's metastore does to its tables, not to the rules of the cache."""
    if fact.label == OF_TWO_TABLES:
        pytest.skip("servers of this project log an event for each table, and Hive takes no part in leases")
    event = fact.event
    keeps_name = isinstance(event, ev.TableAltered) and event.old_name is not None and event.old_name == event.new_name
    header = event.header
    event_type = TYPES.get(type(event), header.event_type)
    scope = scope_of([EventRow(event_type, *header[3:], "{}", "json-0.2", keeps_name)])
    if event_type in OF_TRANSACTIONS:
        # What is invalidated, and the tag, determine which lists memory answers, not the answers (`test_transactions`).
        # A
        # commit may set a parameter.
        assert scope == NOTHING if event_type != "COMMIT_TXN" else scope is EVERYTHING
        assert not fact.changes or event_type == "COMMIT_TXN"
        return
    if scope is EVERYTHING:
        assert header.table is None or event_type in WIDE
        return
    changed = fact.changes | fact.may_go
    for table in TABLES:
        if table_number(table) not in scope:
            assert not {(table, part) for part in OF_ITSELF} & changed, table
            assert fact.tag is None


def test_most_writes_touch_one_table() -> None:
    of_partitions = [row("ADD_PARTITION", T), row("UPDATE_PART_COL_STAT_EVENT", T)]
    assert scope_of([*of_partitions, row("ALTER_TABLE", T, keeps_name=True)]) == {table_number(T)}
    assert scope_of([*of_partitions, row("DROP_PARTITION", U)]) == {table_number(T), table_number(U)}


@pytest.mark.parametrize(
    "wide",
    [
        row("ALTER_TABLE", U),
        row("ADD_FOREIGNKEY", U),
        row("COMMIT_TXN", U),
        row("ALTER_DATABASE", U),
        row("A_NEW_KIND", U),
        EventRow("INSERT", "hive", "d", None, "{}", "json-0.2"),
        EventRow("INSERT", None, "d", "t", "{}", "json-0.2"),
    ],
    ids=lambda event: event.event_type,
)
def test_one_wide_event_makes_the_write_one_of_everything(wide: EventRow) -> None:
    assert scope_of([row("INSERT", T), wide]) is EVERYTHING
    assert scope_of([wide, row("INSERT", T)]) is EVERYTHING


def test_transactions_add_nothing_to_a_write() -> None:
    beside = [row(kind, U) for kind in sorted(OF_TRANSACTIONS - {"COMMIT_TXN"})]
    beside.append(MessageBuilder().build_commit_transaction(1, keeps_tables=True))
    assert scope_of(beside) == NOTHING
    assert scope_of([*beside, row("COMMIT_COMPACTION_EVENT", T)]) == {table_number(T)}
    assert scope_of([*beside, row("ALTER_DATABASE", T)]) is EVERYTHING
    assert scope_of([*beside, MessageBuilder().build_commit_transaction(1)]) is EVERYTHING


def test_a_write_of_many_tables_is_one_of_everything() -> None:
    tables = [table_name("hive", "d", f"t{number}") for number in range(MAX_TABLES + 1)]
    assert scope_of(row("INSERT", one) for one in tables) is EVERYTHING
    assert len(scope_of(row("INSERT", one) for one in tables[1:]) or ()) == MAX_TABLES
    assert scope_of([]) is EVERYTHING


@given(st.lists(st.tuples(*[st.text(max_size=3)] * 3), min_size=2, max_size=2, unique=True))
def test_numbers_tell_names_apart(names: list[tuple[str, str, str]]) -> None:
    first, second = (TableName(*one) for one in names)
    assert table_number(first) == table_number(TableName(*first)) < 2**64
    if "\0" not in "".join((*first, *second)):
        assert table_number(first) != table_number(second)


@pytest.fixture
def member(sqlite_database: Database, tmp_path: Path) -> Iterator[Member]:
    one = Member(sqlite_database.url.render_as_string(hide_password=False), tmp_path / "warehouse")
    store = one.server.store
    store.writes.databases.create_database(ttypes.Database(name="d", catalogName="hive", locationUri="file:/tmp/d"))
    for name in (T, U):
        store.writes.tables.create_table(world.table("d", name.table, (("p", "string"),)))
    yield one
    one.close()


def test_what_real_writes_touch(member: Member) -> None:
    """The events are those that the store logs."""
    seen: list[object] = []
    tables, partitions = member.server.store.writes.tables, member.server.store.writes.partitions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Write, "committed", lambda self, *_: (seen.append(self.scope), committed(self, *_)))
        stored = member.server.store.reads.tables.get_table(T)
        tables.alter_table(T, world.table("d", "t", (("p", "string"),), version="2"))
        partitions.add_partitions(T, [world.partition(stored, ("1",))])
        tables.alter_table(T, world.table("d", "v", (("p", "string"),)))
        tables.drop_table(V, delete_data=False)
        tables.create_table(world.table("d", "t"))
    of_t, of_v = frozenset({table_number(T)}), frozenset({table_number(V)})
    assert seen == [of_t, of_t, EVERYTHING, of_v, of_t]


committed = Write.committed


def test_tables_that_are_not_written_are_answered_by_lease(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """During a write, and until memory has applied it."""
    store, freshness = member.server.store, member.freshness
    for name in (T, U):
        store.reads.tables.get_table(name)
    member.wait_for_lease()
    seen = []

    def look(self: Write, *_: object) -> None:
        checks = member.server.cache.check.checks
        store.reads.tables.get_table(U)
        by_lease = member.server.cache.check.checks == checks
        seen.append((by_lease, freshness.holds_lease(U), freshness.holds_lease(T), freshness.holds_lease()))

    monkeypatch.setattr(Write, "before_commit", look)
    monkeypatch.setattr(member, "catch_up", lambda position, timeout_s: False)
    run_write(member.server.database, lambda transaction: transaction.append_event(row("INSERT", T)))
    assert seen == [(True, True, False, False)]
    assert freshness.holds_lease(U) and not freshness.holds_lease(T) and not freshness.holds_lease()
    assert not member.state.view().intents and member.state.view().answers_other_tables
    monkeypatch.undo()
    member.state.changed.set()
    wait_until(lambda: freshness.holds_lease() and freshness.holds_lease(T))


def test_lists_and_constraints_wait_for_every_write(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alter changes lists of tables, and the foreign keys of others."""
    reads = member.server.store.reads
    requested = {
        "table": lambda: reads.tables.get_table(U),
        "names": lambda: reads.tables.get_table_names(U.in_database),
        "constraints": lambda: reads.constraints.get_table_constraints(U),
    }
    for ask in requested.values():
        ask()
    member.wait_for_lease()
    found = {}

    def look(self: Write, *_: object) -> None:
        for label, ask in requested.items():
            checks = member.server.cache.check.checks
            ask()
            found[label] = member.server.cache.check.checks - checks

    monkeypatch.setattr(Write, "before_commit", look)
    run_write(
        member.server.database, lambda transaction: transaction.append_event(row("ALTER_TABLE", T, keeps_name=True))
    )
    assert found == {"table": 0, "names": 1, "constraints": 1}
