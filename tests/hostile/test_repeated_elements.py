"""An element that a request names many times makes neither the reply nor the work larger than its bytes suggest."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Partition, Table
from hms_cache.wire import METHODS
from tests.cache.world import table
from tests.hostile.test_long_lists import WatchedService, client, filled, long_lists, open_txns
from tests.server.conftest import MAX_WAIT_S, Link

COUNT = 400

LAST, REPLY, LARGEST_LAST = "getStatus", -2147418110, 32
"""A method whose answer is short, how answers begin, and more bytes than its result has."""

PARTITIONS = 60

COLUMNS = 150

GROWTH = 5
"""Bytes of an answer for each byte of the request: what a name costs that is written out with its kind."""

FEW_STATEMENTS = 30

LEFT_OUT = {
    *("shutdown", "reinitialize"),
    "add_replication_metrics",  # two statements each, for at most limits.request_metrics
}


REAL: dict[str, Any] = {
    **dict.fromkeys(("names", "partNames", "part_names", "partitionnames", "filters"), "p=1"),
    **dict.fromkeys(("tblNames", "tbl_names", "tableNames"), "t"),
    **dict.fromkeys(("colNames", "col_names"), "a"),
    **dict.fromkeys(("partitionKeys", "partitionOrder"), FieldSchema("p", "string", "")),
    "fullTableNames": "d.t",
    "fieldList": "values",
    "tbl_types": "MANAGED_TABLE",
    "eventTypeList": "ADD_PARTITION",
}
"""What exists, for lists of names: what does not is in no answer."""


class CountingLink(Link):
    """Counts the bytes that it sends and receives."""

    received = 0

    def measured(self, method: str, arguments: Any) -> tuple[int, int]:
        """The bytes of one call and of its reply."""
        given = {each[2]: getattr(arguments, each[2]) for each in filter(None, arguments.thrift_spec)}
        request = self.request(method, **given)
        # The reply to a second request marks the end of the first reply.
        self.sock.sendall(request + self.request(LAST))
        end = struct.pack("!iI", REPLY, len(LAST)) + LAST.encode() + struct.pack("!i", self.sequence)
        seen = bytearray()
        while end not in seen[-2 * len(end) - LARGEST_LAST :]:
            more = self.sock.recv(1 << 20)
            if not more:
                return len(request), len(seen)
            seen += more
        return len(request), seen.index(end)


def repeated(arguments: Any, path: tuple[str, ...], count: int) -> Any:
    """The list at this place, with one element this many times."""
    holder = arguments
    for step in path[:-1]:
        holder = getattr(holder, step, None)  # the contents of an optional struct that is missing
    found = getattr(holder, path[-1], None)
    if isinstance(found, list) and found:
        setattr(holder, path[-1], [REAL.get(path[-1], found[0])] * count)
    for each in (arguments, holder):
        for name, of_all in (("maxParts", -1), ("max_parts", -1), ("filter", None)):
            if hasattr(each, name):
                setattr(each, name, of_all)
    return arguments


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedService]:
    watched = WatchedService(tmp_path_factory.mktemp("served"))
    try:
        open_txns(watched.uri, 1)
        yield watched
    finally:
        watched.stop()


def make_large_table(uri: str) -> None:
    """A table for which each complete reply is long."""
    with client(uri) as metastore:
        try:
            whole: Table = metastore.get_table("d", "t")
            if len(metastore.get_partition_names("d", "t", -1)) == PARTITIONS and len(whole.sd.cols) == COLUMNS:
                return
            metastore.drop_table("d", "t", False)
        except Exception:
            pass
        made = table("d", "t", keys=(("p", "string"),))
        made.sd.cols = [FieldSchema(f"a{number}" if number else "a", "int", "") for number in range(COLUMNS)]
        metastore.create_table(made)
        sd = metastore.get_table("d", "t").sd
        sd.location = None
        metastore.add_partitions([Partition([str(n)], "d", "t", 0, 0, sd, {}) for n in range(1, PARTITIONS + 1)])


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_same_element_many_times(served: WatchedService) -> None:
    wrong = []
    port = int(served.uri.rsplit(":", 1)[1])
    for method, path in long_lists():
        if method in LEFT_OUT:
            continue
        found = []
        for count in (1, COUNT):
            served.make_again(make_large_table)
            arguments = repeated(filled(METHODS[method].args_class, (), 1), path, count)
            link = CountingLink(socket.create_connection(("127.0.0.1", port), MAX_WAIT_S))
            before = served.statements
            try:
                found.append((*link.measured(method, arguments), served.statements - before))
            except (TypeError, AttributeError):
                break  # this request has no such list
            finally:
                link.sock.close()
        if len(found) < 2:
            continue
        (small, answer, statements), (large, larger, more) = found
        if larger - answer > GROWTH * (large - small) + 1000 or more > statements + FEW_STATEMENTS + COUNT // 10:
            wrong.append(
                f"{method} {'.'.join(path)}: {large - small} bytes more, {larger - answer} more in the answer, "
                f"{more - statements} statements"
            )
    assert not wrong, "\n".join(wrong)
