"""Clients that never call are let go, whenever they came."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.server.conftest import PATIENCE_S, Serve

CLIENTS = 150
LIMIT_S = 0.21


def test_the_time_of_one_is_up_right_after_that_of_another(serve: Serve) -> None:
    """uvloop has no timer for less than half a millisecond: what is due then is a handle that knows no time."""
    server = serve(**{"server.first_call_timeout_s": LIMIT_S})
    for _ in range(3):
        with ExitStack() as stack:
            clients = []
            for _ in range(CLIENTS):
                clients.append(stack.enter_context(server.connect()))
                time.sleep(0.0007)  # not all at one moment: the next one's time is up soon after
            for client in clients:
                client.settimeout(PATIENCE_S)
                assert client.recv(1) == b""
