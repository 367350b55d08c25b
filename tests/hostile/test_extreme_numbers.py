"""Each number of each request at the edges of its type: no call fails inside, and none breaks what others do later."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException, TType
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
from tests.app.test_service import configured
from tests.cache.world import table
from tests.hostile.test_long_lists import client, filled, make_table

BITS = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}

Way = tuple[Any, ...]

LEFT_OUT = {"shutdown", "reinitialize"}


def numbers_of(kind: Any, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Way, int]]:
    """Where a struct has numbers, and of which type; 0 is the first element of a list."""
    if kind in inside or len(inside) > 4:
        return
    for field in filter(None, kind.thrift_spec):
        yield from _numbers_in(field[1], field[3], (*inside, kind), (field[2],))


def _numbers_in(type_: int, of: Any, inside: tuple[Any, ...], way: Way) -> Iterator[tuple[Way, int]]:
    if type_ in BITS or type_ == TType.DOUBLE:
        yield way, type_
    elif type_ == TType.STRUCT:
        yield from (((*way, *rest), found) for rest, found in numbers_of(of[0], inside))
    elif type_ in (TType.LIST, TType.SET):
        yield from _numbers_in(of[0], of[1], inside, (*way, 0))
    elif type_ == TType.MAP:
        yield from _numbers_in(of[2], of[3], inside, (*way, "value"))


def extremes(type_: int) -> list[float]:
    """Of a type; enumerations are numbers of 32 bits."""
    if type_ == TType.DOUBLE:
        return [float("nan"), float("inf"), -1e308]
    most = 2 ** (BITS[type_] - 1) - 1
    return [most, -most - 1, -1]


def put(value: Any, way: Way, number: float) -> Any:
    """The value with the number at its place; what is not there stays away."""
    if not way:
        return number
    if value is None:
        return None
    if isinstance(value, dict):
        return {key: put(each, way[1:], number) for key, each in value.items()}
    if isinstance(value, list | set):
        return type(value)(put(each, way[1:], number) for each in value)
    setattr(value, way[0], put(getattr(value, way[0]), way[1:], number))
    return value


CASES = [
    (method, way, number)
    for method, of in METHODS.items()
    if method not in LEFT_OUT
    for way, type_ in numbers_of(of.args_class)
    for number in extremes(type_)
]


class InternalErrors(logging.Handler):
    """What failed with what is none of the declared exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if (message := record.getMessage()).startswith("internal error in "):
            self.found.append(f"{message[:200]} {record.exc_info[1] if record.exc_info else ''}"[:400])


def use_all(uri: str, number: int) -> None:
    """What a client needs every day: whatever came before, it must work."""
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
        # Those of a table that a call before may have given ids to.
        [other] = metastore.open_txns(OpenTxnRequest(1, "u", "h")).txn_ids
        metastore.allocate_table_write_ids(AllocateTableWriteIdsRequest("d", "t", [other]))
        metastore.commit_txn(CommitTxnRequest(other))
        head = metastore.get_current_notificationEventId().eventId
        metastore.drop_table("d", name, True)
        assert metastore.get_current_notificationEventId().eventId > head


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_no_number_makes_a_call_fail_inside_or_breaks_what_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    internal = InternalErrors()
    log = logging.getLogger("hms_cache")
    monkeypatch.setattr(log, "handlers", [*log.handlers, internal])
    monkeypatch.setattr(log, "propagate", False)
    service = Service(configured(tmp_path))
    uri = service.start()
    wrong: list[str] = []
    try:
        with client(uri) as metastore:
            metastore.create_database(Database(name="d"))
        make_table(uri)
        before = ""
        for number, (method, way, extreme) in enumerate(CASES):
            if method != before:
                if before:
                    try:
                        use_all(uri, number)
                    except TException as error:
                        wrong.append(f"after {before}: {error}"[:400])
                        break
                make_table(uri)
                before = method
            arguments = put(filled(METHODS[method].args_class, (), 1), way, extreme)
            given = [getattr(arguments, field[2]) for field in METHODS[method].args_class.thrift_spec if field]
            seen = len(internal.found)
            with suppress(TApplicationException, TException), client(uri) as metastore:
                try:
                    getattr(metastore, method)(*given)
                except TTransportException as error:
                    wrong.append(f"{method} {'.'.join(map(str, way))} = {extreme}: {error}")
            wrong += [f"{method} {'.'.join(map(str, way))} = {extreme}: {one}" for one in internal.found[seen:]]
    finally:
        service.stop()
    assert not wrong, "\n".join(wrong)
