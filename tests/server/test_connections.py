"""Connections: order, limits, and the end of a conversation and of the server."""

from __future__ import annotations

import logging
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.server import listener as listening
from hms_cache.server.connection import Connection
from hms_cache.server.listener import Listener
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException
from tests.server.conftest import MAX_WAIT_S, Serve, database, request_bytes, table


def test_unknown_method_is_named_and_the_connection_stays_usable(serve: Serve) -> None:
    link = serve().link()
    name = b"no_such_method"
    link.sequence = 7
    link.sock.sendall(
        struct.pack("!iI", -2147418111, len(name)) + name + struct.pack("!i", 7) + b"\x0b\0\x01\0\0\0\x02hi\0"
    )
    with pytest.raises(TApplicationException) as fault:
        link.reply("no_such_method")
    assert fault.value.type == TApplicationException.UNKNOWN_METHOD
    assert fault.value.message == "Invalid method name: 'no_such_method'"
    assert link.call("getStatus") == 2


def test_calls_of_one_connection_are_answered_in_order_also_when_sent_ahead(serve: Serve) -> None:
    link = serve().link()
    requests = []
    for number in range(20):
        link.sequence = number
        requests.append(request_bytes("create_database", number, database=database(f"db{number}")))
    link.sock.sendall(b"".join(requests))
    for number in range(20):
        link.sequence = number
        link.reply("create_database")
    assert len(link.call("get_all_databases")) == 21


def test_hot_requests_sent_ahead_are_answered_in_order_too(serve: Serve) -> None:
    link = serve().link()
    for _ in range(3):
        link.call("get_database", name="default")
    link.sock.sendall(b"".join(request_bytes("get_database", n, name="default") for n in range(50, 80)))
    for number in range(50, 80):
        link.sequence = number
        assert link.reply("get_database").name == "default"


def test_shutdown_ends_this_conversation_only(serve: Serve) -> None:
    server = serve()
    staying, leaving = server.link(), server.link()
    assert staying.call("getStatus") == 2
    leaving.sock.sendall(leaving.request("shutdown"))
    assert leaving.sock.recv(1) == b"", "nothing is answered to a one-way call, and the connection ends"
    assert staying.call("getStatus") == 2


