"""Each reply, filled to the last field, is decoded by the generated code of other projects: Hive 2.3's and 4.x's."""

from __future__ import annotations

import random
from typing import Any

import hive_metastore.ThriftHiveMetastore as pyiceberg_service
import hmsclient.genthrift.hive_metastore.ThriftHiveMetastore as hmsclient_service
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.wire import METHODS, encode_payload
from hms_cache.wire.encodings import BINARY
from tests.wire.strategies import filled_value
from tests.wire.whole_replies import failed

CLIENTS = {"hmsclient": hmsclient_service, "pyiceberg": pyiceberg_service}
#: Fields that a release of Hive gave another type: its code skips what we write there, as it should.
OTHER_TYPES = {("Table", "creationMetadata"), ("Table", "catName"), ("GetOpenTxnsResponse", "open_txns")}


def methods_of(service: Any) -> list[str]:
    """The methods whose replies this code decodes."""
    names = (name.removesuffix("_result") for name in vars(service) if name.endswith("_result"))
    return sorted(name for name in names if name in METHODS and METHODS[name].result_class is not None)


def decoded(service: Any, method: str, result: Any) -> Any:
    """Our reply's payload, decoded by the client's code."""
    found = getattr(service, f"{method}_result")()
    transport = TMemoryBuffer(encode_payload(BINARY, METHODS[method], result))
    found.read(TBinaryProtocol(transport))
    assert not transport.read(1), method
    return found


def lost(ours: Any, theirs: Any, path: str) -> list[str]:
    """What the client did not find of what we wrote, among its fields."""
    if hasattr(ours, "thrift_spec") and hasattr(theirs, "thrift_spec"):
        known = {entry[2]: entry for entry in theirs.thrift_spec if entry is not None}
        written = {entry[2]: entry for entry in ours.thrift_spec if entry is not None}
        return [
            line
            for name in sorted(known.keys() & written.keys())
            if (type(ours).__name__, name) not in OTHER_TYPES
            for line in lost(getattr(ours, name), getattr(theirs, name), f"{path}.{name}")
        ]
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple) and len(ours) == len(theirs):
        pairs = zip(ours, theirs, strict=True)
        return [line for one, other in pairs for line in lost(one, other, f"{path}[]")]
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        return [line for key, value in ours.items() for line in lost(value, theirs[key], f"{path}[{key!r}]")]
    if isinstance(ours, bytes) and isinstance(theirs, str):
        theirs = theirs.encode("utf-8", "surrogateescape")
    return [] if ours == theirs else [f"{path}: {ours!r} became {theirs!r}"]


def filled_result(method: str, source: random.Random) -> Any:
    """A reply with a value in every field, and in every field of those."""
    result = METHODS[method].result()
    success = result.thrift_spec[0] if result.thrift_spec else None
    if success is not None:
        result.success = without_list_keys(filled_value(success[1], success[3], source))
    return result


def without_list_keys(value: Any) -> Any:
    """The value, its maps with lists as keys emptied: Python's generated code cannot store these."""
    if hasattr(value, "thrift_spec"):
        for entry in value.thrift_spec:
            if entry is not None:
                setattr(value, entry[2], without_list_keys(getattr(value, entry[2])))
    if isinstance(value, list):
        return [without_list_keys(item) for item in value]
    if isinstance(value, dict):
        return {key: without_list_keys(item) for key, item in value.items() if not isinstance(key, list | tuple)}
    return value


@pytest.mark.parametrize("name", CLIENTS)
def test_every_reply_is_decoded(name: str) -> None:
    service, source = CLIENTS[name], random.Random(7)
    names = methods_of(service)
    assert len(names) > {"hmsclient": 150, "pyiceberg": 260}[name]
    problems = []
    for method in names:
        result = filled_result(method, source)
        # Some were void once: their clients skip the reply.
        problems += lost(result, decoded(service, method, result), method)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", CLIENTS)
def test_every_exception_that_both_declare_is_decoded(name: str) -> None:
    service, checked = CLIENTS[name], 0
    for method in methods_of(service):
        declared = getattr(service, f"{method}_result").thrift_spec or ()
        known = {entry[3][0].__name__ for entry in declared if entry and entry[0] and entry[1] == TType.STRUCT}
        for exception in METHODS[method].exceptions:
            if exception.__name__ not in known:
                continue
            found = decoded(service, method, failed(method, exception("said so")))
            raised = [value for value in vars(found).values() if isinstance(value, Exception)]
            # Those of get_partition_names have one field id: MetaException's in 2.3, NoSuchObjectException's later.
            is_one = method == "get_partition_names"
            types = {"MetaException", "NoSuchObjectException"} if is_one else {exception.__name__}
            assert len(raised) == 1, f"{method}: {exception.__name__}"
            assert type(raised[0]).__name__ in types, method
            assert raised[0].message == "said so", method  # type: ignore[attr-defined]
            checked += 1
    assert checked > 200
