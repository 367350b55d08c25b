"""Sends each request of the protocol with one value changed: no call may fail with an internal error, and others must
still work."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from hms_cache.app.service import Service
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    Database,
    GetValidWriteIdsRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    Partition,
    UnlockRequest,
)
from hms_cache.wire import METHODS
from tests.cache.world import table
from tests.hostile.request_places import Way, put
from tests.hostile.test_long_lists import client, filled, make_table

LEFT_OUT = {"shutdown", "reinitialize"}

Case = tuple[str, Way, Any]
"""A method, a place in its request, and the value to put there."""


ADDS = ("add_", "append_", "create_")
"""Beginnings of methods that would find there what the case before has made."""

OWN_NAMES = (
    *("functionName", "name", "packageName", "poolPath", "resourcePlanName", "roleName", "serdeName", "triggerName"),
    *("values", "partVals", "part_vals"),
)
"""Fields that name what such a request makes; `tableName` does in requests that create tables."""


def named_anew(value: Any, names: tuple[str, ...], number: int, depth: int = 0) -> Any:
    """With names that no earlier request had."""
    if isinstance(value, list):
        return [named_anew(each, names, number, depth) for each in value]
    for field in filter(None, getattr(value, "thrift_spec", ()) if depth < 4 else ()):
        name, of = field[2], getattr(value, field[2])
        if name in names and isinstance(of, str | list):
            setattr(value, name, [f"n{number}"] if isinstance(of, list) else f"n{number}")
        else:
            setattr(value, name, named_anew(of, names, number, depth + 1))
    return value


class InternalErrors(logging.Handler):
    """The calls that failed with an undeclared exception."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if (message := record.getMessage()).startswith("internal error in "):
            self.found.append(f"{message[:200]} {record.exc_info[1] if record.exc_info else ''}"[:400])


def use_all(uri: str, number: int) -> None:
    """Sends calls that clients need every day; they must work after any other calls."""
    name = f"used{number}"
    with client(uri) as metastore:
        metastore.create_table(table("d", name, keys=(("p", "string"),)))
        sd = metastore.get_table("d", name).sd
        metastore.add_partition(Partition(values=["1"], dbName="d", tableName=name, sd=sd, parameters={}))
        assert metastore.get_partition_names("d", name, -1) == ["p=1"]
        [txn_id] = metastore.open_txns(OpenTxnRequest(1, "u", "h")).txn_ids
        given = metastore.allocate_table_write_ids(AllocateTableWriteIdsRequest("d", name, [txn_id])).txnToWriteIds
        assert [one.txnId for one in given] == [txn_id]
        part = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, "d", name)
        lock = metastore.lock(LockRequest([part], 0, "u", "h"))
        metastore.unlock(UnlockRequest(lock.lockid))
        metastore.commit_txn(CommitTxnRequest(txn_id))
        assert metastore.get_valid_write_ids(GetValidWriteIdsRequest([f"d.{name}"])).tblValidWriteIds
        # Those of a table to which an earlier call may have assigned ids.
        [other] = metastore.open_txns(OpenTxnRequest(1, "u", "h")).txn_ids
        metastore.allocate_table_write_ids(AllocateTableWriteIdsRequest("d", "t", [other]))
        metastore.commit_txn(CommitTxnRequest(other))
        head = metastore.get_current_notificationEventId().eventId
        metastore.drop_table("d", name, True)
        assert metastore.get_current_notificationEventId().eventId > head


READS = tuple(name for name in METHODS if name.startswith(("get_", "list_", "show_")) and name not in LEFT_OUT)
CHANGING = {"get_delegation_token", "get_lock_materialization_rebuild", "get_lock_materialization_rebuild_req"}


def read_all(uri: str) -> None:
    """Sends each read: earlier writes may have stored something that a read cannot return."""
    with client(uri) as metastore:
        for method in READS:
            if method not in CHANGING:
                arguments = filled(METHODS[method].args_class, (), 1)
                given = [getattr(arguments, field[2]) for field in METHODS[method].args_class.thrift_spec if field]
                with suppress(TApplicationException, TException):
                    getattr(metastore, method)(*given)


def faults(service: Service, cases: Iterable[Case], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sends the cases of each method, and then the calls that clients need every day. Returns a line for each failure.

    The service must not have started; it is stopped afterwards.
    """
    internal = InternalErrors()
    log = logging.getLogger("hms_cache")
    monkeypatch.setattr(log, "handlers", [*log.handlers, internal])
    monkeypatch.setattr(log, "propagate", False)
    uri = service.start()
    wrong: list[str] = []
    try:
        with client(uri) as metastore:
            metastore.create_database(Database(name="d"))
        make_table(uri)
        before = ""
        for number, (method, way, changed) in enumerate(cases):
            if method != before:
                if before:
                    seen = len(internal.found)
                    try:
                        use_all(uri, number)
                        read_all(uri)
                    except TException as error:
                        wrong.append(f"after {before}: {error}"[:400])
                        break
                    wrong += [f"after {before}: {one}" for one in internal.found[seen:]]
                make_table(uri)
                before = method
            told = f"{method} {'.'.join(map(str, way))} = {str(changed)[:20]!r}"
            arguments = filled(METHODS[method].args_class, (), 1)
            if method.startswith(ADDS):
                of_tables = ("tableName",) if method.startswith("create_table") else ()
                named_anew(arguments, (*OWN_NAMES, *of_tables), number)
            arguments = put(arguments, way, changed)
            given = [getattr(arguments, field[2]) for field in METHODS[method].args_class.thrift_spec if field]
            seen = len(internal.found)
            with suppress(TApplicationException, TException), client(uri) as metastore:
                try:
                    getattr(metastore, method)(*given)
                except TTransportException as error:
                    wrong.append(f"{told}: {error}")
            wrong += [f"{told}: {one}" for one in internal.found[seen:]]
    finally:
        service.stop()
    return wrong
