"""Transactions beside leases: they change no answers, so no member is notified and no write waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.cache.reads.reading import HEAL_AFTER_READS, Reading
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.write_id_tags import TransactionTracker
from hms_cache.lease import scopes
from hms_cache.lease.state import LeaseState
from hms_cache.lease.unannounced import UnannouncedWrites
from hms_cache.lease.writes import LeaseWrites
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.event_types import ONLY_OF_TRANSACTIONS
from hms_cache.notifications.events import EventHeader, TransactionWriteId
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.members import members
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import CommitTxnKeyValue
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from tests.cache import test_write_ids as write_ids
from tests.cache.test_write_ids import list_of, make
from tests.databases import closing
from tests.lease.member import Member, wait_until
from tests.lease.test_guards import makes
from tests.txn.client import TxnClient

T, COUNTED = (TableName("hive", "d", name) for name in ("t", "counted"))
OFFSET = "_meta.offset"


@pytest.fixture
def pair(sqlite_database: Database, tmp_path: Path) -> Iterator[tuple[Member, Member]]:
    """A writer and a reader, which know each other and hold leases; both have the transactional table d.t. There is
    also d.counted, of which a commit may set a parameter."""
    with makes(sqlite_database.url.render_as_string(hide_password=False), tmp_path) as one:
        writer, reader = one(), one()
        writer.wait_for(reader)
        reader.wait_for(writer)
        make(writer.server)
        make(writer.server, "counted", **{OFFSET: "0"})
        write_ids.write(writer.server, "old")
        for member in (writer, reader):
            wait_until(lambda member=member: member.freshness.holds_lease() and not member.state.view().intents)
            member.freshness.ensure_by_check()
            write_ids.read(member.server, list_of(member.server))
        yield writer, reader


def read(member: Member, valid: str | None) -> tuple[str, Reason, int]:
    """The table's version, the reason for the answer, and how often the end of the log was read."""
    checks = member.server.cache.check.checks
    found, reason = write_ids.read(member.server, valid)
    return found.parameters["version"], reason, member.server.cache.check.checks - checks


