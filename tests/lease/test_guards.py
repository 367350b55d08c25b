"""Each guard of the protocol is met once on a real database, and its removal is detected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hms_cache.lease.revocations import Revocations
from hms_cache.lease.scopes import Scope
from hms_cache.lease.state import LeaseState
from hms_cache.lease.writes import LeaseWrites
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.members import members
from tests.cache.world import Server
from tests.lease.member import MAX_WAIT_S, Member, wait_until

pytestmark = [pytest.mark.soak, pytest.mark.mariadb]

Make = Callable[[], Member]

TRIES = 3


@contextmanager
def makes(url: str, tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def make() -> Member:
            member = Member(url, tmp_path / "warehouse")
            stack.callback(member.close)
            return member

        yield make


@pytest.fixture
def make(database_url: str, initialize: None, tmp_path: Path) -> Iterator[Make]:
    with makes(database_url, tmp_path) as one:
        yield one


def write(member: Member, meanwhile: Callable[[], object] = lambda: None) -> None:
    """One event by this member; something else happens during the write."""

    def work(transaction: WriteTransaction) -> None:
        transaction.append_event(EventRow("CREATE_DATABASE", "hive", "not_there", None, "{}", "json-0.2"))
        meanwhile()

    run_write(member.server.database, work)


def acknowledged_then_committed(make: Make) -> bool:
    """The end of a write is not received: a member that acknowledged must not answer by lease after its commit."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    reader.wait_for_lease()
    send = writer.membership.transport.send

    def lose_the_end(member: str, message: Any) -> None:
        if message[0] == "writing":
            send(member, message)

    writer.membership.transport.send = lose_the_end  # type: ignore[method-assign]
    write(writer)
    return reader.is_wrong()


def silent_member_revoked(make: Make) -> bool:
    """A member does not answer: the write waits for its lease."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    reader.wait_for_lease()
    reader.falls_silent()
    wait_until(reader.freshness.holds_lease)
    write(writer)
    return reader.is_wrong()


def renewal_answered_late(make: Make) -> bool:
    """The database reads a renewal before the revocation, and answers it after the write."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    reader.wait_for_lease()
    read, requested, go_on = members.read_with_history, threading.Event(), threading.Event()

    def read_slowly(database: Database) -> Any:
        found = read(database)
        if database is reader.membership._database:
            requested.set()
            assert go_on.wait(MAX_WAIT_S)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "read_with_history", read_slowly)
        try:
            assert requested.wait(MAX_WAIT_S)
            reader.membership.transport._on_message = lambda *_: None
            write(writer)
            patch.setattr(members, "read_with_history", read)
            # Only the handling of this answer matters: the next renewal would find the revocation.
            reader.membership._stopped.set()
        finally:
            go_on.set()
        reader.membership._thread.join(MAX_WAIT_S)
        return reader.is_wrong()


def joined_during_a_write(make: Make) -> bool:
    """A server joins after a write was announced, and before it takes the lock."""
    writer = make()
    joined: list[Member] = []

    def join() -> None:
        joined.append(make())
        joined[0].wait_for_lease()
        joined[0].falls_silent()
        wait_until(joined[0].freshness.holds_lease)

    begin = LeaseWrites.begin

    def begin_and_join(self: LeaseWrites, events: Any) -> Any:
        found = begin(self, events)
        if not joined:
            join()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LeaseWrites, "begin", begin_and_join)
        write(writer)
    return joined[0].is_wrong()


def acknowledge_before_switching(patch: pytest.MonkeyPatch) -> None:
    """A member acknowledges and continues to answer by lease."""
    writing = LeaseState.writing

    def only_own(self: LeaseState, intent: tuple[str, int], scope: Scope) -> int | None:
        return writing(self, intent, scope) if intent[0] == self.member else self.epoch

    patch.setattr(LeaseState, "writing", only_own)


def no_wait_after_revoking(patch: pytest.MonkeyPatch) -> None:
    """A revoked member is treated as gone immediately."""
    patch.setattr(Revocations, "is_out", lambda self, row: (row.member, row.epoch) in self._seen)


def lease_counted_from_the_reply(patch: pytest.MonkeyPatch) -> None:
    """A lease counts from the time of the answer."""
    renewed = LeaseState.renewed
    patch.setattr(LeaseState, "renewed", lambda self, epoch, _sent_s: renewed(self, epoch, self.now_s()))


def members_read_before_the_lock(patch: pytest.MonkeyPatch) -> None:
    """A write asks the members that existed when it began."""
    begin, gather = LeaseWrites.begin, LeaseWrites.gather
    early: dict[int, Any] = {}

    def begin_with_members(self: LeaseWrites, events: Any) -> Any:
        found = begin(self, events)
        with self._database.checking() as connection:
            early[found.key] = members.read(connection)
        return found

    def gather_of_then(self: LeaseWrites, write: Any, connection: Any, answers: Any = None) -> None:
        under_lock = members.under_lock
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(members, "under_lock", lambda *given: under_lock(*given)._replace(rows=early[write.key]))
            gather(self, write, connection, answers)

    patch.setattr(LeaseWrites, "begin", begin_with_members)
    patch.setattr(LeaseWrites, "gather", gather_of_then)


CASES = [
    (acknowledged_then_committed, acknowledge_before_switching),
    (silent_member_revoked, no_wait_after_revoking),
    (renewal_answered_late, lease_counted_from_the_reply),
    (joined_during_a_write, members_read_before_the_lock),
]


@pytest.mark.parametrize("scenario", [scenario for scenario, _ in CASES], ids=[one.__name__ for one, _ in CASES])
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_no_read_by_lease_misses_a_commit(scenario: Callable[[Make], bool], make: Make) -> None:
    assert not scenario(make)


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "mutant"), CASES, ids=[mutant.__name__ for _, mutant in CASES])
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_mutant_is_noticed(
    scenario: Callable[[Make], bool],
    mutant: Callable[[pytest.MonkeyPatch], None],
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    # On a busy machine, a lease may expire before the critical moment is examined.
    assert any(scenario(make) for _ in range(TRIES))


@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_writer_that_was_fenced_does_not_commit_on_old_acknowledgements(make: Make) -> None:
    """A member that does not receive the end of a write fences its writer; the write runs again, after a new join."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    attempts: list[int | None] = []

    def lose_membership() -> None:
        attempts.append(writer.state.epoch)
        if len(attempts) == 1:
            members.fence(reader.membership._database, writer.membership.member, attempts[0] or 0)

    write(writer, lose_membership)
    assert len(attempts) >= 2 and attempts[-1] not in (None, attempts[0])
    assert not reader.is_wrong() and not writer.is_wrong()


@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_an_event_that_nobody_announced_ends_the_leases(make: Make) -> None:
    reader = make()
    reader.wait_for_lease()
    stranger = Server(
        reader.server.database.url.render_as_string(hide_password=False), reader.server.directory / "stranger"
    )
    try:
        run_write(
            stranger.database,
            lambda transaction: transaction.append_event(
                EventRow("CREATE_DATABASE", "hive", "foreign", None, "{}", "json-0.2")
            ),
        )
    finally:
        with suppress(Exception):
            stranger.close()
    head = reader.server.log.head().last_event_id
    wait_until(lambda: reader.server.poller.ensure_applied(head, 1.0) and bool(reader.state.alarm_reason))
    assert not reader.freshness.holds_lease()
    assert reader.freshness.ensure() and reader.shared.position == head