def test_user_of_set_ugi_is_remembered_for_its_connection(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(**{"server.audit": "all"})
    named, unnamed = server.link(), server.link()
    assert named.call("set_ugi", user_name="ann", group_names=["staff"]) == ["staff"]
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        named.call("get_database", name="default")
        unnamed.call("get_all_databases")
        server.service.stop()
    lines = [record.getMessage() for record in caplog.records if record.name == "hms_cache.audit"]
    assert "ugi=ann\tip=127.0.0.1\tcmd=get_database: default\t" in lines
    assert any(line.startswith("ugi=anonymous\tip=127.0.0.1\tcmd=get_all_databases") for line in lines)


def test_audit_names_writes_by_default(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve()
    link = server.link()
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        link.call("create_database", database=database("d"))
        link.call("create_table", tbl=table("d", "t"))
        link.call("get_table", dbname="d", tbl_name="t")
        link.call("drop_table", dbname="d", name="t", deleteData=True)
        server.service.stop()
    commands = [r.getMessage().split("\tcmd=")[1] for r in caplog.records if r.name == "hms_cache.audit"]
    assert [command.split(":")[0].split("(")[0].strip() for command in commands] == [
        "create_database",
        "create_table",
        "drop_table",
    ]
    assert commands[2] == "drop_table : db=d tbl=t\t"


def test_too_many_connections_are_told_so(serve: Serve) -> None:
    server = serve(**{"server.max_connections": 2})
    links = [server.link() for _ in range(2)]
    assert [link.call("getStatus") for link in links] == [2, 2]
    third = server.link()
    with pytest.raises(
        TApplicationException, match=r"too many connections: 2 are open \(setting server.max_connections\)"
    ):
        third.call("getStatus")
    assert third.sock.recv(1) == b""
    assert links[0].call("getStatus") == 2


def test_a_connect_and_close_costs_nobody_anything(serve: Serve) -> None:
    server = serve()
    for _ in range(200):
        server.connect().close()
    assert server.link().call("getStatus") == 2


def test_a_call_that_takes_too_long_is_answered_with_a_fault(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(**{"server.request_timeout_s": 0.2, "cache.enabled": False})
    proceed = threading.Event()
    from hms_cache.store.databases.database_store import Databases

    original = Databases.get_database_names

    def slow(self: Databases, *arguments: object, **options: object) -> list[str]:
        assert proceed.wait(MAX_WAIT_S)
        return original(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Databases, "get_database_names", slow)
    link, other = server.link(), server.link()
    try:
        with pytest.raises(TApplicationException, match=r"took longer than 0.2 s \(setting server.request_timeout_s\)"):
            link.call("get_all_databases")
        assert other.call("getStatus") == 2
    finally:
        proceed.set()


def test_too_many_calls_in_flight_are_told_so(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(**{"server.max_in_flight": 2, "server.threads": 2, "cache.enabled": False})
    from hms_cache.store.databases.database_store import Databases

    proceed, running = threading.Event(), threading.Semaphore(0)

    def slow(self: Databases, *arguments: object, **options: object) -> list[str]:
        running.release()
        assert proceed.wait(MAX_WAIT_S)
        return ["answered"]

    monkeypatch.setattr(Databases, "get_database_names", slow)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(server.link().call, "get_all_databases") for _ in range(2)]
        for _ in waiting:
            assert running.acquire(timeout=MAX_WAIT_S)
        with pytest.raises(
            TApplicationException, match=r"too many calls in flight: 2 \(setting server.max_in_flight\)"
        ):
            server.link().call("get_all_databases")
        proceed.set()
        assert [one.result(MAX_WAIT_S) for one in waiting] == [["answered"], ["answered"]]


def test_stop_lets_a_running_call_answer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(**{"cache.enabled": False})
    from hms_cache.store.databases.database_store import Databases

    proceed, running = threading.Event(), threading.Event()

    def slow(self: Databases, *arguments: object, **options: object) -> list[str]:
        running.set()
        assert proceed.wait(MAX_WAIT_S)
        return ["answered"]

    monkeypatch.setattr(Databases, "get_database_names", slow)
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(server.link().call, "get_all_databases")
        assert running.wait(MAX_WAIT_S)
        idle = server.connect()
        stopping = pool.submit(server.service.stop)
        assert idle.recv(1) == b"", "an idle connection is closed at once"
        proceed.set()
        assert call.result(MAX_WAIT_S) == ["answered"]
        stopping.result(MAX_WAIT_S)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), timeout=1)


def test_a_declared_exception_and_an_undeclared_one(serve: Serve) -> None:
    link = serve().link()
    with pytest.raises(NoSuchObjectException, match=r"hive\.default\.nope table not found"):
        link.call("get_table", dbname="default", tbl_name="nope")
    # get_table_meta only declares MetaException.
    with pytest.raises(MetaException):
        link.call("getMetaConf", key="no.such.key")


def test_half_a_message_does_not_stay_for_ever(serve: Serve) -> None:
    server = serve(**{"server.message_timeout_s": 0.2})
    link = server.link()
    link.sock.sendall(link.request("get_database", name="default")[:-3])
    with pytest.raises(TApplicationException, match=r"not whole after 0\.2 s \(setting server\.message_timeout_s\)"):
        link.reply("get_database")
    assert link.sock.recv(1) == b""
    unnamed = server.connect()
    unnamed.sendall(b"\x80\x01\x00\x01\x00")
    assert unnamed.recv(1) == b""
    assert server.link().call("getStatus") == 2


def test_many_silent_connections_are_looked_at_a_few_at_a_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have their turn in between."""
    monkeypatch.setattr(listening, "IDLE_CHECKS_AT_ONCE", 2)
    look, idle_s, requested, at_once, closed = Listener._check_some_idle, Connection.idle_s, 0, [], 0

    def counted(connection: Connection) -> float:
        nonlocal requested
        requested += 1
        return idle_s(connection)

    def looked(listener: Listener, left: list[Connection]) -> None:
        nonlocal closed
        before = requested
        look(listener, left)
        at_once.append(requested - before)
        closed = listener.timeouts["idle"]

    monkeypatch.setattr(Connection, "idle_s", counted)
    monkeypatch.setattr(Listener, "_check_some_idle", looked)
    server = serve(**{"server.idle_timeout_s": 0.5})
    silent = [server.connect() for _ in range(7)]
    for one in silent:
        assert one.recv(1) == b""
    assert (max(at_once), closed) == (2, 7)


def test_the_time_of_a_message_is_its_clients(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that decodes slowly closes no honest client because of it."""
    server = serve(**{"server.message_timeout_s": 3.0})  # a busy machine may keep the client for a second
    run_slice, turns = Connection.run_slice, []

    def slow(connection: Connection) -> None:
        turns.append(connection)
        if len(turns) <= 10:  # more than two time-outs
            time.sleep(0.7)
        run_slice(connection)

    monkeypatch.setattr(Connection, "run_slice", slow)
    names = [f"p={number}" for number in range(60_000)]
    with pytest.raises(NoSuchObjectException, match=r"nope table not found"):
        server.link().call("get_partitions_by_names", db_name="default", tbl_name="nope", names=names)
    assert len(turns) > 10
