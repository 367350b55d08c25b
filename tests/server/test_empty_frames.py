"""Empty frames and records of an authenticated client: a few are accepted, but not an endless number."""

from __future__ import annotations

import _ssl
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.server.transports.sasl import MAX_EMPTY_FRAMES
from hms_cache.server.transports.tls import MAX_EMPTY_BYTES
from tests.server.conftest import Link, Running, Serve
from tests.server.kerberos_realm import Realm, realm_of_this_process
from tests.server.test_delegation_tokens import requested, with_ticket, with_token
from tests.server.test_kerberos import authentications, settings_of, signed_in
from tests.server.test_tls import Authority, wait_for
from tests.server.test_tls_keys import KEY_UPDATE_BYTES, KeyClient

pytest.importorskip("gssapi")


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann") as running:
        yield running


QUALITIES = {"auth": 1, "auth-int": 2, "auth-conf": 4}


def by_ticket(server: Running, realm: Realm, quality: str) -> Link:
    return signed_in(server, realm, QUALITIES[quality])


def by_token(server: Running, realm: Realm, quality: str) -> Link:
    return with_token(server, requested(with_ticket(server, realm, "ann"), "ann"), quality)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("signed", [by_ticket, by_token])
def test_empty_frames(
    serve: Serve, realm: Realm, signed: Callable[[Running, Realm, str], Link], quality: str, caplog: Any
) -> None:
    server = serve(**settings_of(realm))
    link, other = signed(server, realm, quality), signed_in(server, realm)
    for _ in range(3):
        for _ in range(MAX_EMPTY_FRAMES):
            link.sock.sendall(b"")
        assert link.call("getStatus") == 2  # restarts the count
        request = link.request("getName")
        for piece in (request[:7], b"", request[7:]):
            link.sock.sendall(piece)
        assert link.reply("getName") == "new db based metaserver"
    assert authentications(server).keys() == {"ok"}
    for _ in range(MAX_EMPTY_FRAMES + 1):
        link.sock.sendall(b"")
    with pytest.raises((EOFError, ConnectionError)):
        link.sock.exactly(1)  # type: ignore[attr-defined]
    wait_for(lambda: authentications(server).get("bad_frame") == 1)
    assert f"more than {MAX_EMPTY_FRAMES} empty frames in a row" in caplog.text
    assert other.call("getStatus") == 2


def test_many_at_once(serve: Serve, realm: Realm) -> None:
    """They wait for their turn, and end with the first that is one too many."""
    server = serve(**settings_of(realm))
    link = signed_in(server, realm)
    sock = link.sock.sock  # type: ignore[attr-defined]
    with pytest.raises(ConnectionError):  # otherwise the server reads without end
        for _ in range(10_000):
            sock.sendall(bytes(4 * 1000))
    wait_for(lambda: authentications(server) == {"ok": 1, "bad_frame": 1})
    assert signed_in(server, realm).call("getStatus") == 2


def test_keys_of_tls_without_end(serve: Serve, tmp_path: Path, caplog: Any) -> None:
    if not hasattr(ctypes.CDLL(_ssl.__file__), "SSL_key_update"):
        pytest.skip("this Python hides its OpenSSL")
    server = serve(**Authority(tmp_path).settings())
    client = KeyClient(server.connect())
    link = Link(client)  # type: ignore[arg-type]
    for _ in range(3):
        for _ in range(MAX_EMPTY_BYTES // KEY_UPDATE_BYTES // 2):
            assert client.change_key()
        assert link.call("getStatus") == 2
    changed = 0
    while client.change_key():
        changed += 1
        assert changed < 10 * MAX_EMPTY_BYTES // KEY_UPDATE_BYTES
    client.close()
    assert changed >= MAX_EMPTY_BYTES // KEY_UPDATE_BYTES
    assert "closing the connection of 127.0.0.1: it sends TLS records without content" in caplog.text
