"""Requests answered from their bytes get what the ordinary way answers, before and after every change."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from hms_cache.cache.reasons import Reason
from tests.server.conftest import Link, Running, Serve, database, request_bytes, table


def hits(server: Running) -> int:
    """Requests answered on the hot path so far."""
    return int(server.service.metrics.cache.reads.values().get(("reply", Reason.HIT), 0))


def raw_reply(link: Link, request: bytes) -> bytes:
    """A whole small reply: one whose bytes come within one segment on loopback."""
    link.sock.sendall(request)
    return link.sock.recv(1 << 20)


@pytest.mark.parametrize("staleness", [0, 60_000, "inf"])
def test_the_same_bytes_with_another_sequence_id(serve: Serve, staleness: Any) -> None:
    server = serve(**{"cache.max_staleness_ms": staleness})
    link = server.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    first = [raw_reply(link, request_bytes("get_table", n, dbname="d", tbl_name="t")) for n in range(1, 4)]
    before = hits(server)
    for number in (9, 2**31 - 1, -5):
        reply = raw_reply(link, request_bytes("get_table", number, dbname="d", tbl_name="t"))
        at = reply.index(b"get_table") + len("get_table")
        assert reply[at : at + 4] == struct.pack("!i", number)
        assert reply[:at] + reply[at + 4 :] == first[0][:at] + first[0][at + 4 :]
    assert hits(server) == before + 3


@pytest.mark.parametrize("staleness", [0, 60_000, "inf"])
def test_a_change_through_this_server_is_seen_by_the_next_request(serve: Serve, staleness: Any) -> None:
    server = serve(**{"cache.max_staleness_ms": staleness})
    writer, reader = server.link(), server.link()
    writer.call("create_database", database=database("d"))
    writer.call("create_table", tbl=table("d", "t", k="0"))
    for round_ in range(1, 30):
        changed = writer.call("get_table", dbname="d", tbl_name="t")
        changed.parameters = {**changed.parameters, "k": str(round_)}
        writer.call("alter_table", dbname="d", tbl_name="t", new_tbl=changed)
        for _ in range(3):
            assert reader.call("get_table", dbname="d", tbl_name="t").parameters["k"] == str(round_)
    assert hits(server) > 0


def test_a_change_through_another_server_is_seen_at_zero(serve: Serve) -> None:
    one, other = serve(), serve()
    writer, reader = one.link(), other.link()
    writer.call("create_database", database=database("d"))
    writer.call("create_table", tbl=table("d", "t", k="0"))
    for round_ in range(1, 30):
        changed = writer.call("get_table", dbname="d", tbl_name="t")
        changed.parameters = {**changed.parameters, "k": str(round_)}
        writer.call("alter_table", dbname="d", tbl_name="t", new_tbl=changed)
        for _ in range(3):
            assert reader.call("get_table", dbname="d", tbl_name="t").parameters["k"] == str(round_)
    writer.call("drop_table", dbname="d", name="t", deleteData=True)
    assert reader.call("get_all_tables", db_name="d") == []
    assert hits(other) > 0


def test_answers_that_depend_on_the_connection_are_not_shared(serve: Serve) -> None:
    server = serve()
    plain, msck = server.link(), server.link()
    plain.call("create_database", database=database("d"))
    plain.call("create_table", tbl=table("d", "t"))
    proxy = "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"
    msck.call("setMetaConf", key="metastore.expression.proxy", value=proxy)
    before = hits(server)
    for _ in range(4):
        msck.call("get_partition_names", db_name="d", tbl_name="t", max_parts=-1)
    assert hits(server) == before
