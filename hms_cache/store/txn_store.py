"""`TxnStore`: transactions, write ids, locks and the compaction queue, one method per call of the protocol.

Every method is one database transaction, which is run again after a deadlock or serialization failure, or one read of
one snapshot. Requests and replies are the protocol's own structs. Docstrings list Hive's exceptions; every method may
also raise what `run_write` and `run_read` raise if the database is unavailable.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Column, Connection

from hms_cache.clock import Clock, stored_s
from hms_cache.config import Settings
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.combined_calls import CombinedCalls, Outcomes, combined_calls
from hms_cache.store.compactions import compaction_listing
from hms_cache.store.compactions import history as compaction_history
from hms_cache.store.compactions import initiator as compaction_initiator
from hms_cache.store.compactions import metrics as compaction_metrics
from hms_cache.store.compactions import queue as compaction_queue
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.locks import lock_calls, lock_listing, owners, unlocking
from hms_cache.store.replication_marks import LoggedMarks
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
)
from hms_cache.store.transactions import (
    aborting,
    committing,
    housekeeping,
    opening,
    rebuild_locks,
    snapshots,
    time_outs,
    txn_owners,
    write_notifications,
    writing,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.replicated_txns import replayed_txns
from hms_cache.store.write_ids import allocation as write_ids
from hms_cache.store.write_ids import materializations, seeding, valid_write_ids
from hms_cache.thrift_gen.hive_metastore import ttypes

T = TypeVar("T")

_LOGGER = logging.getLogger(__name__)

_OPEN_ATTEMPTS = 3
"""Attempts to open transactions. An attempt that takes too long is repeated, and then the call fails."""

_OF_LOCKS = frozenset(
    {
        lock_calls.lock,
        lock_calls.check_lock,
        lock_calls.unlock,
        unlocking.heartbeat,
        lock_listing.show_locks,
        owners.read_owned_locks,
        owners.release_lock,
        txn_owners.users_of_lock,
        time_outs.give_up_timed_out,
    }
)
"""Functions that need the tables of locks, but not those of transactions unless the request names a transaction."""

_COMPACTIONS = compaction_queue.__name__.rpartition(".")[0] + "."
"""Package of the functions that need all columns of the compaction queue and its history."""


def _refusal_of_compactions(features: SchemaFeatures) -> str | None:
    """Why the schema does not support compactions: early schemas of 4.0, and schemas in an upgrade, lack columns."""
    lacking = [
        f"{table.name}.{column.name}"
        for table in (COMPACTION_QUEUE, COMPLETED_COMPACTIONS)
        for column in table.columns
        if not features.has(column)
    ]
    if not lacking:
        return None
    return f"The metastore schema {features.version} has no {lacking[0]}: upgrade it with Hive's schematool"


_MAX_ROUNDS = 100
"""Rounds of one housekeeping step. The rest is left for the next step."""


class TxnStore:
    """Transactions and locks in Hive's tables. Thread-safe.

    `_count_lock` guards the count of open transactions and is never held during a statement.
    """

    def __init__(
        self,
        database: Database,
        messages: MessageBuilder,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        features: SchemaFeatures | None = None,
        check_cleanup: Callable[[Connection, ttypes.CompactionRequest], None] | None = None,
    ) -> None:
        """`settings`: the sections `transactions`, `compactions` and `events` are used; None: the defaults.

        `check_cleanup` raises MetaException for a directory that no cleaner may delete.
        """
        settings = settings or Settings()
        level = settings.transactions.min_history_level
        # Java metastores cannot use these rows
        use_levels = level == "on" or (level == "auto" and not database.is_sqlite)
        use_write_ids = settings.transactions.min_history_write_id
        histories: tuple[Column[Any], ...] = (MIN_HISTORY_LEVEL.c.MHL_TXNID, MIN_HISTORY_WRITE_ID.c.MH_TXNID)
        if features is not None:
            use_levels &= features.has(MIN_HISTORY_LEVEL)
            use_write_ids &= features.has(MIN_HISTORY_WRITE_ID)
            histories = tuple(txn_id for txn_id in histories if features.has(txn_id.table))
        self._refusal: str | None = None
        """Why transactions are not supported: schemas of Hive 3.1 count transaction ids elsewhere and do not store
        committed transactions."""
        self._has_locks = features is None or features.has(HIVE_LOCKS)
        if features is not None and not features.has_transaction_lock_table:
            self._refusal = (
                f"The metastore schema {features.version} has no transactions as Hive 4.0 has them: upgrade it with "
                "Hive's schematool"
            )
            _LOGGER.warning("calls about transactions are refused. %s", self._refusal)
        self._compaction_refusal = None if features is None else _refusal_of_compactions(features)
        self._database = database
        self._check_cleanup = check_cleanup
        self._context = TxnContext(
            settings.transactions,
            settings.compactions,
            settings.events,
            messages,
            clock or database.clock,
            use_levels,
            use_write_ids,
            histories,
            LoggedMarks(messages),
        )
        self.combined: Mapping[str, CombinedCalls] = (
            combined_calls(database, self._context, self._refuse_too_many, self._answer_opened)
            if self._refusal is None
            else {}
        )
        """Calls that can share a transaction, by method name."""

        self._count_lock = threading.Lock()
        self._counted_at_s: float | None = None
        self._has_too_many_open = False

    @property
    def context(self) -> TxnContext:
        """The context for functions of this package that are called inside another transaction."""
        return self._context

    def _require_tables(self, work: Callable[..., Any]) -> None:
        """Raises MetaException if the schema lacks tables that `work` needs."""
        if self._refusal is not None and not (self._has_locks and work in _OF_LOCKS):
            raise ttypes.MetaException(self._refusal)
        if work.__module__.startswith(_COMPACTIONS):
            self._require_compactions()

    def _require_compactions(self) -> None:
        """Raises MetaException if the schema lacks columns of the compaction queue."""
        refusal = self._refusal or self._compaction_refusal
        if refusal is not None:
            raise ttypes.MetaException(refusal)

    def _write(self, work: Callable[..., T], *arguments: Any) -> T:
        self._require_tables(work)
        return run_write(self._database, lambda transaction: work(transaction.connection, *arguments))

    def _log(self, work: Callable[..., T], *arguments: Any) -> T:
        """Like `_write`, for functions that append events."""
        self._require_tables(work)
        return run_write(self._database, lambda transaction: work(transaction, self._context, *arguments))

    def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        self._require_tables(work)
        return run_read(self._database, lambda connection: work(connection, *arguments))

    # Transactions

    def open_txns(self, request: ttypes.OpenTxnRequest) -> ttypes.OpenTxnsResponse:
        """Opens transactions; see `opening.open_txns`.

        Raises MetaException if the number is invalid, if too many are open (`transactions.max_open`), or if every
        attempt took longer than `transactions.open_timeout_ms`.
        """
        self._refuse_too_many()
        for _ in range(_OPEN_ATTEMPTS):
            opened, started_s = self._log(self._open, request)
            # Transactions that an earlier replay opened are kept: they may have written since.
            if not opened.are_new or not self._is_late(request, opened.txn_ids, started_s):
                return ttypes.OpenTxnsResponse(txn_ids=opened.txn_ids)
        raise ttypes.MetaException("OpenTxnTimeOut exceeded")

    def _is_late(self, request: ttypes.OpenTxnRequest, txn_ids: list[int], started_s: float) -> bool:
        """Whether opening the transactions took too long; if so, they have been aborted."""
        timeout_s = self._context.transactions.open_timeout_ms / 1000
        if self._context.clock.monotonic_s() - started_s < timeout_s:
            return False
        if self._database.is_sqlite or request.txn_type == ttypes.TxnType.READ_ONLY:
            return False
        # Readers may already have treated the ids as gaps that stay empty, so nothing may be written under them.
        _LOGGER.warning("opening transactions %s took longer than %g s: aborting them", txn_ids, timeout_s)
        self._log(aborting.abort_late_txns, txn_ids, opening.is_logged(request))
        return True

    def _answer_opened(self, requests: Sequence[ttypes.OpenTxnRequest], opened: Outcomes) -> Outcomes:
        """Replies to requests that were carried out together. Those that took too long are opened again, one by one."""
        outcomes: list[Any] = []
        for request, (txn_ids, started_s) in zip(requests, opened, strict=True):
            try:
                is_late = self._is_late(request, txn_ids, started_s)
                outcomes.append(self.open_txns(request) if is_late else ttypes.OpenTxnsResponse(txn_ids=txn_ids))
            except Exception as error:
                outcomes.append(error)
        return outcomes

    def _open(
        self, transaction: WriteTransaction, context: TxnContext, request: ttypes.OpenTxnRequest
    ) -> tuple[opening.OpenedTxns, float]:
        """The opened transactions, and the start of the attempt that allocated the ids (seconds of the monotonic
        clock)."""
        started_s = context.clock.monotonic_s()
        return opening.open_or_find_txns(transaction, context, request), started_s

    def _refuse_too_many(self) -> None:
        """Raises MetaException if the limit of open transactions is reached."""
        settings, now_s = self._context.transactions, self._context.clock.monotonic_s()
        with self._count_lock:
            is_due = self._counted_at_s is None or now_s - self._counted_at_s >= settings.open_count_interval_s
            if is_due:
                self._counted_at_s = now_s
        if is_due:
            count = self._read(opening.count_open_txns)
            with self._count_lock:
                limit = settings.max_open * (0.9 if self._has_too_many_open else 1.0)
                self._has_too_many_open = count >= limit
        if self._has_too_many_open:
            raise ttypes.MetaException(
                "Maximum allowed number of open transactions has been reached. See hive.max.open.txns."
            )

    def get_open_txns(self) -> ttypes.GetOpenTxnsResponse:
        """Open and aborted transactions, ascending, and the high-water mark. Read-only transactions are left out."""
        return snapshots.open_txns_response(self._snapshot(), snapshots.excluded_types(None))

    def get_open_txns_req(self, request: ttypes.GetOpenTxnsRequest) -> ttypes.GetOpenTxnsResponse:
        """Like `get_open_txns`, without transactions of the types that the request excludes."""
        return snapshots.open_txns_response(self._snapshot(), snapshots.excluded_types(request))

    def get_open_txns_info(self) -> ttypes.GetOpenTxnsInfoResponse:
        """Like `get_open_txns`, with the user and the start time of each transaction."""
        return snapshots.open_txns_info_response(self._snapshot(True))

    def _snapshot(self, with_details: bool = False) -> snapshots.TxnSnapshot:
        return self._read(snapshots.read_snapshot, self._context.transactions.open_timeout_ms, with_details)

    def commit_txn(self, request: ttypes.CommitTxnRequest) -> None:
        """Commits; see `committing.commit_txn`.

        Raises TxnAbortedException (aborted before, or now because of a conflicting commit), NoSuchTxnException,
        MetaException (key/value).
        """
        try:
            self._log(committing.commit_txn, request)
        except committing.WriteConflict as conflict:
            self._log(committing.abort_loser, conflict.txn_id)
            raise conflict.error from conflict

    def abort_txn(self, request: ttypes.AbortTxnRequest) -> None:
        """Aborts one transaction. Raises NoSuchTxnException (committed or unknown)."""
        self._log(aborting.abort_txn, request)

    def abort_txns(self, request: ttypes.AbortTxnsRequest) -> list[int]:
        """Aborts those that are open, and returns their ids. The others are only logged, as in Hive."""
        aborted = self._log(aborting.abort_txns, request)
        if len(aborted) < len(set(request.txn_ids)):
            _LOGGER.warning(
                "aborted %d of %d transactions: the others were aborted or committed already, or are unknown",
                len(aborted),
                len(set(request.txn_ids)),
            )
        return aborted

    def seed_txn_id(self, request: ttypes.SeedTxnIdRequest) -> None:
        """Sets the id of the next transaction. Raises MetaException unless it is above all existing ids."""
        self._write(seeding.seed_txn_id, request)

    def get_replayed_txns_for_policy(self, policy: str) -> ttypes.ReplayedTxnsForPolicyResult:
        """The source's transactions that are open here under a replication policy, with their ids here (all as
        text)."""
        return ttypes.ReplayedTxnsForPolicyResult(replTxnMapEntry=self._read(replayed_txns, policy))

    def get_latest_txnid_in_conflict(self, txn_id: int) -> int:
        """The id of the latest committed transaction that conflicts with this one, 0 for none."""
        return self._read(writing.latest_txn_id_in_conflict, txn_id)

    def add_dynamic_partitions(self, request: ttypes.AddDynamicPartitions) -> None:
        """Records partitions that a transaction wrote. Raises NoSuchTxnException, TxnAbortedException."""
        self._write(writing.add_dynamic_partitions, request)

    # Write ids

    def allocate_table_write_ids(
        self, request: ttypes.AllocateTableWriteIdsRequest
    ) -> ttypes.AllocateTableWriteIdsResponse:
        """Allocates write ids of a table for transactions. Raises MetaException if one of them is not open."""
        return self._log(write_ids.allocate_table_write_ids, request)

    def get_valid_write_ids(self, request: ttypes.GetValidWriteIdsRequest) -> ttypes.GetValidWriteIdsResponse:
        """The write-id lists of tables in a snapshot, and the tables' ids. Raises MetaException."""
        return self._read(valid_write_ids.get_valid_write_ids, self._context, request)

    def get_max_allocated_table_write_id(
        self, request: ttypes.MaxAllocatedTableWriteIdRequest
    ) -> ttypes.MaxAllocatedTableWriteIdResponse:
        """The highest write id allocated for a table, 0 for none."""
        return ttypes.MaxAllocatedTableWriteIdResponse(maxWriteId=self._read(write_ids.max_allocated_write_id, request))

    def seed_write_id(self, request: ttypes.SeedTableWriteIdsRequest) -> None:
        """Makes the write ids of a converted table begin above the seed. Raises MetaException if it already has
        some."""
        self._write(write_ids.seed_write_id, request)

    def repl_tbl_writeid_state(self, request: ttypes.ReplTblWriteIdStateRequest) -> None:
        """Sets a replicated table's write ids as in its source, and queues a compaction of what was aborted there.

        Raises MetaException.
        """
        self._log(_set_write_id_state, request)

    def add_write_ids_to_min_history(self, txn_id: int, lowest_write_ids: Mapping[str, int]) -> None:
        """Records the lowest write id, by `db.table`, that a transaction may read. Raises NoSuchTxnException,
        TxnAbortedException."""
        self._write(writing.add_write_ids_to_min_history, self._context, txn_id, lowest_write_ids)

    # Owners

    def users_of_txns(self, txn_ids: Sequence[int]) -> dict[int, str]:
        """The user of each transaction; see `txn_owners`."""
        return self._read(txn_owners.users_of_txns, txn_ids)

    def users_of_range(self, first: int, last: int) -> set[str]:
        """The users of the transactions with ids in this range."""
        return self._read(txn_owners.users_of_range, first, last)

    def users_of_lock(self, lock_id: int) -> set[str]:
        """The users that took this lock."""
        return self._read(txn_owners.users_of_lock, lock_id)

    # Locks

    def lock(self, request: ttypes.LockRequest) -> ttypes.LockResponse:
        """Acquires all locks of the request, or waits for all; see `locking.lock`.

        Raises NoSuchTxnException, TxnAbortedException, MetaException.
        """
        return self._log(lock_calls.lock, request)

    def check_lock(self, request: ttypes.CheckLockRequest) -> ttypes.LockResponse:
        """Tries again to acquire a waiting lock. Raises NoSuchLockException, NoSuchTxnException,
        TxnAbortedException."""
        return self._log(lock_calls.check_lock, request)

    def unlock(self, request: ttypes.UnlockRequest) -> None:
        """Releases a lock. Raises TxnOpenException if it belongs to a transaction."""
        self._log(lock_calls.unlock, request)

    def show_locks(self, request: ttypes.ShowLocksRequest) -> ttypes.ShowLocksResponse:
        """All locks, held and waiting."""
        return self._read(lock_listing.show_locks, request)

    @property
    def timeout_s(self) -> float:
        """Time after which a lock or transaction without a heartbeat expires."""
        return self._context.transactions.timeout_s

    def owned_locks(self) -> owners.OwnedLocks:
        """For administrators: the oldest locks, at most 1,000, and whether their owners still send heartbeats."""
        if not self._has_locks:
            return owners.OwnedLocks((), True)
        return self._read(owners.read_owned_locks, self._context)

    def release_lock(self, lock_id: int, force: bool) -> None:
        """For administrators; see `owners.release_lock`. Raises NoSuchLockException, TxnOpenException, LockIsLive."""
        self._write(owners.release_lock, self._context, lock_id, force)

    def heartbeat(self, request: ttypes.HeartbeatRequest) -> None:
        """Records a heartbeat. Raises NoSuchLockException, NoSuchTxnException, TxnAbortedException."""
        self._write(unlocking.heartbeat, request)

    def heartbeat_txn_range(self, request: ttypes.HeartbeatTxnRangeRequest) -> ttypes.HeartbeatTxnRangeResponse:
        """Records heartbeats of many transactions; returns which of them have ended. Raises MetaException for an
        invalid range."""
        return self._write(unlocking.heartbeat_txn_range, request)

    # Materialized views

    def get_lock_materialization_rebuild(self, database: str, table: str, txn_id: int) -> ttypes.LockResponse:
        """Returns ACQUIRED or NOT_ACQUIRED. Raises NoSuchTxnException, TxnAbortedException."""
        return self._write(rebuild_locks.lock_materialization_rebuild, database, table, txn_id)

    def heartbeat_lock_materialization_rebuild(self, database: str, table: str, txn_id: int) -> bool:
        """Whether the rebuild still holds its lock."""
        return self._write(rebuild_locks.heartbeat_materialization_rebuild, database, table, txn_id)

    def get_materialization_invalidation_info(
        self, creation_metadata: ttypes.CreationMetadata, valid_txn_list: str | None
    ) -> ttypes.Materialization:
        """Whether a view's tables were changed or compacted since the view was built. Raises MetaException."""
        return self._read(materializations.materialization_invalidation_info, creation_metadata, valid_txn_list)

    # Compactions

    def compact2(self, request: ttypes.CompactionRequest) -> ttypes.CompactionResponse:
        """Queues a compaction (`compact` is the same without a reply). Raises MetaException."""
        return self._write(compaction_queue.compact, self._context, request)

    def submit_for_cleanup(self, request: ttypes.CompactionRequest, highest_write_id: int, txn_id: int) -> bool:
        """Queues a directory that only needs cleaning. Raises MetaException, also if the directory must not be
        deleted."""
        self._require_compactions()

        def work(connection: Connection) -> bool:
            if self._check_cleanup is not None:
                self._check_cleanup(connection, request)
            return compaction_queue.submit_for_cleanup(connection, request, highest_write_id, txn_id)

        return self._write(work)

    def show_compact(self, request: ttypes.ShowCompactRequest) -> ttypes.ShowCompactResponse:
        """Compactions that wait, run or have ended. Raises MetaException for an unknown order."""
        return self._read(compaction_listing.show_compactions, request)

    def abort_compactions(self, request: ttypes.AbortCompactionRequest) -> ttypes.AbortCompactResponse:
        """Removes compactions that no worker has begun (`abort_Compactions`). Raises MetaException without ids."""
        return self._write(compaction_history.abort_compactions, request)

    def find_next_compact2(self, request: ttypes.FindNextCompactRequest) -> ttypes.OptionalCompactionInfoStruct:
        """Returns the next compaction for a worker (`find_next_compact`: the same by worker id). Raises
        MetaException."""
        entry = self._write(compaction_queue.find_next_compaction, self._context, request)
        return ttypes.OptionalCompactionInfoStruct(ci=entry)

    def update_compactor_state(self, entry: ttypes.CompactionInfoStruct, txn_id: int) -> None:
        """Records the state of a running compaction. Raises MetaException for an unknown entry."""
        self._write(compaction_queue.update_compactor_state, entry, txn_id)

    def find_columns_with_stats(self, entry: ttypes.CompactionInfoStruct) -> list[str]:
        """Columns whose statistics a compaction recomputes."""
        return self._read(compaction_queue.find_columns_with_stats, entry)

    def set_hadoop_jobid(self, job_id: str, compaction_id: int) -> None:
        """Records the job that runs a compaction."""
        self._write(compaction_queue.set_hadoop_job_id, job_id, compaction_id)

    def mark_compacted(self, entry: ttypes.CompactionInfoStruct) -> None:
        """Marks an entry as compacted. Raises MetaException for an unknown entry."""
        self._write(compaction_queue.mark_compacted, entry)

    def mark_cleaned(self, entry: ttypes.CompactionInfoStruct) -> None:
        """Marks an entry as cleaned. Raises MetaException for an unknown entry."""
        self._write(compaction_history.mark_cleaned, entry)

    def mark_failed(self, entry: ttypes.CompactionInfoStruct) -> None:
        """Marks an entry as failed. Raises MetaException for an unknown entry."""
        self._write(compaction_history.mark_failed, entry)

    def mark_refused(self, entry: ttypes.CompactionInfoStruct) -> None:
        """Marks an entry as refused: the worker found nothing to compact. Raises MetaException for an unknown entry."""
        self._write(compaction_history.mark_refused, entry)

    def get_latest_committed_compaction_info(
        self, request: ttypes.GetLatestCommittedCompactionInfoRequest
    ) -> ttypes.GetLatestCommittedCompactionInfoResponse:
        """The latest compactions of a table whose results are visible to readers."""
        return self._read(compaction_history.latest_committed_compactions, request)

    def update_compaction_metrics_data(self, data: ttypes.CompactionMetricsDataStruct) -> bool:
        """Sets a counter of deltas. False if another report changed it meanwhile."""
        return self._write(compaction_metrics.update_compaction_metrics, data)

    def remove_compaction_metrics_data(self, request: ttypes.CompactionMetricsDataRequest) -> None:
        """Removes a counter of deltas."""
        self._write(compaction_metrics.remove_compaction_metrics, request)

    # Write notifications

    def add_write_notifications(self, writes: Sequence[write_notifications.TableWrite]) -> None:
        """Records what a transaction wrote, for `add_write_notification_log(_in_batch)`."""
        self._require_tables(write_notifications.add_write_notifications)
        now_s = stored_s(self._context.clock.epoch_s())
        run_write(
            self._database, lambda transaction: write_notifications.add_write_notifications(transaction, writes, now_s)
        )

    def get_all_write_event_info(self, request: ttypes.GetAllWriteEventInfoRequest) -> list[ttypes.WriteEventInfo]:
        """The recorded writes of a transaction."""
        return self._read(write_notifications.all_write_event_info, request)

    # Steps of background services; each holds a mutex between servers while it runs

    def give_up_timed_out(self, longest_pause_s: float | None = None) -> time_outs.TimedOut:
        """Aborts transactions and deletes locks whose clients send no heartbeats: one step, in rounds of 1,000.

        `longest_pause_s`: if no server has run this step for longer than this, nothing expires now, nor for one timeout
        from now. None: the caller guarantees that the step has been running.
        """
        pause_ms = None if longest_pause_s is None else whole_milliseconds(longest_pause_s)
        txns = locks = rebuild_locks = 0
        if self._refusal is not None and not self._has_locks:
            return time_outs.TimedOut(0, 0, 0)
        for _ in range(_MAX_ROUNDS):
            given_up = self._log(time_outs.give_up_timed_out, pause_ms, self._refusal is not None)
            txns, locks = txns + given_up.txns, locks + given_up.locks
            rebuild_locks += given_up.rebuild_locks
            if given_up.is_complete:
                break
        return time_outs.TimedOut(txns, locks, rebuild_locks)

    def clean(self) -> housekeeping.Cleaned:
        """Deletes rows that are no longer needed: one step, in rounds of 10,000 rows of a table."""
        total = housekeeping.Cleaned(0, 0, 0, 0, 0)
        if self._refusal is not None:
            return total
        cleaned: housekeeping.Cleaned | None = None
        for _ in range(_MAX_ROUNDS):
            cleaned = self._write(housekeeping.clean, self._context, cleaned)
            total = total.plus(cleaned)
            if cleaned.is_complete:
                break
        return total

    def keep_compactions(self) -> int:
        """Returns compactions of lost workers to the queue and shortens the history. Returns the number of changed
        rows."""
        if self._refusal is not None or self._compaction_refusal is not None:
            return 0

        def work(connection: Connection) -> int:
            hold_mutex(connection, Mutex.HOUSEKEEPER)
            revoked = compaction_queue.revoke_from_lost_workers(connection, self._context)
            return revoked + compaction_history.purge_history(connection, self._context)

        return self._write(work)

    def initiate_compactions(self, initiator_id: str) -> list[int]:
        """Queues the compactions that tables need, and returns the ids of the new entries. `initiator_id` names this
        server."""
        if self._refusal is not None or self._compaction_refusal is not None:
            return []
        return self._write(compaction_initiator.initiate_compactions, self._context, initiator_id)


def _set_write_id_state(
    transaction: WriteTransaction, context: TxnContext, request: ttypes.ReplTblWriteIdStateRequest
) -> None:
    # Before any event is logged: from then on no one may wait for the mutex of the queue.
    hold_mutex(transaction.connection, Mutex.COMPACTION_SCHEDULER)
    if write_ids.repl_tbl_writeid_state(transaction, context, request):
        compaction_queue.compact_replicated(
            transaction.connection, context, request.dbName, request.tableName, request.partNames
        )
