"""Write and read transactions as units of work that can be run again.

A write is a function of a `WriteTransaction`. It is run in one database transaction, its events are appended as the
last statements before the commit, and if it loses to another transaction the whole is run again. Lock order: id blocks
first (their own transaction), then whatever the work locks, ``NOTIFICATION_SEQUENCE`` last. The lock on that one row
lives until the commit and makes event ids gapless and ascending in commit order, for Java writers too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError
from tenacity import RetryCallState, Retrying, stop_after_attempt, stop_after_delay, wait_random_exponential

from hms_cache.call_context import call_context
from hms_cache.clock import stored_s
from hms_cache.computing import turns
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store import schema
from hms_cache.store.crash_points import CrashPoint, crash_point
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import is_of_too_many_values, take_from_counter
from hms_cache.store.engine.direct_statements import (
    Direct,
    Statement,
    execute_directly,
    takes_direct_statements,
)
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable, RetryableConflict
from hms_cache.store.engine.events import AnnouncedWrite, EventRow, WriteGuard
from hms_cache.store.engine.log_writes import (
    TAKE_EVENT_IDS,
    begin_event_ids,
    can_log_at_once,
    commit_with,
    has_refused_rows,
    log_at_once,
    log_with_ids,
    rows_of_events,
)
from hms_cache.store.engine.sequences import NOTIFICATION_LOG, IdBlocks, take_ids
from hms_cache.store.warehouse.waits import FileWaits, StillWaiting, waits_of_a_write
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

T = TypeVar("T")

_LOGGER = logging.getLogger(__name__)

#: Waits between attempts are drawn at random below a limit that doubles from the first to the longest.
_FIRST_RETRY_WAIT_S = 0.005
_LONGEST_RETRY_WAIT_S = 1.0

#: How often a transaction is run again whose connection broke before its COMMIT. Once: the pool may hold connections
#: that went stale, but all of them are replaced when the first is found so.
_LOST_CONNECTION_RETRIES = 1


#: Built once: what every write sends while it holds the lock that all writes share.


class NeedMoreIds(Exception):
    """The work asked for more ids than are at hand; it is rolled back and run again with ``count`` reserved.

    Raised by `WriteTransaction.ids` and meant for `run_write`: work lets it pass.
    """

    def __init__(self, model: str, count: int) -> None:
        super().__init__(f"{count} ids of {model} in one transaction")
        self.model = model
        self.count = count


class WriteTransaction:
    """What a write works with: one connection, new ids, events, and things to do when its fate is known.

    Belongs to the thread that runs the work, and to this one attempt.
    """

    def __init__(self, connection: Connection, ids: _Ids, guard: WriteGuard | None = None) -> None:
        self.connection = connection
        self.announced: AnnouncedWrite | None = None
        """Set when the events are written, if others have to agree."""

        self._guard = guard
        self.last_event_id: int | None = None
        """Id of the last event. Set by the commit: None before, and without events."""

        self._ids = ids
        self._taken_event_ids: range | None = None
        """Those that the work took with its own statements."""
        self._unsent_rows: list[dict[str, Any]] = []
        """Rows of the log that go with COMMIT."""
        self._left_for_commit: list[Statement] = []
        self._events: list[EventRow] = []
        self._event_characters = 0
        self._after_commit: list[Callable[[], None]] = []
        self._on_rollback: list[tuple[Callable[[], None], bool]] = []

    def id(self, model: str) -> int:
        """One new id of the model class (``"MTable"``, …), see :meth:`ids`."""
        return self.ids(model, 1)[0]

    def ids(self, model: str, count: int) -> list[int]:
        """``count`` new ids of the model class, ascending.

        :raises NeedMoreIds: must reach `run_write` unchanged, which runs the work again with enough of them.
        """
        return self._ids.take(self.connection, model, count) if count else []

    @property
    def takes_event_ids_early(self) -> bool:
        """Whether `execute_and_take_event_ids` takes any: where others acknowledge a write with these events, the lock
        is taken as late as can be."""
        return self._guard is None or not (self._guard.is_acknowledged and self._guard.announces(self._events))

    def execute_directly(self, statements: Sequence[Statement]) -> list[Any]:
        """Send statements as one packet; what was said of each. On MySQL and MariaDB."""
        return execute_directly(self.connection, statements)

    def execute_and_commit(self, statements: Sequence[Statement]) -> list[Any]:
        """As `execute_directly`, with COMMIT in the packet: for all statements of a work without events that does no
        harm if it is carried out twice. If the connection breaks, it is run again, as before a COMMIT."""
        return execute_directly(self.connection, statements, commits=True)

    def leave_for_commit(self, statements: Sequence[Statement]) -> None:
        """Have the statements go in one packet with COMMIT. They must wait for nobody's locks: the outcome is unknown
        if the connection breaks meanwhile. On MySQL and MariaDB."""
        self._left_for_commit += statements

    def execute_and_take_event_ids(
        self, statements: Sequence[Statement], count: int, taking: Direct = TAKE_EVENT_IDS
    ) -> list[Any]:
        """As `execute_directly`, for the last statements of the work that wait for anybody's locks: ids for ``count``
        events are taken in the same packet, and NOTIFICATION_SEQUENCE stays locked from then on. What is appended later
        is about transactions alone: if others had to acknowledge it, they would be waited for under the lock.

        :param taking: a form of `TAKE_EVENT_IDS` that takes none where its own condition says so.
        """
        if not self.takes_event_ids_early or self._taken_event_ids is not None:
            return self.execute_directly(statements)
        *answers, taken = self.execute_directly([*statements, (taking, {"count": count})])
        if taken.rows:
            self._taken_event_ids = range(taken.last_id, taken.last_id + count)
        return answers

    def append_event(self, event: EventRow) -> None:
        """Have the event written with the commit, after those appended before it, in the same transaction (P10).

        :raises MetaException: the messages of all events have more characters than ``limits.request_event_characters``.
        """
        self._event_characters += len(event.message)
        most = input_limits().request_event_characters
        if self._event_characters > most and self._events:
            told = exceeded("request_event_characters")
            raise MetaException(
                f"The events of this request have more than {most} characters; send it in smaller parts ({told})"
            )
        self._events.append(event)

    @property
    def events(self) -> tuple[EventRow, ...]:
        """The events appended so far."""
        return tuple(self._events)

    @property
    def has_events(self) -> bool:
        """Whether any was appended: all changes of the catalog do, the server's upkeep mostly does not."""
        return bool(self._events)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Do this once the commit is certain, in order of registration: deletions of files, mostly.

        No connection is held then. An error in it is logged; the write stays acknowledged.
        """
        self._after_commit.append(action)

    def on_rollback(self, action: Callable[[], None], *, under_locks: bool = False) -> None:
        """Do this if this attempt is rolled back, the last registered first: undoing directories that it made, mostly.

        No connection is held then. An error in it is logged; what caused the rollback goes on.

        :param under_locks: do it before the rollback if the work fails, so that whoever waits for a lock does not find
            what is about to be undone. It must be quick. Not if the database has ended the transaction, whose locks are
            gone then, if a file system does not answer, or if one that was registered after it is to be done later.
        """
        self._on_rollback.append((action, under_locks))

    def write_events(self, time_s: int) -> None:
        """Write the events: the last statements before the commit, and mostly one (`log_writes`).

        NOTIFICATION_SEQUENCE is locked first, then the log's id sequence if no ids are at hand: Hive's order.
        """
        events = self._events
        answers: list[Any] | None = None
        guard = self._guard if self._guard is not None and self._guard.announces(events) else None
        if self._taken_event_ids is None and guard is not None:
            # From here until they hear of the commit the others answer no read by lease. They acknowledge while the
            # lock is taken.
            self.announced = guard.begin(events)
            answers = self._take_event_ids_with_questions()
        if self._taken_event_ids is not None:
            self._log_with_commit(self._taken_event_ids, time_s)
        elif events:
            first = self._log_at_once(time_s)
            if first is None:
                first = self._log_in_turn(time_s)
            self.last_event_id = first + len(events) - 1
        if guard is not None:
            self.announced = self.announced or guard.begin(events)
            self.announced.before_commit(self.connection, answers)

    def _take_event_ids_with_questions(self) -> list[Any] | None:
        """Takes the ids in one packet with what the guard wants to know under the lock; the answers to that.

        None, and nothing is taken, if it wants to know nothing, or that is not possible.
        """
        events = self._events
        if self.announced is None or not takes_direct_statements(self.connection):
            return None
        if not can_log_at_once(self.connection, [event.message for event in events]):
            return None
        questions = self.announced.statements_under_lock(self.connection)
        if not questions:
            return None
        taken, *answers = execute_directly(self.connection, [(TAKE_EVENT_IDS, {"count": len(events)}), *questions])
        if not taken.rows:
            return None
        self._taken_event_ids = range(taken.last_id, taken.last_id + len(events))
        return answers

    def _log_with_commit(self, taken: range, time_s: int) -> None:
        """Make the rows for `commit`: the ids are there, and nobody is waited for any more."""
        events = self._events
        if len(events) != len(taken):
            # The row is locked: what follows is ours, and what is left over goes back.
            counter = schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID
            take_from_counter(self.connection, counter, len(events) - len(taken))
        if not events:
            return
        row_ids = self._ids.take_here(self.connection, NOTIFICATION_LOG, len(events))
        rows = rows_of_events(events, row_ids, time_s)
        numbered = [{**row, "EVENT_ID": id_} for id_, row in enumerate(rows, start=taken.start)]
        if can_log_at_once(self.connection, [event.message for event in events]):
            self._unsent_rows = numbered
        else:
            log_with_ids(self.connection, numbered)
        self.last_event_id = taken.start + len(events) - 1

    def commit(self) -> None:
        """Commit, after `write_events`: with the rows of the log and what else is still to be sent."""
        if self._unsent_rows or self._left_for_commit:
            commit_with(self.connection, self._left_for_commit, self._unsent_rows)
        self.connection.commit()

    @property
    def was_refused(self) -> bool:
        """After `commit` has failed: whether it is certain that nothing was committed."""
        return bool(self._unsent_rows or self._left_for_commit) and has_refused_rows(self.connection)

    def _log_at_once(self, time_s: int) -> int | None:
        """The id of the first event; None, and nothing is written, where that is not possible."""
        if not can_log_at_once(self.connection, [event.message for event in self._events]):
            return None
        row_ids = self._ids.take_at_hand(NOTIFICATION_LOG, len(self._events))
        if row_ids is None:
            return None
        first = log_at_once(self.connection, rows_of_events(self._events, row_ids, time_s))
        if first is None:
            self._ids.put_back(NOTIFICATION_LOG, len(row_ids))
        return first

    def _log_in_turn(self, time_s: int) -> int:
        count = len(self._events)
        first = take_from_counter(self.connection, schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID, count)
        if first is None:
            begin_event_ids(self.connection, 1 + count)
            first = 1
        row_ids = self._ids.take_here(self.connection, NOTIFICATION_LOG, count)
        rows = rows_of_events(self._events, row_ids, time_s)
        log_with_ids(self.connection, [{**row, "EVENT_ID": id_} for id_, row in enumerate(rows, start=first)])
        return first

    def tell_committed(self) -> None:
        """Whoever was told of the write hears that it is committed."""
        if self.announced is not None and self.last_event_id is not None:
            self.announced.committed(self.last_event_id - len(self._events) + 1, self.last_event_id)

    def undo_under_locks(self) -> None:
        """The work has failed: run the actions for a rollback that are to be run before it."""
        first = len(self._on_rollback)
        while first and self._on_rollback[first - 1][1]:
            first -= 1
        self._on_rollback, actions = self._on_rollback[:first], self._on_rollback[first:]
        if actions:
            crash_point(CrashPoint.UNDO_BEGUN)
            _do_all("before a rollback", [action for action, _ in reversed(actions)])

    def finish(self, *, committed: bool) -> None:
        """Run the actions registered for this end, and have done with all of them."""
        after_commit, on_rollback = self._after_commit, [action for action, _ in self._on_rollback]
        self._after_commit, self._on_rollback = [], []
        if committed:
            _do_all("after the commit", after_commit)
        else:
            if on_rollback:
                crash_point(CrashPoint.UNDO_BEGUN)
            _do_all("after a rollback", reversed(on_rollback))


def _refused(error: DataError) -> MetaException:
    if is_of_too_many_values(error.orig):
        return MetaException(
            f"The request names more than the database takes in one statement; ask for less at once: {error.orig}"
        )
    return MetaException(f"The database refuses a value: {error.orig}")


def run_write(database: Database, work: Callable[[WriteTransaction], T], *, ids: Mapping[str, int] | None = None) -> T:
    """Run ``work`` in one write transaction together with its events; what it returned, after the commit.

    If it loses to another transaction (deadlock, serialization, lock wait) the whole is run again, with random waits,
    at most ``retry_attempts`` times in all and not after ``retry_total_s``; if its connection breaks before the commit,
    once; if a file system does not answer soon, when it has answered (`warehouse.waits`). ``work`` must have no effect
    but through its transaction and the actions that it registers there. Any other error rolls back and goes on to the
    caller.

    :param ids: how many new ids of which model classes the work will take, by its own knowledge. They are reserved
        before its connection is taken. Without it the first run finds out, unless there are enough at hand.
    :raises MetaException: a value does not fit its column.
    :raises CommitOutcomeUnknown: the connection broke while COMMIT was under way; never run again.
    :raises RetryableConflict: lost to another transaction each time.
    :raises DatabaseUnavailable: no connection came free, or the database is gone.
    :raises RuntimeError: this thread holds a connection already.
    """
    wanted = dict(ids or {})
    with waits_of_a_write() as waits:
        while True:
            try:
                result: T = run_again_if_lost(database, partial(_write_once, database, work, wanted, waits))
            except NeedMoreIds as need:
                wanted[need.model] = need.count
            except StillWaiting as waiting:
                waiting.wait()
            except DataError as error:
                # A value that the column cannot hold: too long, out of range, of another character set.
                raise _refused(error) from error
            else:
                return result


def run_read(database: Database, work: Callable[[Connection], T]) -> T:
    """Run ``work`` on one read-only snapshot, that of its first statement; what it returned.

    Run again as a write is, also after a connection that turned out to be stale. Inside `Database.snapshot` it joins
    that transaction and is run once: whoever opened the snapshot has to begin anew.

    :raises DatabaseUnavailable: no connection came free, or the database is gone.
    :raises MetaException: the database does not take a value, such as a name of megabytes.
    :raises RuntimeError: this thread holds a connection already.
    """

    def read_once() -> T:
        with database.loading() as connection:
            return work(connection)

    try:
        if database.in_snapshot:
            return read_once()
        return run_again_if_lost(database, read_once)
    except DataError as error:
        raise _refused(error) from error


def _write_once(
    database: Database, work: Callable[[WriteTransaction], T], wanted: Mapping[str, int], waits: FileWaits
) -> T:
    guard = database.write_guard
    if guard is not None:
        guard.ready()
    ids = _Ids(database.id_blocks, wanted)
    transaction: WriteTransaction | None = None
    try:
        with turns.holding_locks(), database.writing() as connection:
            transaction = WriteTransaction(connection, ids, guard)
            try:
                with waits.attempt():
                    result = work(transaction)
            except StillWaiting:
                raise  # the file system that would be asked again
            except BaseException:
                transaction.undo_under_locks()
                raise
            transaction.write_events(stored_s(database.clock.epoch_s()))
            if transaction.has_events:  # not the server's own upkeep
                crash_point(CrashPoint.BEFORE_COMMIT)
            database.held.require_not_cut_off(connection)
            _commit(transaction)
            if transaction.has_events:
                crash_point(CrashPoint.AFTER_COMMIT)
                _do_all("after the commit", [transaction.tell_committed])
    except CommitOutcomeUnknown:
        ids.close(used=True)
        assert transaction is not None
        if transaction.announced is not None:
            _do_all("after a commit of unknown outcome", [transaction.announced.outcome_unknown])
        for listener in database.commit_listeners:
            _do_all("after a commit of unknown outcome", [partial(listener.outcome_unknown, transaction.events)])
        raise
    except BaseException:
        ids.close(used=False)
        if transaction is not None:
            if transaction.announced is not None:
                _do_all("after a rollback", [transaction.announced.abandoned])
            transaction.finish(committed=False)
        raise
    ids.close(used=True)
    if transaction.last_event_id is not None:
        last = transaction.last_event_id
        call_context.note_events(last - len(transaction.events) + 1, last)
    for listener in database.commit_listeners:
        _do_all("after the commit", [partial(listener.committed, transaction.events, transaction.last_event_id)])
    transaction.finish(committed=True)
    return result


def _commit(transaction: WriteTransaction) -> None:
    try:
        transaction.commit()
    except (RetryableConflict, IntegrityError, DataError):
        # The database says no: rolled back.
        raise
    except BaseException as error:
        if transaction.was_refused:
            raise
        # Anything else, an interrupt of this thread included, says nothing about what the database did.
        raise CommitOutcomeUnknown(
            f"a write was being committed when this happened: {error}", connection_lost=True
        ) from error


class _Ids:
    """The ids of one attempt: from blocks reserved before its connection was taken, on SQLite from its transaction."""

    def __init__(self, blocks: IdBlocks | None, wanted: Mapping[str, int]) -> None:
        self._blocks = blocks
        self._reserved: dict[str, list[int]] = {}
        self._used: dict[str, int] = {}
        if blocks is not None:
            self._reserved = blocks.reserve({NOTIFICATION_LOG: 1, **wanted})

    def take(self, connection: Connection, model: str, count: int) -> list[int]:
        if self._blocks is None:
            return list(take_ids(connection, model, count))
        taken = self._take_reserved(model, count)
        if taken is None:
            raise NeedMoreIds(model, self._used.get(model, 0) + count)
        return taken

    def take_here(self, connection: Connection, model: str, count: int) -> list[int]:
        """As :meth:`take`; without enough of them, from the sequence's row inside the transaction."""
        taken = None if self._blocks is None else self._take_reserved(model, count)
        return list(take_ids(connection, model, count)) if taken is None else taken

    def take_at_hand(self, model: str, count: int) -> list[int] | None:
        """As :meth:`take` without any statement; None if there are not enough, as on SQLite always."""
        return None if self._blocks is None else self._take_reserved(model, count)

    def put_back(self, model: str, count: int) -> None:
        """The last ``count`` that were taken are in no row."""
        self._used[model] -= count

    def close(self, *, used: bool) -> None:
        """Give back what is in no row: what was not taken, and unless ``used``, all of it."""
        if self._blocks is not None:
            self._blocks.give_back(
                {model: ids[self._used.get(model, 0) if used else 0 :] for model, ids in self._reserved.items()}
            )
            self._reserved = {}

    def _take_reserved(self, model: str, count: int) -> list[int] | None:
        assert self._blocks is not None
        reserved = self._reserved.setdefault(model, [])
        start = self._used.get(model, 0)
        missing = start + count - len(reserved)
        if missing > 0:
            more = self._blocks.take_free(model, missing)
            if more is None:
                return None
            reserved.extend(more)
        self._used[model] = start + count
        return sorted(reserved[start : start + count])


