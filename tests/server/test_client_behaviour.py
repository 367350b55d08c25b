"""Whatever a client does, at whatever point of a call: afterwards, the server holds nothing of it.

Each point of a call (`client_moments`) is combined with everything a client may do there, in each encoding, on both
event loops. Sockets, threads, tasks, calls, buffered bytes and connection objects, and with them timers, must return to
their previous numbers; clients must get the replies that they are owed.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

import hms_cache.app.service as service_module
from hms_cache.app import event_loop
from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.server.calls import Call
from hms_cache.server.listener import Listener
from tests.server import client_moments as moments
from tests.server.client_moments import ENCODINGS, Bench, Client, running, wait_for

THREADS = 2

MOMENTS: tuple[Callable[[Bench, str], Client], ...] = (
    moments.connected,
    moments.in_header,
    moments.in_arguments,
    moments.queued,
    moments.running,
    moments.whole_call_behind,
    moments.part_behind,
    moments.much_behind,
    moments.checking,
    moments.replying,
    moments.replying_with_a_call_behind,
    moments.answered,
)

PARTIAL = (moments.in_header, moments.in_arguments, moments.part_behind)
"""Where the client has sent part of a message."""

STALLS_FOR_EVER = (*PARTIAL, moments.connected, moments.replying, moments.replying_with_a_call_behind)
"""Where a client that does nothing more holds something until a time limit ends it."""


QUICK = ("binary", "framed compact")
"""Encodings that every run tries; the soak tries all, on both event loops."""


@pytest.fixture(scope="module", params=["uvloop", pytest.param("asyncio", marks=pytest.mark.soak)])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server on one of the event loops, with short time limits and few threads."""
    directory: Path = tmp_path_factory.mktemp("bench")
    new_loop = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    listeners: list[Listener] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_loop, "new_event_loop", new_loop)

        class AnswerPositions(service_module.MetastoreServer):  # type: ignore[name-defined]
            def __init__(self, *arguments: object, **named: object) -> None:
                super().__init__(*arguments, **named)  # type: ignore[arg-type]
                listeners.append(self.listener)

        patch.setattr(service_module, "MetastoreServer", AnswerPositions)
        settings = {
            "server.port": 0,
            "server.threads": THREADS,
            "server.transaction_threads": THREADS,  # of the calls that are held
            "server.message_timeout_s": 0.3,
            "server.write_timeout_s": 1.0,  # a busy machine may keep the honest client from reading for a moment
            "server.first_call_timeout_s": 0.3,
            "admin.enabled": False,
            "database.url": f"sqlite:///{directory / 'metastore.db'}",
            "warehouse.directory": str(directory / "warehouse"),
        }
        service = Service(load(command_line=settings, environment={}))
        port = int(service.start().rpartition(":")[2])
        try:
            bench = Bench(service, listeners[0], patch)
            bench.port = port
            _warm_up(bench)
            yield bench
        finally:
            service.stop()


def _warm_up(bench: Bench) -> None:
    """Objects created at their first use, such as database connections and threads of a pool, are no leaks."""
    with bench.holding():
        busy = [running(bench, "binary") for _ in range(THREADS)]
    for client in busy:
        client.read_expected()
        client.close()
    clients = [Client(bench.port, "binary") for _ in range(THREADS * 2)]
    for client in clients:
        client.send(moments.HELD)
        client.send("get_database", name="default")
    for client in clients:
        client.read_expected()
        client.close()
    wait_for(lambda: not bench.listener.connections, bench.resources)


def close(bench: Bench, client: Client, moment: object) -> None:
    client.close()
    bench.let_go()


def close_when_answered(bench: Bench, client: Client, moment: object) -> None:
    """Immediately after the call continued: the reply meets a client that is leaving."""
    bench.let_go()
    client.close()


def reset(bench: Bench, client: Client, moment: object) -> None:
    client.reset()
    bench.let_go()


def may_be_over(moment: object) -> AbstractContextManager[None]:
    """On a busy machine, the time limit for a part of a message may expire before the client continues: it got an
    error, and was closed."""
    return suppress(OSError) if moment in PARTIAL else nullcontext()


def half_close(bench: Bench, client: Client, moment: object) -> None:
    """Legal: the client sends no more and reads its replies; then the server must end the conversation."""
    with may_be_over(moment):
        client.sock.shutdown(socket.SHUT_WR)
    bench.let_go()
    client.read_expected()
    # On a busy machine, the time limit of a part of a message may expire before: then its error comes first.
    assert client.is_closed_by_server() or (moment in PARTIAL and client.is_closed_after_error())
    client.close()


def half_close_then_close(bench: Bench, client: Client, moment: object) -> None:
    with may_be_over(moment):
        client.sock.shutdown(socket.SHUT_WR)
    client.close()
    bench.let_go()


def half_close_then_reset(bench: Bench, client: Client, moment: object) -> None:
    with may_be_over(moment):
        client.sock.shutdown(socket.SHUT_WR)
    client.reset()
    bench.let_go()


def stall(bench: Bench, client: Client, moment: object) -> None:
    """The client does nothing at all. If this holds something, the server must end the connection; otherwise not."""
    bench.let_go()
    if moment in STALLS_FOR_EVER:
        wait_for(lambda: not bench.listener.connections, bench.resources)
    else:
        client.read_expected()
        client.send("getStatus")
        client.read_expected()
    client.close()


