"""A member whose database moves, is restored unnoticed or refuses its statements, and one that stops in the middle of
joining.

Mostly on SQLite, which has no servers: another one is simulated by its name. The test calls what a member's thread
would do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update

from hms_cache.lease import writes as lease_writes
from hms_cache.lease.state import NEVER
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.members import members
from hms_cache.store.schema.members import HMS_CACHE_MEMBERS
from tests.database_kinds import ALL_KINDS
from tests.databases import closing
from tests.lease.member import LENGTH_S, MAX_WAIT_S, Member, tells_of_another_server, wait_until
from tests.lease.test_guards import Make, makes, write
from tests.lease.test_restored import go_back

T = TableName("hive", "d", "t")


@pytest.fixture
def make_here(sqlite_database: Database, tmp_path: Path) -> Iterator[Make]:
    with makes(sqlite_database.url.render_as_string(hide_password=False), tmp_path) as one:
        yield one


def last_as_long_as_the_test(member: Member) -> None:
    """Its lease, which its thread no longer renews."""
    member.wait_for_lease()
    member.falls_silent()
    state = member.state
    state.now_s = lambda: state._lease_until_s - 1.0
    wait_until(member.freshness.holds_lease)


def lets_time_pass(member: Member, monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """The waits of its writes, except for acknowledgements, end at once by its clock. Yields their total length."""
    passed_s = 0.0
    writes, now_s = member.membership.writes, member.state.now_s
    wait = writes.lock.wait

    def let_it_pass(remaining_s: float) -> bool:
        nonlocal passed_s
        passed_s += remaining_s
        return wait(0)

    member.state.now_s = writes.revocations._now_s = lambda: now_s() + passed_s
    monkeypatch.setattr(writes.lock, "wait", let_it_pass)
    monkeypatch.setattr(lease_writes, "MAX_WAIT_S", 0.0)
    return lambda: passed_s


def test_a_resumed_poller_proves_before_memory_answers_by_lease(make_here: Make) -> None:
    """P7: the log was rewritten while the poller was paused and the lease was renewed. Before, reads by lease showed
    the old state until the poller looked, after others had shown the new one."""
    member = make_here()
    for _ in range(3):
        write(member)
    assert member.freshness.ensure()
    last_as_long_as_the_test(member)
    assert member.freshness.holds_lease() and member.freshness.holds_lease(T)
    member.server.poller.pause()
    go_back(member, member.position() - 1)
    with closing(Database(member.server.url)) as other:
        run_write(
            other,
            lambda transaction: transaction.append_event(
                EventRow("CREATE_DATABASE", "hive", "restored", None, "{}", "json-0.2")
            ),
        )
    assert member.server.log.head().last_event_id == member.position(), "the same id, another event"
    member.server.poller.resume()
    assert not member.freshness.holds_lease() and not member.freshness.holds_lease(T)
    generation = member.shared.generation
    assert not member.freshness.ensure()
    assert member.shared.generation == generation + 1


def test_a_resumed_poller_that_finds_its_log_goes_on_by_lease(make_here: Make) -> None:
    member = make_here()
    write(member)
    assert member.freshness.ensure()
    last_as_long_as_the_test(member)
    member.server.poller.pause()
    member.server.poller.resume()
    assert not member.freshness.holds_lease()
    assert member.freshness.ensure() and member.freshness.holds_lease()


def test_a_server_that_has_not_written_yet_waits_for_leases_of_another_database_server(
    make_here: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one lacks the row of a member that joined just before, and whose lease is of the old one. Before, only
    servers that had written on the old one noticed the change."""
    writer, reader = make_here(), make_here()
    writer.wait_for_lease()
    reader.wait_for_lease()
    assert writer.membership.writes._last_key == 0, "it has not written"
    last_as_long_as_the_test(reader)
    members.leave(writer.membership._database, reader.membership.member)
    look_at_history = writer.membership.writes._check_history
    monkeypatch.setattr(writer.membership.writes, "_check_history", lambda _: look_at_history("another server"))
    waited_s = lets_time_pass(writer, monkeypatch)
    write(writer)
    assert waited_s() >= LENGTH_S * 0.9


