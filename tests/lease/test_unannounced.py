"""A server under `cache.exactness = check` beside members: reads by lease never miss its writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import literal_column, select

from hms_cache.lease.unannounced import PRESENCE_VALID_S, UnannouncedWrites
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.members import members
from tests.database_kinds import ALL_KINDS
from tests.databases import closing
from tests.lease.member import Member, wait_until
from tests.lease.test_guards import write

pytestmark = [pytest.mark.soak]


@pytest.fixture
def bystander(database_url: str, initialize: None) -> Iterator[Database]:
    with closing(Database(database_url)) as database:
        database.write_guard = UnannouncedWrites(database)
        yield database


@pytest.fixture
def make(database_url: str, initialize: None, tmp_path: Path) -> Iterator[Callable[[float], Member]]:
    with ExitStack() as stack:

        def make_one(trial_s: float) -> Member:
            one = Member(database_url, tmp_path / "warehouse", trial_s)
            stack.callback(one.close)
            return one

        yield make_one


def log_event(database: Database, meanwhile: Callable[[], object] = lambda: None) -> None:
    """One event; something else happens during the write."""

    def work(transaction: WriteTransaction) -> None:
        transaction.append_event(EventRow("CREATE_DATABASE", "hive", "not_there", None, "{}", "json-0.2"))
        meanwhile()

    run_write(database, work)


def guard_of(database: Database) -> UnannouncedWrites:
    assert isinstance(database.write_guard, UnannouncedWrites)
    return database.write_guard


@pytest.mark.parametrize("database_kind", ALL_KINDS, indirect=True)
def test_reads_by_lease_see_every_write_of_a_server_that_announces_none(
    make: Callable[[float], Member], bystander: Database
) -> None:
    """It writes while the first member joins, until after this has held a lease."""
    log_event(bystander)
    ended = threading.Event()

    def write_all_the_time() -> None:
        while not ended.is_set():
            log_event(bystander)
            ended.wait(0.05)

    writer = threading.Thread(target=write_all_the_time, daemon=True)
    writer.start()
    member = make(PRESENCE_VALID_S)
    wrong, held = [], 0
    try:

        def has_held_a_lease() -> bool:
            nonlocal held
            wrong.append(member.is_wrong())
            held += member.freshness.holds_lease()
            return held >= 5 and guard_of(bystander).revocations.count > 0

        wait_until(has_held_a_lease)
    finally:
        ended.set()
        writer.join(60)
    assert not any(wrong)
    assert guard_of(bystander).has_members
    assert member.state.alarm_reason == ""


def looked_before_the_member_came(make: Callable[[float], Member], bystander: Database, trial_s: float) -> bool:
    """A write that found no members commits when one reads by lease. Returns whether a read missed it."""
    found: list[Member] = []

    def a_member_joins() -> None:
        if not found:
            found.append(make(trial_s))
            found[0].wait_for_lease()

    log_event(bystander, a_member_joins)
    return found[0].is_wrong()


@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_look_is_not_trusted_longer_than_members_wait(make: Callable[[float], Member], bystander: Database) -> None:
    assert not looked_before_the_member_came(make, bystander, PRESENCE_VALID_S)


@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_look_at_a_replica_is_not_trusted(make: Callable[[float], Member], bystander: Database) -> None:
    """A replica may not have the member's row yet, for any time: here it arrives after the check. Before, it did not
    matter which server answered a check."""
    text = bystander.history_text
    with bystander.checking() as connection:
        position, history = text.statement(connection).selected_columns
    told = f"REPLACE(REPLACE({history}, 'read_only:0', 'read_only:1'), 'read_only:OFF', 'read_only:ON')"
    text._statement = select(position, literal_column(told))
    assert members.read_presence(bystander).history.stale_reason is not None
    assert not looked_before_the_member_came(make, bystander, 0.0)


@pytest.mark.long
@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_first_member_that_does_not_wait_is_noticed(make: Callable[[float], Member], bystander: Database) -> None:
    """The mutant of the previous test."""
    assert looked_before_the_member_came(make, bystander, 0.0)


@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_a_second_member_waits_for_nothing_and_a_third_writer_is_announced(
    make: Callable[[float], Member], bystander: Database
) -> None:
    first = make(PRESENCE_VALID_S)
    first.wait_for_lease()
    second = make(3600.0)
    second.wait_for_lease()
    first.wait_for(second)
    second.wait_for(first)
    write(first)
    assert not second.is_wrong() and first.membership.writes.waits == 0


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_without_members_a_write_asks_once_in_a_while(bystander: Database) -> None:
    log_event(bystander)
    before, looked_s = bystander.statements.value(), guard_of(bystander)._checked_s
    log_event(bystander)
    one_write = bystander.statements.value() - before
    before = bystander.statements.value()
    for _ in range(5):
        log_event(bystander)
    if guard_of(bystander)._checked_s == looked_s:  # unless the machine took a second for it
        assert bystander.statements.value() - before == 5 * one_write
    assert not members.has_table(bystander) and guard_of(bystander).waits == 0
