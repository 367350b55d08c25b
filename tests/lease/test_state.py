"""The table of transitions compared with an oracle that knows the whole state, in each order that hypothesis finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hms_cache.lease.scopes import EVERYTHING, Scope, table_number
from hms_cache.lease.state import DRIFT, MAX_ACCOUNTED, MAX_TABLE_FLOORS, NEVER, LeaseState
from hms_cache.metadata.object_names import TableName

LENGTH_S = 10.0
OTHERS = ("b", "c")
TABLES = tuple(TableName("hive", "d", name) for name in ("t", "u", "v"))
SCOPES = st.one_of(
    st.just(EVERYTHING),
    st.sets(st.sampled_from(TABLES), min_size=1).map(lambda tables: frozenset(map(table_number, tables))),
)


def touches(scope: Scope, table: TableName) -> bool:
    return scope is EVERYTHING or table_number(table) in scope


class Member(RuleBasedStateMachine):
    """One member's state; the machine plays the database, the other members and the clock.

    The oracle is the rule of `LeaseState`'s table in the terms of the model (`has_lease`): it is a member, its lease
    has not ended, no write is open, memory is not below the floor, no alarm. For a single table the same, except for
    writes that do not concern it.
    """

    @initialize()
    def begin(self) -> None:
        self.now_s = 100.0
        self.position = 0
        self.state = LeaseState("a", LENGTH_S, lambda: self.now_s, lambda: self.position)
        self.epoch: int | None = None
        self.is_joined = False
        self.may_lease = False
        self.until_s = NEVER
        self.open: dict[tuple[str, int], tuple[float, Scope]] = {}
        self.heard_at: dict[tuple[str, int], int] = {}
        self.unannounced: list[int] = []
        self.floor = -1
        self.floors = dict.fromkeys(TABLES, -1)
        self.log = 0
        self.alarm = False

    @rule(epoch=st.integers(1, 10**9), may_lease=st.booleans())
    def joins(self, epoch: int, may_lease: bool) -> None:
        self.state.joining(epoch)
        assert self.state.epoch is None
        self.state.joined(epoch, self.log, may_lease=may_lease)
        self.looks()
        self.may_lease = may_lease
        self.epoch, self.is_joined, self.until_s = epoch, True, NEVER
        self.rise(EVERYTHING)
        self.unannounced.clear()

    def looks(self) -> None:
        """At the log, where it finds the contents of memory."""
        assert self.state.unverified and self.state.deadline_s == NEVER
        self.state.verified(self.state.unverified)
        assert not self.state.unverified

    def rise(self, scope: Scope) -> None:
        self.floor = max(self.floor, self.log)
        for table in TABLES:
            if touches(scope, table):
                self.floors[table] = max(self.floors[table], self.log)

    @rule(late_s=st.floats(0, LENGTH_S * 2), is_own=st.booleans())
    def renews(self, late_s: float, is_own: bool) -> None:
        """The answer arrives `late_s` after the request; one for an earlier epoch is ignored."""
        if self.epoch is None:
            return
        sent_s = self.now_s
        self.now_s += late_s
        self.state.renewed(self.epoch if is_own else -1, sent_s)
        if is_own and self.may_lease:
            self.until_s = max(self.until_s, sent_s + LENGTH_S * (1 - 2 * DRIFT))

    @rule(late_s=st.floats(0, LENGTH_S * 2))
    def time_passes(self, late_s: float) -> None:
        self.now_s += late_s

    @precondition(lambda self: self.epoch is not None)
    @rule()
    def lease_is_revoked(self) -> None:
        assert self.epoch is not None and not self.state.unleased(self.epoch + 1)
        assert self.state.unleased(self.epoch) == self.may_lease
        self.may_lease, self.until_s = False, NEVER
        assert self.state.epoch == self.epoch

    @rule()
    def is_fenced(self) -> None:
        self.state.lost(self.epoch)
        self.epoch, self.is_joined, self.until_s = None, False, NEVER

    @rule(member=st.sampled_from(OTHERS), key=st.integers(1, 3), scope=SCOPES)
    def write_begins(self, member: str, key: int, scope: Scope) -> None:
        """Or is announced again, as what it is."""
        _, scope = self.open.get((member, key), (0, scope))
        assert self.state.writing((member, key), scope) == self.epoch
        if (member, key) not in self.open:
            self.heard_at[member, key] = self.position if self.is_joined and self.now_s < self.until_s else -1
        self.open[member, key] = self.now_s, scope

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def write_is_committed(self, data: st.DataObject) -> None:
        intent = data.draw(st.sampled_from(sorted(self.open)))
        self.log += 1
        self.state.written(intent, self.log, self.log)
        self.rise(self.open.pop(intent)[1])

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def write_is_abandoned(self, data: st.DataObject) -> None:
        intent = data.draw(st.sampled_from(sorted(self.open)))
        self.state.abandoned(intent)
        del self.open[intent]

    @rule()
    def unheard_writes_are_tended(self) -> None:
        found = self.state.overdue_intents(LENGTH_S)
        assert sorted(found) == sorted(
            one for one, (since_s, _) in self.open.items() if self.now_s - since_s >= LENGTH_S
        )
        for intent in found:
            self.state.fenced(intent, self.log)
            self.looks()
            del self.open[intent]
            self.rise(EVERYTHING)
            self.unannounced.clear()

    @rule()
    def memory_catches_up(self) -> None:
        self.position = self.log
        self.state.moved()

    @precondition(lambda self: self.is_joined and self.now_s < self.until_s)
    @rule()
    def somebody_writes_unannounced(self) -> None:
        """Detected at once if no write is open, otherwise when those are over that may have written it."""
        self.log += 1
        self.position = self.log
        self.unannounced.append(self.log)
        self.state.moved()
        assert self.open or self.state.alarm_reason

    @rule()
    def history_is_another(self) -> None:
        self.state.forget_history()
        self.unannounced.clear()
        self.heard_at = dict.fromkeys(self.heard_at, -1)
        self.epoch, self.is_joined, self.until_s = None, False, NEVER
        self.floor = -1
        self.floors = dict.fromkeys(TABLES, -1)
        self.log = self.position = max(0, self.log - 1)

    @invariant()
    def answers_by_the_rule_alone(self) -> None:
        if not hasattr(self, "state"):
            return
        if self.unannounced and self.is_joined and self.now_s < self.until_s:
            lowest = self.unannounced[0]
            self.alarm |= self.position >= lowest and all(self.heard_at[one] >= lowest for one in self.open)
        has_lease = self.is_joined and not self.open and not self.alarm and self.position >= self.floor
        has_time = self.now_s < self.until_s
        of_tables = {
            table: self.is_joined
            and not self.alarm
            and not any(touches(scope, table) for _, scope in self.open.values())
            and self.position >= self.floors[table]
            for table in TABLES
        }
        assert not self.now_s < self.state.deadline_s or (has_lease and has_time)
        assert not any(self.state.answers_table(table) and not (of_tables[table] and has_time) for table in TABLES)
        self.state.moved()  # memory may have moved since
        assert (self.now_s < self.state.deadline_s) == (has_lease and has_time)
        for table in TABLES:
            assert self.state.answers_table(table) == (of_tables[table] and has_time), table
        assert bool(self.state.alarm_reason) == self.alarm


Member.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMember = Member.TestCase


def leased(position: list[int]) -> LeaseState:
    state = LeaseState("a", LENGTH_S, lambda: 1.0, lambda: position[0])
    state.joining(1)
    state.joined(1, 0)
    state.verified(state.unverified)
    state.renewed(1, 1.0)
    return state


def test_floors_of_more_tables_than_are_kept_become_one() -> None:
    position = [0]
    state = leased(position)
    for number in range(MAX_TABLE_FLOORS):
        state.writing(("b", number), frozenset({number}))
        state.written(("b", number), number + 1, number + 1)
    assert state.answers_table(TABLES[0])
    state.writing(("b", 0), frozenset({MAX_TABLE_FLOORS}))
    state.written(("b", 0), MAX_TABLE_FLOORS + 1, MAX_TABLE_FLOORS + 1)
    assert not state.answers_table(TABLES[0])
    position[0] = MAX_TABLE_FLOORS + 1
    state.moved()
    assert state.answers_table(TABLES[0]) and state.deadline_s > 1.0


def test_the_end_of_an_unknown_write_is_one_of_everything() -> None:
    state = leased([0])
    state.written(("b", 7), 1, 1)
    assert not state.answers_table(TABLES[0])


def test_a_write_that_goes_on_in_another_history_is_no_unannounced_one() -> None:
    """Memory already had the number of its event, in the other history."""
    position = [5]
    state = LeaseState("a", LENGTH_S, lambda: 1.0, lambda: position[0])
    state.joining(1)
    state.joined(1, 5)
    state.renewed(1, 1.0)
    state.writing(("b", 1))
    state.forget_history()
    state.writing(("b", 2))
    position[0] = 4
    state.joining(2)
    state.joined(2, 4)
    state.verified(state.unverified)
    state.renewed(2, 1.0)
    position[0] = 5
    state.moved()
    assert not state.alarm_reason
    state.written(("b", 2), 5, 5)
    state.abandoned(("b", 1))
    state.moved()
    assert not state.alarm_reason and state.deadline_s > 1.0


def test_an_unannounced_event_is_found_while_members_write_without_a_pause() -> None:
    """A write that is announced when memory already has the event cannot have written it."""
    position = [0]
    state = leased(position)
    written = table_number(TABLES[1])
    state.writing(("b", 1), frozenset({written}))
    position[0] = 1
    state.moved()
    assert not state.alarm_reason, "it may be the event of the open write"
    state.writing(("c", 1), frozenset({written}))
    state.written(("b", 1), 2, 2)
    position[0] = 2
    state.moved()
    assert state.alarm_reason
    assert not state.answers_table(TABLES[0])


def test_what_is_known_of_events_does_not_grow_after_an_alarm() -> None:
    position = [1]
    state = leased(position)
    state.moved()
    assert state.alarm_reason
    for event_id in range(2, 5_002):
        state.writing(("b", event_id), EVERYTHING)
        state.written(("b", event_id), event_id, event_id)
    assert len(state._accounted) < 10


def test_what_is_known_of_events_is_bounded_where_memory_does_not_follow() -> None:
    """The poller is paused, or waits for an operator, and each second event is unannounced."""
    position = [0]
    state = leased(position)
    last = 2 * (3 * MAX_ACCOUNTED)
    for event_id in range(2, last + 1, 2):
        state.writing(("b", event_id), EVERYTHING)
        state.written(("b", event_id), event_id, event_id)
        assert len(state._accounted) <= MAX_ACCOUNTED
    assert not state.alarm_reason
    # It follows the log again.
    state.exempt(range(1, last, 2))
    position[0] = last
    state.moved()
    assert not state.alarm_reason and not state._accounted and state.deadline_s > 1.0
    position[0] = last + 1
    state.moved()
    assert state.alarm_reason


def test_what_is_known_of_events_is_not_looked_through_for_each() -> None:
    """Memory reaches a thousand events at once, each of which may be unannounced: the lock is held."""
    state = leased([0])
    known = MAX_ACCOUNTED // 2
    for number in range(1, known + 1):
        state.written(("b", number), 2 * number, 2 * number)
    accounted = state._accounted
    for number in range(1, known):
        state.exempt([2 * number - 1])
        assert state._accounted is accounted, "what is left was copied"
        assert len(accounted) == known - number
    state.exempt([2 * known - 1])
    assert not state._accounted


def in_another_history(position: int) -> LeaseState:
    """A member whose memory has this position; the log was restored below it, and its later contents are unknown."""
    state = LeaseState("a", LENGTH_S, lambda: 1.0, lambda: position)
    state.joining(1)
    state.joined(1, position)
    state.verified(state.unverified)
    state.renewed(1, 1.0)
    assert state.deadline_s > 1.0 and state.answers_table(TABLES[0])
    return state


def joins_at_the_same_event(state: LeaseState) -> None:
    """Writes of which it was not notified have brought the log up again."""
    state.joining(2)
    state.joined(2, 5)
    state.renewed(2, 1.0)


def hears_on_another_connection(state: LeaseState) -> None:
    """The member that wrote event 3 wrote event 5 before, in the other history."""
    state.writing(("b", 1))
    state.over("b", 2, 5)


def reads_where_the_log_ends(state: LeaseState) -> None:
    """A write of several events, whose end is not received."""
    state.writing(("b", 1))
    state.fenced(("b", 1), 5)


def hears_of_an_event_that_memory_has(state: LeaseState) -> None:
    """Memory had it when the write was announced."""
    state.writing(("b", 1))
    state.written(("b", 1), 3, 3)


@pytest.mark.parametrize(
    "find_out",
    [
        joins_at_the_same_event,
        hears_on_another_connection,
        reads_where_the_log_ends,
        hears_of_an_event_that_memory_has,
    ],
)
def test_ids_that_memory_has_prove_nothing(find_out: Callable[[LeaseState], None]) -> None:
    """P7: memory is at event 5 of a lost log, and the log ends there again. Before, only the last of these was
    noticed."""
    state = in_another_history(5)
    state.changed.clear()
    find_out(state)
    assert state.catch_up_to is None
    assert state.deadline_s == NEVER and not state.answers_table(TABLES[0])
    assert state.changed.is_set(), "nobody looks"
    state.verified(state.unverified)
    assert state.deadline_s > 1.0 and state.answers_table(TABLES[0])


def test_rows_that_were_read_before_a_write_began_may_be_of_another_history() -> None:
    """P7: they are applied after it was announced, or even after it has ended."""
    position, is_reading = [5], [True]
    state = LeaseState("a", LENGTH_S, lambda: 1.0, lambda: position[0], lambda: is_reading[0])
    state.joining(1)
    state.joined(1, 5)
    state.verified(state.unverified)
    state.renewed(1, 1.0)
    for is_applied in (True, False):
        event_id = position[0] + 1
        state.written(("c", event_id), event_id, event_id)  # in the other history, to which these rows belong
        state.writing(("b", event_id))
        if is_applied:
            position[0] = event_id
            state.stepped()
        state.written(("b", event_id), event_id, event_id)
        position[0] = event_id
        state.moved()
        assert state.deadline_s == NEVER
        state.verified(state.unverified)
        assert state.deadline_s > 1.0 and not state.alarm_reason


def test_rows_that_are_applied_before_a_write_ends_cost_no_look() -> None:
    position, is_reading = [5], [True]
    state = LeaseState("a", LENGTH_S, lambda: 1.0, lambda: position[0], lambda: is_reading[0])
    state.joining(1)
    state.joined(1, 5)
    state.verified(state.unverified)
    state.renewed(1, 1.0)
    state.writing(("b", 1))
    state.stepped()
    state.written(("b", 1), 6, 6)
    position[0] = 6
    state.moved()
    assert not state.unverified and state.deadline_s > 1.0


def test_events_of_another_history_are_not_taken_for_unannounced_ones() -> None:
    """The log ends before memory when the member joins. An alarm would last until the server is restarted."""
    state = LeaseState("a", LENGTH_S, lambda: 1.0, lambda: 10)
    state.joining(1)
    state.joined(1, 5)
    state.renewed(1, 1.0)
    assert not state.alarm_reason
    state.verified(state.unverified)
    assert state.alarm_reason, "they are in the log"


def test_a_look_of_before_settles_no_later_doubt() -> None:
    """Not even if memory was dropped meanwhile by another thread."""
    state = in_another_history(5)
    reads_where_the_log_ends(state)
    looked_for = state.unverified
    state.forget_history()
    joins_at_the_same_event(state)
    state.verified(looked_for)
    assert state.unverified and state.deadline_s == NEVER
