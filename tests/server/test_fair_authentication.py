"""An address whose attempts to authenticate fail slowly keeps no other out: steps, tokens and long frames take
turns."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from hms_cache.authentication.directory import Directory
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.server.transports.fair_threads import FairThreads
from hms_cache.server.transports.sasl import STEP_THREADS
from tests.server.conftest import Running, Serve
from tests.server.kerberos_realm import SaslSocket
from tests.server.test_tls import wait_for

pytest.importorskip("ldap3")

SETTINGS: dict[str, Any] = {
    "authentication.plain": "ldap",
    "authentication.ldap_url": "ldap://127.0.0.1:1",
    "authentication.ldap_user_dn_pattern": "uid=%s,dc=example,dc=test",
    "security.accept_insecure": True,
}
CROWD = 5 * STEP_THREADS
SLOW_S = 1.0


class SlowDirectory:
    """Takes time for a wrong password, as directories do to prevent guessing."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.gate = threading.Event()
        self.slow_s = SLOW_S

    def check(self, directory: Directory, user: str, password: str) -> None:
        """Replaces `Directory.check`."""
        self.requested.append(user)
        if password != "right":
            self.gate.wait(self.slow_s)
            raise AuthenticationError("wrong name or password")


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDirectory]:
    found = SlowDirectory()
    monkeypatch.setattr(Directory, "check", lambda *given: found.check(*given))
    yield found
    found.gate.set()


def connected(server: Running, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20, source_address=(address, 0))


def guess(sock: socket.socket, number: int) -> None:
    payload = f"\0guess{number}\0wrong".encode()
    sock.sendall(struct.pack("!BI", 1, 5) + b"PLAIN" + struct.pack("!BI", 5, len(payload)) + payload)


def test_a_client_does_not_wait_behind_the_crowd_of_another_address(serve: Serve, directory: SlowDirectory) -> None:
    server = serve(**SETTINGS)
    crowd = [connected(server, "127.0.0.2") for _ in range(CROWD)]
    for number, sock in enumerate(crowd):
        guess(sock, number)
    wait_for(lambda: len(directory.requested) >= STEP_THREADS)
    assert SaslSocket(connected(server, "127.0.0.3")).plain("ann", "right")[0] == 5
    for sock in crowd:
        sock.close()
    # By number, not by time: those before it were already checked, or had their turn during its handshake.
    assert directory.requested.index("ann") <= 3 * STEP_THREADS, f"behind {CROWD} guesses on {STEP_THREADS} threads"


def test_nobody_is_asked_for_clients_that_were_given_up(serve: Serve, directory: SlowDirectory) -> None:
    """Their time limit expired before a thread was free. Otherwise, what they sent would keep waiting, and others
    behind it, for as long as the directory takes for all of them."""
    directory.slow_s = 20
    server = serve(**SETTINGS, **{"authentication.handshake_timeout_s": 3})
    crowd = [connected(server, "127.0.0.2") for _ in range(CROWD)]
    for number, sock in enumerate(crowd):
        guess(sock, number)
    for sock in crowd:
        with suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        sock.close()
    assert len(directory.requested) == STEP_THREADS
    directory.gate.set()
    assert SaslSocket(connected(server, "127.0.0.2")).plain("ann", "right")[0] == 5
    assert directory.requested[STEP_THREADS:] == ["ann"]


def test_addresses_have_turns() -> None:
    threads = FairThreads(1, "test")
    gate, done = threading.Event(), []

    def note(name: str) -> Callable[[], None]:
        return lambda: done.append(name)

    threads.submit("a", gate.wait, lambda: True)
    for number in range(3):
        threads.submit("a", note(f"a{number}"), lambda: True)
    for number in range(2):
        threads.submit("b", note(f"b{number}"), lambda: True)
    threads.submit("c", note("left out"), lambda: False)
    gate.set()
    wait_for(lambda: not threads.waiting())
    threads.close()
    wait_for(lambda: len(done) == 5)
    assert sorted(done[:2]) == ["a0", "b0"] and done[-1] == "a2"
