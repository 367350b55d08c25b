"""Each cell of (poller status × max_staleness): what reads do, on a clock that only the test advances."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_cache.cache.freshness import Freshness
from hms_cache.cache.position_check import CheckResult, PositionCheck
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.call_context import for_write
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, History, LogHead
from hms_cache.notifications.poller_status import PollerStatus
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, table
from tests.manual_clock import ManualClock

INF = float("inf")
HALF_A_SECOND = 0.5
SETTINGS = {"0": 0.0, "500ms": HALF_A_SECOND, "inf": INF}

BRINGS: dict[PollerStatus, Callable[[Server], object]] = {
    PollerStatus.ACTIVE: lambda server: None,
    PollerStatus.PAUSED: lambda server: server.poller.pause(),
    PollerStatus.NEEDS_RESYNC: lambda server: server.poller.resync("for the test"),
    PollerStatus.ERROR: lambda server: server.poller.fail("for the test"),
    PollerStatus.STOPPED: lambda server: server.poller.stop(),
}

STORE = (Reason.BEHIND_EVENTS, "new", 0)
CELLS: dict[tuple[PollerStatus, str, str], tuple[Reason, str, int]] = {
    # (status, max_staleness, what happened) → (reason for the answer, version of the table, position checks)
    (PollerStatus.ACTIVE, "0", "nothing"): (Reason.HIT, "old", 1),
    (PollerStatus.ACTIVE, "0", "written elsewhere"): (Reason.MISS, "new", 1),
    (PollerStatus.ACTIVE, "0", "written here"): (Reason.MISS, "new", 1),
    (PollerStatus.ACTIVE, "0", "written elsewhere, time passed"): (Reason.MISS, "new", 1),
    (PollerStatus.ACTIVE, "500ms", "nothing"): (Reason.HIT, "old", 0),
    (PollerStatus.ACTIVE, "500ms", "written elsewhere"): (Reason.HIT, "old", 0),
    (PollerStatus.ACTIVE, "500ms", "written here"): (Reason.MISS, "new", 1),
    (PollerStatus.ACTIVE, "500ms", "written elsewhere, time passed"): (Reason.MISS, "new", 1),
    (PollerStatus.ACTIVE, "inf", "nothing"): (Reason.HIT, "old", 0),
    (PollerStatus.ACTIVE, "inf", "written elsewhere"): (Reason.HIT, "old", 0),
    (PollerStatus.ACTIVE, "inf", "written here"): (Reason.MISS, "new", 0),
    (PollerStatus.ACTIVE, "inf", "written elsewhere, time passed"): (Reason.HIT, "old", 0),
    # A paused poller verifies no history (P7), so it serves no reads that need a proof.
    (PollerStatus.PAUSED, "inf", "nothing"): (Reason.HIT, "old", 0),
    (PollerStatus.PAUSED, "inf", "written elsewhere"): (Reason.HIT, "old", 0),
    (PollerStatus.PAUSED, "inf", "written elsewhere, time passed"): (Reason.HIT, "old", 0),
}
SITUATIONS = ("nothing", "written elsewhere", "written here", "written elsewhere, time passed")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("status", BRINGS)
def test_what_a_read_does(
    status: PollerStatus, setting: str, situation: str, servers: MakeServer, clock: ManualClock
) -> None:
    server, elsewhere = servers(CacheOptions(max_staleness_s=SETTINGS[setting]), clock), servers(clock=clock)
    create_database(server.store, "d")
    server.store.writes.tables.create_table(table("d", "t", version="old"))
    assert server.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).parameters["version"] == "old"
    clock.advance(0.001)
    server.store.reads.tables.get_table(TableName(CATALOG, "d", "t"))  # verified as current now, at each setting
    BRINGS[status](server)
    assert server.poller.status is status
    server.reasons()
    checks = server.cache.check.checks

    if situation != "nothing":
        writer = server if situation == "written here" else elsewhere
        writer.objects.writes.tables.alter_table(
            TableName(CATALOG, "d", "t"), changed_table(writer.objects, "d", "t", version="new")
        )
    if situation.endswith("time passed"):
        clock.advance(HALF_A_SECOND + 0.001)

    found = server.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).parameters["version"]
    reason, version, requested = CELLS.get((status, setting, situation), STORE)
    assert server.reasons() == [reason]
    assert found == ("old" if situation == "nothing" else version)
    assert server.cache.check.checks - checks == requested


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("status", BRINGS)
def test_what_a_write_reads_is_proven(
    status: PollerStatus, setting: str, servers: MakeServer, clock: ManualClock
) -> None:
    """A paused poller verifies nothing (P7), even if the log ends at the same position."""
    server = servers(CacheOptions(max_staleness_s=SETTINGS[setting]), clock)
    create_database(server.store, "d")
    read = for_write(lambda: server.store.reads.databases.get_database(DatabaseName(CATALOG, "d")))
    read()
    BRINGS[status](server)
    server.reasons()
    read()
    assert server.reasons() == [Reason.HIT if status is PollerStatus.ACTIVE else Reason.BEHIND_EVENTS]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("status", BRINGS)
def test_what_the_event_loop_may_send(
    status: PollerStatus, setting: str, servers: MakeServer, clock: ManualClock
) -> None:
    """`accept` and `is_recent`, used for requests that are answered by their bytes."""
    server = servers(CacheOptions(max_staleness_s=SETTINGS[setting]), clock)
    create_database(server.store, "d")
    server.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    BRINGS[status](server)
    freshness, position = server.cache.freshness, server.cache.shared.position
    history = server.objects.reads.log_head().history
    serves = status is PollerStatus.ACTIVE or (status is PollerStatus.PAUSED and setting == "inf")
    assert freshness.accept(CheckResult(position, clock.monotonic_s(), history)) is serves
    assert not freshness.accept(CheckResult(position + 1, clock.monotonic_s(), history)), "behind"
    assert not freshness.accept(CheckResult(position - 1, clock.monotonic_s(), history)), "another history"
    freshness.raise_floor(position + 1)
    assert not freshness.accept(CheckResult(position, clock.monotonic_s(), history)), "below an own write"
    assert not freshness.is_recent(), "below an own write"


# Ages, lower bounds, histories: `Freshness` alone


class Follower:
    """Follows the log on request, up to `reaches`."""

    def __init__(self) -> None:
        self.status = PollerStatus.ACTIVE
        self.is_stepping = False
        self.requested: list[int] = []
        self.reaches = 10**9
        self.current_at_s = -INF
        self.proven: dict[History, None] = {UNKNOWN_HISTORY: None}
        self.needs_proof = False
        self.server_identity = ""
        self.proves = True
        self.doubted: list[History] = []
        self.cache = SharedCache(10**6)
        self.cache.reset("start", 10)

    def prove(self, history: History, timeout_s: float) -> bool:
        self.doubted.append(history)
        if self.proves:
            self.proven = {**self.proven, history: None}
        return self.proves

    def renew(self) -> None:
        """Holds no connections."""

    def fail(self, reason: str) -> None:
        """Nothing fails here."""

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        self.requested.append(position)
        if position > self.reaches:
            return False
        self.cache.apply([], max(position, self.cache.position))
        return True


class Fixture:
    """A database at `position`; a check takes `takes_s`, during which `meanwhile` is executed."""

    def __init__(self, max_staleness_s: float) -> None:
        self.clock = ManualClock()
        self.follower = Follower()
        self.cache = self.follower.cache
        self.position = 10
        self.takes_s = 0.0
        self.history = UNKNOWN_HISTORY
        self.meanwhile: Callable[[], object] = lambda: None
        self.check = PositionCheck(self._read, self.clock)
        self.freshness = Freshness(self.cache, self.check, self.follower, self.clock, max_staleness_s)

    def _read(self) -> LogHead:
        position = self.position
        self.clock.advance(self.takes_s)
        self.meanwhile()
        return LogHead(position, self.history)


def test_an_age_counts_from_the_sending_of_the_question_that_proved_it() -> None:
    fixture = Fixture(HALF_A_SECOND)
    fixture.takes_s = 0.4
    assert fixture.freshness.ensure()
    fixture.clock.advance(0.1)
    assert fixture.freshness.is_recent(), "0.5 s after the question was sent"
    fixture.clock.advance(0.001)
    assert not fixture.freshness.is_recent(), "0.501 s after the question was sent, 0.101 s after its answer"


def test_a_check_that_finds_memory_behind_proves_nothing_until_it_is_caught_up() -> None:
    fixture = Fixture(HALF_A_SECOND)
    assert fixture.freshness.ensure()
    fixture.clock.advance(1)
    fixture.position, fixture.follower.reaches = 12, 11
    assert not fixture.freshness.ensure()
    assert not fixture.freshness.is_recent()
    fixture.follower.reaches = 12
    assert fixture.freshness.ensure()
    assert fixture.freshness.is_recent()
    assert fixture.cache.position == 12


def test_an_old_proof_is_not_replaced_by_an_older_one() -> None:
    fixture = Fixture(HALF_A_SECOND)
    assert fixture.freshness.ensure()
    now_s = fixture.clock.monotonic_s()
    assert fixture.freshness.accept(CheckResult(10, now_s - 100, UNKNOWN_HISTORY))
    assert fixture.freshness.is_recent()


def test_events_applied_while_a_check_is_on_its_way_are_no_other_history() -> None:
    fixture = Fixture(0)
    fixture.meanwhile = lambda: fixture.cache.apply([], 11)
    assert fixture.freshness.ensure()
    assert fixture.follower.requested == []


def test_a_database_that_knows_less_than_was_applied_makes_the_poller_look() -> None:
    fixture = Fixture(0)
    fixture.position = 9
    assert not fixture.freshness.ensure()
    assert fixture.follower.requested == [11], "a step beyond what is applied"


def test_a_check_sent_before_a_reset_proves_nothing_after_it() -> None:
    fixture = Fixture(HALF_A_SECOND)
    fixture.meanwhile = lambda: fixture.cache.reset("another history", 10)
    assert not fixture.freshness.ensure()
    assert not fixture.freshness.is_recent()


@pytest.mark.parametrize("max_staleness_s", SETTINGS.values(), ids=SETTINGS)
def test_a_floor_ends_with_its_history(max_staleness_s: float) -> None:
    """P7: after an older copy of the database was restored, lost writes of this server must not block memory."""
    fixture = Fixture(max_staleness_s)
    fixture.freshness.raise_floor(1000)
    fixture.follower.reaches = 900
    assert not fixture.freshness.ensure()
    fixture.cache.reset("restored", 800)
    fixture.position = 801  # a write that was acknowledged while the poller read the end of the log
    fixture.clock.advance(0.001)
    assert fixture.freshness.ensure()
    assert fixture.freshness.floor == -1
    assert fixture.cache.position == 801, "the first read after a reset asks, at every setting"
    assert fixture.check.checks == 1 + (max_staleness_s != INF)


def test_a_read_that_the_store_answered_makes_the_next_one_ask() -> None:
    for max_staleness_s in (HALF_A_SECOND, INF):
        fixture = Fixture(max_staleness_s)
        assert fixture.freshness.ensure()
        before = fixture.check.checks
        assert fixture.freshness.is_recent()
        fixture.clock.advance(0.001)
        fixture.freshness.require_check()
        assert not fixture.freshness.is_recent()
        fixture.clock.advance(0.001)
        assert fixture.freshness.ensure()
        assert fixture.check.checks == before + 1
        assert fixture.freshness.is_recent(), "asked since"


def test_a_floor_of_another_history_than_the_one_that_is_followed_is_none() -> None:
    """P7: what was returned before a reset, but is reported after it."""
    fixture = Fixture(0)
    before = fixture.cache.generation
    fixture.cache.reset("restored", 5)
    fixture.freshness.raise_floor(1000, before)
    assert fixture.freshness.floor == -1
    fixture.freshness.raise_floor(6, fixture.cache.generation)
    assert fixture.freshness.floor == 6


class EndlessLease:
    """As for a member that others can always reach."""

    deadline_s = INF
    is_read = False

    def now_s(self) -> float:
        return 0.0

    def moved(self) -> None:
        """The position is unchanged."""

    def answers_table(self, table: TableName) -> bool:
        return True


@pytest.mark.parametrize("max_staleness_s", SETTINGS.values(), ids=SETTINGS)
def test_after_a_pause_no_lease_answers_before_a_proof(max_staleness_s: float) -> None:
    """P7: the lease was renewed meanwhile, in a history that was not verified."""
    fixture = Fixture(max_staleness_s)
    fixture.freshness.lease = EndlessLease()
    table = TableName(CATALOG, "d", "t")
    assert fixture.freshness.holds_lease() and fixture.freshness.holds_lease(table)
    fixture.follower.needs_proof = True
    assert not fixture.freshness.holds_lease() and not fixture.freshness.holds_lease(table)
    assert fixture.freshness.ensure(table)
    assert fixture.check.checks == 1
    fixture.follower.needs_proof = False
    assert fixture.freshness.ensure(table)
    assert fixture.check.checks == 1


def test_who_wants_a_proof_is_not_served_by_a_paused_poller() -> None:
    """P7: it reads no rows, so neither an equal id nor a lease is a proof. Before, the reads of writes and decisions
    about rights came from memory with `max_staleness = inf`."""
    fixture = Fixture(INF)
    fixture.freshness.lease = EndlessLease()
    assert fixture.freshness.holds_lease() and fixture.freshness.ensure(wants_proof=True)
    fixture.follower.status = PollerStatus.PAUSED
    assert fixture.freshness.ensure()
    assert not fixture.freshness.ensure(wants_proof=True)
    assert not fixture.freshness.ensure_by_check()
    assert not fixture.freshness.holds_lease() and not fixture.freshness.holds_lease(TableName(CATALOG, "d", "t"))
    assert fixture.check.checks == 0


def test_a_poller_that_is_resumed_needs_a_proof_before_its_status_tells(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers access both without a lock."""
    poller = servers().poller
    assert poller.proven and not poller.needs_proof
    poller.pause()
    seen: list[tuple[PollerStatus, bool, bool]] = []
    monkeypatch.setattr(
        poller, "_show_status", lambda: seen.append((poller.status, poller.needs_proof, bool(poller.proven)))
    )
    poller.resume()
    assert seen == [(PollerStatus.ACTIVE, True, False)]