def test_leases_are_waited_for_where_the_own_row_is_an_earlier_one(
    make_here: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7: a dump was restored that was made before this server's last join, and before the first join of another one,
    which holds a lease. Before, the existence of its own row meant to a server that those of the others exist, too."""
    writer = make_here()
    writer.wait_for_lease()
    [before] = members.read_with_history(writer.membership._database).rows
    writer.state.lost()
    wait_until(lambda: writer.state.epoch not in (None, before.epoch))
    reader = make_here()
    last_as_long_as_the_test(reader)
    waited_s = lets_time_pass(writer, monkeypatch)
    with writer.server.database.writing() as connection:
        connection.execute(delete(HMS_CACHE_MEMBERS))
        connection.execute(
            insert(HMS_CACHE_MEMBERS).values(
                MEMBER_ID=before.member,
                ADDRESS=before.address,
                EPOCH=before.epoch,
                LEASE_MS=before.lease_ms,
                REVOKED=0,
                FENCED=0,
            )
        )
        connection.commit()
    write(writer)
    assert waited_s() >= LENGTH_S * 0.9


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"], indirect=True)
def test_a_connection_that_was_moved_to_another_database_server_is_noticed(
    database_url: str, initialize: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a proxy, which keeps it open. Before, a server used what the connection had reported when it was new, until
    its poller looked."""
    with makes(database_url, tmp_path) as make:
        writer = make()
        write(writer)
        write(writer)
        assert writer.freshness.ensure(), "memory has nothing to follow, and does not find out first"
        waited_s = lets_time_pass(writer, monkeypatch)
        tells_of_another_server(writer.server.database)
        write(writer)
        assert waited_s() >= LENGTH_S * 0.9


def test_a_revocation_that_the_database_has_lost_counts_no_more(
    make_here: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7: a dump from before the revocation was restored, and the member, which was suspended meanwhile, renews its
    lease in the same epoch. Before, the writer no longer waited for it, whether it answered or not."""
    writer, reader = make_here(), make_here()
    writer.wait_for_lease()
    last_as_long_as_the_test(reader)
    waited_s = lets_time_pass(writer, monkeypatch)

    def of_reader() -> members.MemberRow:
        rows = members.read_with_history(writer.membership._database).rows
        return next(row for row in rows if row.member == reader.membership.member)

    before = of_reader()
    assert before.lease_ms and not before.is_revoked
    write(writer)
    assert of_reader().is_revoked and not of_reader().lease_ms
    with writer.server.database.writing() as connection:
        row = HMS_CACHE_MEMBERS.c.MEMBER_ID == before.member
        connection.execute(update(HMS_CACHE_MEMBERS).where(row).values(REVOKED=0, LEASE_MS=before.lease_ms))
        connection.commit()
    assert of_reader() == before
    first_s = waited_s()
    write(writer)
    assert of_reader().is_revoked and not of_reader().lease_ms
    assert waited_s() - first_s >= LENGTH_S * 0.9
    second_s = waited_s()
    write(writer)
    assert waited_s() == second_s, "its lease is over for good"


@pytest.mark.parametrize("database_kind", ALL_KINDS, indirect=True)
def test_writes_and_joins_on_one_database_server_wait_for_nobody(
    database_url: str, initialize: None, tmp_path: Path
) -> None:
    """A join and a write identify it in the same way, whatever it is: a difference would cost a lease each time."""
    with makes(database_url, tmp_path) as make:
        writer, other = make(), make()
        for one in (writer, other, writer):
            write(one)
            one.state.lost()  # it joins again before its next write
            write(one)
            assert one.membership.writes._not_before_s == NEVER


def test_a_member_that_stops_while_it_is_about_to_join_holds_no_lease(
    make_here: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is deleted: nobody would wait for its lease."""
    member = make_here()
    member.wait_for_lease()
    create_table, joining, go_on = members.create_table, threading.Event(), threading.Event()

    def slowly(database: Database) -> None:
        create_table(database)
        joining.set()
        assert go_on.wait(MAX_WAIT_S)

    monkeypatch.setattr(members, "create_table", slowly)
    member.state.lost()
    assert joining.wait(MAX_WAIT_S)
    lost, has_lost = member.state.lost, threading.Event()

    def lose(epoch: int | None = None) -> None:
        lost(epoch)
        has_lost.set()

    monkeypatch.setattr(member.state, "lost", lose)
    stopping = threading.Thread(target=member.membership.stop, daemon=True)
    stopping.start()
    assert has_lost.wait(MAX_WAIT_S)
    go_on.set()
    stopping.join(MAX_WAIT_S)
    assert not stopping.is_alive() and not member.membership._thread.is_alive()
    assert not member.freshness.holds_lease() and member.state.epoch is None


def test_what_fails_at_each_try_does_not_fill_the_log(make_here: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Five times a second, with a traceback, as without the right to a table."""
    member = make_here()
    member.wait_for_lease()
    tries: list[int] = []

    def fail() -> None:
        tries.append(len(tries))
        raise RuntimeError("no right to the table")

    with caplog.at_level(logging.WARNING, logger="hms_cache.lease"):
        member.membership._step = fail  # type: ignore[method-assign]
        member.state.changed.set()
        wait_until(lambda: len(tries) >= 5)
        lines = [one for one in caplog.records if "is not renewed" in one.getMessage()]
    assert len([one for one in lines if one.exc_info]) == 1
    assert len(lines) < len(tries) - 1
