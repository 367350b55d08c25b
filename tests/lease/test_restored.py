"""The database has changed: an older dump was restored while servers ran, or it lacks what members need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update

from hms_cache.lease.unannounced import UnannouncedWrites
from hms_cache.store.engine.database import Database
from hms_cache.store.members import members
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE
from hms_cache.store.schema.members import HMS_CACHE_MEMBERS
from tests.consistency.proxy import proxy_to
from tests.database_kinds import ALL_KINDS
from tests.databases import closing
from tests.lease.member import Member, wait_until
from tests.lease.runs import free_port
from tests.lease.test_guards import Make, make, write
from tests.lease.test_unannounced import log_event

__all__ = ["make"]

pytestmark = [pytest.mark.soak]

ON_MARIADB = pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)


@pytest.fixture
def bystander(database_url: str, initialize: None) -> Iterator[Database]:
    """A server under `cache.exactness = check`."""
    with closing(Database(database_url)) as database:
        database.write_guard = UnannouncedWrites(database)
        yield database


def go_back(member: Member, event_id: int) -> None:
    """Restores, by SQL, a dump made after this event, while all connections are open."""
    with member.server.database.writing() as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID > event_id))
        connection.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=event_id + 1))
        connection.commit()


def answers_of_another_history(member: Member) -> bool:
    """Whether it answers by lease from a lost log."""
    held = member.freshness.holds_lease()
    return held and member.shared.position > member.server.log.head().last_event_id


def write_here(of: Member, other: Member) -> None:
    """The write of a server is visible on it (P4)."""
    write(of)


def write_there(of: Member, other: Member) -> None:
    """And on each other one."""
    write(other)


def join_again(of: Member, other: Member) -> None:
    """It is notified of no write: it finds out when it joins."""
    of.state.lost()
    wait_until(lambda: of.state.epoch is not None)
    wait_until(lambda: of.freshness.holds_lease() or of.shared.generation > 1)


def lose_the_end(of: Member, other: Member) -> None:
    """It is notified that a write begins, but not of its end."""
    send = other.membership.transport.send

    def lose(member: str, message: Any) -> None:
        if message[0] == "writing":
            send(member, message)

    other.membership.transport.send = lose  # type: ignore[method-assign]
    write(other)
    other.membership.transport.send = send  # type: ignore[method-assign]
    wait_until(lambda: not of.state.view().intents)


@pytest.mark.mariadb
@ON_MARIADB
@pytest.mark.parametrize("find_out", [write_here, write_there, join_again, lose_the_end])
def test_nothing_is_answered_of_a_log_that_is_gone(find_out: Callable[[Member, Member], None], make: Make) -> None:
    """Event ids start again below the position of memory, so none is above it for a while (P7)."""
    one, other = make(), make()
    one.wait_for(other)
    other.wait_for(one)
    for _ in range(6):
        write(other)
    for member in (one, other):
        assert member.freshness.ensure()
        member.wait_for_lease()
    go_back(one, 2)
    find_out(one, other)
    assert not answers_of_another_history(one)
    wait_until(one.freshness.ensure)
    wait_until(lambda: one.freshness.holds_lease())
    assert one.shared.position == one.server.log.head().last_event_id < 6
    assert one.state.alarm_reason == ""


@pytest.mark.mariadb
@ON_MARIADB
def test_a_member_that_joins_where_the_log_has_come_to_the_same_event_looks_first(make: Make) -> None:
    """It was cut off while the others wrote, so it was not notified of any of the events whose ids its memory has (P7).
    Before, it answered by lease from the state before the restore."""
    one, other = make(), make()
    one.wait_for(other)
    other.wait_for(one)
    for _ in range(6):
        write(other)
    for member in (one, other):
        assert member.freshness.ensure()
        member.wait_for_lease()
    generation = one.shared.generation
    hear = one.membership.transport._on_message
    one.membership.transport._on_message = lambda *_: None
    go_back(one, 2)
    while other.server.log.head().last_event_id < one.position():
        write(other)
    one.membership.transport._on_message = hear
    one.wait_for_lease()
    assert one.shared.generation > generation
    assert one.state.alarm_reason == ""


@pytest.mark.mariadb
@pytest.mark.postgresql
@pytest.mark.parametrize("database_kind", ALL_KINDS, indirect=True)
def test_a_dump_without_the_table_of_members_stops_no_write(make: Make, bystander: Database) -> None:
    """On servers that read by lease, and on those that do not but have seen the table."""
    member = make()
    member.wait_for_lease()
    log_event(bystander)
    wait_until(lambda: member.state.epoch is not None)
    epoch = member.state.epoch
    with member.server.database.writing() as connection:
        HMS_CACHE_MEMBERS.drop(connection)
        connection.commit()
    wait_until(lambda: member.state.epoch not in (None, epoch))
    write(member)
    log_event(bystander)
    write(member)
    with member.server.database.writing() as connection:
        HMS_CACHE_MEMBERS.drop(connection)
        connection.commit()
    guard = bystander.write_guard
    assert isinstance(guard, UnannouncedWrites)
    guard._checked_s = float("-inf")  # as after a second
    log_event(bystander)
    wait_until(lambda: member.state.epoch is not None and members.read_presence(bystander).has_members)
    assert not member.is_wrong()


@pytest.mark.mariadb
@ON_MARIADB
def test_leases_whose_rows_are_gone_are_waited_for(make: Make) -> None:
    """An older dump has no row of a member that still holds a lease."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    writer.wait_for_lease()
    reader.wait_for_lease()
    reader.falls_silent()
    wait_until(reader.freshness.holds_lease)
    with writer.server.database.writing() as connection:
        connection.execute(delete(HMS_CACHE_MEMBERS))
        connection.commit()
    write(writer)
    assert not reader.is_wrong()


@pytest.mark.mariadb
@pytest.mark.postgresql
@pytest.mark.parametrize("database_kind", ALL_KINDS, indirect=True)
def test_a_set_begins_on_a_database_that_never_logged_an_event(make: Make, bystander: Database) -> None:
    """The first write creates the row of NOTIFICATION_SEQUENCE, and waits until its server has joined."""
    with bystander.writing() as connection:
        connection.execute(delete(NOTIFICATION_SEQUENCE))
        connection.commit()
    member = make()
    write(member)
    assert member.server.log.head().last_event_id == 1
    assert not member.is_wrong()


@pytest.mark.mariadb
@ON_MARIADB
def test_a_connection_that_leads_nowhere_costs_one_lease(database_url: str, initialize: None, tmp_path: Path) -> None:
    """Before, the member on its other side lost its lease at each later write, until the end was noticed: a quarter of
    an hour."""
    with ExitStack() as stack:
        port = free_port()
        way = stack.enter_context(proxy_to("127.0.0.1", port))
        writer = Member(database_url, tmp_path / "warehouse")
        stack.callback(writer.close)
        reader = Member(database_url, tmp_path / "warehouse", port=port, address=f"127.0.0.1:{way.port}")
        stack.callback(reader.close)
        writer.wait_for(reader)
        reader.wait_for_lease()
        write(writer)
        way.stall()
        write(writer)
        assert writer.membership.writes.waits == 1
        for _ in range(3):
            reader.wait_for_lease()
            write(writer)
        assert writer.membership.writes.waits == 1
        assert not any("fenced" in text for _, text in writer.membership.reasons)
        assert not reader.is_wrong()
