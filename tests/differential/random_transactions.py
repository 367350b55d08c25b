"""Random sequences of calls on transactions, locks and compactions, the same for two metastores.

Calls that Java is known to handle incorrectly are omitted, as its state would differ from then on: locks for ended
transactions (it grants them), write ids for several transactions, one of which has its own already (it fails), locks of
writers on whole databases (it records them without a table), shared write locks of clients that say they lock
exclusively (it lets the second one overwrite the first), cleaning of missing entries, writes of read-only transactions
(it does not delete their components), `abort_txns` with repeated ids (it fails) or with 0 (it releases the locks that
belong to no transaction).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, text
from thrift.Thrift import TApplicationException, TException

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.differential.comparison import plain

TABLES = ("t", "u")
PARTITIONS = (None, None, "p=1", "p=2")
UNKNOWN = 5_000
WRITES = (t.DataOperationType.INSERT, t.DataOperationType.UPDATE, t.DataOperationType.DELETE)
TXN_TYPES = (
    *([t.TxnType.DEFAULT] * 6),
    *(t.TxnType.READ_ONLY, t.TxnType.COMPACTION, t.TxnType.REBALANCE_COMPACTION),
    *(t.TxnType.SOFT_DELETE, t.TxnType.MATER_VIEW_REBUILD),
)
Request = tuple[str, tuple[Any, ...]]


@dataclass
class History:
    """What a sequence has created so far, according to the answers."""

    seed: int
    generator: random.Random
    open: dict[int, int] = field(default_factory=dict)
    """Type by id."""
    over: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    sharing: set[int] = field(default_factory=set)
    """Transactions with shared write locks."""
    write_ids: set[tuple[int, str]] = field(default_factory=set)
    locks: list[int] = field(default_factory=list)
    sources: int = 100
    replayed: dict[int, int] = field(default_factory=dict)
    compactions: list[int] = field(default_factory=list)
    working: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)

    def next_request(self) -> Request:
        """The next call to send."""
        makers = (
            *((self._open, 9), (self._commit, 7), (self._abort, 3), (self._abort_all, 1), (self._allocate, 8)),
            *((self._lock, 14), (self._check, 8), (self._unlock, 3), (self._heartbeat, 4), (self._range, 1)),
            *((self._valid, 4), (self._listed, 4), (self._conflict, 4), (self._partitions, 4), (self._shown, 3)),
            *((self._compact, 4), (self._take, 3), (self._note, 2), (self._finish, 4), (self._seen, 3)),
            *((self._replay, 2), (self._end_replayed, 2), (self._submit, 1)),
        )
        while True:
            (maker,) = self.generator.choices([one for one, _ in makers], [weight for _, weight in makers])
            request = maker()
            if request is not None:
                return request

    def _one(self, ids: Sequence[int], *, known: float = 0.9) -> int:
        """Returns one of these, or sometimes one that has ended or never existed."""
        if ids and self.generator.random() < known:
            # Usually a recent one: those conflict.
            return self.generator.choice(list(ids)[-6:])
        return self.generator.choice([*self.over[-5:], *self.aborted[-5:], UNKNOWN, 0])

    def _alive(self) -> int | None:
        """Returns a transaction that is open, aborted or unknown; Java answers incorrectly about others."""
        if self.open and self.generator.random() < 0.93:
            return self.generator.choice(list(self.open)[-6:])
        return self.generator.choice([*self.aborted[-5:], UNKNOWN])

    def _table(self) -> str:
        return self.generator.choice(TABLES)

    def _open(self) -> Request:
        request = t.OpenTxnRequest(self.generator.choice((1, 1, 1, 2, 3)), "u", "h")
        request.txn_type = self.generator.choice(TXN_TYPES)
        return "open_txns", (request,)

    def _commit(self) -> Request:
        txn_id = self._one(list(self.open))
        exclusive = txn_id not in self.sharing and self.generator.random() < 0.5
        return "commit_txn", (t.CommitTxnRequest(txn_id, exclWriteEnabled=exclusive),)

    def _abort(self) -> Request:
        return "abort_txn", (t.AbortTxnRequest(self._one(list(self.open))),)

    def _abort_all(self) -> Request | None:
        some = list(self.open)[-6:]
        ids = self.generator.sample(some, min(2, len(some)))
        return ("abort_txns", (t.AbortTxnsRequest(ids),)) if ids else None

    def _allocate(self) -> Request | None:
        txn_id = self._alive()
        if txn_id is None or self.open.get(txn_id) == t.TxnType.READ_ONLY:
            return None
        return "allocate_table_write_ids", (t.AllocateTableWriteIdsRequest("d", self._table(), [txn_id]),)

    def _lock(self) -> Request:
        txn_id = None if self.generator.random() < 0.2 else self._alive()
        parts = [self._component(txn_id) for _ in range(self.generator.choice((1, 1, 2)))]
        request = t.LockRequest(parts, txn_id, "u", "h")
        request.zeroWaitReadEnabled = self.generator.random() < 0.2
        request.exclusiveCTAS = self.generator.random() < 0.05
        return "lock", (request,)

    def _component(self, txn_id: int | None) -> t.LockComponent:
        choose = self.generator.choice
        level = choose((t.LockLevel.TABLE, t.LockLevel.TABLE, t.LockLevel.PARTITION, t.LockLevel.DB))
        component = t.LockComponent(choose(sorted(t.LockType._VALUES_TO_NAMES)), level, "d", isTransactional=True)
        component.operationType = t.DataOperationType.SELECT
        if level == t.LockLevel.DB:
            return component
        component.tablename = self._table()
        if level == t.LockLevel.PARTITION:
            component.partitionname = choose(("p=1", "p=2"))
        is_reader = txn_id is None or self.open.get(txn_id) in (t.TxnType.READ_ONLY, t.TxnType.SOFT_DELETE)
        if not is_reader and self.generator.random() < 0.7:
            component.operationType = choose(WRITES)
            component.isDynamicPartitionWrite = level == t.LockLevel.TABLE and self.generator.random() < 0.2
        return component

    def _check(self) -> Request | None:
        return ("check_lock", (t.CheckLockRequest(self._lock_id()),)) if self.locks else None

    def _unlock(self) -> Request | None:
        return ("unlock", (t.UnlockRequest(self._lock_id()),)) if self.locks else None

    def _lock_id(self) -> int:
        return self.generator.choice([*self.locks[-8:], UNKNOWN])

    def _heartbeat(self) -> Request:
        txn_id = self._one(list(self.open)) if self.generator.random() < 0.7 else 0
        lock_id = self._lock_id() if self.locks and self.generator.random() < 0.5 else 0
        return "heartbeat", (t.HeartbeatRequest(lock_id, txn_id),)

    def _range(self) -> Request:
        first = self._one(list(self.open)) or 1
        return "heartbeat_txn_range", (t.HeartbeatTxnRangeRequest(first, first + 3),)

    def _valid(self) -> Request:
        return "get_valid_write_ids", (t.GetValidWriteIdsRequest([f"d.{name}" for name in TABLES]),)

    def _listed(self) -> Request:
        excluded = self.generator.choice(([], [t.TxnType.READ_ONLY], [t.TxnType.COMPACTION, t.TxnType.SOFT_DELETE]))
        return self.generator.choice((("get_open_txns", ()), ("get_open_txns_req", (t.GetOpenTxnsRequest(excluded),))))

    def _conflict(self) -> Request:
        return "get_latest_txnid_in_conflict", (self._one(list(self.open)),)

    def _partitions(self) -> Request | None:
        txn_id = self._alive()
        if self.open.get(txn_id or 0) in (t.TxnType.READ_ONLY, t.TxnType.SOFT_DELETE):
            return None
        names = self.generator.sample(["p=1", "p=2", "p=3"], 2)
        request = t.AddDynamicPartitions(txn_id, self.generator.randint(1, 9), "d", self._table(), names)
        request.operationType = self.generator.choice(WRITES)
        return "add_dynamic_partitions", (request,)

    def _shown(self) -> Request:
        return "show_locks", (t.ShowLocksRequest(),)

    def _compact(self) -> Request:
        request = t.CompactionRequest("d", self._table(), self.generator.choice(PARTITIONS))
        request.type = self.generator.choice((t.CompactionType.MAJOR, t.CompactionType.MINOR))
        request.poolName = self.generator.choice((None, None, "pool"))
        request.runas = self.generator.choice((None, "somebody"))
        return "compact2", (request,)

    def _take(self) -> Request:
        request = t.FindNextCompactRequest("worker", "4.0.1", self.generator.choice((None, None, "pool")))
        return "find_next_compact2", (request,)

    def _entry(self, compaction_id: int) -> t.CompactionInfoStruct:
        entry = t.CompactionInfoStruct(compaction_id, "d", self._table(), type=t.CompactionType.MAJOR)
        entry.highestWriteId = self.generator.choice((None, 1, 2, 5))
        entry.runas = self.generator.choice((None, "other"))
        entry.errorMessage = self.generator.choice((None, "failed"))
        return entry

    def _note(self) -> Request | None:
        compacting = [txn_id for txn_id, kind in self.open.items() if kind == t.TxnType.COMPACTION]
        if not self.working or not compacting:
            return None
        txn_id = self.generator.choice(compacting[-6:])
        return "update_compactor_state", (self._entry(self.generator.choice(self.working)), txn_id)

    def _finish(self) -> Request | None:
        methods = {"mark_compacted": self.working, "mark_cleaned": self.ready, "mark_failed": self.working}
        method = self.generator.choice([*methods, "mark_refused", "abort_Compactions"])
        if method == "abort_Compactions":
            wanted = [*self.compactions[-5:], UNKNOWN]
            ids = [self.generator.choice(wanted) for _ in range(2)]
            return method, (t.AbortCompactionRequest(ids),)
        ids = methods.get(method, self.working)
        return (method, (self._entry(self.generator.choice(ids)),)) if ids else None

    def _seen(self) -> Request:
        latest = t.GetLatestCommittedCompactionInfoRequest("d", self._table())
        return self.generator.choice(
            (
                ("show_compact", (t.ShowCompactRequest(order='"CC_ID"'),)),
                ("get_latest_committed_compaction_info", (latest,)),
            )
        )

    def _replay(self) -> Request:
        if self.replayed and self.generator.random() < 0.4:
            first = self.generator.choice(list(self.replayed))
        else:
            first, self.sources = self.sources, self.sources + 2
        request = t.OpenTxnRequest(2, "u", "h", replPolicy="d.*", replSrcTxnIds=[first, first + 1])
        request.txn_type = t.TxnType.REPL_CREATED
        if first % 2:
            request.replSrcTxnIds = [first - 1, first]
        return "open_txns", (request,)

    def _end_replayed(self) -> Request | None:
        if not self.replayed:
            return None
        fields = {"replPolicy": "d.*", "txn_type": t.TxnType.REPL_CREATED}
        source = self.generator.choice([*self.replayed, UNKNOWN])
        if self.generator.random() < 0.5:
            return "abort_txn", (t.AbortTxnRequest(source, **fields),)
        return "commit_txn", (t.CommitTxnRequest(source, **fields),)

    def _submit(self) -> Request | None:
        if not self.open:
            return None
        request = t.CompactionRequest("d", self._table(), self.generator.choice(PARTITIONS))
        request.type, request.properties = t.CompactionType.MAJOR, {"x": "y"}
        return "submit_for_cleanup", (request, self.generator.randint(0, 5), self.generator.choice(list(self.open)))

    # The contents of the answers

    def learn(self, request: Request, outcome: Outcome) -> None:
        """Records a call's effect."""
        method, arguments = request
        if outcome.error:
            if method in ("commit_txn", "check_lock", "lock") and outcome.error == "TxnAbortedException":
                txn_id = getattr(arguments[0], "txnid", None)
                if method == "commit_txn" and not arguments[0].replPolicy:
                    self._end(txn_id, self.aborted)
            return
        value = outcome.answer
        learned: dict[str, Callable[[], None]] = {
            "open_txns": lambda: self._learn_opened(arguments[0], value.txn_ids),
            "commit_txn": lambda: self._learn_end(arguments[0], self.over),
            "abort_txn": lambda: self._learn_end(arguments[0], self.aborted),
            "abort_txns": lambda: [self._end(one, self.aborted) for one in arguments[0].txn_ids] and None,
            "lock": lambda: self._learn_lock(arguments[0], value),
            "compact2": lambda: self.compactions.append(value.id) if value.accepted else None,
            "find_next_compact2": lambda: self.working.append(value.ci.id) if value.ci else None,
            "mark_compacted": lambda: self._move(arguments[0].id, self.working, self.ready),
            "mark_cleaned": lambda: self._move(arguments[0].id, self.ready, None),
            "mark_failed": lambda: self._move(arguments[0].id, self.working, None),
            "mark_refused": lambda: self._move(arguments[0].id, self.working, None),
        }
        if method in learned:
            learned[method]()

    def _learn_opened(self, request: t.OpenTxnRequest, ids: Sequence[int]) -> None:
        for position, txn_id in enumerate(ids):
            if request.replSrcTxnIds and len(ids) == len(request.replSrcTxnIds):
                self.replayed[request.replSrcTxnIds[position]] = txn_id
            if txn_id not in self.aborted and txn_id not in self.over:
                self.open[txn_id] = request.txn_type

    def _learn_end(self, request: Any, state: list[int]) -> None:
        if request.replPolicy:
            target = self.replayed.pop(request.txnid, None)
            if target is not None:
                self._end(target, state)
        else:
            self._end(request.txnid, state)

    def _end(self, txn_id: int, state: list[int]) -> None:
        if self.open.pop(txn_id, None) is not None:
            state.append(txn_id)
            self.replayed = {source: target for source, target in self.replayed.items() if target != txn_id}

    def _learn_lock(self, request: t.LockRequest, answer: t.LockResponse) -> None:
        self.locks.append(answer.lockid)
        if request.txnid and any(one.type == t.LockType.SHARED_WRITE for one in request.component):
            self.sharing.add(request.txnid)

    @staticmethod
    def _move(compaction_id: int, source: list[int], target: list[int] | None) -> None:
        if compaction_id in source:
            source.remove(compaction_id)
        if target is not None:
            target.append(compaction_id)