def test_nobody_is_told_of_a_transaction_and_leases_stay(
    pair: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the writer's own nor the other's; not while it commits, nor before memory has its events."""
    writer, reader = pair
    told: list[object] = []
    begin, writing = LeaseWrites.begin, LeaseState.writing
    monkeypatch.setattr(LeaseWrites, "begin", lambda *given: told.append(given) or begin(*given))
    monkeypatch.setattr(LeaseState, "writing", lambda *given: told.append(given) or writing(*given))
    monkeypatch.setattr(members, "queries_under_lock", lambda *given: told.append(given))
    before = read(reader, list_of(writer.server))
    client, position = writer.server.transactions, reader.position()
    first, second = client.open_many(2)
    client.allocate([first, second])
    client.commit(first)
    client.abort(second)
    assert told == []
    assert reader.server.log.head().last_event_id == position + 4
    for member in pair:
        assert member.freshness.holds_lease() and member.position() == position
    assert before[1:] == (Reason.HIT, 0) and read(reader, None) == ("old", Reason.HIT, 0)


def test_a_list_of_a_transaction_that_memory_does_not_have_is_asked_for_once(pair: tuple[Member, Member]) -> None:
    """The check updates the tag, and the table remains."""
    writer, reader = pair
    client = writer.server.transactions
    older = list_of(writer.server)
    for _ in range(2 * HEAL_AFTER_READS):
        txn_id = client.open()
        client.allocate([txn_id])
        client.commit(txn_id)
        newer = list_of(writer.server)
        assert read(reader, older) == ("old", Reason.HIT, 0)
        assert read(reader, newer) == ("old", Reason.HIT, 1)
        assert read(reader, newer) == ("old", Reason.HIT, 0)
        older = newer
    assert reader.position() == reader.server.log.head().last_event_id
    assert reader.freshness.holds_lease()


def test_what_a_transaction_wrote_is_seen_by_its_list(pair: tuple[Member, Member]) -> None:
    writer, reader = pair
    write_ids.write(writer.server, "new")
    assert read(reader, list_of(writer.server))[0] == "new"
    assert read(writer, list_of(writer.server))[0] == "new"


def test_events_of_transactions_are_no_strangers(pair: tuple[Member, Member]) -> None:
    """A member does not treat them as another metastore's when memory reaches them; it does so for other events."""
    writer, reader = pair
    client = writer.server.transactions
    for _ in range(3):
        client.commit(client.open())
        assert reader.catch_up(reader.server.log.head().last_event_id, 5.0)
        reader.state.moved()
        assert not reader.state.alarm_reason and reader.freshness.holds_lease()
    write_ids.write(writer.server, "new")
    wait_until(reader.freshness.holds_lease)
    assert not reader.state.alarm_reason


def test_without_the_exemption_they_would_be(pair: tuple[Member, Member]) -> None:
    """The mutant of the previous test."""
    writer, reader = pair
    reader.shared.transactions_listener = None
    client = writer.server.transactions
    client.commit(client.open())
    assert reader.catch_up(reader.server.log.head().last_event_id, 5.0)
    reader.state.moved()
    assert reader.state.alarm_reason


def offset_of_the_reader(pair: tuple[Member, Member]) -> str:
    """The parameter set by a commit, as the reader has it before it is notified of the end of the write."""
    writer, reader = pair
    table_id = int(writer.server.objects.reads.tables.get_table(COUNTED).id)
    assert reader.server.store.reads.tables.get_table(COUNTED).parameters[OFFSET] == "0"
    reader.wait_for_lease()
    send = writer.membership.transport.send
    writer.membership.transport.send = lambda member, message: (  # type: ignore[method-assign]
        send(member, message) if message[0] == "writing" else None
    )
    client = writer.server.transactions
    txn_id = client.open()
    client.commit(txn_id, keyValue=CommitTxnKeyValue(tableId=table_id, key=OFFSET, value="7"))
    return str(reader.server.store.reads.tables.get_table(COUNTED).parameters[OFFSET])


def test_a_commit_that_sets_a_parameter_is_a_write_like_others(pair: tuple[Member, Member]) -> None:
    assert offset_of_the_reader(pair) == "7"


def test_a_commit_that_is_taken_for_nothing_is_noticed(
    pair: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant of the previous test."""
    monkeypatch.setattr(scopes, "_changes_nothing", lambda event: event.event_type in ONLY_OF_TRANSACTIONS)
    assert offset_of_the_reader(pair) == "0"


def test_an_uncovered_list_is_not_answered_whatever_the_lease_says(
    pair: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If memory cannot catch up with the log, the database answers."""
    writer, reader = pair
    client = writer.server.transactions
    txn_id = client.open()
    client.allocate([txn_id])
    client.commit(txn_id)
    monkeypatch.setattr(Reading, "_is_up_to_date", lambda self: False)
    assert read(reader, list_of(writer.server)) == ("old", Reason.STALE_WRITE_IDS, 0)


def test_a_server_under_check_leaves_leases_alone_with_its_transactions(
    pair: tuple[Member, Member], sqlite_database: Database
) -> None:
    _, reader = pair
    with closing(Database(sqlite_database.url.render_as_string(hide_password=False))) as database:
        database.write_guard = guard = UnannouncedWrites(database)
        client = TxnClient(TxnStore(database, MessageBuilder()), database)
        client.commit(client.open())
        assert guard.has_members and guard.revocations.count == 0 and guard.waits == 0
    assert reader.catch_up(reader.server.log.head().last_event_id, 5.0)
    reader.state.moved()
    assert reader.freshness.holds_lease() and not reader.state.alarm_reason


# Tags: lists that a memory without some of the last events answers must have the same answer with them


@given(st.lists(st.tuples(st.sampled_from(("open", "allocate", "commit", "abort")), st.integers(0, 3)), max_size=14))
def test_a_tag_that_lacks_events_covers_less(steps: list[tuple[str, int]]) -> None:
    """For each list that a session ever got. And nothing that it covers was open then."""
    log = _Log()
    for kind, number in steps:
        log.step(kind, number)
    tags = log.tags()
    for request, committed in log.lists:
        covering = [number for number, tag in enumerate(tags) if tag.covers(request)]
        assert covering == list(range(covering[0], len(tags))) if covering else True
        assert all(committed <= log.committed_at[number] for number in covering)


class _Log:
    """Transactions on one table, their events, and the list that a session would get after each."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.open: dict[int, list[int]] = {}
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.next_txn, self.next_id = 1, 1
        self.lists: list[tuple[ValidWriteIdList, frozenset[int]]] = []
        self.committed_at: list[frozenset[int]] = []
        self._note()

    def step(self, kind: str, number: int) -> None:
        chosen = sorted(self.open)[number % len(self.open)] if self.open else None
        header = EventHeader(len(self.events) + 1, 0, kind, *(T if kind == "allocate" else (None, None, None)))
        if kind == "open":
            self.open[self.next_txn] = []
            self.events.append(ev.TransactionsOpened(header, range(self.next_txn, self.next_txn + 1)))
            self.next_txn += 1
        elif chosen is None:
            return
        elif kind == "allocate":
            self.open[chosen].append(self.next_id)
            self.events.append(ev.WriteIdsAllocated(header, (TransactionWriteId(chosen, self.next_id),)))
            self.next_id += 1
        elif kind == "commit":
            self.committed.update(self.open.pop(chosen))
            self.events.append(ev.TransactionCommitted(header, chosen))
        else:
            self.aborted.update(self.open.pop(chosen))
            self.events.append(ev.TransactionAborted(header, chosen))
        self._note()

    def _note(self) -> None:
        still_open = [write_id for ids in self.open.values() for write_id in ids]
        found = ValidWriteIdList.of("d.t", self.next_id - 1, still_open, self.aborted)
        self.lists.append((found, frozenset(self.committed)))
        self.committed_at.append(frozenset(self.committed))

    def tags(self) -> list[ValidWriteIdList]:
        """The tag of an entry that was loaded at the beginning, after each event."""
        tracker, tag = TransactionTracker(), self.lists[0][0]
        tags = [tag]
        for event in self.events:
            change = tracker.apply(event, {})
            assert not change.void_all and not change.unknown
            for raised in change.raised.values():
                tag = raised(tag)
            tags.append(tag)
        return tags
