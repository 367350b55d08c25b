"""Write and read transactions as units of work that can be run again.

A write is a function of a `WriteTransaction`. It runs in one database transaction, whose last statements before the
commit append its events. After a conflict with another transaction the whole function runs again. Lock order: id blocks
first (in their own transaction), then the rows that the work locks, ``NOTIFICATION_SEQUENCE`` last. The lock on that
row is held until the commit and makes event ids gapless and ascending in commit order, also with Java writers.
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
from hms_cache.computing import scheduler
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store import schema
from hms_cache.store.crash_points import CrashPoint, crash_point
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import allocate_from_counter, is_of_too_many_values
from hms_cache.store.engine.direct_statements import (
    Direct,
    Statement,
    execute_directly,
    supports_direct_statements,
)
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable, RetryableConflict
from hms_cache.store.engine.events import AnnouncedWrite, EventRow, WriteGuard
from hms_cache.store.engine.log_writes import (
    ALLOCATE_EVENT_IDS,
    begin_event_ids,
    can_log_at_once,
    commit_with,
    has_refused_rows,
    log_at_once,
    log_with_ids,
    rows_of_events,
)
from hms_cache.store.engine.sequences import NOTIFICATION_LOG, IdBlocks, allocate_ids
from hms_cache.store.warehouse.waits import FileWaits, StillWaiting, waits_of_a_write
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

T = TypeVar("T")

_LOGGER = logging.getLogger(__name__)

#: The wait between attempts is random, below a limit that doubles from the first to the longest.
_FIRST_RETRY_WAIT_S = 0.005
_LONGEST_RETRY_WAIT_S = 1.0

#: How often a transaction is run again if its connection broke before COMMIT. Once: the pool may hold stale
#: connections, but all of them are replaced when the first one is noticed.
_LOST_CONNECTION_RETRIES = 1


#: Compiled once: sent by every write while it holds the lock that all writes share.


class NeedMoreIds(Exception):
    """The work needs more ids than are reserved. It is rolled back and run again with ``count`` reserved.

    Raised by `WriteTransaction.ids` for `run_write`; work must not catch it.
    """

    def __init__(self, model: str, count: int) -> None:
        super().__init__(f"{count} ids of {model} in one transaction")
        self.model = model
        self.count = count


class WriteTransaction:
    """What a write works with: one connection, new ids, events, and actions for after its end.

    Belongs to the thread that runs the work, and to one attempt.
    """

    def __init__(
        self, connection: Connection, ids: _Ids, guard: WriteGuard | None = None, *, is_confirmed: bool = False
    ) -> None:
        """`is_confirmed`: a statement has to follow the work's own (`active_node`)."""
        self.connection = connection
        self._is_confirmed = is_confirmed
        self.has_committed = False
        """Whether COMMIT was executed together with the statements of the work."""
        self.announced: AnnouncedWrite | None = None
        """Set when the events are written, if others have to agree."""

        self._guard = guard
        self.last_event_id: int | None = None
        """Id of the last event, set by the commit: None before, and without events."""

        self._ids = ids
        self._allocated_event_ids: range | None = None
        """Ids that the work took with its own statements."""
        self._unsent_rows: list[dict[str, Any]] = []
        """Rows of the log that are sent with COMMIT."""
        self._deferred_to_commit: list[Statement] = []
        self._events: list[EventRow] = []
        self._event_characters = 0
        self._after_commit: list[Callable[[], None]] = []
        self._on_rollback: list[tuple[Callable[[], None], bool]] = []

    def id(self, model: str) -> int:
        """One new id of the model class (``"MTable"``, …); see :meth:`ids`."""
        return self.ids(model, 1)[0]

    def ids(self, model: str, count: int) -> list[int]:
        """``count`` new ids of the model class, ascending.

        :raises NeedMoreIds: must reach `run_write` unchanged, which runs the work again with enough of them.
        """
        return self._ids.allocate(self.connection, model, count) if count else []

    @property
    def allocates_event_ids_early(self) -> bool:
        """Whether `execute_and_allocate_event_ids` allocates ids: if others acknowledge a write with these events, the
        lock is taken as late as possible."""
        return self._guard is None or not (self._guard.is_acknowledged and self._guard.announces(self._events))

    def execute_directly(self, statements: Sequence[Statement]) -> list[Any]:
        """Sends statements as one packet, and returns the result of each. On MySQL and MariaDB."""
        return execute_directly(self.connection, statements)

    def execute_and_commit(self, statements: Sequence[Statement], *, only_own_rows: bool = False) -> list[Any]:
        """Like `execute_directly`, with COMMIT in the packet: for all statements of a work without events that can be
        executed twice without harm. If the connection breaks, the work runs again, as before a COMMIT.

        :param only_own_rows: what is written depends only on the rows that the statements change, so that it needs no
          confirmation on a Galera cluster. Otherwise, COMMIT is sent separately there.
        """
        if self._is_confirmed and not only_own_rows:
            return execute_directly(self.connection, statements)
        answers = execute_directly(self.connection, statements, commits=True)
        self.has_committed = True
        return answers

    def defer_to_commit(self, statements: Sequence[Statement]) -> None:
        """Makes the statements part of the packet with COMMIT. They must not wait for other transactions' locks: if the
        connection breaks meanwhile, the outcome is unknown. On MySQL and MariaDB."""
        self._deferred_to_commit += statements

    def execute_and_allocate_event_ids(
        self, statements: Sequence[Statement], count: int, allocation: Direct = ALLOCATE_EVENT_IDS
    ) -> list[Any]:
        """Like `execute_directly`, for the last statements of the work that wait for locks. Allocates ids for ``count``
        events in the same packet; NOTIFICATION_SEQUENCE stays locked from then on. Events appended later must be about
        transactions only: if others had to acknowledge them, they would be waited for under the lock.

        :param allocation: a form of `ALLOCATE_EVENT_IDS` with a condition on which it takes none.
        """
        if not self.allocates_event_ids_early or self._allocated_event_ids is not None:
            return self.execute_directly(statements)
        *answers, allocated = self.execute_directly([*statements, (allocation, {"count": count})])
        if allocated.rows:
            self._allocated_event_ids = range(allocated.last_id, allocated.last_id + count)
        return answers

    def append_event(self, event: EventRow) -> None:
        """Adds an event to those that are written with the commit, in the same transaction (P10).

        :raises MetaException: the messages of all events have more characters than ``limits.request_event_characters``.
        """
        self._event_characters += len(event.message)
        most = input_limits().request_event_characters
        if self._event_characters > most and self._events:
            setting = exceeded("request_event_characters")
            raise MetaException(
                f"The events of this request have more than {most} characters; send it in smaller parts ({setting})"
            )
        self._events.append(event)

    @property
    def events(self) -> tuple[EventRow, ...]:
        """The events appended so far."""
        return tuple(self._events)

    @property
    def has_events(self) -> bool:
        """Whether any event was appended: true for changes of the catalog, mostly not for the server's own
        maintenance."""
        return bool(self._events)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Registers an action for after the commit (mostly deletion of files), run in order of registration.

        No connection is held then. An error in it is logged; the write stays acknowledged.
        """
        self._after_commit.append(action)

    def on_rollback(self, action: Callable[[], None], *, under_locks: bool = False) -> None:
        """Registers an action for a rollback of this attempt (mostly removal of directories), run in reverse order.

        No connection is held then. An error in it is logged; the cause of the rollback is raised.

        :param under_locks: run it before the rollback if the work fails, so that a transaction that waits for a lock
          does not find what is about to be undone. It must be fast. It runs after the rollback nevertheless if the
          database has already ended the transaction and released its locks, if a file system does not respond, or if an
          action registered later is not `under_locks`.
        """
        self._on_rollback.append((action, under_locks))

    def write_events(self, time_s: int) -> None:
        """Writes the events as the last statements before the commit, mostly a single one (`log_writes`).

        NOTIFICATION_SEQUENCE is locked first, then the log's id sequence if no ids are reserved: Hive's order.
        """
        events = self._events
        answers: list[Any] | None = None
        guard = self._guard if self._guard is not None and self._guard.announces(events) else None
        if self._allocated_event_ids is None and guard is not None:
            # From here until they learn of the commit, the others answer no read by lease. They acknowledge while the
            # lock is being taken.
            self.announced = guard.begin(events)
            answers = self._allocate_event_ids_with_queries()
        if self._allocated_event_ids is not None:
            self._log_with_commit(self._allocated_event_ids, time_s)
        elif events:
            first = self._log_at_once(time_s)
            if first is None:
                first = self._log_in_turn(time_s)
            self.last_event_id = first + len(events) - 1
        if guard is not None:
            self.announced = self.announced or guard.begin(events)
            self.announced.before_commit(self.connection, answers)

    def _allocate_event_ids_with_queries(self) -> list[Any] | None:
        """Allocates the ids in one packet with the guard's queries under the lock, and returns the answers to these.

        None, and nothing is allocated, if the guard has no queries or this is not possible.
        """
        events = self._events
        if self.announced is None or not supports_direct_statements(self.connection):
            return None
        if not can_log_at_once(self.connection, [event.message for event in events]):
            return None
        queries = self.announced.statements_under_lock(self.connection)
        if not queries:
            return None
        allocated, *answers = execute_directly(
            self.connection, [(ALLOCATE_EVENT_IDS, {"count": len(events)}), *queries]
        )
        if not allocated.rows:
            return None
        self._allocated_event_ids = range(allocated.last_id, allocated.last_id + len(events))
        return answers

    def _log_with_commit(self, allocated: range, time_s: int) -> None:
        """Prepares the rows for `commit`: the ids are known, and no further waits are necessary."""
        events = self._events
        if len(events) != len(allocated):
            # The row is locked: the following ids can be taken, and unused ones returned.
            counter = schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID
            allocate_from_counter(self.connection, counter, len(events) - len(allocated))
        if not events:
            return
        row_ids = self._ids.allocate_here(self.connection, NOTIFICATION_LOG, len(events))
        rows = rows_of_events(events, row_ids, time_s)
        numbered = [{**row, "EVENT_ID": id_} for id_, row in enumerate(rows, start=allocated.start)]
        if can_log_at_once(self.connection, [event.message for event in events]):
            self._unsent_rows = numbered
        else:
            log_with_ids(self.connection, numbered)
        self.last_event_id = allocated.start + len(events) - 1

    def commit(self) -> None:
        """Commits after `write_events`, together with the rows of the log and other statements still to be sent."""
        if self._unsent_rows or self._deferred_to_commit:
            commit_with(self.connection, self._deferred_to_commit, self._unsent_rows)
        self.connection.commit()

    @property
    def was_refused(self) -> bool:
        """After `commit` has failed: whether it is certain that nothing was committed."""
        return bool(self._unsent_rows or self._deferred_to_commit) and has_refused_rows(self.connection)

    def _log_at_once(self, time_s: int) -> int | None:
        """Writes the events in one statement; returns the id of the first. None, and nothing is written, if not
        possible."""
        if not can_log_at_once(self.connection, [event.message for event in self._events]):
            return None
        row_ids = self._ids.allocate_at_hand(NOTIFICATION_LOG, len(self._events))
        if row_ids is None:
            return None
        first = log_at_once(self.connection, rows_of_events(self._events, row_ids, time_s))
        if first is None:
            self._ids.put_back(NOTIFICATION_LOG, len(row_ids))
        return first

    def _log_in_turn(self, time_s: int) -> int:
        count = len(self._events)
        first = allocate_from_counter(self.connection, schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID, count)
        if first is None:
            begin_event_ids(self.connection, 1 + count)
            first = 1
        row_ids = self._ids.allocate_here(self.connection, NOTIFICATION_LOG, count)
        rows = rows_of_events(self._events, row_ids, time_s)
        log_with_ids(self.connection, [{**row, "EVENT_ID": id_} for id_, row in enumerate(rows, start=first)])
        return first

    def notify_committed(self) -> None:
        """Reports the commit to those to whom the write was announced."""
        if self.announced is not None and self.last_event_id is not None:
            self.announced.committed(self.last_event_id - len(self._events) + 1, self.last_event_id)

    def undo_under_locks(self) -> None:
        """After the work has failed: runs the rollback actions that are to run before the rollback."""
        first = len(self._on_rollback)
        while first and self._on_rollback[first - 1][1]:
            first -= 1
        self._on_rollback, actions = self._on_rollback[:first], self._on_rollback[first:]
        if actions:
            crash_point(CrashPoint.UNDO_BEGUN)
            _do_all("before a rollback", [action for action, _ in reversed(actions)])

    def finish(self, *, committed: bool) -> None:
        """Runs the actions registered for this outcome, and discards all others."""
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
    """Runs ``work`` in one write transaction together with its events, and returns its result after the commit.

    After a conflict (deadlock, serialization failure, lock wait) everything is run again, with random waits, at most
    ``retry_attempts`` times and not after ``retry_total_s``; once if the connection breaks before the commit; if a file
    system is slow to respond, after it has responded (`warehouse.waits`). ``work`` must have no effect except through
    its transaction and the actions registered there. Any other error rolls back and is raised.

    :param ids: number of new ids per model class that the work will take, if known. They are reserved before its
      connection is taken. Otherwise the first run finds out, unless enough are reserved already.
    :raises MetaException: a value does not fit its column.
    :raises CommitOutcomeUnknown: the connection broke while COMMIT was under way; never run again.
    :raises RetryableConflict: every attempt failed because of another transaction.
    :raises DatabaseUnavailable: no connection came free, or the database is unavailable.
    :raises RuntimeError: this thread already holds a connection.
    """
    requested = dict(ids or {})
    with waits_of_a_write() as waits:
        while True:
            try:
                result: T = run_again_if_lost(database, partial(_write_once, database, work, requested, waits))
            except NeedMoreIds as need:
                requested[need.model] = need.count
            except StillWaiting as waiting:
                waiting.wait()
            except DataError as error:
                # A value that the column cannot store: too long, out of range, of another character set.
                raise _refused(error) from error
            else:
                return result


def run_read(database: Database, work: Callable[[Connection], T]) -> T:
    """Runs ``work`` on one read-only snapshot, that of its first statement, and returns its result.

    Retried like a write, also after a stale connection. Inside `Database.snapshot` it joins that transaction and runs
    once: the owner of the snapshot has to begin again.

    :raises DatabaseUnavailable: no connection came free, or the database is unavailable.
    :raises MetaException: the database refuses a value, such as a name of megabytes.
    :raises RuntimeError: this thread already holds a connection.
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
    database: Database, work: Callable[[WriteTransaction], T], requested: Mapping[str, int], waits: FileWaits
) -> T:
    guard = database.write_guard
    if guard is not None:
        guard.ready()
    ids = _Ids(database.id_blocks, requested)
    transaction: WriteTransaction | None = None
    try:
        database.active_node.wait()
        with scheduler.holding_locks(), database.writing() as connection:
            tenure = database.active_node.tenure(connection)
            transaction = WriteTransaction(connection, ids, guard, is_confirmed=tenure is not None)
            try:
                with waits.attempt():
                    result = work(transaction)
            except StillWaiting:
                raise  # the file system that would be asked again
            except BaseException:
                transaction.undo_under_locks()
                raise
            transaction.write_events(stored_s(database.clock.epoch_s()))
            if transaction.has_events:  # not for the server's own maintenance
                crash_point(CrashPoint.BEFORE_COMMIT)
            database.thread_connections.require_not_interrupted(connection)
            if tenure is not None and not transaction.has_committed:
                database.active_node.confirm(connection, tenure)
            _commit(transaction)
            if transaction.has_events:
                crash_point(CrashPoint.AFTER_COMMIT)
                _do_all("after the commit", [transaction.notify_committed])
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
        call_context.record_events(last - len(transaction.events) + 1, last)
    for listener in database.commit_listeners:
        _do_all("after the commit", [partial(listener.committed, transaction.events, transaction.last_event_id)])
    transaction.finish(committed=True)
    return result