def run_again_if_lost(database: Database, work: Callable[[], T]) -> T:
    """What ``work`` returns, which opens its transaction itself; run again as `run_write` says, for whoever opens a
    snapshot. Most succeed at once, without the means of trying."""
    started_s = time.monotonic()
    failures: list[BaseException] = []
    try:
        return work()
    except (RetryableConflict, DatabaseUnavailable) as error:
        failures.append(error)

    def repeated() -> T:
        if failures:
            raise failures.pop()
        return work()

    result: T = _attempts(database, time.monotonic() - started_s)(repeated)
    return result


def _attempts(database: Database, passed_s: float) -> Retrying:
    lost_connections = 0

    def again(state: RetryCallState) -> bool:
        nonlocal lost_connections
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RetryableConflict):
            return True
        if isinstance(error, DatabaseUnavailable) and not isinstance(error, CommitOutcomeUnknown):
            lost_connections += error.connection_lost
            return error.connection_lost and lost_connections <= _LOST_CONNECTION_RETRIES
        return False

    return Retrying(
        retry=again,
        stop=stop_after_attempt(database.settings.retry_attempts)
        | stop_after_delay(database.settings.retry_total_s - passed_s),
        wait=wait_random_exponential(multiplier=_FIRST_RETRY_WAIT_S, max=_LONGEST_RETRY_WAIT_S),
        before_sleep=lambda _: database.retries.add(),
        reraise=True,
    )


def _do_all(when: str, actions: Iterable[Callable[[], None]]) -> None:
    for action in actions:
        try:
            action()
        except Exception:
            _LOGGER.exception("what was left to do %s of a write failed", when)
