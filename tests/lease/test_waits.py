"""How long a write waits, whatever the other members do: a lease, and the value of each bound. No writer starves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from sqlalchemy import select

from hms_cache.lease import membership
from hms_cache.store.engine import work_units
from hms_cache.store.members import members
from hms_cache.store.schema import NOTIFICATION_SEQUENCE
from tests.lease.member import LENGTH_S, MAX_WAIT_S, Member, wait_until
from tests.lease.test_guards import Make, make, write

__all__ = ["make"]

pytestmark = [pytest.mark.soak, pytest.mark.mariadb]


def is_deaf_to(other: Member, writer: Member) -> None:
    """No message of `writer` reaches `other` during the test; all others do."""
    send = writer.membership.transport.send

    def lose(member: str, message: Any) -> None:
        if member != other.membership.member:
            send(member, message)

    writer.membership.transport.send = lose  # type: ignore[method-assign]


@contextmanager
def writing_all_the_time(member: Member, threads: int) -> Iterator[list[float]]:
    """This many clients of this member, each with its next write as soon as the last is done. Returns how long each
    took."""
    ended, took_s = threading.Event(), []
    errors: list[BaseException] = []

    def go() -> None:
        try:
            while not ended.is_set():
                began_s = time.monotonic()
                write(member)
                took_s.append(time.monotonic() - began_s)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=go, daemon=True) for _ in range(threads)]
    for one in started:
        one.start()
    try:
        yield took_s
    finally:
        ended.set()
        for one in started:
            one.join(60)
    assert not errors, errors


@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_member_that_others_cannot_reach_writes_among_them(make: Make) -> None:
    """It loses its lease once, and no write: before, it was revoked again whenever its turn came, until its client gave
    up."""
    a, b = make(), make()
    a.wait_for(b)
    b.wait_for(a)
    b.wait_for_lease()
    is_deaf_to(b, a)
    with writing_all_the_time(a, 4) as of_a:
        for _ in range(20):
            write(b)
    assert len(of_a) >= 4
    assert a.membership.writes.waits <= a.membership.writes.revocations.count <= 2
    assert not a.is_wrong() and not b.is_wrong()


@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_members_that_do_not_hear_each_other_write_without_leases(make: Make) -> None:
    members_of_set = [make() for _ in range(3)]
    for one in members_of_set:
        for other in members_of_set:
            if one is not other:
                one.wait_for(other)
                is_deaf_to(other, one)
    with ExitStack() as stack:
        took = [stack.enter_context(writing_all_the_time(one, 2)) for one in members_of_set]
        wait_until(lambda: all(len(of_one) >= 30 for of_one in took))
    assert not any(one.is_wrong() for one in members_of_set)


@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_member_whose_lease_was_revoked_asks_later_each_time(make: Make) -> None:
    """And holds one again in the end, when it can be reached."""
    a, b = make(), make()
    a.wait_for(b)
    b.wait_for_lease()
    backoffs: list[float] = []
    for _ in range(3):
        epoch = b.state.epoch
        assert epoch is not None
        members.revoke(a.membership._database, b.membership.member, epoch)
        wait_until(lambda: not b.freshness.holds_lease() and b.state.epoch is not None)
        write(b)
        b.wait_for_lease()
        backoffs.append(b.membership._backoff_s)
    assert backoffs == [LENGTH_S, LENGTH_S * 2, LENGTH_S * 4]
    write(a)
    assert a.membership.writes.revocations.count == 0


@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_the_row_of_a_member_that_was_killed_is_deleted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "FORGET_S", 0.5)
    a, b = make(), make()
    a.wait_for(b)
    b.wait_for_lease()
    b.falls_silent()
    write(a)
    waits = a.membership.writes.waits
    write(a)
    assert (waits, a.membership.writes.waits) == (1, 1)
    wait_until(lambda: [row.member for row in a.membership.rows] == [a.membership.member])


@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_write_that_waits_for_a_stopped_one_is_not_fenced(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are notified that it is running, although its server waits to fence the one that is stopped."""
    stopped, writer, other = make(), make(), make()
    for one in (stopped, writer):
        one.wait_for(other)
    commit, go_on, has_lock = work_units._commit, threading.Event(), threading.Event()

    def stop(transaction: Any) -> None:
        if not has_lock.is_set():
            has_lock.set()
            assert go_on.wait(MAX_WAIT_S * 2)
        commit(transaction)

    monkeypatch.setattr(work_units, "_commit", stop)
    threads = [threading.Thread(target=write, args=(stopped,), daemon=True)]
    threads[0].start()
    assert has_lock.wait(MAX_WAIT_S)
    stopped.falls_silent()
    attempts: list[int | None] = []
    threads.append(
        threading.Thread(target=write, args=(writer, lambda: attempts.append(writer.state.epoch)), daemon=True)
    )
    threads[1].start()
    # Long enough for others to give up a write without news, and to wait for a row that remains locked.
    assert not threading.Event().wait(5 * LENGTH_S)
    fenced = {row.member for row in other.membership.rows if row.is_fenced}
    go_on.set()
    for thread in threads:
        thread.join(MAX_WAIT_S)
        assert not thread.is_alive()
    assert writer.membership.member not in fenced
    assert len(attempts) == 1
    assert not other.is_wrong() and not writer.is_wrong()


@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_write_waits_for_its_server_to_join_as_long_as_for_the_lock(make: Make) -> None:
    """A server that is stopped with the lock delays a join by half a minute and more, and with it a write."""
    writer = make()
    wait_until(lambda: writer.state.epoch is not None)
    assert writer.server.database.settings.statement_timeout_s > 60
    done: list[bool] = []

    def write_one() -> None:
        write(writer)
        done.append(True)

    thread = threading.Thread(target=write_one, daemon=True)
    with writer.membership._database.writing() as connection:
        connection.execute(select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID).with_for_update())
        epoch = writer.state.epoch
        writer.state.lost(epoch)
        thread.start()
        assert not threading.Event().wait(32.0)
        assert thread.is_alive() and not done
    thread.join(MAX_WAIT_S)
    assert done and writer.state.epoch not in (None, epoch)
