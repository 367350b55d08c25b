"""What heartbeats keep alive survives a restart of the metastore, or a short outage of its database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.client import MetastoreUnavailableError, OutcomeUnknownError
from hms_cache.jobs.schedule import lease
from hms_cache.jobs.schedule.lease import Lease
from hms_cache.jobs.statistics import transaction
from hms_cache.jobs.statistics.acid import Snapshot
from hms_cache.jobs.statistics.transaction import Transaction
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    LockResponse,
    LockState,
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    Table,
    TxnAbortedException,
)

OUTAGES: list[Exception] = [
    TApplicationException(TApplicationException.INTERNAL_ERROR, "heartbeat: the database is away"),
    MetaException("Unable to connect"),
    OutcomeUnknownError("the connection broke"),
    MetastoreUnavailableError("no metastore can be reached"),
]
GONE: list[Exception] = [NoSuchLockException("no"), NoSuchTxnException("no"), TxnAbortedException("aborted")]


class Metastore:
    """Replaces a client: answers heartbeats as `heartbeat` says, by their number from 1 on."""

    def __init__(self, timeout: str, heartbeat: Callable[[int], Exception | None]) -> None:
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.heartbeats = 0
        self.calls: list[str] = []
        self.states = [LockState.ACQUIRED]
        self.beaten = threading.Condition()
        self.call_timeout_s = 0.0

    def __call__(self, *_: Any, call_timeout_s: float = 600.0, **__: Any) -> Metastore:
        self.call_timeout_s = call_timeout_s
        return self

    def silence(self, _: int) -> Exception:
        """What a client gets when the metastore's machine is gone."""
        threading.Event().wait(min(self.call_timeout_s, 10.0))
        return OutcomeUnknownError("timed out")

    def __enter__(self) -> Metastore:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def call(self, method: str, *_: Any) -> Any:
        self.calls.append(method)
        if method == "get_config_value":
            return self.timeout
        if method == "heartbeat":
            with self.beaten:
                self.heartbeats += 1
                self.beaten.notify_all()
            error = self.heartbeat(self.heartbeats)
        elif method in ("lock", "check_lock"):
            state = self.states.pop(0)
            error = state if isinstance(state, Exception) else None
            if error is None:
                return LockResponse(7, state)
        elif method == "open_txns":
            return SimpleNamespace(txn_ids=[5])
        elif method == "allocate_table_write_ids":
            return SimpleNamespace(txnToWriteIds=[SimpleNamespace(writeId=3)])
        else:
            error = self.heartbeat(0)
        if error is not None:
            raise error
        return None

    def wait_for(self, heartbeats: int) -> bool:
        with self.beaten:
            return self.beaten.wait_for(lambda: self.heartbeats >= heartbeats, 30)


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, metastore: Metastore, **options: Any) -> Iterator[Lease]:
    monkeypatch.setattr(lease, "MetastoreClient", metastore)
    monkeypatch.setattr(lease, "_CHECK_INTERVAL_S", 0.01)
    one = Lease("thrift://nobody", [("hive.d", "t")], agent_info="test", **options)
    try:
        yield one
    finally:
        one.release()


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda one: type(one).__name__)
def test_a_lease_outlives_an_outage_that_is_shorter(monkeypatch: pytest.MonkeyPatch, outage: Exception) -> None:
    metastore = Metastore("3s", lambda number: outage if number in (1, 2) else None)
    with held(monkeypatch, metastore) as one:
        assert metastore.wait_for(5)
        assert not one.lost.is_set()


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda one: type(one).__name__)
def test_a_lease_is_lost_before_its_time_is_over(monkeypatch: pytest.MonkeyPatch, outage: Exception) -> None:
    began_s = time.monotonic()
    with held(monkeypatch, Metastore("1200ms", lambda _: outage)) as one:
        assert one.lost.wait(10)
        assert time.monotonic() - began_s >= 0.8, "an outage may be over before"


def test_a_lease_is_lost_before_its_time_is_over_where_a_metastore_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, another job could get it while this one still works on the table."""
    metastore = Metastore("5s", lambda _: None)
    metastore.heartbeat = metastore.silence
    with held(monkeypatch, metastore) as one:
        assert one.lost.wait(5)


@pytest.mark.parametrize("gone", GONE, ids=lambda one: type(one).__name__)
def test_a_lease_that_is_gone_is_lost_at_once(monkeypatch: pytest.MonkeyPatch, gone: Exception) -> None:
    metastore = Metastore("60s", lambda _: gone)
    metastore.timeout = "300ms"
    with held(monkeypatch, metastore) as one:
        assert one.lost.wait(10)
        assert metastore.heartbeats == 1


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda one: type(one).__name__)
def test_who_waits_for_a_lease_waits_through_an_outage(monkeypatch: pytest.MonkeyPatch, outage: Exception) -> None:
    metastore = Metastore("60s", lambda _: None)
    metastore.states = [LockState.WAITING, outage, outage, LockState.WAITING, LockState.ACQUIRED]
    with held(monkeypatch, metastore, wait_s=30):
        pass
    assert metastore.states == []


def test_who_waited_in_vain_through_an_outage_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    metastore = Metastore("60s", lambda _: None)
    metastore.states = [LockState.WAITING, *([OUTAGES[0]] * 1000)]
    with pytest.raises(TApplicationException, match="the database is away"), held(monkeypatch, metastore, wait_s=0.1):
        pass
    assert metastore.calls[-1] == "unlock"


def begun(monkeypatch: pytest.MonkeyPatch, metastore: Metastore) -> Transaction:
    monkeypatch.setattr(transaction, "MetastoreClient", metastore)
    seen = {TableName("hive", "d", "t"): Snapshot("", "", is_full=True)}
    monkeypatch.setattr(transaction, "snapshots", lambda *_: seen)
    found = Transaction("thrift://nobody", Table("t", "d"))
    found._interval_s = 0.01
    return found


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda one: type(one).__name__)
def test_a_transaction_is_kept_alive_after_an_outage(monkeypatch: pytest.MonkeyPatch, outage: Exception) -> None:
    metastore = Metastore("300s", lambda number: outage if number in (1, 2) else None)
    with begun(monkeypatch, metastore):
        assert metastore.wait_for(5)
    assert metastore.calls[-1] == "commit_txn"


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda one: type(one).__name__)
def test_work_that_fails_in_an_outage_says_why_it_failed(monkeypatch: pytest.MonkeyPatch, outage: Exception) -> None:
    """And not that the transaction could not be aborted."""
    metastore = Metastore("300s", lambda _: outage)
    with pytest.raises(ZeroDivisionError), begun(monkeypatch, metastore):
        raise ZeroDivisionError
    assert metastore.calls[-1] == "abort_txn"
