"""A write may take any time: old information about members does not prevent its commit, and members answer by lease
until it writes its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import Connection

from hms_cache.lease.unannounced import PRESENCE_VALID_S, UnannouncedWrites
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database, read_log_end
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.members import members
from hms_cache.store.schema.members import HMS_CACHE_MEMBERS, OWN_METADATA
from tests.databases import closing
from tests.manual_clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(initialized_database_url: str, clock: ManualClock) -> Iterator[Database]:
    with closing(Database(initialized_database_url)) as made:
        made.write_guard = UnannouncedWrites(made, clock.monotonic_s)
        yield made
        with made.writing() as connection:
            OWN_METADATA.drop_all(connection)  # the database is used again
            connection.commit()


@pytest.mark.parametrize("members_are", ["without a table", "none", "without a lease"])
@pytest.mark.parametrize("took_s", [0.0, PRESENCE_VALID_S, 3600.0])
def test_a_write_commits_at_its_first_attempt(
    database: Database, clock: ManualClock, members_are: str, took_s: float
) -> None:
    if members_are != "without a table":
        members.create_table(database)
    if members_are == "without a lease":
        with database.writing() as connection:
            connection.execute(
                HMS_CACHE_MEMBERS.insert().values(
                    MEMBER_ID="m", ADDRESS="nowhere:1", EPOCH=1, LEASE_MS=0, REVOKED=0, FENCED=0
                )
            )
            connection.commit()
    attempts = []

    def work(transaction: WriteTransaction) -> None:
        attempts.append(1)
        transaction.append_event(EventRow("CREATE_DATABASE", "hive", "not_there", None, "{}", "json-0.2"))
        clock.advance(took_s)

    before = read_log_end(database).last_event_id
    for number in (1, 2):
        run_write(database, work)
        assert (len(attempts), read_log_end(database).last_event_id - before) == (number, number)


class CombinedPositions:
    """A guard that records its calls, beside those of the work and the database."""

    is_acknowledged = True

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def ready(self) -> None:
        self._seen.append("ready")

    def announces(self, events: Sequence[EventRow]) -> bool:
        return bool(events)

    def begin(self, events: Sequence[EventRow]) -> CombinedPositions:
        self._seen.append("told")
        return self

    def statements_under_lock(self, _connection: object) -> tuple[()]:
        return ()

    def before_commit(self, connection: Connection, answers: object = None) -> None:
        self._seen.append("before the commit")

    def committed(self, first: int, last: int) -> None:
        self._seen.append(f"committed {last - first + 1}")

    def abandoned(self) -> None:
        self._seen.append("abandoned")

    outcome_unknown = abandoned


def test_members_are_told_when_the_statements_are_done(database: Database) -> None:
    """What a write does before its events changes no answers."""
    seen: list[str] = []
    database.write_guard = CombinedPositions(seen)

    def work(transaction: WriteTransaction) -> None:
        for number in (1, 2):
            transaction.append_event(EventRow("CREATE_DATABASE", "hive", "not_there", None, "{}", "json-0.2"))
            seen.append(f"statement {number}")

    run_write(database, work)
    assert seen == ["ready", "statement 1", "statement 2", "told", "before the commit", "committed 2"]
    del seen[:]

    def failing(transaction: WriteTransaction) -> None:
        work(transaction)
        raise KeyError("after its statements")

    with pytest.raises(KeyError):
        run_write(database, failing)
    assert seen == ["ready", "statement 1", "statement 2"]