def send_more(bench: Bench, client: Client, moment: object) -> None:
    """Pipelined requests are answered, all and in order."""
    if moment not in PARTIAL:
        client.send("getStatus")
        client.send("get_database", name="default")
        client.send("getName")
        bench.let_go()
        client.read_expected()
    else:
        bench.let_go()
    client.close()


def send_rubbish(bench: Bench, client: Client, moment: object) -> None:
    """Bytes that are not a message end the conversation, after the replies to what came before."""
    with may_be_over(moment):
        client.sock.sendall(b"\xff" * 4096)
    bench.let_go()
    if moment not in PARTIAL:
        client.read_expected()
    while not client.is_closed_by_server():
        pass
    client.close()


ACTIONS = (
    close,
    close_when_answered,
    reset,
    half_close,
    half_close_then_close,
    half_close_then_reset,
    stall,
    send_more,
    send_rubbish,
)


@pytest.mark.parametrize(
    "encodings",
    [pytest.param(QUICK, id="quick"), pytest.param(ENCODINGS, id="all", marks=[pytest.mark.soak, pytest.mark.long])],
)
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.__name__)
def test_nothing_is_left_of_a_client(
    bench: Bench,
    moment: Callable[[Bench, str], Client],
    action: Callable[[Bench, Client, object], None],
    encodings: tuple[str, ...],
) -> None:
    before = bench.resources()
    for encoding in encodings:
        if moment is moments.checking and encoding not in ("binary", "framed binary"):
            continue
        others: list[Client] = []
        with bench.holding(checks=moment is moments.checking):
            if moment is moments.queued:
                others = [running(bench, "binary") for _ in range(THREADS)]
            client = moment(bench, encoding)
            action(bench, client, moment)
        for other in others:
            other.read_expected()
            other.close()
        wait_for(lambda: is_no_more(bench.resources(), before), lambda: (before, bench.resources()))


def is_no_more(now: Mapping[str, int], before: Mapping[str, int]) -> bool:
    """Fewer are no leak: objects of an earlier test's client may still have existed before."""
    return all(count <= before[what] for what, count in now.items())


def test_another_client_is_answered_meanwhile(bench: Bench) -> None:
    """All points at once, in all encodings: calls answered on the loop are answered."""
    before = bench.resources()
    with bench.holding():
        clients = [running(bench, "binary") for _ in range(THREADS)]
        for moment in (moments.in_header, moments.in_arguments, moments.queued):
            clients += [moment(bench, encoding) for encoding in ENCODINGS]
        honest = Client(bench.port, "binary")
        for _ in range(10):
            honest.send("getName")
            honest.read_reply()
        honest.close()
        for client in clients:
            client.reset()
    wait_for(lambda: is_no_more(bench.resources(), before), lambda: (before, bench.resources()))


def test_thousands_of_calls_sent_ahead_take_turns_with_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = bench.listener.dispatcher._handlers
    assert isinstance(handlers, dict)
    handlers_before = dict(handlers)
    answered: list[str] = []
    for name in ("getStatus", "getName"):

        def noted(call: Call, arguments: object, name: str = name) -> object:
            answered.append(name)
            return handlers_before[name].function(call, arguments)

        monkeypatch.setitem(handlers, name, replace(handlers[name], function=noted))
    greedy, modest = Client(bench.port, "binary"), Client(bench.port, "binary")
    for client in (greedy, modest):
        client.send("getVersion")
        client.read_reply()
    blocked, proceed = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        assert proceed.wait(moments.MAX_WAIT_S)

    bench.listener.loop.call_soon_threadsafe(block)
    assert blocked.wait(moments.MAX_WAIT_S)
    greedy.sock.sendall(b"".join(greedy.request("getStatus") for _ in range(3000)))
    modest.send("getName")
    proceed.set()
    modest.read_expected()
    greedy.read_expected()
    # By number, not by time: all 3000 would take many turns, and the modest client waits for one or two of them.
    assert answered.index("getName") < 1500
    greedy.close()
    modest.close()


def test_short_requests_come_before_long_ones_of_the_same_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = bench.listener.dispatcher._handlers
    assert isinstance(handlers, dict)
    handlers_before = dict(handlers)
    answered: list[str] = []
    for name in ("getOption", "getName"):

        def noted(call: Call, arguments: object, name: str = name) -> object:
            answered.append(name)
            return handlers_before[name].function(call, arguments)

        monkeypatch.setitem(handlers, name, replace(handlers[name], function=noted))
    greedy, modest = [Client(bench.port, "binary") for _ in range(20)], Client(bench.port, "binary")
    for client in (*greedy, modest):
        client.send("getVersion")
        client.read_reply()
    blocked, proceed = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        assert proceed.wait(moments.MAX_WAIT_S)

    bench.listener.loop.call_soon_threadsafe(block)
    assert blocked.wait(moments.MAX_WAIT_S)
    for client in greedy:
        client.send("getOption", key="k" * 4000)
    modest.send("getName")
    proceed.set()
    for client in (*greedy, modest):
        client.read_expected()
        client.close()
    assert answered == ["getName"] + ["getOption"] * len(greedy)
