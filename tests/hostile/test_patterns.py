"""Patterns, filters and expressions intended to keep a server busy: others are answered meanwhile."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from thrift.Thrift import TException

from tests.hostile.call_attacks import PATTERN_ATTACKS, CallAttack, make_tables
from tests.servers import MAX_WAIT_S, ServerProcess, metastore_client, server_process

ROUNDS = 5
"""Questions of the second client for each attack; each is sent while attacks go on, and has MAX_WAIT_S."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, int]]:
    directory = tmp_path_factory.mktemp("patterns")
    with socket.create_server(("127.0.0.1", 0)) as free:
        admin_port = free.getsockname()[1]
    settings: dict[str, object] = {"admin.port": admin_port}
    with server_process(directory, f"sqlite:///{directory / 'metastore.db'}", settings) as running:
        with metastore_client(running.port) as client:
            make_tables(client)
        yield running, admin_port


@pytest.mark.parametrize("attack", PATTERN_ATTACKS)
def test_others_are_answered(server: tuple[ServerProcess, int], attack: CallAttack) -> None:
    running, admin_port = server
    livez = f"http://127.0.0.1:{admin_port}/livez"
    over, began = threading.Event(), threading.Event()
    ended: list[str] = []

    def attacker() -> None:
        with metastore_client(running.port) as client:
            while not over.is_set():
                began.set()
                try:
                    attack(client)
                    ended.append("answered")
                except TException as error:
                    ended.append(type(error).__name__)

    thread = threading.Thread(target=attacker)
    thread.start()
    try:
        assert began.wait(MAX_WAIT_S)
        with metastore_client(running.port) as client:
            for _ in range(ROUNDS):
                assert client.getName() == "new db based metaserver"
                with urllib.request.urlopen(livez, timeout=MAX_WAIT_S) as answer:
                    assert answer.status == 200
    finally:
        over.set()
        thread.join(MAX_WAIT_S)
    assert not thread.is_alive(), "the attack still runs"
    assert ended and set(ended) <= {"answered", "MetaException"}, set(ended)