# Outcomes


@dataclass(frozen=True)
class Outcome:
    """The answer to a call: a value, or the name of the exception."""

    answer: Any = None
    error: str = ""
    text: str = ""


#: Times, texts, and what `reasons` explains.
_NOT_COMPARED = {
    *(
        "acquiredat",
        "agentInfo",
        "cleanerStart",
        "commitTime",
        "endTime",
        "enqueueTime",
        "errorMessage",
        "errormessage",
    ),
    *("catname", "hightestWriteId", "lastheartbeat", "metaInfo", "nextTxnId", "start", "startedTime", "tableId"),
    *("blockedByExtId", "blockedByIntId", "heartbeatCount", "hasoldabort", "toomanyaborts", "retryRetention"),
}
_OF_WORKERS = {"runas", "state", "workerId"}


def send(side: Any, request: Request) -> Outcome:
    """One call."""
    method, arguments = request
    try:
        return Outcome(side.call(method, *arguments))
    except TApplicationException as error:
        return Outcome(error="fault", text=str(error.message))
    except TException as error:
        return Outcome(error=type(error).__name__, text=str(getattr(error, "message", error)))


def difference(request: Request, java: Outcome, ours: Outcome) -> str | None:
    """Returns how the answers differ; None if they do not, or this project's answer is known to be correct."""
    if java.error == "fault" and ours.error:
        return None  # Java fails with an internal error where ours gives the reason.
    if java.error != ours.error:
        answered = [f"{one.error or 'answered'} {one.text[:300]} {one.answer}" for one in (java, ours)]
        return f"java {answered[0]}, ours {answered[1]}"
    if java.error:
        return None
    ignored = _NOT_COMPARED | (_OF_WORKERS if request[0].startswith("find_next") else set())
    one, other = (_compared(outcome.answer, ignored) for outcome in (java, ours))
    return None if one == other else f"java {one}, ours {other}"


