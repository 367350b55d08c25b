"""Requests answered by their bytes get the reply of the ordinary path, before and after each change."""

from __future__ import annotations

import functools
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.server.position_sources import InlineSource
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import MessageReader
from tests.server.conftest import MAX_WAIT_S, Link, Running, Serve, database, request_bytes, table
from tests.server.test_valid_lists import counted

TRIES = 500


def hits(server: Running) -> int:
    """Requests answered on the hot path so far."""
    return int(server.service.metrics.cache.reads.values().get(("reply", Reason.HIT), 0))


def until_remembered(server: Running, ask: Callable[[], object]) -> None:
    """Repeats the request until the hot path has the answer: the event of a write may reach the cache between two
    calls."""
    before = hits(server)
    for _ in range(TRIES):
        ask()
        if hits(server) > before:
            return
    pytest.fail("the hot path never answered")


def raw_reply(link: Link, request: bytes) -> bytes:
    """A complete small reply: one whose bytes arrive within one segment on loopback."""
    link.sock.sendall(request)
    return link.sock.recv(1 << 20)


@pytest.mark.parametrize("staleness", [0, 60_000, "inf"])
def test_the_same_bytes_with_another_sequence_id(serve: Serve, staleness: Any) -> None:
    server = serve(**{"cache.max_staleness_ms": staleness})
    link = server.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    first = raw_reply(link, request_bytes("get_table", 1, dbname="d", tbl_name="t"))
    until_remembered(server, lambda: link.call("get_table", dbname="d", tbl_name="t"))
    before = hits(server)
    for number in (9, 2**31 - 1, -5):
        reply = raw_reply(link, request_bytes("get_table", number, dbname="d", tbl_name="t"))
        at = reply.index(b"get_table") + len("get_table")
        assert reply[at : at + 4] == struct.pack("!i", number)
        assert reply[:at] + reply[at + 4 :] == first[:at] + first[at + 4 :]
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


class HeldQuestions:
    """The position checks of all servers wait until the test releases them; what is fed meanwhile is counted."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.requested = threading.Event()
        self.fed = threading.Semaphore(0)
        self._question: Callable[[bool], None]
        read = InlineSource._read
        feed = MessageReader.feed

        def hold(source: InlineSource, answered: Callable[[int | None], None]) -> None:
            def let_go(found: bool) -> None:
                if found:
                    source._loop.call_soon_threadsafe(read, source, answered)
                else:
                    source._loop.call_soon_threadsafe(answered, None)

            self._question = let_go
            self.requested.set()

        def count(reader: MessageReader, data: bytes) -> None:
            feed(reader, data)
            self.fed.release()

        patch.setattr(InlineSource, "check", hold)
        patch.setattr(MessageReader, "feed", count)

    def answer(self, *, found: bool) -> None:
        """Releases the check; not `found`: as if the database did not answer."""
        self.requested.clear()
        self._question(found)


@pytest.mark.parametrize("found", [True, False], ids=["from memory", "the ordinary way"])
@pytest.mark.parametrize("cut", [5, 40], ids=["within a header", "within arguments"])
def test_what_comes_while_a_request_waits_is_answered_after_it(
    found: bool, cut: int, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    link = server.link()
    link.call("create_database", database=database("d"))
    for name in ("d", "default"):
        until_remembered(server, functools.partial(link.call, "get_database", name=name))
    questions = HeldQuestions(monkeypatch)
    link.sock.sendall(request_bytes("get_database", 1, name="d"))
    assert questions.requested.wait(MAX_WAIT_S)
    later = request_bytes("get_database", 2, name="default") + request_bytes("get_database", 3, name="d")
    for piece in (later[:cut], later[cut:]):
        link.sock.sendall(piece)
        assert questions.fed.acquire(timeout=MAX_WAIT_S)
    questions.answer(found=found)
    for number, name in ((1, "d"), (2, "default"), (3, "d")):
        link.sequence = number
        assert link.reply("get_database").name == name


def test_a_client_that_leaves_while_its_request_waits_costs_nobody_anything(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    leaving, staying = server.link(), server.link()
    for link in (leaving, staying):
        until_remembered(server, functools.partial(link.call, "get_database", name="default"))
    questions = HeldQuestions(monkeypatch)
    leaving.sock.sendall(request_bytes("get_database", 1, name="default"))
    assert questions.requested.wait(MAX_WAIT_S)
    # The staying client's request waits for the next check: it came after this one was sent.
    staying.sock.sendall(request_bytes("get_database", 2, name="default"))
    leaving.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    leaving.sock.close()
    questions.answer(found=True)
    assert questions.requested.wait(MAX_WAIT_S)
    questions.answer(found=True)
    staying.sequence = 2
    assert staying.reply("get_database").name == "default"


@pytest.mark.parametrize("mode", ["check", "trust"])
def test_a_list_that_is_covered_asks_nobody_in_the_mode_that_trusts_it(
    serve: Serve, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when the table was read before nor when the first of the same requests has loaded it."""
    requested = []
    ask = InlineSource.check
    monkeypatch.setattr(InlineSource, "check", lambda self, answered: (requested.append(1), ask(self, answered))[1])
    settings = {"events.poll_interval_s": 3600, "cache.warm": "off"}
    writer = serve(**settings).link()
    writer.call("create_database", database=database("d"))
    made = table("d", "t", transactional="true", transactional_properties="insert_only")
    writer.call("create_table", tbl=made)
    request = ttypes.GetTableRequest("d", "t", ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES]))
    request.id = writer.call("get_table_req", req=request).table.id
    request.validWriteIdList = written(writer)
    server = serve(**settings, **{"cache.write_id_reads": mode})
    reader = server.link()
    until_remembered(server, lambda: reader.call("get_table_req", req=request))
    requested.clear()
    before = hits(server)
    with counted() as statements:
        for _ in range(5):
            assert reader.call("get_table_req", req=request).table.tableName == "t"
    assert hits(server) == before + 5
    assert (len(requested), statements[0]) == ((0, 0) if mode == "trust" else (5, statements[0]))
    # What this client has seen of the catalog since is not reverted (P3), nor what it has written (P4).
    for change in (
        lambda: reader.call("get_current_notificationEventId"),
        lambda: reader.call("create_database", database=database("e")),
    ):
        writer.call("create_table", tbl=table("d", f"t{len(requested)}"))
        change()
        requested.clear()
        reader.call("get_table_req", req=request)
        assert requested or mode == "check"


def written(link: Link) -> str:
    """The list of write ids of `d.t` after one more write."""
    (txn_id,) = link.call("open_txns", rqst=ttypes.OpenTxnRequest(1, "u", "h")).txn_ids
    link.call("allocate_table_write_ids", rqst=ttypes.AllocateTableWriteIdsRequest("d", "t", [txn_id]))
    link.call("commit_txn", rqst=ttypes.CommitTxnRequest(txn_id))
    [found] = link.call("get_valid_write_ids", rqst=ttypes.GetValidWriteIdsRequest(["d.t"])).tblValidWriteIds
    return f"{found.fullTableName}:{found.writeIdHighWaterMark}:{2**63 - 1}::"
