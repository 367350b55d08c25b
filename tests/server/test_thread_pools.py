"""Calls of one kind do not wait behind those of another, and a stuck call gives up its thread."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.server.thread_pool import MAX_REPLACEMENTS, ThreadPool
from hms_cache.store.databases.database_store import Databases
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.work_units import run_write
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CommitTxnRequest,
    HeartbeatRequest,
    MetaException,
    OpenTxnRequest,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.server.conftest import request_bytes
from tests.server.test_heard_refusals import head
from tests.server.test_tls import wait_for
from tests.servers import MAX_WAIT_S
from tests.store.foundation.writes import add_database, names_of_databases

Serve = Callable[..., Any]


@contextmanager
def stuck_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """`get_all_databases` holds a database connection until the end. Yields a count of those that do."""
    proceed, running = threading.Event(), threading.Semaphore(0)

    def slow(self: Databases, *arguments: object, **options: object) -> list[str]:
        with self._context.database.loading():
            running.release()
            assert proceed.wait(MAX_WAIT_S)
        return ["answered"]

    monkeypatch.setattr(Databases, "get_database_names", slow)
    try:
        yield running
    finally:
        proceed.set()


def test_transactions_go_on_while_reads_hold_all_threads_and_connections(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(**{"server.threads": 3, "database.pool_size": 2, "cache.enabled": False})
    with ThreadPoolExecutor(4) as pool, stuck_reads(monkeypatch) as running:
        waiting = [pool.submit(server.link().call, "get_all_databases") for _ in range(4)]
        for _ in range(2):
            assert running.acquire(timeout=MAX_WAIT_S)
        link = server.link()
        opened = link.call("open_txns", rqst=OpenTxnRequest(num_txns=1, user="u", hostname="h"))
        link.call("heartbeat", ids=_heartbeat(opened.txn_ids[0]))
        link.call("commit_txn", rqst=_commit(opened.txn_ids[0]))
        assert not any(one.done() for one in waiting)
        server_loads = {one["pool"]: one for one in _loads(server)}
        assert server_loads["reads"]["running"] == 3
        assert server_loads["reads"]["waiting"] == 1
        assert server_loads["transactions"]["started"] >= 3


def _heartbeat(txn_id: int) -> Any:
    return HeartbeatRequest(txnid=txn_id)


def _commit(txn_id: int) -> Any:
    return CommitTxnRequest(txnid=txn_id)


def _loads(server: Any) -> list[dict[str, Any]]:
    return [asdict(one) for one in server.service._thread_pool_loads()]


def test_a_full_queue_is_told_so_and_other_pools_answer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(**{"server.threads": 1, "server.max_waiting_per_pool": 1, "cache.enabled": False})
    with ThreadPoolExecutor(2) as pool, stuck_reads(monkeypatch) as running:
        calls = [pool.submit(server.link().call, "get_all_databases")]
        assert running.acquire(timeout=MAX_WAIT_S)
        calls.append(pool.submit(server.link().call, "get_all_databases"))
        reached = threading.Event()
        while not any(one["waiting"] == 1 for one in _loads(server)):
            assert not reached.wait(0.005)
        link = server.link()
        with pytest.raises(TApplicationException, match=r"pool reads: 1 \(setting server.max_waiting_per_pool\)"):
            link.call("get_all_databases")
        assert link.call("getStatus") == 2, "the connection goes on"
        assert link.call("open_txns", rqst=OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Counts reads whose client has left, or seems to, once they occupy no place."""
    noted = threading.Semaphore(0)

    def noting(change: Callable[[ThreadPool, object], bool]) -> Callable[[ThreadPool, object], bool]:
        def change_and_note(self: ThreadPool, token: object) -> bool:
            try:
                return change(self, token)
            finally:
                noted.release()

        return change_and_note

    monkeypatch.setattr(ThreadPool, "postpone", noting(ThreadPool.postpone))
    monkeypatch.setattr(ThreadPool, "withdraw", noting(ThreadPool.withdraw))
    return noted


def _message(mode: str, method: str, **arguments: Any) -> bytes:
    call = request_bytes(method, 1, **arguments)
    return call if mode == "binary" else head(**{"Content-Length": str(len(call))}) + call