def _compared(value: Any, ignored: set[str]) -> Any:
    value = plain(value) if not isinstance(value, dict | list | str | int | float | bool | type(None)) else value
    if isinstance(value, dict):
        found = {key: _compared(item, ignored) for key, item in value.items() if key not in ignored}
        return {key: item for key, item in found.items() if item not in (None, "", 0, [], {})}
    if isinstance(value, list):
        items = [_compared(item, ignored) for item in value]
        return sorted(items, key=repr) if all(isinstance(item, dict) for item in items) else items
    return value


# Failing sequences


def shrunk(calls: Sequence[Request], fails: Callable[[Sequence[Request]], bool], max_runs: int) -> list[Request]:
    """A part of the calls that still fails, from which no run of calls of any tried length can be removed.

    Delta debugging: halves are removed first, then quarters, down to single calls, within `max_runs`. Ids are those of
    the whole sequence: a call whose transaction was removed meets an unknown one, on both sides.
    """
    left, length, runs = list(calls), max(1, len(calls) // 2), 0
    while runs < max_runs:
        start, is_smaller = 0, False
        while start < len(left) and runs < max_runs:
            candidate = left[:start] + left[start + length :]
            runs += 1
            if candidate and fails(candidate):
                left, is_smaller = candidate, True
            else:
                start += length
        if length == 1 and not is_smaller:
            break
        length = max(1, length // 2)
    return left


# Rows

_ROWS = {
    "TXNS": "SELECT TXN_ID, TXN_STATE, TXN_TYPE FROM TXNS WHERE TXN_ID > 0",
    "TXN_COMPONENTS": "SELECT TC_TXNID, TC_DATABASE, TC_TABLE, TC_PARTITION, TC_OPERATION_TYPE, COALESCE(TC_WRITEID, 0)"
    " FROM TXN_COMPONENTS",
    "COMPLETED_TXN_COMPONENTS": "SELECT CTC_TXNID, CTC_DATABASE, CTC_TABLE, CTC_PARTITION, CTC_WRITEID,"
    " CTC_UPDATE_DELETE FROM COMPLETED_TXN_COMPONENTS",
    "WRITE_SET": "SELECT WS_DATABASE, WS_TABLE, WS_PARTITION, WS_TXNID, WS_COMMIT_ID, WS_OPERATION_TYPE FROM WRITE_SET",
    "HIVE_LOCKS": "SELECT HL_LOCK_EXT_ID, HL_LOCK_INT_ID, HL_TXNID, HL_DB, HL_TABLE, HL_PARTITION, HL_LOCK_STATE,"
    " HL_LOCK_TYPE FROM HIVE_LOCKS",
    "TXN_TO_WRITE_ID": "SELECT T2W_TXNID, T2W_DATABASE, T2W_TABLE, T2W_WRITEID FROM TXN_TO_WRITE_ID",
    "NEXT_WRITE_ID": "SELECT NWI_DATABASE, NWI_TABLE, NWI_NEXT FROM NEXT_WRITE_ID",
    # Not MHL_MIN_OPEN_TXNID: it depends on which transactions are older than a second.
    "MIN_HISTORY_LEVEL": "SELECT MHL_TXNID FROM MIN_HISTORY_LEVEL",
    "DATABASE_PARAMS": "SELECT NAME, PARAM_KEY, PARAM_VALUE FROM DATABASE_PARAMS JOIN DBS USING (DB_ID)",
    "REPL_TXN_MAP": "SELECT RTM_SRC_TXN_ID, RTM_TARGET_TXN_ID FROM REPL_TXN_MAP",
    "COMPACTION_QUEUE": "SELECT CQ_ID, CQ_DATABASE, CQ_TABLE, CQ_PARTITION, CQ_STATE, CQ_TYPE, CQ_WORKER_ID, CQ_RUN_AS,"
    " COALESCE(CQ_HIGHEST_WRITE_ID, 0), CQ_TXN_ID, CQ_POOL_NAME, CQ_TBLPROPERTIES FROM COMPACTION_QUEUE",
    # Java writes 0 for unknown values of a failed compaction; ours are empty.
    "COMPLETED_COMPACTIONS": "SELECT CC_ID, CC_DATABASE, CC_TABLE, CC_PARTITION, CC_STATE, CC_TYPE, CC_WORKER_ID,"
    " CC_RUN_AS, COALESCE(CC_HIGHEST_WRITE_ID, 0), COALESCE(CC_TXN_ID, 0), CC_ERROR_MESSAGE FROM COMPLETED_COMPACTIONS",
}


def rows(engine: Engine) -> Iterator[tuple[str, list[str]]]:
    """The contents of the transaction tables, table by table."""
    with engine.connect() as connection:
        for name, query in _ROWS.items():
            yield name, sorted(repr(tuple(row)) for row in connection.execute(text(query)))
