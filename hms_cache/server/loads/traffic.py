"""What open connections have carried, by user and address, as the system counts it: nothing is noted for each call."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import Literal

from hms_cache.metrics.loads import PLACES, Traffic
from hms_cache.server.admission import Guest
from hms_cache.server.connection import Connection

_ACKNOWLEDGED_AT = 120
"""In `struct tcp_info` of Linux: `tcpi_bytes_acked` and behind it `tcpi_bytes_received`, 64 bits each."""


def traffic_by(of: Literal["user", "address"], guests: Iterable[Guest]) -> tuple[Traffic, ...]:
    """Sums over the connections that are open; the names that were sent the most first, `PLACES` of them."""
    sums: dict[str, list[int]] = {}
    for one in guests:
        if not isinstance(one, Connection):
            continue
        received_bytes, sent_bytes = bytes_carried(one.raw_socket)
        found = sums.setdefault(one.client(of), [0, 0, 0])
        found[0] += 1
        found[1] += received_bytes
        found[2] += sent_bytes
    rows = [Traffic(name, *found) for name, found in sums.items()]
    return tuple(sorted(rows, key=lambda one: (-one.sent_bytes, -one.received_bytes, one.name))[:PLACES])


def bytes_carried(sock: socket.socket | None) -> tuple[int, int]:
    """(received, sent and acknowledged) over the connection's life, TLS included. Linux; elsewhere zeros."""
    if sock is None or not hasattr(socket, "TCP_INFO") or sock.family == socket.AF_UNIX:
        return 0, 0
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED_AT + 16)
    except OSError:  # it has just been closed
        return 0, 0
    if len(info) < _ACKNOWLEDGED_AT + 16:
        return 0, 0
    sent_bytes, received_bytes = struct.unpack_from("=QQ", info, _ACKNOWLEDGED_AT)
    return received_bytes, sent_bytes