def _commit(transaction: WriteTransaction) -> None:
    try:
        transaction.commit()
    except (RetryableConflict, IntegrityError, DataError):
        # The database has refused it: rolled back.
        raise
    except BaseException as error:
        if transaction.was_refused:
            raise
        # Any other error, including an interrupt of this thread, does not tell what the database did.
        raise CommitOutcomeUnknown(
            f"a write was being committed when this happened: {error}", connection_lost=True
        ) from error


class _Ids:
    """The ids of one attempt: from blocks reserved before its connection was taken, on SQLite from its transaction."""

    def __init__(self, blocks: IdBlocks | None, requested: Mapping[str, int]) -> None:
        self._blocks = blocks
        self._reserved: dict[str, list[int]] = {}
        self._used: dict[str, int] = {}
        if blocks is not None:
            self._reserved = blocks.reserve({NOTIFICATION_LOG: 1, **requested})

    def allocate(self, connection: Connection, model: str, count: int) -> list[int]:
        if self._blocks is None:
            return list(allocate_ids(connection, model, count))
        allocated = self._allocate_reserved(model, count)
        if allocated is None:
            raise NeedMoreIds(model, self._used.get(model, 0) + count)
        return allocated

    def allocate_here(self, connection: Connection, model: str, count: int) -> list[int]:
        """Like :meth:`allocate`; if too few ids are reserved, takes them from the sequence's row inside the
        transaction."""
        allocated = None if self._blocks is None else self._allocate_reserved(model, count)
        return list(allocate_ids(connection, model, count)) if allocated is None else allocated

    def allocate_at_hand(self, model: str, count: int) -> list[int] | None:
        """Like :meth:`allocate`, but without any statement; None if too few ids are reserved, which is always so on
        SQLite."""
        return None if self._blocks is None else self._allocate_reserved(model, count)

    def put_back(self, model: str, count: int) -> None:
        """The last ``count`` ids taken are not in any row."""
        self._used[model] -= count

    def close(self, *, used: bool) -> None:
        """Returns ids that are not in any row: those not taken, and unless ``used``, all of them."""
        if self._blocks is not None:
            self._blocks.give_back(
                {model: ids[self._used.get(model, 0) if used else 0 :] for model, ids in self._reserved.items()}
            )
            self._reserved = {}

    def _allocate_reserved(self, model: str, count: int) -> list[int] | None:
        assert self._blocks is not None
        reserved = self._reserved.setdefault(model, [])
        start = self._used.get(model, 0)
        missing = start + count - len(reserved)
        if missing > 0:
            more = self._blocks.allocate_free(model, missing)
            if more is None:
                return None
            reserved.extend(more)
        self._used[model] = start + count
        return sorted(reserved[start : start + count])


def run_again_if_lost(database: Database, work: Callable[[], T]) -> T:
    """Runs ``work``, which opens its transaction itself, and retries as `run_write` describes. For callers that open a
    snapshot. The first attempt runs without the retry machinery, since most succeed."""
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
