"""What a server does for writes if nobody reads there: its memory follows later, and it contacts each member once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hms_cache.lease.scopes import EVERYTHING
from hms_cache.lease.state import LeaseState
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache import world
from tests.lease.member import MAX_WAIT_S, Member
from tests.lease.test_guards import makes, write

T = TableName("hive", "d", "t")


@pytest.fixture
def member(sqlite_database: Database, tmp_path: Path) -> Iterator[Member]:
    one = Member(sqlite_database.url.render_as_string(hide_password=False), tmp_path / "warehouse")
    store = one.server.store
    store.writes.databases.create_database(ttypes.Database(name="d", catalogName="hive", locationUri="file:/tmp/d"))
    store.writes.tables.create_table(world.table("d", "t", version="0"))
    store.reads.tables.get_table(T)
    yield one
    one.close()


@pytest.fixture
def alone(member: Member) -> Member:
    """Without its thread: the test calls what the thread would do."""
    member.wait_for_lease()
    member.membership._stopped.set()
    member.state.changed.set()
    member.membership._thread.join(MAX_WAIT_S)
    return member


@pytest.mark.parametrize("is_read", [False, True])
def test_the_thread_is_woken_for_a_write_only_where_memory_is_read(is_read: bool) -> None:
    state = LeaseState("a", 10.0, lambda: 1.0, lambda: 0)
    state.joining(1)
    state.joined(1, 0)
    for end in (lambda: state.written(("b", 1), 1, 1), lambda: state.abandoned(("b", 1))):
        state.writing(("b", 1), EVERYTHING)
        state.is_read = is_read
        state.changed.clear()
        end()
        assert state.changed.is_set() is is_read


def test_memory_that_is_not_read_follows_at_renewals_only(alone: Member) -> None:
    alone.state.is_read = False
    before = alone.position()
    write(alone)
    alone.membership._catch_up(is_due=False)
    assert alone.position() == before and alone.state.catch_up_to == before + 1
    alone.membership._catch_up(is_due=True)
    assert alone.position() == before + 1 and alone.state.catch_up_to is None


def test_memory_that_is_read_follows_each_write(alone: Member) -> None:
    for _ in range(3):
        alone.freshness.holds_lease(T)
        before = alone.position()
        write(alone)
        alone.membership._catch_up(is_due=False)
        assert alone.position() == before + 1


def test_the_first_read_brings_memory_up_and_the_lease_counts_again(alone: Member) -> None:
    """The thread has no part in it. It is a lease of a member that is not renewed, as long as it lasts."""
    state, check = alone.state, alone.server.cache.check
    state.now_s = lambda: state._lease_until_s - 1.0  # it lasts as long as the test
    write(alone)
    assert not alone.freshness.holds_lease()
    checks = check.checks
    assert alone.freshness.ensure()
    assert check.checks == checks + 1 and alone.freshness.holds_lease()
    assert alone.freshness.ensure()
    assert check.checks == checks + 1


def test_a_check_on_the_loop_that_finds_memory_current_tells_the_lease(alone: Member) -> None:
    """The poller was faster than both."""
    state = alone.state
    state.now_s = lambda: state._lease_until_s - 1.0
    write(alone)
    alone.server.poller.step()
    assert not alone.freshness.holds_lease()
    assert alone.freshness.accept(alone.server.cache.check.check())
    assert alone.freshness.holds_lease()


def test_members_are_met_when_they_change(sqlite_database: Database, tmp_path: Path) -> None:
    with makes(sqlite_database.url.render_as_string(hide_password=False), tmp_path) as one:
        writer, other = one(), one()
        writer.wait_for(other)
        met: list[list[str]] = []
        meet = writer.membership.transport.connect_to

        def note(addresses: Mapping[str, str]) -> None:
            met.append(sorted(addresses))
            meet(addresses)

        writer.membership.transport.connect_to = note  # type: ignore[method-assign]
        for _ in range(3):
            write(writer)
        assert met == []
        third = one()
        write(writer)
        writer.wait_for(third)
        assert met == [sorted((other.membership.member, third.membership.member))]