@pytest.mark.parametrize(
    ("mode", "leaves"),
    [
        *(("binary", leaves) for leaves in ("resets", "closes", "closes, having sent more")),
        *(("http", leaves) for leaves in ("resets", "closes")),  # a socket with more data is not read before the reply
    ],
)
def test_reads_of_clients_that_have_gone_take_no_places(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, left: threading.Semaphore, mode: str, leaves: str
) -> None:
    """Clients that requested something slow and disconnected occupied all places to wait, for minutes, without a
    connection."""
    settings = {"server.threads": 1, "server.max_waiting_per_pool": 2, "cache.enabled": False}
    server = serve(**settings, **{"server.transport_mode": mode})
    requested: list[str] = []
    get_database = Databases.get_database

    def noting(self: Databases, name: DatabaseName) -> Any:
        requested.append(name.database)
        return get_database(self, name)

    monkeypatch.setattr(Databases, "get_database", noting)
    with ExitStack() as sockets:
        with stuck_reads(monkeypatch) as running:
            first = sockets.enter_context(server.connect())
            first.sendall(_message(mode, "get_all_databases"))
            assert running.acquire(timeout=MAX_WAIT_S)
            for _ in range(7):
                gone = sockets.enter_context(server.connect())
                gone.sendall(_message(mode, "get_database", name="gone") * (2 if "more" in leaves else 1))
                if leaves == "resets":
                    wait_for(lambda: _reads(server)["waiting"] == 1)
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.close()
                assert left.acquire(timeout=MAX_WAIT_S)
            before = _reads(server)["waiting"]
            honest = sockets.enter_context(server.connect())
            honest.sendall(_message(mode, "get_database", name="default"))
            wait_for(lambda: _reads(server)["waiting"] == before + 1)
        assert b"default" in honest.recv(65536)
        wait_for(lambda: _reads(server)["waiting"] == _reads(server)["running"] == 0)
    assert requested[0] == "default", "it waited for nobody who had gone"
    assert requested.count("gone") <= (0 if leaves == "resets" else 4)


def _reads(server: Any) -> dict[str, Any]:
    return next(one for one in _loads(server) if one["pool"] == "reads")


@pytest.mark.parametrize("mode", ["binary", "http"])
def test_a_client_that_closes_its_half_has_its_answer_or_is_told(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, left: threading.Semaphore, mode: str
) -> None:
    settings = {"server.threads": 1, "server.max_waiting_per_pool": 1, "cache.enabled": False}
    server = serve(**settings, **{"server.transport_mode": mode})
    with ExitStack() as sockets:
        with stuck_reads(monkeypatch) as running:
            first = sockets.enter_context(server.connect())
            first.sendall(_message(mode, "get_all_databases"))
            assert running.acquire(timeout=MAX_WAIT_S)
            others = [sockets.enter_context(server.connect()) for _ in range(2)]
            for other in others:
                other.sendall(_message(mode, "get_database", name="default"))
                other.shutdown(socket.SHUT_WR)
                assert left.acquire(timeout=MAX_WAIT_S)
            assert b"server.max_waiting_per_pool" in others[1].recv(65536)
        assert b"default" in others[0].recv(65536)


def test_threads_are_started_as_calls_need_them() -> None:
    """A server had 44 of them, and each of its worker processes, whatever clients did."""
    pool = ThreadPool(3)
    pool.start()
    proceed, running = threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        running.release()
        assert proceed.wait(MAX_WAIT_S)

    assert (len(pool._threads), pool.load().threads) == (1, 3)
    wait_for(lambda: len(pool._idle) == 1)
    for number, started in enumerate((1, 2, 3, 3, 3)):
        assert pool.submit(hold, number)
        assert len(pool._threads) == started
    for _ in range(3):
        assert running.acquire(timeout=MAX_WAIT_S)
    load = pool.load()
    assert (load.running, load.waiting, load.threads) == (3, 2, 3)
    proceed.set()
    pool.close()
    pool.join(MAX_WAIT_S)
    assert pool.load().started == 5


