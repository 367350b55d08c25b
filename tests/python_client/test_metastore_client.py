"""Fail-over with real processes, and transactions beside reads."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from hms_cache.app.shadow.reads import is_compared
from hms_cache.client import MetastoreClient, MetastoreUnavailableError, OutcomeUnknownError, Transaction
from hms_cache.client.metastore_client import is_read
from hms_cache.errors import ConfigurationError
from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    DataOperationType,
    GetTableRequest,
    LockComponent,
    LockLevel,
    LockState,
    LockType,
    NoSuchTxnException,
    TxnAbortedException,
)
from hms_cache.wire.methods import METHODS
from tests.conftest import ServerLookup
from tests.manual_clock import ManualClock
from tests.python_client.conftest import DATABASE, INSERT_ONLY, KEEP_STATISTICS, StartMetastore, transactional
from tests.servers import server_process


def unused_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_client_goes_on_with_the_next_metastore(tmp_path: Path, database_servers: ServerLookup) -> None:
    """A read is repeated; a write whose connection broke is not, and the caller gets an error."""
    databases = database_servers("sqlite")
    url = databases.initialized_database()
    settings: dict[str, object] = {"warehouse.directory": tmp_path / "warehouse"}
    with (
        server_process(tmp_path / "a", url, settings) as a,
        server_process(tmp_path / "b", url, settings) as b,
        MetastoreClient(f"thrift://127.0.0.1:{unused_port()},{a.uri},{b.uri}") as client,
    ):
        client.call("create_database", DATABASE)
        assert str(client.connected_to) == a.uri
        client.call("create_table", transactional("t"))
        a.kill()
        request = GetTableRequest(dbName="d", tblName="t", capabilities=INSERT_ONLY)
        assert client.call("get_table_req", request).table.tableName == "t"
        assert str(client.connected_to) == b.uri
        b.kill()
        with pytest.raises(OutcomeUnknownError, match="create_table"):
            client.call("create_table", transactional("u"))
        with pytest.raises(MetastoreUnavailableError, match="no metastore can be reached"):
            client.call("create_table", transactional("u"))
        with pytest.raises(MetastoreUnavailableError):
            client.call("get_table_req", request)
        b.start()
        assert client.call("get_table_req", request).table.tableName == "t"
    databases.give_back(url)


def test_an_argument_of_another_type_leaves_nothing_for_the_next_call(start_metastore: StartMetastore) -> None:
    """The beginning of its request stayed in the buffer, before the next one."""
    client = start_metastore().client
    for _ in range(2):
        with pytest.raises((TypeError, AttributeError)):
            client.call("get_database", 5)
    client.call("create_database", DATABASE)
    assert client.call("get_database", "d").name == "d"


INTERRUPTED_CLIENT = """
import signal, sys
from hms_cache.client import MetastoreClient

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
with MetastoreClient(sys.argv[1]) as client:
    try:
        client.call("get_database", "d")
    except KeyboardInterrupt:
        print(client.connected_to, client.call("get_all_databases"))
"""


def test_a_call_that_is_interrupted_leaves_no_reply_for_the_next_one(start_metastore: StartMetastore) -> None:
    """For example by Ctrl-C in a notebook: the next call read the reply to this one."""
    metastore = start_metastore()
    metastore.client.call("create_database", DATABASE)
    host, port = metastore.uri.removeprefix("thrift://").split(":")

    def relay(front: socket.socket, interrupted: subprocess.Popen[str]) -> None:
        """Passes calls on, one connection after the other; interrupts the first before its reply."""
        is_first = True
        with suppress(OSError):
            while True:
                with front.accept()[0] as client, socket.create_connection((host, int(port))) as server:
                    while request := client.recv(65536):
                        server.sendall(request)
                        reply = server.recv(65536)
                        if is_first:
                            is_first = False
                            interrupted.send_signal(signal.SIGINT)
                        client.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as front:
        uri = f"thrift://127.0.0.1:{front.getsockname()[1]}"
        command = [sys.executable, "-c", INTERRUPTED_CLIENT, uri]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            threading.Thread(target=relay, args=(front, client), daemon=True).start()
            try:
                printed, _ = client.communicate(timeout=60)
            finally:
                client.kill()
    assert printed == "None ['d', 'default']\n"


def test_a_connection_that_breaks_before_the_first_call_is_none() -> None:
    """A write that was never sent was reported as having an unknown outcome."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def turn_away() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close()

        threading.Thread(target=turn_away, daemon=True).start()
        with MetastoreClient(f"thrift://127.0.0.1:{server.getsockname()[1]}", fills_cache=False) as client:
            for _ in range(2):
                with pytest.raises(MetastoreUnavailableError):
                    client.call("create_database", DATABASE)
                assert client.connected_to is None


