"""How writes and servers end: a COMMIT of unknown outcome, another database server, and a set of many members."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from hms_cache.lease import writes as lease_writes
from hms_cache.store.engine import work_units
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.members import members
from tests.lease.member import LENGTH_S, MAX_WAIT_S, tells_of_another_server, wait_until
from tests.lease.test_guards import Make, make, write
from tests.lease.test_waits import writing_all_the_time

__all__ = ["make"]

pytestmark = [pytest.mark.soak, pytest.mark.mariadb]

ON_MARIADB = pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)


def lost_after_the_commit(transaction: Any) -> None:
    """It is committed, but the reply is lost."""
    transaction.connection.commit()
    raise CommitOutcomeUnknown("the answer did not come", connection_lost=True)


def lost_before_the_commit(transaction: Any) -> None:
    """The connection is lost, with the transaction."""
    transaction.connection.rollback()
    raise CommitOutcomeUnknown("the answer did not come", connection_lost=True)


@ON_MARIADB
@pytest.mark.parametrize("fate", [lost_after_the_commit, lost_before_the_commit])
def test_a_commit_of_unknown_outcome_is_settled_and_seen(
    fate: Callable[[Any], None], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = make(), make()
    writer.wait_for(reader)
    writer.wait_for_lease()
    reader.wait_for_lease()
    epoch = writer.state.epoch
    before = reader.server.log.head().last_event_id
    monkeypatch.setattr(work_units, "_commit", fate)
    with pytest.raises(CommitOutcomeUnknown):
        write(writer)
    assert not writer.is_wrong() and not reader.is_wrong()
    monkeypatch.undo()
    # Both answer by lease again, and neither has missed anything.
    wait_until(lambda: writer.state.epoch not in (None, epoch) and writer.freshness.holds_lease())
    reader.wait_for_lease()
    assert not writer.is_wrong() and not reader.is_wrong()
    assert reader.server.log.head().last_event_id == before + (fate is lost_after_the_commit)
    assert reader.state.alarm_reason == writer.state.alarm_reason == ""
    write(writer)
    assert not reader.is_wrong()


@ON_MARIADB
def test_what_may_still_be_committed_is_not_settled(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database still has the transaction, and its locked row, when the writer has given it up."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    reader.wait_for_lease()
    requested, go_on, errors = threading.Event(), threading.Event(), []

    def hang(transaction: Any) -> None:
        # The session continues in a thread of its own; the write is over for its client.
        transaction.announced.outcome_unknown()
        requested.set()
        assert go_on.wait(MAX_WAIT_S)
        transaction.connection.commit()

    monkeypatch.setattr(work_units, "_commit", hang)

    def write_and_note() -> None:
        try:
            write(writer)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=write_and_note, daemon=True)
    thread.start()
    assert requested.wait(MAX_WAIT_S)
    epoch = writer.state.epoch
    renewals_s = LENGTH_S
    assert not threading.Event().wait(renewals_s)  # enough time to settle it, if it were not locked
    assert writer.state.view().intents == 1 and reader.state.view().intents == 1
    assert not writer.freshness.holds_lease() and not reader.freshness.holds_lease()
    go_on.set()
    thread.join(MAX_WAIT_S)
    assert not errors
    wait_until(lambda: writer.state.epoch not in (None, epoch) and not writer.state.view().intents)
    assert not writer.is_wrong() and not reader.is_wrong()


def is_missed_after_a_failover(make: Make, monkeypatch: pytest.MonkeyPatch, *, has_written: bool = True) -> bool:
    """The new primary lacks the row of a member that still holds a lease of the old one."""
    writer, reader = make(), make()
    writer.wait_for(reader)
    reader.wait_for_lease()
    if has_written:
        write(writer)
        reader.wait_for_lease()
    reader.falls_silent()
    wait_until(reader.freshness.holds_lease)
    members.leave(writer.membership._database, reader.membership.member)
    assert writer.freshness.ensure(), "memory has nothing to follow, and does not find out first"
    tells_of_another_server(writer.server.database)
    write(writer)
    return reader.is_wrong()


@ON_MARIADB
@pytest.mark.parametrize("has_written", [True, False])
def test_on_another_database_server_a_write_waits_for_the_leases_of_before(
    has_written: bool, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_missed_after_a_failover(make, monkeypatch, has_written=has_written)


@pytest.mark.long
@ON_MARIADB
def test_a_writer_that_does_not_look_where_it_writes_is_noticed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_writes.LeaseWrites, "_check_history", lambda *_: None)
    assert is_missed_after_a_failover(make, monkeypatch)


@pytest.mark.long
@ON_MARIADB
def test_eight_members_that_all_write_miss_nothing(make: Make) -> None:
    of_set = [make() for _ in range(8)]
    for one in of_set:
        one.wait_for_lease()
    wait_until(lambda: all(len(one.membership.transport.connected()) == 7 for one in of_set))
    with ExitStack() as stack:
        took = [stack.enter_context(writing_all_the_time(one, 1)) for one in of_set]

        def is_enough() -> bool:
            assert not any(one.is_wrong() for one in of_set)
            return all(len(of_one) >= 20 for of_one in took)

        wait_until(is_enough)
    for one in of_set:
        one.wait_for_lease()
        assert not one.is_wrong() and one.state.alarm_reason == ""