def test_a_call_waits_for_a_thread_that_there_is_where_no_other_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = ThreadPool(2)
    pool.start()
    wait_for(lambda: len(pool._idle) == 1)
    proceed, done = threading.Event(), threading.Event()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert pool.submit(lambda: proceed.wait(MAX_WAIT_S), "first")
    assert pool.submit(done.set, "second")
    proceed.set()
    assert done.wait(MAX_WAIT_S)
    pool.close()
    pool.join(MAX_WAIT_S)


def test_a_postponed_call_waits_for_all_others() -> None:
    pool = ThreadPool(1, max_waiting=2)
    proceed, running = threading.Event(), threading.Event()
    begun: list[str] = []

    def hold() -> None:
        running.set()
        assert proceed.wait(MAX_WAIT_S)

    pool.start()
    assert pool.submit(hold, "first")
    assert running.wait(MAX_WAIT_S)
    for name in ("a", "b"):
        assert pool.submit(lambda name=name: begun.append(name), name)  # type: ignore[misc]
    assert not pool.submit(lambda: None, "no place")
    assert pool.postpone("a") and pool.postpone("b") and pool.postpone("first"), "one that runs goes on"
    for name in ("c", "d"):
        assert pool.submit(lambda name=name: begun.append(name), name)  # type: ignore[misc]
    assert not pool.postpone("c"), "as many wait so as may"
    assert pool.withdraw("a")
    assert not pool.withdraw("first")
    assert pool.load().waiting == 2
    proceed.set()
    pool.close()
    pool.join(MAX_WAIT_S)
    assert begun == ["d", "b"]