@pytest.mark.parametrize(
    "uri", ["", "ftp://h:1", "thrift://", "h:9083", "thrift://h:port", "thrift://a..b:9083", "thrift://h:99999"]
)
def test_what_is_no_uri_of_a_metastore_is_refused(uri: str) -> None:
    with pytest.raises(ConfigurationError):
        MetastoreClient(uri)


def test_only_what_changes_nothing_is_asked_twice() -> None:
    writes = [method for method in METHODS if not is_read(method)]
    for method in ("commit_txn", "open_txns", "lock", "alter_table_req", "get_lock_materialization_rebuild"):
        assert method in writes
    for method in ("get_table_req", "get_partitions_by_expr", "fetch_partition_names_req", "show_locks"):
        assert method not in writes
    changing = {method for method, handler in all_handlers().items() if handler.kind is Kind.WRITE}
    assert changing <= {*writes}
    assert not {method for method in changing if is_compared(method)}, "a shadow asks it of both metastores"


def exclusive(table: str) -> LockComponent:
    return LockComponent(
        type=LockType.EXCL_WRITE,
        level=LockLevel.TABLE,
        dbname="d",
        tablename=table,
        operationType=DataOperationType.UPDATE,
        isTransactional=True,
    )


def test_a_block_that_raises_aborts(start_metastore: StartMetastore) -> None:
    client = start_metastore().client
    client.call("create_database", DATABASE)
    client.call("create_table", transactional("t"))
    with pytest.raises(RuntimeError, match="mine"), Transaction(client, ["d.t"]) as txn:
        txn.write_id("d.t")
        raise RuntimeError("mine")
    with pytest.raises(NoSuchTxnException), Transaction(client, []) as other:
        other.txn_id = 10_000
        other.heartbeat()
    with Transaction(client, ["d.t"]) as reader:
        seen = reader.version("d.t").write_ids
        assert not seen.is_valid(1) and seen.is_aborted(1)


def test_the_second_of_two_conflicting_writers_loses(start_metastore: StartMetastore) -> None:
    client = start_metastore().client
    client.call("create_database", DATABASE)
    client.call("create_table", transactional("t"))
    first, second = Transaction(client, ["d.t"]), Transaction(client, ["d.t"])
    first.begin()
    second.begin()
    first.write_id("d.t")
    second.write_id("d.t")
    assert first.lock([exclusive("t")]).state == LockState.ACQUIRED
    waiting = second.lock([exclusive("t")])
    assert waiting.state == LockState.WAITING
    first.commit()
    assert second.check_lock(waiting.lockid).state == LockState.ACQUIRED
    with pytest.raises(TxnAbortedException, match="write conflict on d/t"):
        second.commit()


def test_a_late_call_sends_a_sign_of_life_first(start_metastore: StartMetastore) -> None:
    client = start_metastore().client
    client.call("create_database", DATABASE)
    client.call("create_table", transactional("t"))
    clock = ManualClock()
    calls: list[str] = []
    send = client.call

    class Listening(MetastoreClient):
        def call(self, method: str, *arguments: object) -> object:
            calls.append(method)
            return send(method, *arguments)

    listening = Listening(str(client.addresses[0]))
    with Transaction(listening, ["d.t"], heartbeat_interval_s=60.0, clock=clock) as txn:
        txn.get_table("d.t")
        assert "heartbeat" not in calls
        clock.advance(61.0)
        txn.get_table("d.t")
        assert calls[-2:] == ["heartbeat", "get_table_req"]
        txn.alter_table("d.t", txn.get_table("d.t"), environment=KEEP_STATISTICS)
        assert calls.count("heartbeat") == 1


def test_a_call_without_a_place_for_the_list_is_refused(start_metastore: StartMetastore) -> None:
    client = start_metastore().client
    client.call("create_database", DATABASE)
    client.call("create_table", transactional("t"))
    with Transaction(client, ["d.t"]) as txn:
        with pytest.raises(TypeError, match="cannot carry a version"):
            txn.read("get_database_req", "d.t", DATABASE)
        with pytest.raises(KeyError):
            txn.get_table("d.other")
        with pytest.raises(ValueError, match=r"database\.table"):
            txn.get_table("t")
        assert txn.write_id("d.t") == txn.write_id("d.t") == 1
