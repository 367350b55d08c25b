"""Clients that never make a call are closed, whenever they connected."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from hms_cache.server import listener as listener_module
from hms_cache.server.connection import Connection
from hms_cache.server.listener import LATE_S, Listener
from hms_cache.server.port import Port
from tests.server.conftest import MAX_WAIT_S, Serve

CLIENTS = 150
LIMIT_S = 0.21


def test_the_time_of_one_is_up_right_after_that_of_another(serve: Serve) -> None:
    """uvloop has no timers below half a millisecond: what is due then is a handle without a time."""
    server = serve(**{"server.first_call_timeout_s": LIMIT_S})
    for _ in range(3):
        with ExitStack() as stack:
            clients = []
            for _ in range(CLIENTS):
                clients.append(stack.enter_context(server.connect()))
                time.sleep(0.0007)  # not all at the same time: the next one expires soon after
            for client in clients:
                client.settimeout(MAX_WAIT_S)
                assert client.recv(1) == b""


def test_a_loop_that_is_late_each_time_lets_them_go_too(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that arrived while it was stopped are read first, but not for ever."""
    listeners: list[Listener] = []

    class Noting(Connection):
        def __init__(self, listener: Listener, port: Port) -> None:
            super().__init__(listener, port)
            listeners.append(listener)

    monkeypatch.setattr(listener_module, "Connection", Noting)
    server = serve(**{"server.first_call_timeout_s": LIMIT_S})
    with server.connect() as client:
        client.settimeout(MAX_WAIT_S)
        while not listeners:
            time.sleep(0.01)
        loop = listeners[0].loop
        let_go: list[bytes] = []

        def stand_still() -> None:
            if not let_go:
                time.sleep(LATE_S * 2 + 0.1)  # a callback delayed by LATE_S is late again
                loop.call_soon(stand_still)

        loop.call_soon_threadsafe(stand_still)
        try:
            assert client.recv(1) == b""
        finally:
            let_go.append(b"")