def test_calls_past_their_time_do_not_keep_their_threads(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(**{"server.threads": 2, "server.request_timeout_s": 1, "cache.enabled": False})
    with ThreadPoolExecutor(2) as pool, stuck_reads(monkeypatch):
        links = [server.link() for _ in range(2)]
        for one in [pool.submit(link.call, "get_all_databases") for link in links]:
            with pytest.raises(TApplicationException, match=r"server.request_timeout_s\); its outcome is unknown"):
                one.result(MAX_WAIT_S)
        assert {one["pool"]: one["stuck"] for one in _loads(server)}["reads"] == 2
        assert server.link().call("get_database", name="default").name == "default", "replacements answer"


def test_a_call_whose_time_is_up_in_the_queue_is_not_begun() -> None:
    pool = ThreadPool(1)
    proceed, running, begun = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        running.set()
        proceed.wait(MAX_WAIT_S)

    pool.start()
    assert pool.submit(hold, "first")
    assert running.wait(MAX_WAIT_S)
    assert pool.submit(begun.set, "second")
    assert pool.give_up("second")
    proceed.set()
    pool.close()
    pool.join(MAX_WAIT_S)
    assert not begun.is_set()


def test_a_call_whose_time_was_up_before_it_had_a_connection_is_not_carried_out(initialized_database: Database) -> None:
    """Its client got an error. Another call that runs on the thread later is not affected."""
    database = initialized_database
    pool = ThreadPool(1, connections=database.thread_connections)
    proceed, running = threading.Event(), threading.Event()
    failures = []

    def wait_and_write() -> None:
        running.set()
        assert proceed.wait(MAX_WAIT_S)
        try:
            run_write(database, lambda transaction: add_database(transaction, "given_up"))
        except DatabaseUnavailable as error:
            failures.append(error)

    pool.start()
    assert pool.submit(wait_and_write, "call")
    assert running.wait(MAX_WAIT_S)
    assert not pool.give_up("call")
    proceed.set()
    pool.close()
    pool.join(MAX_WAIT_S)
    assert len(failures) == 1
    assert names_of_databases(database) == []
    assert not database.thread_connections._given_up, "another thread may get the identifier"


def test_replacements_have_a_bound_and_go_when_the_stuck_come_back() -> None:
    pool = ThreadPool(1)
    pool.start()
    proceed = threading.Event()
    for number in range(1 + MAX_REPLACEMENTS):
        running = threading.Event()

        def hold(running: threading.Event = running) -> None:
            running.set()
            proceed.wait(MAX_WAIT_S)

        assert pool.submit(hold, number)
        assert running.wait(MAX_WAIT_S)
        assert not pool.give_up(number)
    assert pool.load().threads == 0, "no more are started"
    proceed.set()
    done = threading.Event()
    assert pool.submit(done.set, "next")
    assert done.wait(MAX_WAIT_S)
    pool.close()
    pool.join(MAX_WAIT_S)
    assert pool.load().stuck == 0


def test_a_call_past_its_time_is_told_although_no_thread_can_be_started(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system is out of threads: the client gets a reply, and the stop of the server waits for nothing."""
    server = serve(**{"server.threads": 1, "server.request_timeout_s": 0.3, "cache.enabled": False})

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with stuck_reads(monkeypatch):
        link = server.link()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(TApplicationException, match=r"server.request_timeout_s\); its outcome is unknown"):
                link.call("get_all_databases")
    assert server.link().call("get_database", name="default").name == "default", "its thread has come back"


@contextmanager
def stuck_loads(monkeypatch: pytest.MonkeyPatch, table: str) -> Iterator[threading.Semaphore]:
    """Loads of the table do not return until the end. Yields a count of those that have begun."""
    proceed, running = threading.Event(), threading.Semaphore(0)
    load = Loader._load

    def slow(self: Loader, wanted: Sequence[LoadRequest], *more: Any, **named: Any) -> bool:
        if any(one.key[-1] == table for one in wanted):
            running.release()
            assert proceed.wait(MAX_WAIT_S)
        return load(self, wanted, *more, **named)

    monkeypatch.setattr(Loader, "_load", slow)
    try:
        yield running
    finally:
        proceed.set()


@pytest.mark.parametrize("limit", ["user", "address"])
def test_one_user_or_address_cannot_load_everything_at_once(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    server = serve(**{f"cache.max_loads_per_{limit}": 1, "cache.warm": "off", "cache.refill": "none"})
    greedy, more, other = server.link(), server.link(), server.link()
    for link, user in ((greedy, "ann"), (more, "ann"), (other, "bob")):
        link.call("set_ugi", user_name=user, group_names=[])
    for name in ("first", "second", "third"):
        table = Table(dbName="default", tableName=name, sd=StorageDescriptor(cols=[], serdeInfo=SerDeInfo()))
        greedy.call("create_table", tbl=table)
    with ThreadPoolExecutor(1) as pool, stuck_loads(monkeypatch, "first") as running:
        waiting = pool.submit(greedy.call, "get_table", dbname="default", tbl_name="first")
        assert running.acquire(timeout=MAX_WAIT_S)
        with pytest.raises(MetaException) as refused:
            more.call("get_table", dbname="default", tbl_name="second")
        assert f"setting cache.max_loads_per_{limit}" in refused.value.message
        more.call("drop_table", dbname="default", name="third", deleteData=False)
        if limit == "user":
            assert other.call("get_table", dbname="default", tbl_name="second").tableName == "second"
    assert waiting.result(MAX_WAIT_S).tableName == "first"
    assert more.call("get_table", dbname="default", tbl_name="second").tableName == "second", (
        "what ended does not count"
    )
    counted = f'hms_cache_cache_loads_over_client_limit_total{{scope="{limit}"}} 1.0'
    assert counted in server.service.metrics.text().decode()


@pytest.mark.parametrize("limit", ["user", "address"])
def test_one_user_or_address_cannot_take_all_threads(serve: Serve, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    server = serve(**{f"server.max_calls_per_{limit}": 1, "cache.enabled": False})
    greedy, more, other = server.link(), server.link(), server.link()
    for link, user in ((greedy, "ann"), (more, "ann"), (other, "bob")):
        link.call("set_ugi", user_name=user, group_names=[])
    with ThreadPoolExecutor(1) as pool, stuck_reads(monkeypatch) as running:
        pool.submit(greedy.call, "get_all_databases")
        assert running.acquire(timeout=MAX_WAIT_S)
        with pytest.raises(MetaException) as refused:
            more.call("get_database", name="default")
        assert f"setting server.max_calls_per_{limit}" in refused.value.message
        with pytest.raises(TApplicationException, match=f"server.max_calls_per_{limit}"):
            more.call("get_open_txns")
        if limit == "user":
            assert other.call("get_database", name="default").name == "default"
    assert greedy.call("getStatus") == 2
    assert more.call("get_database", name="default").name == "default", "what ended does not count"
