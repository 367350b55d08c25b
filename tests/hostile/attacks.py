"""Attacks on a server that does not authenticate clients: each needs only a socket."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from tests.server.conftest import request_bytes

MAX_WAIT_S = 30.0

MiB = 1024 * 1024


class Attacker:
    """The connections of one hostile machine. The server may refuse what they send at any point, which is not a
    failure."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sockets: list[socket.socket] = []

    def connect(self, receive_buffer_bytes: int | None = None) -> socket.socket | None:
        """Returns a connection that stays open; None if the server refuses it."""
        link = socket.socket()
        if receive_buffer_bytes:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        link.settimeout(MAX_WAIT_S)
        try:
            link.connect(("127.0.0.1", self._port))
        except OSError:
            link.close()
            return None
        self.sockets.append(link)
        return link

    def send(self, link: socket.socket | None, data: bytes, timeout_s: float = MAX_WAIT_S) -> bool:
        """Returns False if the server did not accept all of it."""
        if link is None:
            return False
        link.settimeout(timeout_s)
        try:
            link.sendall(data)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """All connections, in order."""
        for link in self.sockets:
            link.close()
        self.sockets.clear()


Attack = Callable[[Attacker], None]
"""One connection's worth, or a few; to be repeated."""


def connects(attacker: Attacker) -> None:
    """Connects and sends nothing."""
    attacker.connect()


def begins_a_header(attacker: Attacker) -> None:
    attacker.send(attacker.connect(), request_bytes("get_table", 1, dbname="d", tbl_name="t")[:9])


def leaves_a_long_text_unfinished(attacker: Attacker) -> None:
    """8 MiB of a key of 20 MiB."""
    link = attacker.connect()
    head = b"\x80\x01\x00\x01\x00\x00\x00\x09getOption\0\0\0\1\x0b\x00\x01" + struct.pack("!i", 20 * MiB)
    attacker.send(link, head + b"k" * (8 * MiB))


def leaves_many_objects_unfinished(attacker: Attacker) -> None:
    """Sends half of a list of a million structs of one byte each, which take 136 bytes in memory."""
    link = attacker.connect()
    name = b"add_partitions"
    head = b"\x80\x01\x00\x01" + struct.pack("!i", len(name)) + name + b"\0\0\0\1\x0f\x00\x01\x0c"
    attacker.send(link, head + struct.pack("!i", MiB) + bytes(MiB // 2))


def sends_bytes_one_by_one(attacker: Attacker) -> None:
    """Sends one byte per segment. (Loopback joins some; each read of the server still gets few.)"""
    link = attacker.connect()
    if link is None:
        return
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = b"\x80\x01\x00\x01\x00\x00\x00\x09getOption\0\0\0\1\x0b\x00\x01" + struct.pack("!i", MiB)
    if attacker.send(link, head):
        with suppress(OSError):
            for _ in range(500):
                link.send(b"k")


def reads_no_replies(attacker: Attacker) -> None:
    """Requests some 50 KB many times and reads nothing."""
    link = attacker.connect(receive_buffer_bytes=4096)
    request = request_bytes("set_ugi", 1, user_name="u", group_names=["g" * 200] * 50)
    attacker.send(link, request * 700, timeout_s=0.2)


def leaves_while_calls_run(attacker: Attacker) -> None:
    for number in range(5):
        link = attacker.connect()
        attacker.send(link, request_bytes("get_open_txns", number))
        if link is not None:
            link.close()


def resets_while_calls_run(attacker: Attacker) -> None:
    for number in range(5):
        link = attacker.connect()
        attacker.send(link, request_bytes("get_open_txns", number))
        if link is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()


def sets_large_options(attacker: Attacker) -> None:
    link = attacker.connect()
    for number in range(4):
        attacker.send(link, request_bytes("setOption", number, key=f"k{number}", value="v" * (4 * MiB)))


def has_a_large_name(attacker: Attacker) -> None:
    link = attacker.connect()
    attacker.send(link, request_bytes("set_ugi", 1, user_name="u" * (4 * MiB), group_names=[]))
    attacker.send(link, request_bytes("drop_database", 2, name="d" * MiB, deleteData=False, cascade=False))


def sends_rubbish(attacker: Attacker) -> None:
    attacker.send(attacker.connect(), b"\xde\xad\xbe\xef" * 4096)


ATTACKS: tuple[Attack, ...] = (
    connects,
    begins_a_header,
    leaves_a_long_text_unfinished,
    leaves_many_objects_unfinished,
    sends_bytes_one_by_one,
    reads_no_replies,
    leaves_while_calls_run,
    resets_while_calls_run,
    sets_large_options,
    has_a_large_name,
    sends_rubbish,
)
