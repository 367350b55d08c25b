"""A realm of MIT Kerberos for tests: its KDC as a process, keytabs, tickets, and a client of Thrift's SASL."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from hms_cache.authentication.digest_md5 import DigestLayer
from hms_cache.cli.demo.realm import TOOLS, KerberosRealm, tool

REALM = "EXAMPLE.TEST"


class Realm(KerberosRealm):
    """A running KDC, with tickets."""

    def __init__(self, directory: Path, name: str = REALM) -> None:
        super().__init__(directory, name)

    def ticket(self, user: str, *options: str) -> Path:
        """A cache with a ticket of the user's."""
        cache = self.directory / f"{user.replace('/', '_')}.cache"
        self.run("kinit", *options, "-c", f"FILE:{cache}", "-k", "-t", str(self.keytab(user)), user)
        return cache


@contextmanager
def running_realm(directory: Path, name: str = REALM) -> Iterator[Realm]:
    """Skips the test if MIT Kerberos is not installed."""
    if any(tool(one) is None for one in (*TOOLS, "kinit")):
        pytest.skip("needs krb5-kdc, krb5-admin-server and krb5-user")
    realm = Realm(directory, name)
    try:
        yield realm
    finally:
        realm.close()


@contextmanager
def realm_of_this_process(directory: Path, *users: str) -> Iterator[Realm]:
    """A realm used by this process, with the service `hive/localhost` and a ticket for each user.

    There is no default ticket cache: a ticket is only used if a test says so.
    """
    with running_realm(directory) as realm, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(realm.configuration))
        patch.setenv("KRB5CCNAME", "FILE:/nonexistent")
        realm.keytab("hive/localhost")
        for user in users:
            realm.ticket(user)
        yield realm


class SaslSocket:
    """Thrift's TSaslClientTransport over a socket, for `Link`: framed, and protected if this was negotiated."""

    def __init__(self, sock: Any) -> None:
        self.sock = sock
        self.wrap: Any = None
        self.unwrap: Any = None
        self._buffer = b""

    def message(self, status: int, payload: bytes) -> None:
        self.sock.sendall(struct.pack("!BI", status, len(payload)) + payload)

    def answer(self) -> tuple[int, bytes]:
        status, length = struct.unpack("!BI", self.exactly(5))
        return status, self.exactly(length)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError("the server closed the connection")
            data += piece
        return data

    def sendall(self, data: bytes) -> None:
        token = self.wrap(data) if self.wrap else data
        self.sock.sendall(struct.pack("!I", len(token)) + token)

    def recv(self, size: int) -> bytes:
        while not self._buffer:
            header = self.sock.recv(4)
            if not header:
                return b""
            header += self.exactly(4 - len(header)) if len(header) < 4 else b""
            token = self.exactly(struct.unpack("!I", header)[0])
            self._buffer = self.unwrap(token) if self.unwrap else token
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def plain(self, user: str, password: str, acting_as: str = "") -> tuple[int, bytes]:
        self.message(1, b"PLAIN")
        self.message(5, f"{acting_as}\0{user}\0{password}".encode())
        return self.answer()

    def gssapi(self, cache: Path, service: str, quality: int = 1, acting_as: str = "") -> tuple[int, bytes]:
        """Completes the negotiation like Java's client. Returns the server's last message."""
        import gssapi

        credentials = gssapi.Credentials(usage="initiate", store={"ccache": f"FILE:{cache}"})
        target = gssapi.Name(service, gssapi.NameType.kerberos_principal)
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.confidentiality
        flags |= gssapi.RequirementFlag.integrity
        context = gssapi.SecurityContext(name=target, creds=credentials, usage="initiate", flags=flags)
        token = context.step()
        self.message(1, b"GSSAPI")
        self.message(2, token)
        while True:
            status, challenge = self.answer()
            if status != 2:
                return status, challenge
            if not context.complete:
                self.message(2, context.step(challenge) or b"")
                continue
            offer = context.unwrap(challenge).message
            self.offered = offer[0]
            choice = bytes([quality]) + (b"\0\0\0" if quality == 1 else b"\1\0\0") + acting_as.encode()
            self.message(5, context.wrap(choice, False).message)
            status, challenge = self.answer()
            if status == 5 and quality != 1:
                self.wrap = lambda data: context.wrap(data, quality == 4).message
                self.unwrap = lambda data: context.unwrap(data).message
            return status, challenge

    def digest(self, identifier: bytes, password: bytes, quality: str = "auth", **changed: bytes) -> tuple[int, bytes]:
        """Like Hadoop's client with a token (RFC 2831); `changed`: directives to replace. Returns the last message."""
        self.message(1, b"DIGEST-MD5")
        self.message(2, b"")
        status, challenge = self.answer()
        if status != 2:
            return status, challenge
        self.challenge = dict(re.findall(r'([\w-]+)="?([^",]*)"?', challenge.decode()))
        uri, realm, nonce = b"null/default", b"default", re.findall(rb'nonce="([^"]*)"', challenge)[0]
        told = {b"username": base64.b64encode(identifier), b"realm": realm, b"nonce": nonce, b"nc": b"00000001"}
        told |= {b"cnonce": base64.b64encode(os.urandom(20)), b"digest-uri": uri, b"qop": quality.encode()}
        if quality == "auth-conf":
            told[b"cipher"] = b"3des"
        told |= {name.replace("_", "-").encode(): value for name, value in changed.items()}
        start = md5(b":".join((told[b"username"], told[b"realm"], base64.b64encode(password)))).digest()
        session = md5(b":".join((start, told[b"nonce"], told[b"cnonce"]))).digest()

        def proof(method: bytes) -> bytes:
            a2 = method + b":" + told[b"digest-uri"] + (b"" if quality == "auth" else b":" + b"0" * 32)
            parts = (told[b"nonce"], told[b"nc"], told[b"cnonce"], told[b"qop"])
            return md5(b":".join((session.hex().encode(), *parts, md5(a2).hexdigest().encode()))).hexdigest().encode()

        told.setdefault(b"response", proof(b"AUTHENTICATE"))
        plain = (b"nc", b"qop", b"response", b"cipher")
        self.message(2, b",".join(k + (b"=%s" if k in plain else b'="%s"') % v for k, v in told.items()))
        status, answer = self.answer()
        if status == 5:
            assert answer == b"rspauth=" + proof(b"")
            if quality != "auth":
                layer = DigestLayer(session, encrypts=quality == "auth-conf", is_server=False)
                self.wrap, self.unwrap = layer.wrap, layer.unwrap
        return status, answer
